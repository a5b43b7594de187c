/** The small gRPC services beside ADS: client status discovery (`envoy.service.status.v3`) and server reflection. */
import { messageFrame } from '../../../src/xds/stream/frames.ts'
import type { Methods } from '../../grpc/grpc-server.ts'
import type { GrpcStream } from '../../grpc/grpc-stream.ts'
import type { ConnectionStatus } from './connection-debug.ts'

type Ask = (question: string) => Promise<unknown>
const invalidArgument = 3
const internal = 13

/** The methods of these services. What they need is loaded when they are first called: writers start without it. */
export function statusServices(ask: Ask): Methods {
  const messages = () => import('./status-messages.ts')
  const status = (stream: GrpcStream) =>
    answerEach(stream, async () => (await messages()).clientStatus((await ask('connections')) as ConnectionStatus[]))
  const reflection = (stream: GrpcStream) => answerEach(stream, async (message) => (await messages()).reflect(message))
  return new Map([
    ['/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus', status],
    ['/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus', status],
    ['/grpc.reflection.v1.ServerReflection/ServerReflectionInfo', reflection],
    ['/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo', reflection],
  ])
}

/** Answers each message with one, in order; the stream ends when the client has said all and has every answer. */
function answerEach(stream: GrpcStream, answer: (message: Buffer) => Promise<Uint8Array>): void {
  stream.onMessage(async (message) => {
    try {
      const bytes = await answer(message)
      await new Promise<void>((resolve) => stream.write([messageFrame(bytes)], () => resolve()))
    } catch (error) {
      stream.end(error instanceof RangeError || (error as Error).message.includes('premature') ? invalidArgument : internal, (error as Error).message)
    }
  })
  stream.onEnd(() => stream.end(0, ''))
}
