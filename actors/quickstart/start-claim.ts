/**
 * Meshes of this machine start one after the other: a port that one has chosen is free until its process listens there, seconds later, and another
 * would choose it too.
 */
import { connect, createServer, type Server } from 'node:net'
import { monotonicMs } from '../runtime/clock.ts'
import { pause } from '../runtime/timers.ts'

/** The port that a mesh listens at while it starts; below those that are taken in place of others. */
const claimPort = 19_999
/** What it says there. Whatever else has the port is not waited for. */
const greeting = 'mesh quickstart\n'
/** Maximum time that another mesh is waited for, in milliseconds. */
const mostWaitingMs = 60_000
/** The time between two tries, in milliseconds. */
const betweenMs = 200

/**
 * Waits until no other mesh of this machine is starting, and returns what ends the claim of this one. `waits` is called once if there is another.
 * Ends at once when `signal` is aborted.
 */
export async function claimStart(signal: AbortSignal, waits: () => void, port = claimPort): Promise<() => void> {
  const nothing = () => undefined
  const end = monotonicMs() + mostWaitingMs
  for (let isTold = false; !signal.aborted && monotonicMs() < end; isTold = true) {
    const claim = await listen(port)
    if (claim) return () => claim.close()
    if (!(await isStarting(port))) return nothing
    if (!isTold) waits()
    await pause(betweenMs)
  }
  return nothing
}

/** Undefined: the port cannot be listened at. */
function listen(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.on('error', () => undefined).end(greeting))
    server.once('error', () => resolve(undefined))
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => resolve(server.unref()))
  })
}

/** Whether it is another mesh that has the port. One that has just ended its claim counts, so that the port is tried again. */
function isStarting(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    let said = ''
    const socket = connect({ host: '127.0.0.1', port })
    socket.setTimeout(1000, () => socket.destroy())
    socket.on('data', (bytes: Buffer) => {
      said += bytes.toString('latin1')
      if (said.length >= greeting.length) socket.destroy()
    })
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED' || code === 'ECONNRESET'))
    socket.once('close', () => resolve(said === greeting))
  })
}
