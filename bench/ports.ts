/** Ports of the loopback interface for what is started beside a bench or a test. */
import { createServer } from 'node:net'

/**
 * Ports below those that systems choose from by themselves (Linux from 32768 on, others from 49152): no connection takes one between the question
 * and its use. Processes that ask at the same time, as those of one run of the tests, have slices of their own.
 */
const each = 500
const first = 20_000 + (process.pid % 24) * each
let asked = 0

/** A free TCP port of the loopback interface; none is given out again before 499 others were. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < each; tries++) {
    const port = first + (asked++ % each)
    if (await isFree(port)) return port
  }
  throw new Error(`the ports from ${first} to ${first + each - 1} are all in use`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.on('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
