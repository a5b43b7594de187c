/** An SDS client of the agent, as Envoy is one: streams over the agent's Unix socket. */
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import type { Any } from '@bufbuild/protobuf/wkt'
import { type Secret, SecretSchema } from '../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js'
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { FrameBuffers, FrameReader, messageFrame } from '../../src/xds/stream/frames.ts'
import { secretType } from '../../src/xds/type-urls.ts'

/** A decoded SotW or delta response. */
export interface SecretResponse {
  readonly nonce: string
  readonly version: string
  readonly secrets: readonly Secret[]
  readonly removed: readonly string[]
}

/** Returns the content of a secret: chain and key, or roots with revocation lists. */
export function contentOf({ name, type }: Secret): { name: string; chain?: string; key?: string; roots?: string; revocations?: string } {
  const bytes = (source: { specifier: { case?: string; value?: unknown } } | undefined) =>
    Buffer.from(source?.specifier.value as Uint8Array).toString()
  if (type.case === 'tlsCertificate') return { name, chain: bytes(type.value.certificateChain), key: bytes(type.value.privateKey) }
  if (type.case === 'validationContext')
    return { name, roots: bytes(type.value.trustedCa), ...(type.value.crl ? { revocations: bytes(type.value.crl) } : {}) }
  throw new Error(`${name} is a ${type.case}`)
}

const secretOf = (any: Any | undefined) => fromBinary(SecretSchema, any?.value as Uint8Array)

/** One stream. */
export class SecretClient {
  readonly #session: ClientHttp2Session
  readonly #stream: ClientHttp2Stream
  readonly #isDelta: boolean
  readonly responses: SecretResponse[] = []
  /** Called with each response. */
  onResponse: (response: SecretResponse) => void = () => {}
  /** The status that ended the stream. Undefined while it is open. */
  status: string | undefined

  constructor(path: string, isDelta = false) {
    this.#isDelta = isDelta
    this.#session = connect('http://agent', { createConnection: () => connectSocket(path) })
    this.#session.on('error', () => undefined)
    const method = isDelta ? 'DeltaSecrets' : 'StreamSecrets'
    this.#stream = this.#session.request({
      ':method': 'POST',
      ':path': `/envoy.service.secret.v3.SecretDiscoveryService/${method}`,
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    const reader = new FrameReader(10_000_000, new FrameBuffers())
    this.#stream.on('data', (bytes: Buffer) =>
      reader.take(bytes, (message) => {
        const response = this.#read(message)
        this.responses.push(response)
        this.onResponse(response)
        return true
      }),
    )
    this.#stream.on('error', () => undefined)
    const ended = (headers: Record<string, unknown>) => {
      if (headers['grpc-status'] !== undefined) this.status = `${headers['grpc-status']} ${headers['grpc-message'] ?? ''}`.trim()
    }
    this.#stream.on('trailers', ended)
    this.#stream.on('response', ended)
  }

  /** Returns the content of the last received secret with a name. */
  last(name: string): ReturnType<typeof contentOf> | undefined {
    const found = this.responses.flatMap(({ secrets }) => secrets.filter((secret) => secret.name === name)).at(-1)
    return found && contentOf(found)
  }

  /** Sends a request for secrets. The caller adds the node to the first request of a stream. */
  send(request: MessageInitShape<typeof DiscoveryRequestSchema>): void {
    this.#write(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl: secretType, ...request })))
  }

  sendDelta(request: MessageInitShape<typeof DeltaDiscoveryRequestSchema>): void {
    this.#write(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { typeUrl: secretType, ...request })))
  }

  /** Sends bytes as one message. */
  sendBytes(bytes: Uint8Array): void {
    this.#write(bytes)
  }

  close(): void {
    this.#session.destroy()
  }

  #write(bytes: Uint8Array): void {
    this.#stream.write(messageFrame(bytes))
  }

  #read(message: Buffer): SecretResponse {
    if (!this.#isDelta) {
      const { nonce, versionInfo, resources } = fromBinary(DiscoveryResponseSchema, message)
      return { nonce, version: versionInfo, secrets: resources.map(secretOf), removed: [] }
    }
    const { nonce, resources, removedResources } = fromBinary(DeltaDiscoveryResponseSchema, message)
    const version = resources.map((resource) => resource.version).join()
    return { nonce, version, secrets: resources.map(({ resource }) => secretOf(resource)), removed: removedResources }
  }
}

/** The node of a sidecar. */
export const sidecar = { id: 'sidecar~10.0.0.1~web.shop~shop.svc.cluster.local' }
