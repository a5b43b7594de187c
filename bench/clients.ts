/**
 * The load generator: one process that simulates many sidecars over raw HTTP/2. Each subscribes as a proxy does (to the endpoints of its
 * clusters, again when they change). The process reports when the marker of a change has reached each sidecar, and computes digests of what
 * each holds. Messages that were seen before are not decoded again, so that the load costs little CPU compared with the server under test.
 * Driven by messages from bench/load.ts.
 */
import { hash } from 'node:crypto'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { crc32 } from 'node:zlib'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Cluster_DiscoveryType, ClusterSchema } from '../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { DeltaDiscoveryRequestSchema, DiscoveryRequestSchema } from '../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { scanFields } from '../src/xds/slab/wire.ts'
import { FrameBuffers, FrameReader, messageFrame } from '../src/xds/stream/frames.ts'
import { clusterType, endpointType, listenerType, nameTableType, routeType, virtualHostType } from '../src/xds/type-urls.ts'

/** The credentials of a sidecar over TLS: certificate and key in PEM, and a JSON Web Token. */
export interface Shown {
  readonly cert?: string
  readonly key?: string
  readonly token?: string
}

/** Connects `count` sidecars with the numbers `first`, `first + step`, ... */
export interface ConnectCommand {
  readonly type: 'connect'
  readonly port: number
  readonly tls: boolean
  /** Credentials by the sidecar's number, modulo the length of the list. None by default. */
  readonly shown?: readonly Shown[] | undefined
  readonly delta: boolean
  /** Whether the sidecars subscribe to the name table, as for agents that resolve DNS names. */
  readonly resolves?: boolean | undefined
  /** Whether the sidecars identify as Envoy 1.40, which takes virtual hosts as separate resources (VHDS), instead of as 1.36. */
  readonly hosts: boolean
  readonly namespaces: number
  readonly count: number
  readonly first: number
  readonly step: number
  /**
   * How much of the responses is decoded. `all`: everything, and stored. `names`: the names of endpoints of each sidecar's own clusters,
   * without the clusters' contents (for many sidecars that see different services). `first`: only the clusters of the first sidecar, to
   * whose endpoints all subscribe (for many sidecars that see the same). `nothing`: for the bare server.
   */
  readonly reads: 'all' | 'names' | 'first' | 'nothing'
  /** With `reads: 'nothing'`, the number of endpoint names that a sidecar subscribes to. The default is one. */
  readonly asks?: number | undefined
  /** Whether each sidecar has the address of an endpoint of the service with its number, so that its inbound configuration is unique. */
  readonly own: boolean
  /**
   * Of every `misbehaving` sidecars, one reads 10 KB per second, one never acknowledges, and one repeatedly reconnects. They are not
   * counted. 0: none misbehaves.
   */
  readonly misbehaving: number
  /** Whether all sidecars read 10 KB per second and are not counted. */
  readonly slow?: boolean
  /** The rate at which each sidecar reads, in bytes per second. Unlimited by default. */
  readonly bytesPerSecond?: number | undefined
  /** The namespace of all sidecars. By default they are spread over `namespaces`. */
  readonly namespace?: string
  /** Added to all numbers. The default is 0. */
  readonly from?: number
  /**
   * The maximum number of sidecars without their first configuration; the next one connects when one has it. By default all connect at
   * once.
   */
  readonly atOnce?: number | undefined
}

/** Commands of the driver to the load generator. */
export type LoadCommand =
  | ConnectCommand
  /** `among`: the numbers of the sidecars that the marker must reach. The default is all counted ones. */
  | { readonly type: 'mark'; readonly marker: string; readonly among?: readonly number[] | undefined }
  | { readonly type: 'digest' | 'count' | 'count lost' | 'end' }

/** Reports of the load generator. Times are Unix milliseconds. */
export type LoadReport =
  /** `names`: the number of endpoint names that the new sidecars have subscribed to. */
  | { readonly type: 'connected'; readonly times: readonly number[]; readonly bytes: number; readonly names: number }
  | { readonly type: 'marked'; readonly times: readonly number[]; readonly bytes: number }
  | { readonly type: 'looking' }
  | { readonly type: 'received'; readonly bytes: number }
  | { readonly type: 'lost'; readonly streams: number }
  | { readonly type: 'digests'; readonly digests: readonly (readonly [sidecar: number, digest: string])[] }

/** Buffers for messages that arrive in several frames. */
const buffers = new FrameBuffers()
const window = 1_048_576
const slowBytesPerSecond = 10_240
const flapMs = 2000

/** The decoded contents of a response, shared by all sidecars that received the same response. */
interface Body {
  readonly id: number
  /** A digest of each resource, by name. */
  readonly resources: ReadonlyMap<string, string>
  readonly removed: readonly string[]
  /** The names of the endpoint resources that its clusters subscribe to. */
  readonly endpointNames: readonly string[]
}

const bodies = new Map<string, Body>()
let firstBody: Body | undefined
let nextBody = 1

/**
 * Returns the body of a response. A response seen before is recognized by its length and a checksum: of samples where it is longer than
 * changes are. A new one is decoded.
 */
function bodyOf(message: Buffer, delta: boolean, { typeUrl, end, rest }: Head): Body {
  const sampled = end > window ? 65_536 : end
  let sum = crc32(message.subarray(0, sampled))
  for (let at = sampled; at < end; at += 65_536) sum = crc32(message.subarray(at, Math.min(end, at + 4096)), sum)
  sum = crc32(message.subarray(rest), crc32(message.subarray(Math.max(0, end - 65_536), end), sum))
  const key = `${delta}|${typeUrl}|${end}|${message.length - rest}|${sum}`
  let body = bodies.get(key)
  if (!body) bodies.set(key, (body = readBody(message, delta, typeUrl)))
  return body
}

function readBody(message: Buffer, delta: boolean, typeUrl: string): Body {
  const resources = new Map<string, string>()
  const removed: string[] = []
  const endpointNames: string[] = []
  for (const { field, bytes } of scanFields(message)) {
    if (field === 6 && delta && bytes) removed.push(bytes.toString())
    if (field !== 2 || !bytes) continue
    const any = delta ? fieldOf(bytes, 2) : bytes
    const value = any && fieldOf(any, 2)
    if (!value) continue
    const sum = hash('sha1', value, 'base64')
    const [name, endpoints] = known.get(sum) ?? readResource(value, typeUrl, sum)
    resources.set((delta && fieldOf(bytes, 3)?.toString()) || name, sum)
    if (endpoints !== '') endpointNames.push(endpoints)
  }
  return { id: nextBody++, resources, removed, endpointNames }
}

/** Returns the endpoint names of the clusters in a message. Clusters of the same name are assumed to have the same endpoint name. */
function endpointNamesIn(message: Buffer, delta: boolean): string[] {
  const names: string[] = []
  for (const { field, bytes } of scanFields(message)) {
    if (field !== 2 || !bytes) continue
    const any = delta ? fieldOf(bytes, 2) : bytes
    const cluster = any && fieldOf(any, 2)
    if (!cluster) continue
    const name = fieldOf(cluster, 1)?.toString('latin1') ?? ''
    let endpoints = endpointsOf.get(name)
    if (endpoints === undefined) endpointsOf.set(name, (endpoints = readResource(cluster, clusterType, name)[1]))
    if (endpoints !== '') names.push(endpoints)
  }
  return names
}

const endpointsOf = new Map<string, string>()

/** Names of resources, and their endpoint names, by digest. */
const known = new Map<string, readonly [name: string, endpoints: string]>()

function readResource(value: Buffer, typeUrl: string, sum: string): readonly [name: string, endpoints: string] {
  const names: [string, string] = [fieldOf(value, 1)?.toString() ?? '', '']
  if (typeUrl === clusterType) {
    const cluster = fromBinary(ClusterSchema, value)
    if (cluster.clusterDiscoveryType.case === 'type' && cluster.clusterDiscoveryType.value === Cluster_DiscoveryType.EDS)
      names[1] = cluster.edsClusterConfig?.serviceName || cluster.name
  }
  known.set(sum, names)
  return names
}

function fieldOf(message: Buffer, wanted: number): Buffer | undefined {
  for (const { field, bytes } of scanFields(message)) if (field === wanted && bytes) return bytes
  return undefined
}

/** Cached digests of the state after a sequence of bodies, for a subscription. */
const folded = new Map<string, string>()

type Role = 'ordinary' | 'slow' | 'silent' | 'flapping'

function roleOf(index: number, { misbehaving, slow }: ConnectCommand): Role {
  if (slow) return 'slow'
  return misbehaving > 0 && index % misbehaving < 3 ? (['slow', 'silent', 'flapping'] as const)[(index % misbehaving) as 0 | 1 | 2] : 'ordinary'
}

class Sidecar {
  readonly index: number
  readonly counts: boolean
  readonly got = new Set<string>()
  marked = false
  #session: ClientHttp2Session
  #stream: ClientHttp2Stream
  readonly #options: ConnectCommand
  readonly #role: Role
  readonly #seen: (sidecar: Sidecar, message: Buffer) => void
  readonly #held = new Map<string, Body[]>()
  #names: ReadonlySet<string> = new Set()
  #subscribed: Record<string, readonly string[]> = {}

  constructor(index: number, options: ConnectCommand, seen: (sidecar: Sidecar, message: Buffer) => void) {
    this.index = index
    this.#options = options
    this.#seen = seen
    this.#role = roleOf(index, options)
    this.counts = this.#role === 'ordinary'
    ;[this.#session, this.#stream] = this.#open()
    if (this.#role === 'flapping') setInterval(() => this.#reopen(), flapMs)
  }

  /** The number of endpoint names that it has subscribed to. */
  get endpointNames(): number {
    return this.#subscribed[endpointType]?.length ?? 0
  }

  /** A digest of all stored resources. */
  digest(): string {
    return [clusterType, endpointType, listenerType, routeType, virtualHostType].map((typeUrl) => this.#digestOf(typeUrl)).join('|')
  }

  end(): void {
    this.#session.destroy()
  }

  #digestOf(typeUrl: string): string {
    const held = this.#held.get(typeUrl) ?? []
    const key = `${typeUrl}|${held.map((body) => body.id).join()}|${typeUrl === endpointType ? hash('sha1', [...this.#names].sort().join(), 'base64') : ''}`
    let digest = folded.get(key)
    if (digest === undefined) {
      const state = new Map<string, string>()
      for (const body of held) {
        for (const [name, sum] of body.resources) state.set(name, sum)
        for (const name of body.removed) state.delete(name)
      }
      const wanted = [...state].filter(([name]) => typeUrl !== endpointType || this.#names.has(name)).map(([name, sum]) => `${name}=${sum}`)
      digest = hash('sha1', wanted.sort().join('\n'), 'base64')
      folded.set(key, digest)
    }
    return digest
  }

  #reopen(): void {
    this.#session.destroy()
    this.#held.clear()
    this.#asksHosts = false
    this.#names = new Set()
    // Subscriptions of the previous stream do not apply to the new one.
    this.#subscribed = {}
    this.#nonces = {}
    ;[this.#session, this.#stream] = this.#open()
  }

  #open(): [ClientHttp2Session, ClientHttp2Stream] {
    const { port, tls, delta } = this.#options
    const size = this.#role === 'slow' ? 16_384 : window
    const { cert, key, token } = this.#shown()
    const session = connect(`${tls ? 'https' : 'http'}://127.0.0.1:${port}`, {
      settings: { initialWindowSize: size },
      rejectUnauthorized: false,
      ...(cert === undefined ? {} : { cert, key }),
    })
    session.on('connect', () => session.destroyed || session.setLocalWindowSize(size))
    let released = false
    const lost = (reason: string) => released || stream !== this.#stream || this.#lost(reason)
    session.on('error', (error) => lost(error.message))
    const method = delta ? 'DeltaAggregatedResources' : 'StreamAggregatedResources'
    const stream = session.request({
      ':method': 'POST',
      ':path': `/envoy.service.discovery.v3.AggregatedDiscoveryService/${method}`,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    })
    const reader = new FrameReader(1 << 30, buffers)
    stream.on('data', (bytes: Buffer) => {
      const rate = this.#role === 'slow' ? slowBytesPerSecond : this.#options.bytesPerSecond
      if (rate !== undefined) {
        stream.pause()
        setTimeout(() => stream.resume(), (bytes.length / rate) * 1000)
      }
      reader.take(bytes, (message) => this.#take(message))
    })
    stream.on('error', (error) => lost(error.message))
    stream.on('close', () => lost('closed'))
    // The server ended the stream so that the sidecar reconnects to another writer.
    stream.on('end', () => {
      if (ending || released || stream !== this.#stream) return
      released = true
      this.#reopen()
    })
    this.#stream = stream
    this.#send(clusterType, '', [], this.#node())
    this.#send(listenerType, '')
    if (this.#options.resolves) this.#send(nameTableType, '')
    return [session, stream]
  }

  #shown(): Shown {
    const { shown = [] } = this.#options
    return shown[this.index % Math.max(1, shown.length)] ?? {}
  }

  /** Only misbehaving sidecars may lose their streams. Slow ones reconnect. */
  #lost(reason: string): void {
    if (ending) return
    if (this.counts) throw new Error(`sidecar ${this.index} lost its stream: ${reason}`)
    lostStreams++
    if (this.#role === 'slow') this.#reopen()
  }

  #node() {
    const { index } = this
    const namespace = this.#options.namespace ?? `ns-${index % this.#options.namespaces}`
    const address = `10.${this.#options.own ? 10 : 100 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`
    return {
      id: `sidecar~${address}~pod-${index}.${namespace}~${namespace}.svc.cluster.local`,
      metadata: { NAMESPACE: namespace, LABELS: { app: `client-${index % 50}` }, ...(this.#options.resolves ? { DNS_CAPTURE: 'true' } : {}) },
      userAgentName: 'envoy',
      userAgentVersionType: { case: 'userAgentBuildVersion', value: { version: { majorNumber: 1, minorNumber: this.#options.hosts ? 40 : 36 } } },
    }
  }

  #take(message: Buffer): void {
    const head = headOf(message)
    const { nonce, typeUrl } = head
    if (this.#options.reads === 'all') this.#hold(typeUrl, bodyOf(message, this.#options.delta, head))
    else if (this.#options.reads === 'first' && typeUrl === clusterType) firstBody ??= bodyOf(message, this.#options.delta, head)
    if (this.#role !== 'silent') this.#send(typeUrl, nonce, this.#options.delta ? [] : this.#subscribed[typeUrl])
    if (typeUrl === clusterType) this.#follow(message)
    else if (typeUrl === listenerType && !this.#subscribed[routeType]) {
      this.#subscribed[routeType] = ['80', '9090']
      this.#send(routeType, '', this.#subscribed[routeType])
    } else if (typeUrl === routeType && this.#options.hosts && !this.#asksHosts) {
      this.#asksHosts = true
      this.#send(virtualHostType, '')
    }
    this.got.add(typeUrl)
    this.#seen(this, message)
  }

  #hold(typeUrl: string, body: Body): void {
    const whole = !this.#options.delta && (typeUrl === clusterType || typeUrl === listenerType)
    const held = whole ? undefined : this.#held.get(typeUrl)
    if (held) held.push(body)
    else this.#held.set(typeUrl, [body])
  }

  /** Subscribes to the endpoints of the stored clusters. */
  #follow(message: Buffer): void {
    const { reads, asks, delta } = this.#options
    if (reads !== 'all') {
      if (this.#subscribed[endpointType]) return
      const names = reads === 'names' ? endpointNamesIn(message, delta) : (firstBody?.endpointNames ?? fillerNames(asks ?? 1))
      this.#subscribed[endpointType] = names
      this.#send(endpointType, '', names)
      return
    }
    const held = this.#held.get(clusterType) as Body[]
    const last = held.at(-1) as Body
    if (!this.#options.delta || held.length === 1) {
      if (this.#subscribed[endpointType] === last.endpointNames) return
      this.#subscribed[endpointType] = last.endpointNames
      this.#names = namesOf(last)
      this.#send(endpointType, this.#options.delta ? '' : (this.#nonces[endpointType] ?? ''), last.endpointNames)
      return
    }
    const added = last.endpointNames.filter((name) => !this.#names.has(name))
    const removed = last.removed.filter((name) => this.#names.has(name))
    if (added.length + removed.length === 0) return
    this.#names = new Set([...this.#names, ...added].filter((name) => !removed.includes(name)))
    this.#send(endpointType, '', added, undefined, removed)
  }
  #nonces: Record<string, string> = {}
  #asksHosts = false

  #send(typeUrl: string, nonce: string, names: readonly string[] = [], node?: object, without: readonly string[] = []): void {
    if (nonce !== '') this.#nonces[typeUrl] = nonce
    const message = this.#options.delta
      ? toBinary(
          DeltaDiscoveryRequestSchema,
          create(DeltaDiscoveryRequestSchema, {
            typeUrl,
            responseNonce: nonce,
            resourceNamesSubscribe: [...names],
            resourceNamesUnsubscribe: [...without],
            node: node as never,
          }),
        )
      : sotwRequest(typeUrl, nonce, names, node)
    this.#stream.write(messageFrame(message))
  }
}

const fillers: string[] = []
/** Returns `count` names of realistic length. */
function fillerNames(count: number): readonly string[] {
  if (fillers.length === 0) fillers.push(...Array.from({ length: count }, (_, index) => `outbound|80||svc-${index}.ns-0.svc.cluster.local`))
  return fillers
}

const nameSets = new WeakMap<Body, ReadonlySet<string>>()
function namesOf(body: Body): ReadonlySet<string> {
  let names = nameSets.get(body)
  if (!names) nameSets.set(body, (names = new Set(body.endpointNames)))
  return names
}

/** SotW requests repeat long lists of names, so each list is encoded once. */
const encodedNames = new WeakMap<readonly string[], Uint8Array>()
function sotwRequest(typeUrl: string, responseNonce: string, names: readonly string[], node?: object): Uint8Array {
  let encoded = encodedNames.get(names)
  if (!encoded) encodedNames.set(names, (encoded = toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { resourceNames: [...names] }))))
  const head = toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl, responseNonce, node: node as never }))
  return Buffer.concat([head, encoded])
}

/** Nonce and type of a response, and the offsets of the nonce field: resources precede it, removed names follow it. */
interface Head {
  readonly nonce: string
  readonly typeUrl: string
  readonly end: number
  readonly rest: number
}

function headOf(message: Buffer): Head {
  let nonce = ''
  let typeUrl = ''
  let end = message.length
  let rest = message.length
  for (const field of scanFields(message)) {
    if (field.field === 4 && field.bytes) typeUrl = field.bytes.toString()
    if (field.field !== 5 || !field.bytes) continue
    nonce = field.bytes.toString()
    end = field.start
    rest = field.end
  }
  return { nonce, typeUrl, end, rest }
}

const sidecars: Sidecar[] = []
let marker: Buffer | undefined
let waited = 0
let ending = false
let times: number[] = []
let bytes = 0
let received = 0
let lostStreams = 0
const report = (message: LoadReport) => process.send?.(message)

function connectAll(command: ConnectCommand): void {
  times = []
  bytes = 0
  marker = undefined
  const seen = (sidecar: Sidecar, message: Buffer) => {
    bytes += message.length
    received += message.length
    if (!sidecar.counts || sidecar.marked) return
    if (marker ? !message.includes(marker) : sidecar.got.size < 4 + Number(command.hosts) + Number(command.resolves ?? false)) return
    sidecar.marked = true
    times.push(Date.now())
    if (!marker) add()
    if (times.length === waited) report(marker ? { type: 'marked', times, bytes } : { type: 'connected', times, bytes, names: subscriptions() })
  }
  const added: Sidecar[] = []
  const subscriptions = () => added.reduce((sum, sidecar) => sum + sidecar.endpointNames, 0)
  const numbers = Array.from({ length: command.count }, (_, i) => (command.from ?? 0) + command.first + i * command.step)
  const add = () => {
    const index = numbers[added.length]
    if (index === undefined) return
    const sidecar = new Sidecar(index, command, seen)
    added.push(sidecar)
    sidecars.push(sidecar)
  }
  waited = numbers.filter((index) => roleOf(index, command) === 'ordinary').length
  for (const sidecar of sidecars) sidecar.marked = true
  for (let started = Math.min(command.atOnce ?? numbers.length, numbers.length); started > 0; started--) add()
  if (waited === 0) report({ type: 'connected', times, bytes, names: 0 })
}

process.on('message', (command: LoadCommand) => {
  switch (command.type) {
    case 'connect':
      return connectAll(command)
    case 'mark': {
      const among = command.among && new Set(command.among)
      marker = Buffer.from(command.marker)
      times = []
      bytes = 0
      waited = 0
      for (const sidecar of sidecars) {
        sidecar.marked = !sidecar.counts || (among !== undefined && !among.has(sidecar.index))
        if (!sidecar.marked) waited++
      }
      report({ type: 'looking' })
      if (waited === 0) report({ type: 'marked', times, bytes })
      return
    }
    case 'digest':
      return report({ type: 'digests', digests: sidecars.filter((one) => one.counts).map((one) => [one.index, one.digest()] as const) })
    case 'count':
      report({ type: 'received', bytes: received })
      received = 0
      return
    case 'count lost':
      return report({ type: 'lost', streams: lostStreams })
    case 'end':
      ending = true
      for (const sidecar of sidecars) sidecar.end()
      process.exit(0)
  }
})

// The driver has exited.
process.on('disconnect', () => process.exit(0))
