/** A stream of the admin service on a port of a writer: the main thread is asked for one message after the other. */
import { type AdminCallQuestion, type AdminCallReply, adminStreamLife, streamIsOver } from '../../../protocols/messages/admin-call.ts'
import { status } from '../../../src/model/status-codes.ts'
import { trailersOf } from '../../grpc/grpc-stream.ts'
import type { RpcResponse } from '../../rpc/rpc-methods.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { pause } from '../../runtime/timers.ts'

/**
 * Returns the answer of a stream. The next message is asked for when the one before was taken, so that a client that does not read costs
 * nothing. An empty message is left out, except for the first one. `ask` rejects when the main thread does not answer.
 */
export function adminStream(
  question: Omit<AdminCallQuestion, 'cursor'>,
  signal: AbortSignal,
  ask: (question: AdminCallQuestion) => Promise<AdminCallReply>,
): RpcResponse {
  let trailers: Readonly<Record<string, string>> = {}
  const ended = (code: number, message: string) => {
    const { ':status': _, 'content-type': __, ...others } = trailersOf(code, message)
    trailers = others
  }
  async function* messages(): AsyncIterable<Uint8Array> {
    const ends = monotonicMs() + adminStreamLife.ms
    let cursor: string | undefined = ''
    while (!signal.aborted) {
      if (monotonicMs() > ends) return ended(status.unavailable, streamIsOver)
      const isFirst: boolean = cursor === ''
      const reply: AdminCallReply = await ask({ ...question, cursor })
      trailers = reply.trailers
      if (reply.cursor === undefined) return
      if (isFirst || reply.hasNews) yield reply.body
      cursor = reply.cursor
      await pause(adminStreamLife.pauseMs)
    }
  }
  const contained = async function* () {
    try {
      yield* messages()
    } catch {
      ended(status.unavailable, 'the main thread does not answer')
    }
  }
  return { status: 200, headers: {}, body: contained(), trailers: () => trailers }
}
