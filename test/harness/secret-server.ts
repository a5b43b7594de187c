/** Serves one workload's secrets as an agent does: `envoy.service.secret.v3.SecretDiscoveryService`, names `default` and `ROOTCA`. */
import { readFileSync } from 'node:fs'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { AnySchema } from '@bufbuild/protobuf/wkt'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import { SecretSchema } from '../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js'
import { DiscoveryRequestSchema, DiscoveryResponseSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { secretType } from '../../src/xds/type-urls.ts'
import type { Certificate } from './certificates.ts'
import { freePort } from './service.ts'

type Stream = {
  on(event: 'data', listen: (message: Buffer) => void): void
  on(event: 'end', listen: () => void): void
  write(message: Buffer): void
  end(): void
}

/** Starts it. */
export async function secretServer(certificate: Certificate, root: string): Promise<{ port: number; stop(): void }> {
  const inline = (file: string) => ({ specifier: { case: 'inlineBytes' as const, value: readFileSync(file) } })
  const secrets = {
    default: create(SecretSchema, {
      name: 'default',
      type: { case: 'tlsCertificate', value: { certificateChain: inline(certificate.chain), privateKey: inline(certificate.key) } },
    }),
    ROOTCA: create(SecretSchema, { name: 'ROOTCA', type: { case: 'validationContext', value: { trustedCa: inline(root) } } }),
  }
  const server = new Server()
  const bytes = (value: Buffer) => value
  server.addService(
    {
      secrets: {
        path: '/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets',
        requestStream: true,
        responseStream: true,
        requestSerialize: bytes,
        requestDeserialize: bytes,
        responseSerialize: bytes,
        responseDeserialize: bytes,
      },
    },
    {
      secrets: (stream: Stream) => {
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
      },
    },
  )
  const port = await freePort()
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
  )
  return { port, stop: () => server.forceShutdown() }
}
