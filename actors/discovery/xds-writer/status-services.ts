/** The small gRPC services beside ADS: client status discovery (`envoy.service.status.v3`) and server reflection. */
import { messageFrame } from '../../../src/xds/stream/frames.ts'
import type { GrpcStream } from '../../grpc/grpc-stream.ts'
import type { Method, Methods } from '../../grpc/methods.ts'
import { status } from '../../grpc/status-codes.ts'
import type { CallBounds, CallStatus } from '../../grpc/unary.ts'
import type { ConnectionStatus } from './connection-debug.ts'

type Ask = (question: string) => Promise<unknown>

/** Bounds of a question for client status: it names node matchers, and is answered by all writers. */
const statusBounds: CallBounds = { timeLimit: 30_000, requestBytes: 65_536, concurrent: 16 }

/** The methods of these services. What they need is loaded when they are first called: writers start without it. */
export function statusServices(ask: Ask): Methods {
  const messages = () => import('./status-messages.ts')
  const connections = async () => (await ask('connections')) as ConnectionStatus[]
  const clientStatus = async (message: Buffer) => (await messages()).clientStatus(message, connections)
  const reflection = answeringEach(async (message) => (await messages()).reflect(message))
  return new Map<string, Method>([
    ['/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus', answeringEach(clientStatus)],
    ['/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus', { type: 'unary', bounds: statusBounds, answer: clientStatus }],
    ['/grpc.reflection.v1.ServerReflection/ServerReflectionInfo', reflection],
    ['/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo', reflection],
  ])
}

/** Answers each message with one, in order; a stream ends when the client has said all and has every answer, or with the first answer that is a status. */
function answeringEach(answer: (message: Buffer) => Promise<Uint8Array | CallStatus>): Method {
  const open = (stream: GrpcStream) => {
    stream.onMessage(async (message) => {
      const answered = await answer(message)
      if (!(answered instanceof Uint8Array)) return stream.end(answered.code, answered.message)
      await new Promise<void>((resolve) => stream.write([messageFrame(answered)], () => resolve()))
    })
    stream.onEnd(() => stream.end(status.ok, ''))
  }
  return { type: 'bidi_stream', open }
}
