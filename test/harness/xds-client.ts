/** Raw xDS clients over gRPC, SotW and delta, that keep the state a proxy would keep. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { Any } from '@bufbuild/protobuf/wkt'
import { type ChannelCredentials, type Client, credentials, makeGenericClientConstructor } from '@grpc/grpc-js'
import { Cluster_DiscoveryType, ClusterSchema } from '../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { ListenerSchema } from '../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { HttpConnectionManagerSchema } from '../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { scanFields } from '../../src/xds/slab/wire.ts'
import { clusterType, endpointType, listenerType, routeType } from '../../src/xds/type-urls.ts'
import { until } from './until.ts'

const bytes = { serialize: (value: Uint8Array) => Buffer.from(value), deserialize: (value: Buffer) => value }
const method = (name: string) => ({
  path: `/envoy.service.discovery.v3.AggregatedDiscoveryService/${name}`,
  requestStream: true,
  responseStream: true,
  requestSerialize: bytes.serialize,
  requestDeserialize: bytes.deserialize,
  responseSerialize: bytes.serialize,
  responseDeserialize: bytes.deserialize,
})
const Ads = makeGenericClientConstructor({ sotw: method('StreamAggregatedResources'), delta: method('DeltaAggregatedResources') }, 'Ads')

/** The path of the aggregated discovery service, SotW. */
export const adsPath = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources'

/** The node of the client. */
export interface ClientNode {
  readonly id: string
  readonly metadata: Record<string, unknown>
  /** The names of extensions that it says it has. */
  readonly extensions?: readonly string[]
}

/** Returns the node of a sidecar in a namespace. */
export function sidecarNode(address: string, name: string, namespace: string, metadata: Record<string, unknown> = {}): ClientNode {
  return { id: `sidecar~${address}~${name}.${namespace}~${namespace}.svc.cluster.local`, metadata: { NAMESPACE: namespace, ...metadata } }
}

/** A simulated proxy. It subscribes as Envoy does and stores the received resources. */
export class XdsClient {
  readonly delta: boolean
  readonly node: ClientNode
  /** The encoded resources by type and name. */
  readonly resources = new Map<string, Map<string, Buffer>>([clusterType, endpointType, listenerType, routeType].map((type) => [type, new Map()]))
  readonly versions = new Map<string, string>()
  /** The number of responses by type. */
  readonly responses = new Map<string, number>()
  /** The types of the responses, in order. */
  readonly order: string[] = []
  /** Names that delta responses reported as removed, of all types. */
  readonly removed: string[] = []
  closed: { code: number; details: string } | undefined
  /** Whether responses are not acknowledged. */
  silent = false
  /** The error of a NACK for the next response. */
  refuseNext: string | undefined
  /** The error of NACKs for all responses. */
  refuseAll: string | undefined
  /** The error of NACKs for responses that have a text in them. */
  refuseWith: { readonly text: string; readonly message: string } | undefined
  readonly #channel: ChannelCredentials
  #client: Client | undefined
  // biome-ignore lint/suspicious/noExplicitAny: grpc-js has no type for methods made from a table
  #stream: any
  #first = true
  readonly #names = new Map<string, Set<string>>()
  readonly #nonces = new Map<string, string>()
  readonly #address: string

  /** `server` is a port of this machine, or `unix:<path>`. */
  constructor(server: number | string, node: ClientNode, delta: boolean, channel = credentials.createInsecure()) {
    this.#address = typeof server === 'number' ? `127.0.0.1:${server}` : server
    this.#channel = channel
    this.node = node
    this.delta = delta
  }

  /** Connects and subscribes to clusters and listeners, then to the endpoints and routes that they reference. */
  connect(initialVersions: Record<string, string> = {}): this {
    this.#client = new Ads(this.#address, this.#channel, {
      'grpc.max_receive_message_length': -1,
      'grpc.use_local_subchannel_pool': 1,
    })
    // biome-ignore lint/suspicious/noExplicitAny: see above
    this.#stream = (this.#client as any)[this.delta ? 'delta' : 'sotw']()
    this.#stream.on('data', (message: Buffer) => (this.delta ? this.#takeDelta(message) : this.#takeSotw(message)))
    this.#stream.on('error', (error: { code: number; details: string }) => (this.closed = { code: error.code, details: error.details }))
    this.#stream.on('end', () => (this.closed ??= { code: 0, details: '' }))
    this.#subscribe(clusterType, initialVersions)
    this.#subscribe(listenerType)
    return this
  }

  /** Replaces the subscription to a type by these names. */
  watch(typeUrl: string, names: readonly string[]): this {
    const before = this.#names.get(typeUrl) ?? new Set<string>()
    const nonce = this.#nonces.get(typeUrl) ?? ''
    this.#names.set(typeUrl, new Set(names))
    if (!this.resources.has(typeUrl)) this.resources.set(typeUrl, new Map())
    const subscribe = names.filter((name) => !before.has(name))
    const unsubscribe = [...before].filter((name) => !names.includes(name))
    for (const name of unsubscribe) this.resources.get(typeUrl)?.delete(name)
    const lists = { resourceNamesSubscribe: subscribe, resourceNamesUnsubscribe: unsubscribe }
    this.#stream.write(
      this.delta
        ? toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { typeUrl, ...lists }))
        : toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl, resourceNames: [...names], responseNonce: nonce })),
    )
    return this
  }

  /** Sends encoded bytes. */
  sendRaw(message: Uint8Array): void {
    this.#stream.write(message)
  }

  close(): void {
    this.#stream?.cancel()
    this.#client?.close()
  }

  /** Waits until resources of all four types have been received. Rejects when the stream ends before that. */
  async ready(): Promise<this> {
    const isOver = () => this.closed !== undefined
    await until('the first configuration', () => isOver() || [clusterType, listenerType].every((type) => this.responses.has(type)))
    const hasNamed = (type: string) => [...(this.#names.get(type) ?? [])].every((name) => this.resources.get(type)?.has(name))
    await until('endpoints and routes', () => isOver() || [endpointType, routeType].every(hasNamed))
    if (isOver()) throw new Error(`the stream ended: ${this.closed?.details}`)
    return this
  }

  /** The stored resources in a comparable form. */
  state(): Record<string, Record<string, string>> {
    return Object.fromEntries(
      [...this.resources].map(([type, held]) => [
        type,
        Object.fromEntries([...held].sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, value]) => [name, value.toString('base64')])),
      ]),
    )
  }

  #subscribe(typeUrl: string, initialVersions: Record<string, string> = {}): void {
    const { id, metadata, extensions = [] } = this.node
    const node = this.#first ? { id, metadata: metadata as never, extensions: extensions.map((name) => ({ name })) } : undefined
    this.#first = false
    if (this.delta)
      this.#stream.write(
        toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { node, typeUrl, initialResourceVersions: initialVersions })),
      )
    else this.#stream.write(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { node, typeUrl })))
  }

  #takeSotw(message: Buffer): void {
    const response = fromBinary(DiscoveryResponseSchema, message)
    const { typeUrl, nonce, versionInfo } = response
    this.#count(typeUrl)
    this.#nonces.set(typeUrl, nonce)
    if (this.#refused(typeUrl, nonce, message)) return
    const held = this.resources.get(typeUrl) ?? new Map<string, Buffer>()
    const names = new Set<string>()
    for (const any of response.resources) {
      const name = this.#keep(typeUrl, any)
      names.add(name)
    }
    if (typeUrl === clusterType || typeUrl === listenerType) for (const name of held.keys()) if (!names.has(name)) held.delete(name)
    this.#stream.write(
      toBinary(
        DiscoveryRequestSchema,
        create(DiscoveryRequestSchema, { typeUrl, responseNonce: nonce, versionInfo, resourceNames: [...(this.#names.get(typeUrl) ?? [])] }),
      ),
    )
    this.#follow(typeUrl)
  }

  #takeDelta(message: Buffer): void {
    const response = fromBinary(DeltaDiscoveryResponseSchema, message)
    const { typeUrl, nonce } = response
    this.#count(typeUrl)
    this.#nonces.set(typeUrl, nonce)
    if (this.#refused(typeUrl, nonce, message)) return
    for (const resource of response.resources) {
      this.#keep(typeUrl, resource.resource as Any)
      this.versions.set(`${typeUrl}|${resource.name}`, resource.version)
    }
    for (const name of response.removedResources) {
      this.resources.get(typeUrl)?.delete(name)
      this.removed.push(name)
    }
    this.#stream.write(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { typeUrl, responseNonce: nonce })))
    this.#follow(typeUrl)
  }

  #count(typeUrl: string): void {
    this.order.push(typeUrl)
    this.responses.set(typeUrl, (this.responses.get(typeUrl) ?? 0) + 1)
  }

  #refused(typeUrl: string, nonce: string, response: Buffer): boolean {
    if (this.silent) return true
    const { refuseWith } = this
    const message = this.refuseAll ?? this.refuseNext ?? (refuseWith && response.includes(refuseWith.text) ? refuseWith.message : undefined)
    if (message === undefined) return false
    const errorDetail = { code: 13, message }
    this.refuseNext = undefined
    if (this.delta)
      this.#stream.write(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { typeUrl, responseNonce: nonce, errorDetail })))
    else
      this.#stream.write(
        toBinary(
          DiscoveryRequestSchema,
          create(DiscoveryRequestSchema, { typeUrl, responseNonce: nonce, errorDetail, resourceNames: [...(this.#names.get(typeUrl) ?? [])] }),
        ),
      )
    return true
  }

  #keep(typeUrl: string, any: Any): string {
    const value = Buffer.from(any.value)
    // The name is field 1 of all these messages except the name table, of which there is only one.
    const [first] = scanFields(value)
    const name = typeUrl.endsWith('.NameTable') ? '' : (first?.bytes?.toString() ?? '')
    // Like Envoy, the client discards resources that it unsubscribed from while the response was in flight.
    if (name === '' || (this.#names.get(typeUrl)?.has(name) ?? true)) this.resources.get(typeUrl)?.set(name, value)
    return name
  }

  /** Subscribes to the resources that clusters and listeners reference, as Envoy does. */
  #follow(typeUrl: string): void {
    if (typeUrl !== clusterType && typeUrl !== listenerType) return
    const target = typeUrl === clusterType ? endpointType : routeType
    const wanted = typeUrl === clusterType ? this.#endpointNames() : this.#routeNames()
    const before = this.#names.get(target)
    if (before && before.size === wanted.size && [...wanted].every((name) => before.has(name))) return
    this.#names.set(target, wanted)
    for (const name of this.resources.get(target)?.keys() ?? []) if (!wanted.has(name)) this.resources.get(target)?.delete(name)
    if (this.delta) {
      const add = [...wanted].filter((name) => !before?.has(name))
      const gone = [...(before ?? [])].filter((name) => !wanted.has(name))
      this.#stream.write(
        toBinary(
          DeltaDiscoveryRequestSchema,
          create(DeltaDiscoveryRequestSchema, { typeUrl: target, resourceNamesSubscribe: add, resourceNamesUnsubscribe: gone }),
        ),
      )
    } else
      this.#stream.write(
        toBinary(
          DiscoveryRequestSchema,
          create(DiscoveryRequestSchema, { typeUrl: target, resourceNames: [...wanted].sort(), responseNonce: this.#nonces.get(target) ?? '' }),
        ),
      )
  }

  #endpointNames(): Set<string> {
    const clusters = [...(this.resources.get(clusterType)?.values() ?? [])].map((value) => fromBinary(ClusterSchema, value))
    return new Set(
      clusters
        .filter((cluster) => cluster.clusterDiscoveryType.case === 'type' && cluster.clusterDiscoveryType.value === Cluster_DiscoveryType.EDS)
        .map((cluster) => cluster.edsClusterConfig?.serviceName || cluster.name),
    )
  }

  #routeNames(): Set<string> {
    const names = new Set<string>()
    for (const value of this.resources.get(listenerType)?.values() ?? []) {
      const listener = fromBinary(ListenerSchema, value)
      for (const chain of [...listener.filterChains, ...(listener.defaultFilterChain ? [listener.defaultFilterChain] : [])]) {
        for (const filter of chain.filters) {
          if (filter.configType.case !== 'typedConfig' || !filter.configType.value.typeUrl.endsWith('HttpConnectionManager')) continue
          const manager = fromBinary(HttpConnectionManagerSchema, filter.configType.value.value)
          if (manager.routeSpecifier.case === 'rds') names.add(manager.routeSpecifier.value.routeConfigName)
        }
      }
    }
    return names
  }
}
