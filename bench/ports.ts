/** Free ports on the loopback interface, for servers of benches and tests. */
import { randomInt } from 'node:crypto'
import { createServer, type Server } from 'node:net'

/**
 * The ports are below the ephemeral ranges of operating systems (Linux from 32768 on, others from 49152), so that no outgoing connection
 * takes one between the check and its use.
 */
const first = 20_000
/** The number of ports of a range, and the number of ranges. */
const [length, ranges] = [200, 60]

/** The ports of the ranges that this thread has reserved. */
const reserved: number[] = []
let next = 0

/**
 * Returns a free TCP port on the loopback interface. Concurrent processes and threads get different ports: each takes its own from ranges
 * that it reserves. A port is not returned again while a range can be reserved.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < length * ranges; tries++) {
    if (next >= reserved.length && !(await reserve())) {
      if (reserved.length === 0) break
      next = 0
    }
    const port = reserved[next++] as number
    if (await isFree(port)) return port
  }
  throw new Error(`the ports from ${first} to ${first + length * ranges - 1} are all in use`)
}

/** Returns the first of some consecutive ports, at most those of a range, for a program that takes them all; none of them is returned by {@link freePort}. */
export async function freePorts(count: number): Promise<number> {
  const before = reserved.length
  if (!(await reserve())) throw new Error('all ranges of ports are reserved')
  const [from = 0] = reserved.splice(before).slice(0, count)
  return from
}

/** Reserves a range until the thread ends by listening on its first port. Returns false when other threads have all that are left. */
async function reserve(): Promise<boolean> {
  const start = randomInt(ranges)
  for (let index = 0; index < ranges; index++) {
    const at = first + ((start + index) % ranges) * length
    const holder = await listen(at)
    if (!holder) continue
    holder.unref()
    for (let port = at + 1; port < at + length; port++) reserved.push(port)
    return true
  }
  return false
}

async function isFree(port: number): Promise<boolean> {
  const probe = await listen(port)
  if (probe) await new Promise((resolve) => probe.close(resolve))
  return probe !== undefined
}

/** Returns a server on the port, undefined when another one has it. */
function listen(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.on('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}
