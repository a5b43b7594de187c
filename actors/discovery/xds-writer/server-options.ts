/** Settings of a writer's gRPC server, from flags, environment variables and system limits. */
import type { XdsWriterConfig } from '../../../protocols/messages/config.ts'
import type { Features } from '../../../src/config/features.ts'
import { longestReplica } from '../../../src/transport/replica-header.ts'
import type { GrpcServerOptions } from '../../grpc/grpc-server.ts'
import { connectionShare, descriptorLimit } from '../../http/connection-limit.ts'

/**
 * Maximum number of concurrent streams of a connection before a token of it was accepted. A proxy has one or two; a token that waits keeps
 * 15 KB of its stream, most of it as objects that outlive collections of young ones if they wait for long.
 */
const strangerStreams = 8

/** The descriptors of a connection that the main thread passes on: the client's, and both ends of the unix socket. */
const descriptorsOfPassed = 3

/** Maximum number of connections of one writer. `arePassed`: whether those in plain text are passed on by the main thread. */
export function writerConnections(writers: number, arePassed: boolean): number {
  return connectionShare(descriptorLimit() / (arePassed ? descriptorsOfPassed : 1), writers)
}

/** Returns the options of a writer's server. */
export function serverOptions(config: XdsWriterConfig): GrpcServerOptions {
  const { MESH_GPRC_MAXRECVMSGSIZE, MESH_GPRC_MAXSTREAMS, PILOT_XDS_CREDENTIAL_GRACE, PILOT_XDS_SEND_TIMEOUT, POD_NAME } = config.features as Features
  return {
    plain: config.plain,
    secure: config.secure,
    sharers: config.writers,
    maxConnections: writerConnections(config.writers, 'passedAt' in config.plain),
    maxStreams: MESH_GPRC_MAXSTREAMS,
    maxStrangerStreams: Math.min(strangerStreams, MESH_GPRC_MAXSTREAMS),
    messageBytes: MESH_GPRC_MAXRECVMSGSIZE,
    sendTimeout: PILOT_XDS_SEND_TIMEOUT > 0 ? PILOT_XDS_SEND_TIMEOUT : Number.POSITIVE_INFINITY,
    // What is no name of a pod may not be a header either.
    replica: /^[a-z0-9][a-z0-9.-]*$/.test(POD_NAME) ? POD_NAME.slice(0, longestReplica) : '',
    connections: { ...config.connections, credentialGrace: PILOT_XDS_CREDENTIAL_GRACE },
  }
}
