/**
 * Discovery streams that ask about the service instead of for configuration (the generators `event` and `status`;
 * docs/xds-protocol.md, "Streams about the service"). What they may see is decided like the debug pages ({@link StatusAccess}).
 */
import type { EventsOfAll, ProxyEvent } from '../../../protocols/messages/proxy-events.ts'
import type { ReplicaState } from '../../../protocols/messages/replicas.ts'
import { count } from '../../../src/model/counts.ts'
import { ambiguous, findConnection } from '../../../src/model/named-connection.ts'
import { status } from '../../../src/model/status-codes.ts'
import type { MeshNames } from '../../../src/names/mesh-names.ts'
import {
  clientConfigMessage,
  clientConfigType,
  configDumpResources,
  type DumpedResource,
  eventType,
  nodeMessage,
  type StatusKind,
  silentConfigMessage,
  silentReplicaNode,
  statusGenerators,
  statusKindOf,
  statusResource,
} from '../../../src/xds/status/status-messages.ts'
import { messageFrame } from '../../../src/xds/stream/frames.ts'
import { encodeResponse, type ResponseResource } from '../../../src/xds/stream/response.ts'
import type { Connection } from './connection.ts'
import type { ConnectionStatus, ConnectionsOfAll } from './connection-debug.ts'
import type { MayRead, StatusAccess } from './status-access.ts'

/** Maximum number of these streams on a writer. */
const mostStreams = 64
/** Maximum size of the events that wait until a stream has taken those before them, in bytes. */
const mostWaiting = 1_048_576
/** How long one question waits for events, in milliseconds. */
const waitMs = 3000

/** Dependencies of {@link StatusStreams}. */
export interface StatusStreamParts {
  readonly access: StatusAccess
  readonly names: MeshNames
  /** Asks the main thread. */
  readonly ask: <Answer>(question: string, ...details: unknown[]) => Promise<Answer>
  /** Returns a nonce that was never used before. */
  readonly nonce: () => string
  /** Returns the version of a response. */
  readonly version: () => string
  /** Logs a line, at most now and then for each kind. */
  readonly warn: (kind: string, line: string) => void
}

/** A request for a type, as far as these streams use it. */
export interface StatusRequest {
  readonly typeUrl: string
  readonly nonce: string
  readonly error: object | undefined
  readonly names: ReadonlySet<string>
}

/** A type that a stream has asked for. */
interface StatusWatch {
  readonly kind: StatusKind
  /** The nonce of the last answer; empty before the first one. */
  nonce: string
  names: ReadonlySet<string>
}

/** One of these streams. */
class StatusStream {
  readonly connection: Connection
  readonly watches = new Map<string, StatusWatch>()
  /** The types that are to be answered, in the order in which they were asked for. */
  readonly due = new Set<string>()
  isAnswering = false
  /** The replicas of whose proxies it was told when it asked for `connect`, and is told since; undefined before. */
  told: Set<string> | undefined
  /** What the caller may see; undefined until it is admitted. */
  mayRead: MayRead | undefined
  readonly #waiting: { readonly frame: Buffer; readonly taken: () => void }[] = []
  /** The size of the events that were not taken yet. */
  #eventBytes = 0
  #isWriting = false

  readonly #warn: StatusStreamParts['warn']

  constructor(connection: Connection, warn: StatusStreamParts['warn']) {
    this.connection = connection
    this.#warn = warn
  }

  /** Sends an answer. Resolves when it was taken. */
  answer(typeUrl: string, version: string, nonce: string, resources: readonly ResponseResource[]): Promise<void> {
    return new Promise((resolve) => this.#send(this.#frame(typeUrl, version, nonce, resources), resolve))
  }

  /** Sends resources to its watches for `connect`, as an event. Resolves when they were taken. */
  async connected(resources: readonly ResponseResource[]): Promise<void> {
    for (const [typeUrl, { kind }] of this.watches) if (kind === 'connect') await this.answer(typeUrl, '', '', resources)
  }

  /** Sends an event to those of its watches that are for such events, without version and nonce. */
  event({ kind, namespace, nodeId, message }: ProxyEvent): void {
    if (!this.mayRead?.(namespace)) return
    for (const [typeUrl, watch] of this.watches) {
      if (watch.kind !== kind) continue
      const frame = this.#frame(typeUrl, '', '', [statusResource(nodeId, eventType(kind), message)])
      if (this.#eventBytes + frame.length > mostWaiting) {
        const reason = `events come faster than this stream takes them: more than ${mostWaiting} bytes wait; connect again`
        this.#warn('events', `${this.connection.id}: a stream about the service is ended: ${reason}`)
        return this.end(status.resourceExhausted, reason)
      }
      this.#eventBytes += frame.length
      this.#send(frame, () => (this.#eventBytes -= frame.length))
    }
  }

  end(code: number, message: string): void {
    this.watches.clear()
    for (const { taken } of this.#waiting.splice(0)) taken()
    this.connection.stream.end(code, message)
  }

  #frame(typeUrl: string, version: string, nonce: string, resources: readonly ResponseResource[]): Buffer {
    return messageFrame(encodeResponse(this.connection.session.delta, { typeUrl, version, nonce, resources, removed: [] }))
  }

  /** Sends a frame after those that wait. `taken` is called when it was taken, or will not be. */
  #send(frame: Buffer, taken: () => void): void {
    this.#waiting.push({ frame, taken })
    if (!this.#isWriting) this.#writeNext()
  }

  #writeNext(): void {
    const next = this.#waiting.shift()
    this.#isWriting = next !== undefined
    next &&
      this.connection.stream.write([next.frame], () => {
        next.taken()
        this.#writeNext()
      })
  }
}

/** The streams of one writer. */
export class StatusStreams {
  readonly #parts: StatusStreamParts
  readonly #streams = new Map<Connection, StatusStream>()
  /** Resolves when events are followed from a known place on; undefined while nobody watches them. */
  #following: Promise<void> | undefined
  /** The replicas whose events are followed; none where other replicas are not asked. */
  #followed: readonly string[] = []

  constructor(parts: StatusStreamParts) {
    this.#parts = parts
  }

  /** Takes a request about the service of a stream whose node names such a generator. Returns false for all other requests. */
  takes(connection: Connection, request: Omit<StatusRequest, 'names'>, namesOf: () => ReadonlySet<string>): boolean {
    if (!statusGenerators.has(connection.node?.metadata.GENERATOR)) return false
    const kind = statusKindOf(request.typeUrl, this.#parts.names)
    if (!kind) return false
    let stream = this.#streams.get(connection)
    if (!stream) {
      if (this.#streams.size >= mostStreams) {
        connection.stream.end(status.resourceExhausted, `${count(mostStreams, 'stream')} about the service are open at this writer already`)
        return true
      }
      stream = new StatusStream(connection, this.#parts.warn)
      this.#streams.set(connection, stream)
      connection.stream.onClose(() => this.#streams.delete(connection))
    }
    this.#take(stream, kind, { ...request, names: namesOf() })
    return true
  }

  #take(stream: StatusStream, kind: StatusKind, { typeUrl, nonce, error, names }: StatusRequest): void {
    // What was refused is not sent again.
    if (error) return
    const watch = stream.watches.get(typeUrl)
    const isSame =
      names.size === 0 ? stream.connection.session.delta || watch?.names.size === 0 : [...names].join() === [...(watch?.names ?? [])].join()
    // An acknowledgement, or one of an answer before the last one.
    if (watch && nonce !== '' && (nonce !== watch.nonce || isSame)) return
    if (watch) watch.names = names
    else stream.watches.set(typeUrl, { kind, nonce: '', names })
    stream.due.add(typeUrl)
    void this.#answerAll(stream)
  }

  /** Answers what a stream has asked for, one after the other: an answer is made when the one before was taken. */
  async #answerAll(stream: StatusStream): Promise<void> {
    if (stream.isAnswering) return
    stream.isAnswering = true
    try {
      if (!stream.mayRead) {
        const admitted = await this.#parts.access.of(stream.connection.stream)
        if (typeof admitted !== 'function') return stream.end(admitted.code, admitted.message)
        stream.mayRead = admitted
      }
      for (const typeUrl of stream.due) {
        stream.due.delete(typeUrl)
        await this.#answer(stream, typeUrl, stream.mayRead)
        if (!this.#streams.has(stream.connection)) return
      }
    } catch (error) {
      stream.end(status.unavailable, `what this stream asks for is not available at present: ${(error as Error).message}`)
    } finally {
      stream.isAnswering = false
    }
  }

  async #answer(stream: StatusStream, typeUrl: string, mayRead: MayRead): Promise<void> {
    const watch = stream.watches.get(typeUrl) as StatusWatch
    if (watch.kind === 'connect' || watch.kind === 'disconnect' || watch.kind === 'nack') await this.#follow()
    const resources = await this.#resources(stream, watch, mayRead)
    if (!resources) return
    watch.nonce = this.#parts.nonce()
    await stream.answer(typeUrl, this.#parts.version(), watch.nonce, resources)
  }

  /** The answer to a request; undefined where there is none, or the stream was ended. */
  async #resources(stream: StatusStream, { kind, names }: StatusWatch, mayRead: MayRead): Promise<ResponseResource[] | undefined> {
    if (kind === 'disconnect' || kind === 'nack') return undefined
    if (kind === 'connect') {
      const followed = this.#followed
      const { connections, answered, silent } = await this.#parts.ask<ConnectionsOfAll>('connectionsOfAll', true)
      const [told, untold] = [followed.filter((replica) => answered.includes(replica)), answered.filter((replica) => !followed.includes(replica))]
      stream.told = new Set(told)
      // The proxies of one that answers now, but did not when its events were asked for, are told when these are.
      const missing = [...silent, ...untold.map((name) => ({ name, reason: 'it has not answered yet about its events' }))]
      const shown = connections.filter(({ replica }) => replica === undefined || told.includes(replica))
      return [...connectedNodes(shown, mayRead), ...silentNodes(missing, eventType(kind), nodeMessage)]
    }
    const { connections: all, silent, silence } = await this.#parts.ask<ConnectionsOfAll>('connectionsOfAll', false)
    const connections = all.filter(({ namespace }) => mayRead(namespace))
    if (silence !== '') this.#parts.warn('silent', `a stream about the service is told of the proxies of some replicas only; ${silence}`)
    if (kind === 'syncz')
      return [
        ...connections.map(({ nodeId: id, types }) =>
          statusResource(id, clientConfigType, clientConfigMessage({ id, metadata: {}, locality: '' }, types)),
        ),
        ...silentNodes(silent, clientConfigType, silentConfigMessage),
      ]
    const [named] = names
    if (named === undefined || names.size !== 1) {
      stream.end(status.invalidArgument, `config_dump needs exactly one resource name, the id of a proxy, and has ${names.size}`)
      return undefined
    }
    const { found, candidates } = findConnection(connections, named)
    const resources = found && (await this.#parts.ask<Record<string, DumpedResource[]>>('resourcesOf', found))
    if (candidates.length > 0) stream.end(status.notFound, `the id of a proxy: ${ambiguous(named, candidates)}`)
    else if (!resources) {
      const missing = `no proxy ${JSON.stringify(named.slice(0, 200))} is connected that the caller may see`
      if (silence === '') stream.end(status.notFound, missing)
      else stream.end(status.unavailable, `${missing}; ${silence}`)
    }
    return resources && configDumpResources(resources)
  }

  /** Follows events as long as there are watches for them. Resolves when those are sent that happen from now on. */
  #follow(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    if (this.#following) return this.#following
    this.#following = promise
    const follow = async () => {
      let cursor = ''
      ;({ cursor, followed: this.#followed } = await this.#parts.ask<EventsOfAll>('proxyEvents', cursor, waitMs))
      resolve()
      while (this.#watchers().length > 0) {
        const answer = await this.#parts.ask<EventsOfAll>('proxyEvents', cursor, waitMs)
        if (answer.lost !== '') throw new Error(`replicas do not answer any more: ${answer.lost}; connect again`)
        if (answer.isGap) throw new Error('some of them were lost; connect again')
        cursor = answer.cursor
        this.#followed = answer.followed
        for (const event of answer.events) for (const stream of this.#streams.values()) stream.event(event)
        await this.#tellOfNew()
      }
    }
    void follow()
      .catch((error: Error) => {
        reject(error)
        for (const stream of this.#watchers()) stream.end(status.unavailable, `events are not available at present: ${error.message}`)
      })
      .finally(() => (this.#following = undefined))
    return promise
  }

  /** Tells streams of the proxies of replicas that came, or answer again, since they asked for `connect`. */
  async #tellOfNew(): Promise<void> {
    const followed = this.#followed
    const untold = ({ told }: StatusStream) => followed.filter((replica) => told && !told.has(replica))
    const streams = this.#watchers().filter((stream) => untold(stream).length > 0)
    if (streams.length === 0) return
    const { connections, answered } = await this.#parts.ask<ConnectionsOfAll>('connectionsOfAll', true)
    for (const stream of streams) {
      const replicas = untold(stream).filter((replica) => answered.includes(replica))
      for (const replica of replicas) stream.told?.add(replica)
      const news = connections.filter(({ replica = '' }) => replicas.includes(replica))
      const resources = connectedNodes(news, stream.mayRead ?? (() => false))
      if (resources.length > 0) void stream.connected(resources)
    }
  }

  #watchers(): StatusStream[] {
    return [...this.#streams.values()].filter(({ watches }) =>
      [...watches.values()].some(({ kind }) => kind === 'connect' || kind === 'disconnect' || kind === 'nack'),
    )
  }
}

/** The nodes of proxies that the caller may see, as `connect` tells them. */
function connectedNodes(connections: readonly ConnectionStatus[], mayRead: MayRead): ResponseResource[] {
  const seen = connections.filter(({ namespace }) => mayRead(namespace))
  return seen.map(({ nodeId: id, metadata = {} }) => statusResource(id, eventType('connect'), nodeMessage({ id, metadata, locality: '' })))
}

/** What stands in an answer for the proxies of replicas that have not answered. */
const silentNodes = (silent: readonly Pick<ReplicaState, 'name' | 'reason'>[], type: string, message: typeof nodeMessage): ResponseResource[] =>
  silent.map((replica) => statusResource(replica.name, type, message(silentReplicaNode(replica))))
