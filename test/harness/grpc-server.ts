/** A gRPC server with one method, whose messages are passed encoded. */
import { Server, ServerCredentials } from '@grpc/grpc-js'
import { freePort } from '../../bench/ports.ts'

/** Starts the server. `streams` selects a bidirectional streaming method instead of a unary one. */
export async function serveMethod(path: string, streams: boolean, answer: (...call: never[]) => void): Promise<{ port: number; stop(): void }> {
  const server = new Server()
  const bytes = (value: Buffer) => value
  const method = {
    path,
    requestStream: streams,
    responseStream: streams,
    requestSerialize: bytes,
    requestDeserialize: bytes,
    responseSerialize: bytes,
    responseDeserialize: bytes,
  }
  server.addService({ method }, { method: answer as never })
  const port = await freePort()
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
  )
  return { port, stop: () => server.forceShutdown() }
}
