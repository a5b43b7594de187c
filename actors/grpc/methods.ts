/** The methods of a gRPC server, by path `/<service>/<method>`. */
import type { GrpcStream } from './grpc-stream.ts'
import type { UnaryMethod } from './unary.ts'

/** A method of bidirectional streams without a time limit. */
export interface StreamMethod {
  readonly type: 'bidi_stream'
  /** Accepts a stream that a client has opened. */
  open(stream: GrpcStream): void
}

/** A service method. */
export type Method = StreamMethod | UnaryMethod

/** The methods of a server by their paths. */
export type Methods = ReadonlyMap<string, Method>
