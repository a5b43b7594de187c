/** The small gRPC services beside ADS: client status discovery (`envoy.service.status.v3`) and server reflection. */

import { status } from '../../../src/model/status-codes.ts'
import { messageFrame } from '../../../src/xds/stream/frames.ts'
import type { GrpcStream } from '../../grpc/grpc-stream.ts'
import type { Method, Methods } from '../../grpc/methods.ts'
import type { Call, CallBounds, CallStatus } from '../../grpc/unary.ts'
import type { ConnectionStatus } from './connection-debug.ts'
import type { MayRead, StatusAccess } from './status-access.ts'

type Ask = (question: string, ...details: unknown[]) => Promise<unknown>
/** Answers one message of an admitted caller. */
type AnswerMessage = (message: Buffer, mayRead: MayRead) => Promise<Uint8Array | CallStatus>

/** Limits of a client status call: it evaluates node matchers and collects answers from all writers. */
const statusBounds: CallBounds = { timeLimit: 30_000, requestBytes: 65_536, concurrent: 16 }

/** Returns the methods of these services. Their implementation is loaded on the first call, to keep the start of writers cheap. */
export function statusServices(ask: Ask, access: StatusAccess): Methods {
  const messages = () => import('./status-messages.ts')
  const clientStatus: AnswerMessage = async (message, mayRead) =>
    (await messages()).clientStatus(message, async (withMetadata) =>
      ((await ask('connections', withMetadata)) as ConnectionStatus[]).filter(({ namespace }) => mayRead(namespace)),
    )
  const once = async (message: Buffer, call: Call) => {
    const mayRead = await access.of(call)
    return typeof mayRead === 'function' ? clientStatus(message, mayRead) : mayRead
  }
  const reflection = answeringEach(access, async (message) => (await messages()).reflect(message))
  return new Map<string, Method>([
    ['/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus', answeringEach(access, clientStatus)],
    ['/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus', { type: 'unary', bounds: statusBounds, answer: once }],
    ['/grpc.reflection.v1.ServerReflection/ServerReflectionInfo', reflection],
    ['/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo', reflection],
  ])
}

/**
 * A method that answers each message with one message, in order. No message is read before the caller is admitted. A stream ends when the
 * client has closed its side and every answer is sent, or at the first answer that is a status.
 */
function answeringEach(access: StatusAccess, answer: AnswerMessage): Method {
  const open = async (stream: GrpcStream) => {
    let isOver = false
    stream.onClose(() => (isOver = true))
    const mayRead = await access.of(stream)
    if (isOver) return
    if (typeof mayRead !== 'function') return stream.end(mayRead.code, mayRead.message)
    stream.onMessage(async (message) => {
      const answered = await answer(message, mayRead)
      if (!(answered instanceof Uint8Array)) return stream.end(answered.code, answered.message)
      await new Promise<void>((resolve) => stream.write([messageFrame(answered)], () => resolve()))
    })
    stream.onEnd(() => stream.end(status.ok, ''))
  }
  return { type: 'bidi_stream', open }
}
