/** Free ports on the loopback interface, for servers of benches and tests. */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * The ports are below the ephemeral ranges of operating systems (Linux from 32768 on, others from 49152), so that no outgoing connection
 * takes one between the check and its use. Each process starts at a random port, so that concurrent processes are unlikely to choose the
 * same.
 */
const first = 20_000
const ports = 12_000
let next = randomInt(ports)

/** Returns a free TCP port on the loopback interface. A port is not returned again before all others have been tried. */
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
