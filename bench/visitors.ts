/** Proxies that connect, send requests and disconnect. Node and behaviour depend on the proxy's number. */
import { type ClientHttp2Session, connect } from 'node:http2'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { scanFields } from '../src/xds/slab/wire.ts'
import { FrameBuffers, FrameReader, messageFrame } from '../src/xds/stream/frames.ts'
import { clusterType, endpointType, listenerType, routeType, virtualHostType } from '../src/xds/type-urls.ts'

/** The behaviours of visitors, apart from the subscriptions to clusters and listeners. */
const manners = ['ordinary', 'ordinary', 'ordinary', 'refuses', 'loops', 'silent', 'hasty', 'deaf', 'made up', 'many types'] as const
type Manner = (typeof manners)[number]

/** The maximum duration of a visit, in milliseconds. */
const stayMs = 5000
const deafMs = 100
const buffers = new FrameBuffers()

interface Visit {
  readonly delta: boolean
  readonly manner: Manner
  send(request: Request): void
  leave(): void
}

interface Request {
  readonly typeUrl: string
  readonly nonce?: string
  readonly add?: readonly string[]
  readonly remove?: readonly string[]
  readonly refused?: boolean
}

/** Connects the visitor number `index`. Resolves when it has disconnected. */
export function visit(port: number, index: number): Promise<void> {
  return new Promise((resolve) => {
    const delta = index % 2 === 0
    const manner = manners[index % manners.length] as Manner
    const session: ClientHttp2Session = connect(`http://127.0.0.1:${port}`)
    const timer = setTimeout(() => session.destroy(), stayMs)
    session.on('error', () => undefined)
    session.on('close', () => {
      clearTimeout(timer)
      resolve()
    })
    const method = delta ? 'DeltaAggregatedResources' : 'StreamAggregatedResources'
    const path = `/envoy.service.discovery.v3.AggregatedDiscoveryService/${method}`
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' })
    let node: object | undefined = nodeOf(index)
    const visitor: Visit = {
      delta,
      manner,
      send(request) {
        stream.write(messageFrame(encode(request, delta, node)))
        node = undefined
      },
      leave: () => session.destroy(),
    }
    const reader = new FrameReader(1 << 30, buffers)
    stream.on('error', () => undefined)
    stream.on('end', () => session.destroy())
    if (manner === 'deaf') setTimeout(() => session.destroy(), deafMs)
    else stream.on('data', (bytes: Buffer) => reader.take(bytes, (message) => take(visitor, message)))
    visitor.send({ typeUrl: clusterType })
    if (manner === 'hasty') return visitor.leave()
    visitor.send({ typeUrl: listenerType })
    visitor.send({ typeUrl: routeType, add: ['80', '9090', `made-up-${index}`] })
    if (delta && index % 4 === 0) visitor.send({ typeUrl: virtualHostType })
    if (manner === 'made up') visitor.send({ typeUrl: endpointType, add: Array.from({ length: 1500 }, (_, name) => `made-up-${index}-${name}`) })
    if (manner === 'many types') for (let type = 0; type < 80; type++) visitor.send({ typeUrl: `type.googleapis.com/made.up.T${index}.${type}` })
  })
}

/** Processes a response. A visitor disconnects when it has received its endpoints. */
function take(visitor: Visit, message: Buffer): void {
  const { delta, manner } = visitor
  const { typeUrl, nonce, resources } = delta ? fromBinary(DeltaDiscoveryResponseSchema, message) : fromBinary(DiscoveryResponseSchema, message)
  if (typeUrl === endpointType) return visitor.leave()
  const kept = typeUrl === routeType && !delta ? ['80', '9090'] : []
  if (manner !== 'silent') visitor.send({ typeUrl, nonce, add: kept, refused: manner === 'refuses' })
  if (typeUrl !== clusterType) return
  const names = resources.flatMap((resource) => {
    if ('name' in resource) return resource.name
    const [name] = scanFields(Buffer.from((resource as { value: Uint8Array }).value))
    return name?.bytes?.toString() ?? []
  })
  const subscribed = names.filter((name) => name.startsWith('outbound|'))
  if (subscribed.length === 0) return visitor.leave()
  for (let loop = 0; manner === 'loops' && loop < 20; loop++) {
    visitor.send({ typeUrl: endpointType, add: [...subscribed.slice(loop), '*'] })
    visitor.send({ typeUrl: endpointType, remove: subscribed.slice(loop) })
  }
  visitor.send({ typeUrl: endpointType, add: subscribed })
}

function encode({ typeUrl, nonce = '', add = [], remove = [], refused = false }: Request, delta: boolean, node: object | undefined): Uint8Array {
  const common = {
    typeUrl,
    node: node as never,
    responseNonce: nonce,
    ...(refused ? { errorDetail: { code: 13, message: 'refused '.repeat(500) } } : {}),
  }
  if (!delta) return toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { ...common, resourceNames: [...add] }))
  const names = { resourceNamesSubscribe: [...add], resourceNamesUnsubscribe: [...remove] }
  return toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { ...common, ...names }))
}

/** Returns the node of a visitor. Nodes differ in fields that resources depend on and in fields that no resource depends on. */
function nodeOf(index: number): object {
  const namespace = index % 3 === 0 ? `made-up-${index}` : `ns-${index % 10}`
  const file = `/certs/${index}`
  const extra = [
    {},
    { TLS_CLIENT_CERT_CHAIN: file, TLS_CLIENT_KEY: file, TLS_CLIENT_ROOT_CERT: file },
    { NETWORK: `network-${index % 13}` },
    { IDLE_TIMEOUT: `${1 + (index % 600)}s` },
    { MESH_VERSION: `1.${index % 30}.0`, INTERCEPTION_MODE: 'NONE' },
    { REQUESTED_NETWORK_VIEW: `network-${index % 5}` },
    { SOMETHING: 'x'.repeat(index % 2000) },
  ][index % 7] as object
  return {
    id: `sidecar~10.${10 + (index % 5)}.${(index >> 8) & 255}.${index & 255}~pod-${index}.${namespace}~${namespace}.svc.cluster.local`,
    metadata: { NAMESPACE: namespace, LABELS: { app: `app-${index % 40}`, version: `v${index % 3}`, made: `up-${index}` }, ...extra },
    locality: { region: 'r', zone: `z${index % 4}`, subZone: '' },
    userAgentName: 'envoy',
    userAgentVersionType: { case: 'userAgentBuildVersion', value: { version: { majorNumber: 1, minorNumber: index % 4 === 0 ? 40 : 36 } } },
  }
}
