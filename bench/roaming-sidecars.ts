/**
 * Delta sidecars that connect again whenever their stream ends, with the versions that they hold, as Envoy does: a process of its own, driven by
 * bench/scenarios/replicas.ts.
 */
import { connect } from 'node:http2'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { DeltaDiscoveryRequestSchema, DeltaDiscoveryResponseSchema } from '../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { FrameBuffers, FrameReader, messageFrame } from '../src/xds/stream/frames.ts'
import { clusterType, endpointType, listenerType, routeType, virtualHostType } from '../src/xds/type-urls.ts'

/** The sidecars: their number, spread over namespaces, and the port that they connect to. */
export interface RoamingOptions {
  readonly port: number
  readonly count: number
  readonly namespaces: number
}

/** The state of the sidecars; asked for with the message `state`. */
export interface RoamingState {
  /** Sidecars that have everything they asked for, on the present stream or, with its versions, on one before. */
  readonly served: number
  readonly streams: number
  /** Bytes of all responses since the last report, and the times in ms that sidecars were without a stream meanwhile, sorted. */
  readonly bytes: number
  readonly gaps: readonly number[]
}

/** The first retry of Envoy's stream comes within 500 ms, each further one within twice as long. */
const firstRetryMs = 500
const longestRetryMs = 30_000
const routes = ['80', '9090']
const buffers = new FrameBuffers()
const options = JSON.parse(process.argv[2] as string) as RoamingOptions
let bytes = 0
let gaps: number[] = []

class RoamingSidecar {
  readonly #index: number
  /** The versions of what it holds, by type and name. */
  readonly #held = new Map<string, Map<string, string>>()
  #asked = new Set<string>()
  #failures = 0
  #lostAt: number | undefined
  hasStream = false

  constructor(index: number) {
    this.#index = index
    this.#open()
  }

  get isServed(): boolean {
    return this.hasStream && [clusterType, listenerType, endpointType, routeType, virtualHostType].every((type) => this.#held.has(type))
  }

  #open(): void {
    const session = connect(`http://127.0.0.1:${options.port}`, { settings: { initialWindowSize: 1_048_576 } })
    session.on('connect', () => session.destroyed || session.setLocalWindowSize(1_048_576))
    const stream = session.request({
      ':method': 'POST',
      ':path': '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    let isOver = false
    const over = () => {
      if (isOver) return
      isOver = true
      if (this.hasStream) this.#lostAt = performance.now()
      this.hasStream = false
      session.destroy()
      setTimeout(() => this.#open(), Math.random() * Math.min(longestRetryMs, firstRetryMs * 2 ** this.#failures++)).unref()
    }
    stream.on('response', () => {
      if (this.#lostAt !== undefined) gaps.push(performance.now() - this.#lostAt)
      this.#lostAt = undefined
      this.#failures = 0
      this.hasStream = true
    })
    for (const event of ['end', 'error', 'close'] as const) stream.on(event, over)
    session.on('error', over)
    const send = (request: object) => stream.write(messageFrame(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, request))))
    this.#asked = new Set()
    const ask = (typeUrl: string, names: readonly string[], node?: object) => {
      this.#asked.add(typeUrl)
      send({ typeUrl, node, resourceNamesSubscribe: names, initialResourceVersions: Object.fromEntries(this.#held.get(typeUrl) ?? []) })
    }
    const reader = new FrameReader(1 << 28, buffers)
    stream.on('data', (part: Buffer) =>
      reader.take(part, (message) => {
        bytes += message.length
        const { typeUrl, nonce } = this.#take(message)
        send({ typeUrl, responseNonce: nonce })
        if (typeUrl === clusterType) this.#askEndpoints(send)
        else if (typeUrl === listenerType && !this.#asked.has(routeType)) {
          ask(routeType, routes)
          ask(virtualHostType, [])
        }
      }),
    )
    ask(clusterType, [], this.#node())
    ask(listenerType, [])
    // A server that has nothing new answers no subscription: what was known before is asked for at once, as Envoy does.
    if (!this.#held.has(endpointType)) return
    ask(endpointType, [...(this.#held.get(endpointType)?.keys() ?? [])])
    ask(routeType, routes)
    ask(virtualHostType, [])
  }

  /** Subscribes to the endpoints of new clusters. */
  #askEndpoints(send: (request: object) => void): void {
    const known = this.#asked.has(endpointType) ? (this.#held.get(endpointType) ?? new Map<string, string>()) : new Map<string, string>()
    const names = [...(this.#held.get(clusterType)?.keys() ?? [])].filter((name) => name.startsWith('outbound|') && !known.has(name))
    this.#asked.add(endpointType)
    if (names.length > 0) send({ typeUrl: endpointType, resourceNamesSubscribe: names })
  }

  #take(message: Buffer): { typeUrl: string; nonce: string } {
    const { typeUrl, nonce, resources, removedResources } = fromBinary(DeltaDiscoveryResponseSchema, message)
    const held = this.#held.get(typeUrl) ?? new Map<string, string>()
    this.#held.set(typeUrl, held)
    for (const { name, version } of resources) held.set(name, version)
    for (const name of removedResources) held.delete(name)
    return { typeUrl, nonce }
  }

  #node() {
    const namespace = `ns-${this.#index % options.namespaces}`
    const name = `roaming-${this.#index}`
    return {
      id: `sidecar~10.120.${this.#index >> 8}.${this.#index & 255}~${name}.${namespace}~${namespace}.svc.cluster.local`,
      metadata: { NAMESPACE: namespace, LABELS: { app: `client-${this.#index % 50}` } },
      userAgentName: 'envoy',
      userAgentVersionType: { case: 'userAgentBuildVersion', value: { version: { majorNumber: 1, minorNumber: 40 } } },
    }
  }
}

const sidecars = Array.from({ length: options.count }, (_, index) => new RoamingSidecar(index))
process.on('disconnect', () => process.exit(0))
process.on('message', () => {
  const state: RoamingState = {
    served: sidecars.filter(({ isServed }) => isServed).length,
    streams: sidecars.filter(({ hasStream }) => hasStream).length,
    bytes,
    gaps: gaps.sort((one, other) => one - other),
  }
  ;[bytes, gaps] = [0, []]
  process.send?.({ type: 'state', ...state })
})
