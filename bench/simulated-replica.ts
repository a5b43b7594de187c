/**
 * A replica of discovery without threads, sockets and clock: the planner, the bookkeeping of its writers (audiences, catalogs, plans, streams,
 * turns and permits) and the rounds of pushes, as they run in the service, driven by a virtual clock. Counts what is done and measures its CPU.
 * The proxies are delta sidecars of Envoy 1.40; their own work is not measured.
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { assignmentsOf } from '../actors/discovery/push-queue/proxies.ts'
import { DeltaDiscoveryRequestSchema, DeltaDiscoveryResponseSchema } from '../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import type { PushContent } from '../protocols/messages/push.ts'
import { readFeatures } from '../src/config/features.ts'
import { configKey } from '../src/config/kinds.ts'
import { parseConfigFile } from '../src/config/parse.ts'
import { readNode } from '../src/model/proxy.ts'
import { meshNames } from '../src/names/mesh-names.ts'
import { Audience, isEmptyPush, type PushChanges } from '../src/push/audience.ts'
import { PushBudget, Turn } from '../src/push/pacing/budget.ts'
import { trialBytes } from '../src/push/pacing/permit-timeout.ts'
import { permitWords, SharedPermits } from '../src/push/pacing/permits.ts'
import { PushRounds } from '../src/push/pacing/rounds.ts'
import { Planner } from '../src/push/planner.ts'
import { KeyedSums } from '../src/xds/slab/sums.ts'
import { ConnectionBudget } from '../src/xds/stream/budget.ts'
import { Catalog } from '../src/xds/stream/catalog.ts'
import { responseFrame } from '../src/xds/stream/frames.ts'
import { readNodeBytes } from '../src/xds/stream/node.ts'
import { Plans } from '../src/xds/stream/plans.ts'
import { readDeltaRequest } from '../src/xds/stream/request.ts'
import { XdsSession } from '../src/xds/stream/session.ts'
import { Subscriptions } from '../src/xds/stream/subscription.ts'
import { clusterType, endpointType, listenerType, routeType, virtualHostType } from '../src/xds/type-urls.ts'
import type { Work } from './fleet-model.ts'
import * as mesh from './mesh.ts'

/** The mesh and the number of writers. */
export interface ReplicaSize {
  readonly services: number
  readonly namespaces: number
  readonly writers: number
}

/** What the sidecars of a namespace hold: versions by type and name. */
export type Held = ReadonlyMap<string, ReadonlyMap<string, string>>

const names = meshNames('mesh.io')
const versionKey = 'bench'
const routes = ['80', '9090']
const permits = 100
/** Proxies that connect within one turn of the event loop: their classes are one message. */
const together = 8

/** A sidecar, with what it does next. */
interface Sidecar {
  readonly id: string
  readonly namespace: string
  readonly session: XdsSession
  readonly turn: Turn
  readonly asked: Set<string>
  /** Encoded requests that were not read yet. */
  inbox: Buffer[]
  /** Types and nonces of responses that were not acknowledged yet. */
  unread: { readonly typeUrl: string; readonly nonce: string; readonly frame: Buffer[] | undefined }[]
  /** The response whose rest waits for a permit. */
  pending: number
  isConnected: boolean
}

const encode = (request: object): Buffer => Buffer.from(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, request)))

/** One writer: what it has, and its connections. */
class SimulatedWriter {
  readonly name: string
  readonly audience: Audience
  readonly sidecars = new Map<string, Sidecar>()
  responses = 0
  bytes = 0
  received = 0
  cpu = 0
  readonly #catalog = new Catalog(new KeyedSums(versionKey))
  readonly #members = new Map<string, Set<Sidecar>>()
  readonly #budget: PushBudget<Sidecar>
  readonly #parts
  readonly #isWitness: (sidecar: Sidecar) => boolean
  /** Sidecars of which a type is held back for a while. */
  readonly held = new Set<Sidecar>()
  /** Sidecars that were sent something, or that have requests to be read. */
  readonly active = new Set<Sidecar>()
  #nonces = 0

  constructor(name: string, audience: Audience, shared: SharedPermits, isWitness: (sidecar: Sidecar) => boolean) {
    this.name = name
    this.audience = audience
    this.#budget = new PushBudget(shared)
    this.#isWitness = isWitness
    const plans = new Plans(this.#catalog, { enabled: true, size: readFeatures({}).features.PILOT_XDS_CACHE_SIZE })
    const nonce = () => `0123456789abcdef-${++this.#nonces}`
    this.#parts = {
      ...{ catalog: this.#catalog, plans, subscriptions: new Subscriptions() },
      ...{ flowControlTimeoutMs: undefined, nonce, held: () => undefined },
    }
  }

  open(id: string, namespace: string): Sidecar {
    const session = new XdsSession(true, this.#parts, new ConnectionBudget())
    const sidecar = { id, namespace, session, turn: new Turn(), asked: new Set<string>(), inbox: [], unread: [], pending: 0, isConnected: false }
    this.sidecars.set(id, sidecar)
    return sidecar
  }

  close(sidecar: Sidecar, now: number): void {
    this.sidecars.delete(sidecar.id)
    this.audience.connectionClosed(sidecar.id, now)
    this.#members.get(sidecar.session.classId)?.delete(sidecar)
    this.#budget.gone(sidecar)
    sidecar.session.close()
    this.held.delete(sidecar)
    this.active.delete(sidecar)
  }

  apply(part: PushContent, now: number): void {
    const changed = this.#catalog.apply(part, (classId) => (this.#members.get(classId)?.size ?? 0) > 0)
    const touched = this.#catalog.classesOf(changed)
    for (const { classId } of part.manifests) touched.add(classId)
    for (const { connection, classId } of part.assignments) {
      const sidecar = this.sidecars.get(connection)
      if (!sidecar) continue
      this.#members.get(sidecar.session.classId)?.delete(sidecar)
      sidecar.session.classId = classId
      const members = this.#members.get(classId)
      if (members) members.add(sidecar)
      else this.#members.set(classId, new Set([sidecar]))
      this.#budget.due(sidecar, now)
    }
    for (const classId of touched) for (const sidecar of this.#members.get(classId) ?? []) if (sidecar.session.isDue()) this.#budget.due(sidecar, now)
    this.work(now)
  }

  /** Reads what a sidecar has asked. `connected` is called with its node. */
  read(sidecar: Sidecar, now: number, connected: (node: Buffer) => void): void {
    const { inbox } = sidecar
    sidecar.inbox = []
    for (const message of inbox) {
      this.received += message.length
      const request = readDeltaRequest(message)
      if (!sidecar.isConnected && request.node) {
        sidecar.isConnected = true
        connected(request.node)
      }
      sidecar.session.takeDelta(request, now)
      if (sidecar.session.classId !== '') this.#budget.due(sidecar, now)
    }
    this.work(now)
  }

  wakeHeld(now: number): void {
    for (const sidecar of [...this.held]) this.#budget.due(sidecar, now)
    this.work(now)
  }

  work(now: number): void {
    for (let next = this.#budget.next(() => undefined); next; next = this.#budget.next(() => undefined)) this.#push(next, now)
  }

  #push(sidecar: Sidecar, now: number): void {
    this.held.delete(sidecar)
    if (sidecar.pending > 0) this.#budget.delivered(1, sidecar.pending)
    sidecar.pending = 0
    for (let response = sidecar.session.next(now); response; response = sidecar.session.next(now)) {
      const frame = responseFrame(response, true)
      const { typeUrl, nonce, plan } = response
      this.responses++
      for (const { length } of frame) this.bytes += length
      sidecar.unread.push({ typeUrl, nonce, frame: this.#isWitness(sidecar) ? frame : undefined })
      this.active.add(sidecar)
      if (sidecar.turn.state === 'onTrial' && plan.length > trialBytes) {
        sidecar.pending = plan.length
        return this.#budget.passed(sidecar, now)
      }
      this.#budget.delivered(1, plan.length)
    }
    if (sidecar.session.isDue()) this.held.add(sidecar)
    this.#budget.done(sidecar)
  }
}

/** A change of the mesh at a time of the virtual clock, in milliseconds after the present. */
export interface TimedChange {
  readonly at: number
  readonly kind: mesh.ChangeKind
  readonly round: number
}

/** The replica. */
export class SimulatedReplica {
  readonly #size: ReplicaSize
  readonly #planner: Planner
  readonly #writers: readonly SimulatedWriter[]
  readonly #rounds: PushRounds
  /** The time of the virtual clock, in milliseconds. */
  #now = 0
  #connections = 0
  #pushes = 0
  #plannerCpu = 0
  #requests = 0
  /** The sidecar of each namespace whose responses are decoded, and what it holds. */
  readonly #witnesses = new Map<string, { readonly id: string; readonly held: Map<string, Map<string, string>> }>()
  readonly #encoded = new Map<string, Map<string, Buffer>>()

  /** Reads the configuration and makes the first push, as a start does. */
  constructor(size: ReplicaSize) {
    this.#size = size
    const { features } = readFeatures({})
    this.#rounds = new PushRounds({ after: features.PILOT_DEBOUNCE_AFTER, max: features.PILOT_DEBOUNCE_MAX })
    this.#planner = new Planner({
      ...{ features, names, domain: 'cluster.local', lockedKeys: '{"keys":[]}', versionKey },
      ...{ plugins: [], optOuts: new Set<never>() },
    })
    const words = permitWords(size.writers)
    this.#writers = Array.from({ length: size.writers }, (_, index) => {
      const shared = new SharedPermits(words, index, permits, () => this.#now)
      const isWitness = ({ id, namespace }: Sidecar) => this.#witnesses.get(namespace)?.id === id
      return new SimulatedWriter(`xds-writer/${index}`, new Audience(this.#planner.present), shared, isWitness)
    })
    for (const [file, text] of mesh.files(size.services, size.namespaces)) this.#set(file, text)
    this.#rounds.begin(this.#now)
    this.#planner.advance(this.#now)
    this.#publish()
    this.#rounds.sent(this.#pushes, [], this.#now)
  }

  /** The number of connected sidecars. */
  get proxies(): number {
    return this.#writers.reduce((sum, { sidecars }) => sum + sidecars.size, 0)
  }

  /** What the sidecars of each namespace hold. */
  held(): Map<string, Held> {
    return new Map([...this.#witnesses].map(([namespace, { held }]) => [namespace, held]))
  }

  /**
   * Connects sidecars; with `versions` they come from another replica and hold what the sidecars of their namespace held there. Returns what was
   * done until all of them have what they asked for.
   */
  connect(count: number, versions?: ReadonlyMap<string, Held>): Work {
    return this.#worked(count, 0, () => {
      for (let done = 0; done < count; ) {
        // The first sidecar of a namespace is ahead of the others, which ask for what it was told of.
        const unseen = this.#size.namespaces - this.#witnesses.size
        const batch = Math.min(unseen > 0 ? unseen : together, together, count - done)
        for (let each = 0; each < batch; each++) this.#open(versions)
        this.#settle()
        done += batch
      }
    })
  }

  /** Closes the newest `count` connections. Those whose responses are decoded are the oldest. */
  disconnect(count: number): Work {
    return this.#worked(0, 0, () => {
      const all = this.#writers.flatMap((writer) => [...writer.sidecars.values()].map((sidecar) => ({ writer, sidecar })))
      const newest = all.sort((one, other) => Number(other.sidecar.id) - Number(one.sidecar.id)).slice(0, count)
      const began = process.cpuUsage()
      for (const { writer, sidecar } of newest) {
        writer.close(sidecar, this.#now)
        this.#planner.disconnect(`${writer.name}/${sidecar.id}`)
      }
      this.#plannerCpu += since(began)
    })
  }

  /** Makes changes at their times, with the debounce of the service, until all sidecars have them. */
  change(changes: readonly TimedChange[]): Work {
    return this.#worked(0, changes.length, () => {
      const start = this.#now
      const left = [...changes]
      for (;;) {
        const wait = this.#rounds.wait(this.#now)
        const next = left[0] && start + left[0].at
        if (next !== undefined && (wait === undefined || next <= this.#now + wait)) {
          this.#now = Math.max(this.#now, next)
          this.#make(left.shift() as TimedChange)
        } else if (wait !== undefined) {
          this.#now += wait
          if (this.#rounds.check(this.#now) !== undefined) this.#push()
        } else break
      }
      this.#planner.sweep(this.#now + 60_000)
    })
  }

  #make({ kind, round }: TimedChange): void {
    const { file, text } = mesh.change(kind, round, this.#size.services, this.#size.namespaces)
    const began = process.cpuUsage()
    const changed = this.#set(file, text ?? '')
    this.#plannerCpu += since(began)
    if (changed) this.#rounds.changed({ reason: 'config', at: this.#now, onlyEndpoints: this.#planner.state.onlyEndpoints }, this.#now)
  }

  #set(file: string, text: string): boolean {
    let changed = false
    for (const object of parseConfigFile(file, text, names).objects) if (this.#planner.state.setConfig(configKey(object), object)) changed = true
    return changed
  }

  #push(): void {
    this.#rounds.begin(this.#now)
    const began = process.cpuUsage()
    this.#planner.advance(this.#now)
    const content = this.#planner.takePush()
    this.#plannerCpu += since(began)
    const names = isEmptyPush(content) ? [] : this.#writers.map(({ name }) => name)
    if (names.length > 0) {
      this.#pushes++
      this.#publish(content)
    }
    this.#rounds.sent(this.#pushes, names, this.#now)
    for (const name of names) this.#rounds.answered(name, this.#pushes)
    this.#settle()
  }

  /** Sends each writer its part of what the planner has made, if that was not taken yet. */
  #publish(taken?: PushChanges): void {
    const began = process.cpuUsage()
    const content = taken ?? this.#planner.takePush()
    const parts = this.#writers.map((writer) =>
      writer.audience.next({ ...content, assignments: assignmentsOf(writer.name, content.assignments) }, this.#now),
    )
    this.#plannerCpu += since(began)
    for (const [index, writer] of this.#writers.entries()) this.#inWriter(writer, () => writer.apply(parts[index] as PushContent, this.#now))
  }

  #inWriter(writer: SimulatedWriter, work: () => void): void {
    const began = process.cpuUsage()
    work()
    writer.cpu += since(began)
  }

  #open(versions: ReadonlyMap<string, Held> | undefined): void {
    const number = this.#connections++
    const namespace = `ns-${number % this.#size.namespaces}`
    const writer = this.#writers[number % this.#writers.length] as SimulatedWriter
    const sidecar = writer.open(String(number), namespace)
    const known = versions?.get(namespace)
    if (!this.#witnesses.has(namespace)) {
      const held = new Map([...(known ?? [])].map(([type, of]) => [type, new Map(of)]))
      this.#witnesses.set(namespace, { id: sidecar.id, held })
    }
    const node = nodeOf(number, namespace)
    const first = [clusterType, listenerType, ...(known ? [endpointType, routeType, virtualHostType] : [])]
    for (const typeUrl of first) {
      sidecar.asked.add(typeUrl)
      const request = this.#request(namespace, typeUrl, known)
      sidecar.inbox.push(typeUrl === clusterType ? Buffer.concat([node, request]) : request)
    }
    writer.active.add(sidecar)
  }

  /** The first request of a type, which all sidecars of a namespace send alike but for the node. */
  #request(namespace: string, typeUrl: string, known: Held | undefined): Buffer {
    const key = known ? `${namespace}|again` : namespace
    const requests = this.#encoded.get(key) ?? new Map<string, Buffer>()
    this.#encoded.set(key, requests)
    let request = requests.get(typeUrl)
    if (!request) {
      const held = known ?? this.#witnesses.get(namespace)?.held
      const clusters = [...(held?.get(clusterType)?.keys() ?? [])].filter((name) => name.startsWith('outbound|'))
      const subscribe = typeUrl === endpointType ? clusters : typeUrl === routeType ? routes : []
      request = encode({ typeUrl, resourceNamesSubscribe: subscribe, initialResourceVersions: Object.fromEntries(known?.get(typeUrl) ?? []) })
      requests.set(typeUrl, request)
    }
    return request
  }

  /** Lets sidecars and writers go on until nobody has anything to say. */
  #settle(): void {
    for (;;) {
      let isActive = false
      for (const writer of this.#writers) {
        const active = [...writer.active]
        writer.active.clear()
        for (const sidecar of active) this.#answer(sidecar)
        if (active.length > 0) isActive = true
        const asking = active.filter(({ inbox }) => inbox.length > 0)
        const connected: [Sidecar, Buffer][] = []
        this.#inWriter(writer, () => {
          for (const sidecar of asking) {
            this.#requests += sidecar.inbox.length
            writer.read(sidecar, this.#now, (node) => connected.push([sidecar, node]))
          }
        })
        if (connected.length > 0) this.#connected(writer, connected)
      }
      if (isActive) continue
      const held = this.#writers.flatMap(({ held }) => [...held])
      const until = held.flatMap(({ session }) => session.heldUntil(this.#now) ?? [])
      if (until.length === 0) return
      this.#now = Math.min(...until) + 1
      for (const writer of this.#writers) this.#inWriter(writer, () => writer.wakeHeld(this.#now))
    }
  }

  #connected(writer: SimulatedWriter, connected: readonly [Sidecar, Buffer][]): void {
    const began = process.cpuUsage()
    for (const [{ id }, node] of connected) this.#planner.connect(`${writer.name}/${id}`, readNode(readNodeBytes(node), names, true))
    this.#plannerCpu += since(began)
    this.#publish()
  }

  /** What a sidecar sends after the responses that it was sent. */
  #answer(sidecar: Sidecar): void {
    const { unread, namespace, asked } = sidecar
    sidecar.unread = []
    for (const { typeUrl, nonce, frame } of unread) {
      if (frame) this.#hold(namespace, frame)
      sidecar.inbox.push(acknowledgement(typeUrl, nonce))
      const next = typeUrl === clusterType ? endpointType : typeUrl === listenerType ? routeType : typeUrl === routeType ? virtualHostType : undefined
      if (next === undefined || asked.has(next)) continue
      asked.add(next)
      sidecar.inbox.push(this.#request(namespace, next, undefined))
    }
  }

  #hold(namespace: string, frame: readonly Buffer[]): void {
    const { typeUrl, resources, removedResources } = fromBinary(DeltaDiscoveryResponseSchema, Buffer.concat(frame).subarray(5))
    const all = this.#witnesses.get(namespace)?.held
    const held = all?.get(typeUrl) ?? new Map<string, string>()
    all?.set(typeUrl, held)
    for (const { name, version } of resources) held.set(name, version)
    for (const name of removedResources) held.delete(name)
  }

  #worked(connections: number, changes: number, work: () => void): Work {
    const before = this.#writers.map(({ responses, bytes, received, cpu }) => ({ responses, bytes, received, cpu }))
    const [planner, pushes, requests] = [this.#plannerCpu, this.#pushes, this.#requests]
    work()
    const writers = this.#writers.map((writer, index) => {
      const then = before[index] as (typeof before)[number]
      const [responses, bytes] = [writer.responses - then.responses, writer.bytes - then.bytes]
      return { responses, bytes, received: writer.received - then.received, cpu: writer.cpu - then.cpu }
    })
    return { connections, changes, requests: this.#requests - requests, pushes: this.#pushes - pushes, planner: this.#plannerCpu - planner, writers }
  }
}

/** Seconds of CPU since a reading. */
function since(began: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(began)
  return (user + system) / 1e6
}

/** An encoded request with a node alone. A message is the concatenation of its fields. */
function nodeOf(number: number, namespace: string): Buffer {
  return encode({
    node: {
      id: `sidecar~10.${100 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}~pod-${number}.${namespace}~${namespace}.svc.cluster.local`,
      metadata: { NAMESPACE: namespace, LABELS: { app: `client-${number % 50}` } },
      userAgentName: 'envoy',
      userAgentVersionType: { case: 'userAgentBuildVersion', value: { version: { majorNumber: 1, minorNumber: 40 } } },
    },
  })
}

const acknowledgement = (typeUrl: string, responseNonce: string): Buffer => encode({ typeUrl, responseNonce })
