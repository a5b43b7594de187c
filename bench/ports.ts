/** Ports of the loopback interface for what is started beside a bench or a test. */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Ports below those that systems choose from by themselves (Linux from 32768 on, others from 49152): no connection takes one between the question
 * and its use. Every process begins anywhere among them, so that processes that ask at the same time are not given the same.
 */
const first = 20_000
const ports = 12_000
let next = randomInt(ports)

/** A free TCP port of the loopback interface; none is given out again before all others were. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < ports; tries++) {
    const port = first + (next++ % ports)
    if (await isFree(port)) return port
  }
  throw new Error(`the ports from ${first} to ${first + ports - 1} are all in use`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.on('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
