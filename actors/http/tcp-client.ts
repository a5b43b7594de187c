/** TCP connections that their server has to accept soon. */
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net'
import { deadlineAfter, type Timer } from '../runtime/timers.ts'

/**
 * How long an address may leave an attempt to connect unanswered, in milliseconds. A server's kernel accepts connections however busy its process is, so
 * that silence means packets that nobody gets, as those to a pod that has ended; one that is lost is sent again after a second.
 */
export const acceptMs = 3000

/** Connects. Fails with an Error when an address answers nothing in time. The name is resolved before, however long that takes. */
export function connectSoon(options: TcpNetConnectOpts): Socket {
  const socket = connect(options)
  let tooLate: Timer | undefined
  const answered = () => tooLate?.cancel()
  // Once for each address of a name.
  socket.on('connectionAttempt', (address: string, port: number) => {
    answered()
    tooLate = deadlineAfter(acceptMs, () => socket.destroy(new NoAnswer(`no connection to ${address}:${port} within ${acceptMs / 1000} s`))).unref()
  })
  return socket.once('connect', answered).once('close', answered)
}

/** An address did not answer. */
class NoAnswer extends Error {
  /** As errors of the system have it. */
  readonly syscall = 'connect'
}

/** Whether a connection failed because nothing at its address accepted it: it was refused, or nobody answered. */
export function wasUnanswered(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error.cause instanceof Error) return wasUnanswered(error.cause)
  // The error of a name has those of its addresses.
  return error instanceof AggregateError ? error.errors.some(wasUnanswered) : 'syscall' in error && error.syscall === 'connect'
}
