/**
 * Serves one workload's secrets as an agent does: `envoy.service.secret.v3.SecretDiscoveryService`, with the names `default` and `ROOTCA`.
 */
import { readFileSync } from 'node:fs'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { AnySchema } from '@bufbuild/protobuf/wkt'
import { SecretSchema } from '../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js'
import { DiscoveryRequestSchema, DiscoveryResponseSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { secretType } from '../../src/xds/type-urls.ts'
import type { Certificate } from './certificates.ts'
import { serveMethod } from './grpc-server.ts'

type Stream = {
  on(event: 'data', listen: (message: Buffer) => void): void
  on(event: 'end', listen: () => void): void
  write(message: Buffer): void
  end(): void
}

/** Starts the server. */
export async function secretServer(certificate: Certificate, root: string): Promise<{ port: number; stop(): void }> {
  const inline = (file: string) => ({ specifier: { case: 'inlineBytes' as const, value: readFileSync(file) } })
  const secrets = {
    default: create(SecretSchema, {
      name: 'default',
      type: { case: 'tlsCertificate', value: { certificateChain: inline(certificate.chain), privateKey: inline(certificate.key) } },
    }),
    ROOTCA: create(SecretSchema, { name: 'ROOTCA', type: { case: 'validationContext', value: { trustedCa: inline(root) } } }),
  }
  return serveMethod('/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets', true, (stream: Stream) => {
    stream.on('end', () => stream.end())
    stream.on('data', (message) => {
      const { resourceNames, responseNonce } = fromBinary(DiscoveryRequestSchema, message)
      if (responseNonce !== '') return
      const resources = resourceNames.flatMap((name) => {
        const secret = secrets[name as keyof typeof secrets]
        return secret ? [create(AnySchema, { typeUrl: secretType, value: toBinary(SecretSchema, secret) })] : []
      })
      const response = create(DiscoveryResponseSchema, { typeUrl: secretType, versionInfo: '1', nonce: '1', resources })
      stream.write(Buffer.from(toBinary(DiscoveryResponseSchema, response)))
    })
  })
}
