/** The methods of a gRPC server, by path `/<service>/<method>`. */
import type { Rpc } from '../rpc/rpc-methods.ts'
import type { GrpcStream } from './grpc-stream.ts'

/** A method whose streams pass encoded messages on, without a time limit. */
export interface StreamMethod {
  readonly type: 'bidi_stream'
  /** Accepts a stream that a client has opened. */
  open(stream: GrpcStream): void
}

/** A service method. */
export type Method = StreamMethod | Rpc

/** The methods of a server by their paths. */
export type Methods = ReadonlyMap<string, Method>
