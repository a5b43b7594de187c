/**
 * The load: one process that plays many sidecars over raw HTTP/2 and reports, for each round, when the marker of a change
 * reached each of them and what came in. It decodes nothing after the first configuration, so that it costs little beside the
 * server under test. Driven by messages from bench/run.ts.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { ClusterSchema } from '../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { FrameReader, messageFrame } from '../src/xds/session/frames.ts'
import { scanFields } from '../src/xds/slab/wire.ts'
import { clusterType, endpointType, listenerType, routeType } from '../src/xds/type-urls.ts'

/** What the driver tells the load. */
export type LoadCommand =
  | {
      readonly type: 'connect'
      readonly port: number
      readonly count: number
      readonly first: number
      readonly delta: boolean
      readonly namespaces: number
      readonly bare: boolean
    }
  | { readonly type: 'mark'; readonly marker: string; readonly at: number }
  | { readonly type: 'end' }

/** What the load reports. Times in milliseconds since the round began. */
export type LoadReport =
  | { readonly type: 'connected'; readonly times: readonly number[]; readonly bytes: number }
  | { readonly type: 'marked'; readonly times: readonly number[]; readonly bytes: number }

const window = 1_048_576

class Sidecar {
  readonly reader = new FrameReader(1 << 30)
  readonly stream: ClientHttp2Stream
  readonly delta: boolean
  readonly got = new Set<string>()
  marked = false
  #names: Record<string, string[]> = {}

  constructor(
    session: ClientHttp2Session,
    index: number,
    options: Extract<LoadCommand, { type: 'connect' }>,
    seen: (sidecar: Sidecar, typeUrl: string, message: Buffer) => void,
  ) {
    this.delta = options.delta
    const method = options.delta ? 'DeltaAggregatedResources' : 'StreamAggregatedResources'
    this.stream = session.request({
      ':method': 'POST',
      ':path': `/envoy.service.discovery.v3.AggregatedDiscoveryService/${method}`,
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    const namespace = `ns-${index % options.namespaces}`
    const node = {
      id: `sidecar~10.${100 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}~pod-${index}.${namespace}~${namespace}.svc.cluster.local`,
      metadata: { NAMESPACE: namespace, LABELS: { app: `client-${index % 50}` } },
    }
    this.stream.on('data', (bytes: Buffer) => {
      this.reader.take(bytes, (message) => {
        const { nonce, typeUrl } = headOf(message)
        this.acknowledge(typeUrl, nonce)
        if (!this.got.has(typeUrl)) this.follow(typeUrl, message)
        this.got.add(typeUrl)
        seen(this, typeUrl, message)
      })
    })
    this.stream.on('close', () => {
      if (!ending) throw new Error(`the server closed the stream of sidecar ${index}`)
    })
    this.send(clusterType, '', undefined, node)
    this.send(listenerType, '')
  }

  acknowledge(typeUrl: string, nonce: string): void {
    this.send(typeUrl, nonce, this.delta ? undefined : this.#names[typeUrl])
  }

  send(typeUrl: string, nonce: string, names: string[] = [], node?: object): void {
    const message = this.delta
      ? toBinary(
          DeltaDiscoveryRequestSchema,
          create(DeltaDiscoveryRequestSchema, { typeUrl, responseNonce: nonce, resourceNamesSubscribe: names, node: node as never }),
        )
      : toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl, responseNonce: nonce, resourceNames: names, node: node as never }))
    this.stream.write(messageFrame(message))
  }

  /** Subscribes to endpoints of the clusters that came first, and to the routes of the bench's two ports. */
  follow(typeUrl: string, message: Buffer): void {
    if (typeUrl === clusterType) {
      endpointNames ??= namesOf(message, this.delta)
      this.#names[endpointType] = endpointNames
      this.send(endpointType, '', this.#names[endpointType])
    } else if (typeUrl === listenerType) {
      this.#names[routeType] = ['80', '9090']
      this.send(routeType, '', this.#names[routeType])
    }
  }
}

/** Names of load assignments; every sidecar of the bench sees the same clusters, so one of them decodes for all. */
let endpointNames: string[] | undefined

function namesOf(message: Buffer, delta: boolean): string[] {
  const values = delta
    ? fromBinary(DeltaDiscoveryResponseSchema, message).resources.map((resource) => resource.resource?.value)
    : fromBinary(DiscoveryResponseSchema, message).resources.map((any) => any.value)
  const clusters = values.map((value) => fromBinary(ClusterSchema, value ?? new Uint8Array()))
  return clusters.filter((cluster) => cluster.edsClusterConfig).map((cluster) => cluster.name)
}

function headOf(message: Buffer): { nonce: string; typeUrl: string } {
  let nonce = ''
  let typeUrl = ''
  for (const { field, bytes } of scanFields(message)) {
    if (field === 4 && bytes) typeUrl = bytes.toString()
    else if (field === 5 && bytes) nonce = bytes.toString()
  }
  return { nonce, typeUrl }
}

let sidecars: Sidecar[] = []
let sessions: ClientHttp2Session[] = []
let marker: Buffer | undefined
let markedAt = 0
let ending = false
let times: number[] = []
let bytes = 0
const report = (message: LoadReport) => process.send?.(message)

function connectAll(command: Extract<LoadCommand, { type: 'connect' }>): void {
  const started = Date.now()
  times = []
  bytes = 0
  for (let i = 0; i < command.count; i++) {
    const session = connect(`http://127.0.0.1:${command.port}`, { settings: { initialWindowSize: window } })
    session.on('connect', () => session.setLocalWindowSize(window))
    sessions.push(session)
    sidecars.push(
      new Sidecar(session, command.first + i, command, (sidecar, _, message) => {
        bytes += message.length
        if (marker && !sidecar.marked && message.includes(marker)) {
          sidecar.marked = true
          times.push(Date.now() - markedAt)
          if (times.length === sidecars.length) report({ type: 'marked', times, bytes })
        } else if (!marker && sidecar.got.size === 4 && times.length < sidecars.length && !sidecar.marked) {
          sidecar.marked = true
          times.push(Date.now() - started)
          if (times.length === command.count) report({ type: 'connected', times, bytes })
        }
      }),
    )
  }
}

process.on('message', (command: LoadCommand) => {
  if (command.type === 'connect') connectAll(command)
  else if (command.type === 'mark') {
    marker = Buffer.from(command.marker)
    markedAt = command.at
    times = []
    bytes = 0
    for (const sidecar of sidecars) sidecar.marked = false
  } else {
    ending = true
    for (const session of sessions) session.destroy()
    sidecars = []
    sessions = []
    process.exit(0)
  }
})
