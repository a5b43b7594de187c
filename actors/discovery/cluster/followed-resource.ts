/** Follows one resource of an API server: does what its list and watch says, and tells it what comes of that. */
import type { IncomingHttpHeaders } from 'node:http2'
import type { KindStatus } from '../../../protocols/messages/orchestrator.ts'
import { pauseAfter } from '../../../src/model/back-off.ts'
import {
  type Listed,
  type ListRequest,
  ListWatch,
  type Refusal,
  type WatchAction,
  type WatchInput,
  type WatchRequest,
} from '../../../src/orchestrator/list-watch.ts'
import { acceptedTypes, formatOf, type ListReader, type ObjectFormat, type WatchReader } from '../../../src/orchestrator/object-format.ts'
import type { MessageFields } from '../../../src/orchestrator/protobuf-messages.ts'
import { listPath, type Resource, requestPath, shownResource, verbOf } from '../../../src/orchestrator/resources.ts'
import { bookmarkOf, codeOf, keyAndVersion, type ReadEvent, refusalOf } from '../../../src/orchestrator/responses.ts'
import { chance } from '../../runtime/chance.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { after, deadlineAfter, type Timer } from '../../runtime/timers.ts'
import type { ApiRequest, ApiSession, RequestEvents } from './api-session.ts'

/** What a followed resource reports. */
export interface ResourceEvents<Item> {
  /** Reads an object of the server; `isGone`: as it was when it was removed. Undefined where it has no name, or is not to be known at all. */
  read(value: Readonly<Record<string, unknown>>, isGone: boolean): Listed<Item> | undefined
  /** `isNew`: nothing was known of it. */
  set(key: string, object: Item, isNew: boolean): void
  /** A list has an object as it is known. */
  same(): void
  remove(key: string): void
  /** Everything that exists has been told. */
  complete(): void
  failed(verb: string, refusal: Refusal | undefined, reason: string): void
  recovered(): void
  /** The largest number of objects with which an audit compares; undefined: there is none. */
  readonly mostAudited?: number | undefined
  /** An audit has ended. */
  audited(missed: number): void
  /** The list of an audit failed. */
  auditFailed(refusal: Refusal | undefined, reason: string): void
  /** Whatever was set and removed before belongs together. */
  settled(): void
}

/** Pauses between attempts, in milliseconds: the server is not asked more often when it asks for more. */
const pauses = { firstMs: 500, longestMs: 30_000, jitter: 0.5, longestAskedMs: 120_000 }
/**
 * The longest time without a byte, in milliseconds: of a watch, which has a bookmark about once a minute, and in the middle of a list, which a
 * server that has nothing to wait for sends at once. A watch is begun again after it, a streamed list is read in pages.
 */
const usualSilences = { watchMs: 180_000, listMs: 10_000 }
const silence = (ms: number): string => `nothing came for ${ms / 1000} s`
/** The time that a watch has to tell what the list of an audit had before it. */
const settleMs = 5000
/** The longest object, and the longest text of a refusal, in bytes. */
const most = { object: 16 * 1024 * 1024, refusal: 65_536 }

/** What an audit asks for: the metadata of objects. */
const versionTypes = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json'

/** What comes of the page of a list. */
interface ListEvents {
  /** The server has said or sent something. */
  heard(): void
  item(object: Readonly<Record<string, unknown>>): void
  /** Bytes have come, and the objects that end in them were told. */
  received(): void
  end(page: { readonly version: string; readonly next: string }): void
  refused(refusal: Refusal): void
  broken(reason: string): void
}

/** Follows a resource until it is closed. */
export class FollowedResource<Item = unknown> {
  readonly resource: Resource
  readonly #session: Pick<ApiSession, 'send' | 'refused'>
  readonly #events: ResourceEvents<Item>
  readonly #silences: typeof usualSilences
  readonly #state = new ListWatch<Item>()
  #request: ApiRequest | undefined
  /** The number of the request under way. */
  #serial = 0
  #verb = 'list'
  #audit: ApiRequest | undefined
  /** The number of objects of the list of the audit under way. */
  #audited = 0
  #pause: Timer | undefined
  #silence: Timer | undefined
  /** When the time that {@link #silence} measures began, in monotonic milliseconds. */
  #listensSince = 0
  #auditTimer: Timer | undefined
  /** The time without a byte of the list of an audit, then the time that the watch has to tell what that list had before it. */
  #auditWait: Timer | undefined
  readonly #startedAt = monotonicMs()
  /** When the server was last heard of this resource. */
  #heardAt: number | undefined
  #failures = 0
  /** Why the last audit failed; undefined: it did not. */
  #auditFailure: string | undefined
  #lastFailure: { readonly reason: string; readonly at: number } | undefined
  readonly #done = { updates: 0, deletes: 0, lists: 0, audits: 0, repairs: 0 }
  #isClosed = false

  constructor(resource: Resource, session: Pick<ApiSession, 'send' | 'refused'>, events: ResourceEvents<Item>, silences = usualSilences) {
    this.resource = resource
    this.#session = session
    this.#events = events
    this.#silences = silences
  }

  /** The number of its objects. */
  get size(): number {
    return this.#state.size
  }

  /** Milliseconds since the server was last heard of this resource; undefined: never. */
  get age(): number | undefined {
    return this.#heardAt === undefined ? undefined : Math.round(monotonicMs() - this.#heardAt)
  }

  /** Milliseconds since the server was last heard of this resource, or since it is followed. */
  get silentMs(): number {
    return monotonicMs() - (this.#heardAt ?? this.#startedAt)
  }

  /** What it does, and what it has done. */
  get status(): Omit<KindStatus, 'isStale'> {
    const { kind } = this.resource
    const { phase: mode, version, size: objects } = this.#state
    const last = this.#lastFailure
    return {
      ...{ kind, resource: shownResource(this.resource), mode, objects, version },
      ageMs: this.age,
      failures: this.#failures,
      ...{ lastError: last?.reason, lastErrorMs: last && Math.round(monotonicMs() - last.at), lastAuditError: this.#auditFailure },
      ...this.#done,
    }
  }

  start(auditMs: number): void {
    this.#tell({ type: 'due' })
    if (auditMs > 0) this.#auditAfter(auditMs)
  }

  close(): void {
    this.#isClosed = true
    for (const timer of [this.#pause, this.#silence, this.#auditTimer, this.#auditWait]) timer?.cancel()
    this.#request?.abandon()
    this.#audit?.abandon()
  }

  #auditAfter(auditMs: number): void {
    this.#auditTimer = after(auditMs * (0.75 + chance() / 2), () => {
      this.#tell({ type: 'auditDue' })
      this.#auditAfter(auditMs)
    })
  }

  #tell(input: WatchInput<Item>): void {
    if (this.#isClosed) return
    for (const action of this.#state.take(input)) this.#do(action)
  }

  #do(action: WatchAction<Item>): void {
    switch (action.type) {
      case 'set':
        this.#done.updates++
        return this.#events.set(action.key, action.object, action.isNew)
      case 'same':
        return this.#events.same()
      case 'remove':
        this.#done.deletes++
        return this.#events.remove(action.key)
      case 'request':
        return this.#send(action.request)
      case 'pause':
        this.#stop()
        this.#pause = after(Math.max(pauseAfter(action.failures, pauses, chance()), Math.min(action.askedMs, pauses.longestAskedMs)), () =>
          this.#tell({ type: 'due' }),
        )
        return
      case 'complete':
        this.#done.lists++
        return this.#events.complete()
      case 'failed':
        if (action.refusal?.code === 401) this.#session.refused()
        this.#failures++
        this.#lastFailure = { reason: action.reason, at: monotonicMs() }
        return this.#events.failed(this.#verb, action.refusal, action.reason)
      case 'recovered':
        return this.#events.recovered()
      case 'auditRequest':
        return this.#sendAudit(action.request)
      case 'auditWait':
        this.#auditWait = after(settleMs, () => {
          this.#tell({ type: 'auditSettled' })
          this.#events.settled()
        }).unref()
        return
      case 'auditAbandoned':
        this.#audit?.abandon()
        this.#auditWait?.cancel()
        return
      case 'auditFailed':
        if (action.refusal?.code === 401) this.#session.refused()
        this.#auditFailure = action.reason
        return this.#events.auditFailed(action.refusal, action.reason)
      case 'audited':
        this.#auditFailure = undefined
        this.#done.audits++
        this.#done.repairs += action.missed
        return this.#events.audited(action.missed)
    }
  }

  #stop(): void {
    this.#request?.abandon()
    this.#silence?.cancel()
    this.#silence = undefined
    this.#pause?.cancel()
  }

  #send(request: WatchRequest): void {
    this.#stop()
    this.#serial++
    this.#verb = verbOf(request)
    const path = requestPath(this.resource, request, chance())
    const isWatch = this.#verb === 'watch'
    const accept = acceptedTypes(this.resource.fields, isWatch)
    this.#request = this.#session.send({ method: 'GET', path, accept }, isWatch ? this.#watchEvents() : this.#pageEvents())
  }

  #broken = (reason: string): void => this.#tell({ type: 'broken', reason })

  #watchEvents(): RequestEvents {
    let reader: WatchReader | undefined
    const serial = this.#serial
    const refusal = new Refused(this.resource.fields, (found) => this.#tell({ type: 'refused', refusal: found }))
    return {
      answered: (status, headers) => {
        reader = refusal.answered(status, headers)?.watch(most.object, this.resource.kind)
        if (reader) this.#tell({ type: 'opened' })
        this.#listen()
      },
      received: (bytes) => {
        if (refusal.received(bytes)) return
        this.#heardAt = monotonicMs()
        for (const event of reader?.take(bytes) ?? []) {
          // An event may have ended the request: those behind it are of no list and no watch that goes on.
          if (this.#serial !== serial) break
          this.#event(event)
        }
        this.#events.settled()
        // The end of a streamed list begins the longer time of a watch.
        if (this.#serial === serial) this.#listen()
      },
      ended: () => {
        if (!refusal.ended()) this.#tell({ type: 'ended' })
      },
      broken: this.#broken,
    }
  }

  #event({ type, object }: ReadEvent): void {
    if (type === 'BOOKMARK') return this.#tell({ type: 'bookmark', ...bookmarkOf(object) })
    if (type === 'ERROR') return this.#tell({ type: 'refused', refusal: codeOf(object) })
    const isGone = type === 'DELETED'
    const item = this.#events.read(object, isGone)
    if (item) this.#tell({ type: 'event', isGone, item })
  }

  #pageEvents(): RequestEvents {
    return this.#listEvents(this.resource, {
      item: (object) => {
        const item = this.#events.read(object, false)
        if (item) this.#tell({ type: 'listed', item })
      },
      heard: () => this.#heard(),
      received: () => this.#events.settled(),
      end: ({ version, next }) => {
        this.#tell({ type: 'page', version, next })
        this.#events.settled()
      },
      refused: (refusal) => this.#tell({ type: 'refused', refusal }),
      broken: this.#broken,
    })
  }

  #sendAudit(request: ListRequest): void {
    if (request.mode === 'whole' || request.next === '') this.#audited = 0
    const { mostAudited = Number.POSITIVE_INFINITY } = this.#events
    const versions = new Map<string, string>()
    const over = (failure: Pick<Extract<WatchInput<Item>, { type: 'auditFailed' }>, 'refusal' | 'reason'>) => {
      this.#auditWait?.cancel()
      this.#tell({ type: 'auditFailed', ...failure })
    }
    // The metadata of objects have a kind of their own.
    const events = this.#listEvents(
      {},
      {
        item: (object) => {
          if (++this.#audited > mostAudited) throw new Error(`a list has more than ${mostAudited} objects`)
          const known = keyAndVersion(object)
          if (known) versions.set(...known)
        },
        heard: () => {
          this.#auditWait?.cancel()
          this.#auditWait = deadlineAfter(this.#silences.listMs, () => {
            this.#audit?.abandon()
            over({ refusal: undefined, reason: silence(this.#silences.listMs) })
          }).unref()
        },
        received: () => undefined,
        end: (page) => {
          this.#auditWait?.cancel()
          this.#tell({ type: 'auditPage', versions, ...page })
        },
        refused: (refusal) => over({ refusal, reason: refusal.reason }),
        broken: (reason) => over({ refusal: undefined, reason }),
      },
    )
    this.#audit = this.#session.send({ method: 'GET', path: listPath(this.resource.path, request), accept: versionTypes }, events)
  }

  /**
   * The events of a request whose answer is a page of a list, whose objects are read as they come. `fields`: those that are known in protobuf. `kind`: that of
   * the objects; undefined: any.
   */
  #listEvents({ fields, kind }: { readonly fields?: MessageFields; readonly kind?: string }, list: ListEvents): RequestEvents {
    let reader: ListReader | undefined
    const refusal = new Refused(fields, list.refused)
    return {
      answered: (status, headers) => {
        reader = refusal.answered(status, headers)?.list(most.object, kind)
        list.heard()
      },
      received: (bytes) => {
        list.heard()
        if (refusal.received(bytes)) return
        for (const object of reader?.take(bytes) ?? []) list.item(object)
        list.received()
      },
      ended: () => {
        if (refusal.ended() || !reader) return
        try {
          list.end(reader.end())
        } catch (error) {
          list.broken(`a page of a list cannot be read: ${(error as Error).message}`)
        }
      },
      broken: list.broken,
    }
  }

  #heard(): void {
    this.#heardAt = monotonicMs()
    this.#listen()
  }

  /** Begins the time after which a silent request is begun again. One timer measures it, since much of what is heard comes within moments. */
  #listen(): void {
    if (this.#state.phase === 'paused') return
    this.#listensSince = monotonicMs()
    this.#silence ??= this.#silenceAfter(this.#mostSilentMs)
  }

  get #mostSilentMs(): number {
    return this.#state.phase === 'watching' ? this.#silences.watchMs : this.#silences.listMs
  }

  #silenceAfter(ms: number): Timer {
    return deadlineAfter(ms, () => {
      const limitMs = this.#mostSilentMs
      const restMs = this.#listensSince + limitMs - monotonicMs()
      this.#silence = restMs > 0 ? this.#silenceAfter(restMs) : undefined
      if (restMs <= 0) this.#tell({ type: 'silent', reason: silence(limitMs) })
    }).unref()
  }
}

/** Collects the body of an answer that is no success. */
class Refused {
  readonly #fields: MessageFields | undefined
  readonly #refused: (refusal: Refusal) => void
  #format: ObjectFormat | undefined
  #status = 0
  #retryAfter: string | undefined
  readonly #parts: Uint8Array[] = []
  #length = 0

  constructor(fields: MessageFields | undefined, refused: (refusal: Refusal) => void) {
    this.#fields = fields
    this.#refused = refused
  }

  /** Returns the encoding of the answer; undefined when its status is that of a refusal. */
  answered(status: number, headers: IncomingHttpHeaders): ObjectFormat | undefined {
    this.#status = status
    this.#retryAfter = headers['retry-after']
    this.#format = formatOf(headers['content-type'], this.#fields)
    return status === 200 ? this.#format : undefined
  }

  /** Takes bytes of a refusal; false: it is none. */
  received(bytes: Uint8Array): boolean {
    if (this.#status === 200) return false
    this.#length += bytes.length
    if (this.#length <= most.refusal) this.#parts.push(bytes)
    return true
  }

  ended(): boolean {
    if (this.#status === 200) return false
    this.#refused(refusalOf(this.#status, this.#format?.messageIn(Buffer.concat(this.#parts)), this.#retryAfter))
    return true
  }
}
