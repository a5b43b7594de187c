/** A client of the generators `event` and `status`, which asks about the service. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { type ChannelCredentials, Client, type ClientDuplexStream, credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import { NodeSchema } from '../../protocols/gen/envoy/config/core/v3/base_pb.js'
import {
  DiscoveryRequestSchema,
  type DiscoveryResponse,
  DiscoveryResponseSchema,
} from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { until } from './until.ts'
import { adsPath } from './xds-client.ts'

const same = (bytes: Uint8Array) => Buffer.from(bytes)

/** A client that asks about the service, and keeps what it is sent. */
export class Watcher {
  readonly responses: DiscoveryResponse[] = []
  ended: { code: number; details: string } | undefined
  readonly stream: ClientDuplexStream<Uint8Array, Buffer>
  readonly #client: Client
  readonly #node

  constructor(port: number, { generator = 'event', namespace = 'mesh-system', channel = credentials.createInsecure() as ChannelCredentials } = {}) {
    this.#client = new Client(`localhost:${port}`, channel, { 'grpc.use_local_subchannel_pool': 1 })
    this.#node = {
      id: `sidecar~10.0.0.99~watcher.${namespace}~${namespace}.svc.cluster.local`,
      metadata: { GENERATOR: generator, NAMESPACE: namespace },
    }
    this.stream = this.#client.makeBidiStreamRequest(adsPath, same, (bytes) => bytes)
    this.stream.on('data', (bytes) => this.responses.push(fromBinary(DiscoveryResponseSchema, bytes)))
    this.stream.on('error', (error: Error & { code: number; details: string }) => (this.ended = error))
  }

  ask(typeUrl: string, resourceNames: string[] = [], responseNonce = ''): this {
    this.stream.write(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { node: this.#node, typeUrl, resourceNames, responseNonce })))
    return this
  }

  /** The responses of a type. */
  of(typeUrl: string): DiscoveryResponse[] {
    return this.responses.filter((response) => response.typeUrl === typeUrl)
  }

  async answered(typeUrl: string, times = 1): Promise<DiscoveryResponse> {
    await until(`an answer of ${typeUrl}`, () => this.ended !== undefined || this.of(typeUrl).length >= times)
    expect(this.ended).to.equal(undefined)
    return this.of(typeUrl)[times - 1] as DiscoveryResponse
  }

  close(): void {
    this.stream.cancel()
    this.#client.close()
  }
}

/** The nodes of a response of `connect` or `disconnect`. */
export const nodesOf = ({ resources }: DiscoveryResponse) => resources.map(({ value }) => fromBinary(NodeSchema, value))

/** The names of these nodes, `<pod>.<namespace>`, sorted. */
export const namesOf = (response: DiscoveryResponse) =>
  nodesOf(response)
    .map(({ id }) => id.split('~')[2])
    .sort()
