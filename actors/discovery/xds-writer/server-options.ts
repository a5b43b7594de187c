/** Settings of a writer's gRPC server, from flags, environment variables and system limits. */
import type { XdsWriterConfig } from '../../../protocols/messages/config.ts'
import type { Features } from '../../../src/config/features.ts'
import type { GrpcServerOptions } from '../../grpc/grpc-server.ts'
import { connectionShare, descriptorLimit } from '../../http/connection-limit.ts'

/** Returns the options of a writer's server. */
export function serverOptions(config: XdsWriterConfig): GrpcServerOptions {
  const { MESH_GPRC_MAXRECVMSGSIZE, MESH_GPRC_MAXSTREAMS, PILOT_XDS_CREDENTIAL_GRACE, PILOT_XDS_SEND_TIMEOUT } = config.features as Features
  return {
    plain: config.plain,
    secure: config.secure,
    sharers: config.writers,
    maxConnections: connectionShare(descriptorLimit(), config.writers),
    maxStreams: MESH_GPRC_MAXSTREAMS,
    messageBytes: MESH_GPRC_MAXRECVMSGSIZE,
    sendTimeout: PILOT_XDS_SEND_TIMEOUT > 0 ? PILOT_XDS_SEND_TIMEOUT : Number.POSITIVE_INFINITY,
    connections: { ...config.connections, credentialGrace: PILOT_XDS_CREDENTIAL_GRACE },
  }
}
