/** What a gRPC server offers: methods by their paths, `/<service>/<method>`. */
import type { GrpcStream } from './grpc-stream.ts'
import type { UnaryMethod } from './unary.ts'

/** A method whose streams are taken as they come: messages both ways, as long as either side likes. */
export interface StreamMethod {
  readonly type: 'bidi_stream'
  /** Takes a stream that a client has opened. */
  open(stream: GrpcStream): void
}

/** A service method. */
export type Method = StreamMethod | UnaryMethod

/** The methods of a server by their paths. */
export type Methods = ReadonlyMap<string, Method>
