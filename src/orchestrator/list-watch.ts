/**
 * The list and watch of one kind of API objects as a state machine without sockets and clocks: it is told what the server sent and answers
 * what to do. It keeps the resource version of each object, so that events that come twice, late or out of order have no effect.
 */
import { isDecimal, isNewer } from './resource-versions.ts'

/** An object as it was read: its key (`<namespace>/<name>`) and its resource version. Undefined: it exists, and it cannot be used. */
export interface Listed<Item> {
  readonly key: string
  readonly version: string
  readonly object: Item | undefined
}

/** Why a request was refused: the HTTP status, or the code of an `ERROR` event. */
export interface Refusal {
  readonly code: number
  readonly reason: string
  /** The delay that the server asks for, in milliseconds; 0 if it asks for none. */
  readonly askedMs: number
}

/** What a list and watch is told. */
export type WatchInput<Item> =
  /** It begins, or a pause is over. */
  | { readonly type: 'due' }
  /** An object of a page of a list. */
  | { readonly type: 'listed'; readonly item: Listed<Item> }
  /** The end of a page of a list. `next`: the token of the next page; empty: it is the last one. */
  | { readonly type: 'page'; readonly version: string; readonly next: string }
  /** The server has accepted the request of a watch. */
  | { readonly type: 'opened' }
  | { readonly type: 'event'; readonly isGone: boolean; readonly item: Listed<Item> }
  /** `endsList`: all objects of a streamed list were sent before it. */
  | { readonly type: 'bookmark'; readonly version: string; readonly endsList: boolean }
  | { readonly type: 'refused'; readonly refusal: Refusal }
  /** The server ended the response in order. */
  | { readonly type: 'ended' }
  /** The response ended otherwise: the connection is lost or silent, or what it carries cannot be read. */
  | { readonly type: 'broken'; readonly reason: string }
  /** Nothing has come for a while of a request that the server accepted. */
  | { readonly type: 'silent'; readonly reason: string }
  /** It is time to compare what is known with a list of the server. */
  | { readonly type: 'auditDue' }
  /** A page of the list of an audit: the versions of the objects by key. */
  | { readonly type: 'auditPage'; readonly versions: ReadonlyMap<string, string>; readonly version: string; readonly next: string }
  /** The list of an audit failed. */
  | { readonly type: 'auditFailed'; readonly refusal: Refusal | undefined; readonly reason: string }
  /** The watch has had time to tell what the list of the audit had before it. */
  | { readonly type: 'auditSettled' }

/** A request to the server. */
export type WatchRequest =
  /** A watch that begins with all objects. */
  | { readonly mode: 'stream' }
  /** A page of a list. */
  | { readonly mode: 'page'; readonly next: string }
  /** A list in one piece. Its end is told as that of a page. */
  | { readonly mode: 'whole' }
  /** A watch that continues after a resource version. */
  | { readonly mode: 'watch'; readonly version: string }

/** A request for a list that is not streamed. */
export type ListRequest = Extract<WatchRequest, { mode: 'page' | 'whole' }>

/** What is to be done, in this order. */
export type WatchAction<Item> =
  /** Begin a request. The one under way is over, except that of an audit. */
  | { readonly type: 'request'; readonly request: WatchRequest }
  /** The request under way is over. Say `due` after a pause that follows from the number of failures in a row and from what the server asks for. */
  | { readonly type: 'pause'; readonly failures: number; readonly askedMs: number }
  /** `isNew`: nothing is known of an object with this key. */
  | { readonly type: 'set'; readonly key: string; readonly object: Item; readonly isNew: boolean }
  /** A list has an object as it is known. */
  | { readonly type: 'same' }
  | { readonly type: 'remove'; readonly key: string }
  /** Everything that exists has been told. */
  | { readonly type: 'complete' }
  /** An attempt failed. The last state stays. */
  | { readonly type: 'failed'; readonly refusal: Refusal | undefined; readonly reason: string }
  /** The server answers again. */
  | { readonly type: 'recovered' }
  /** Fetch a page of the list of an audit, or all of it. */
  | { readonly type: 'auditRequest'; readonly request: ListRequest }
  /** Say `auditSettled` once the watch has had time to tell what is on its way. */
  | { readonly type: 'auditWait' }
  /** An audit has ended. `missed`: the number of objects of which the watch did not tell; with any, everything is listed again. */
  | { readonly type: 'audited'; readonly missed: number }
  /** The list of an audit failed: nothing was compared. */
  | { readonly type: 'auditFailed'; readonly refusal: Refusal | undefined; readonly reason: string }
  /** Everything is listed again: end the request and the wait of the audit under way. Nothing is told of it any more. */
  | { readonly type: 'auditAbandoned' }

/** The list of an audit. */
interface Audit {
  /** The version that the watch had reached when it began. */
  readonly since: string
  readonly versions: Map<string, string>
  version: string
  /** Whether its list is asked for in one piece. */
  isWhole: boolean
}

/** What a list and watch does: it waits for its next attempt, reads pages of a list, reads a streamed list, or watches. */
export type Phase = 'paused' | 'paging' | 'streaming' | 'watching'

/** The number of removed objects of which the version is kept, so that late events of them have no effect. */
const mostGone = 10_000

/** The number of streamed lists in a row that broke, after which lists come in pages. */
const mostBrokenStreams = 2

/** HTTP status codes of refusals with an answer of their own. */
const codes = { badRequest: 400, gone: 410, invalid: 422 }

const listRequest = (isWhole: boolean): ListRequest => (isWhole ? { mode: 'whole' } : { mode: 'page', next: '' })

/** The state of one list and watch. */
export class ListWatch<Item> {
  #phase: Phase = 'paused'
  /** The version after which a watch continues; empty: everything has to be listed. */
  #version = ''
  /** Whether the server is asked for streamed lists; it is until it refuses one, or some in a row broke. */
  #streams = true
  #brokenStreams = 0
  /** Whether the next list that is not streamed is asked for in one piece: the server no longer had the rest of one that came in pages. */
  #isWhole = false
  /** Whether the page that was asked for last is another one than the first. */
  #isLaterPage = false
  /** Whether nothing has come of a watch since everything was listed. */
  #isJustListed = false
  /** The number of lists in a row that the server did not continue with a watch. */
  #fruitlessLists = 0
  /** Whether the server has accepted the streamed list under way. */
  #isStreamOpen = false
  #failures = 0
  #isFailing = false
  /** Whether anything has come in this watch. */
  #hasHeard = false
  readonly #known = new Map<string, string>()
  /** Removed objects with the versions of their removal. */
  readonly #gone = new Map<string, string>()
  /** The objects of the list under way. */
  #mentioned: Map<string, string> | undefined
  #audit: Audit | undefined
  #actions: WatchAction<Item>[] = []

  /** The number of objects that exist. */
  get size(): number {
    return this.#known.size
  }

  get phase(): Phase {
    return this.#phase
  }

  /** The resource version that was reached; empty: everything has to be listed. */
  get version(): string {
    return this.#version
  }

  /** Takes what has happened. Returns what is to be done. */
  take(input: WatchInput<Item>): readonly WatchAction<Item>[] {
    this.#actions = []
    switch (input.type) {
      case 'due':
        if (this.#phase === 'paused') this.#begin()
        break
      case 'listed':
        if (this.#phase === 'paging') this.#mention(input.item)
        break
      case 'page':
        if (this.#phase === 'paging') this.#page(input)
        break
      case 'opened':
        if (this.#phase === 'watching') this.#recovered()
        else if (this.#phase === 'streaming') this.#isStreamOpen = true
        break
      case 'event':
        this.#event(input.item, input.isGone)
        break
      case 'bookmark':
        this.#bookmark(input.version, input.endsList)
        break
      case 'refused':
        this.#refused(input.refusal)
        break
      case 'ended':
        this.#ended()
        break
      case 'broken':
        if (this.#phase !== 'paused') this.#failed(undefined, input.reason)
        break
      case 'silent':
        if (this.#phase === 'streaming') this.#unstream(input.reason)
        else if (this.#phase !== 'paused') this.#failed(undefined, input.reason)
        break
      default:
        this.#auditing(input)
    }
    return this.#actions
  }

  #do(action: WatchAction<Item>): void {
    this.#actions.push(action)
  }

  #begin(): void {
    if (this.#version !== '') return this.#watch()
    this.#abandonAudit()
    this.#isStreamOpen = false
    this.#gone.clear()
    this.#list(this.#streams)
  }

  #list(streams: boolean): void {
    this.#mentioned = new Map()
    this.#phase = streams ? 'streaming' : 'paging'
    this.#isLaterPage = false
    this.#do({ type: 'request', request: streams ? { mode: 'stream' } : listRequest(this.#isWhole) })
  }

  /**
   * Reads the list under way in pages from its beginning: the server accepted a streamed list and does not end it. The API server does so at
   * times for minutes where nothing changes in a kind; it answers pages meanwhile.
   */
  #unstream(reason: string): void {
    this.#isFailing = true
    this.#do({ type: 'failed', refusal: undefined, reason })
    this.#list(false)
  }

  #watch(): void {
    this.#phase = 'watching'
    this.#hasHeard = false
    this.#do({ type: 'request', request: { mode: 'watch', version: this.#version } })
  }

  /** Lists everything again, at once. */
  #relist(): void {
    this.#version = ''
    this.#mentioned = undefined
    this.#begin()
  }

  #page({ version, next }: Extract<WatchInput<Item>, { type: 'page' }>): void {
    if (next !== '') {
      this.#isLaterPage = true
      return this.#do({ type: 'request', request: { mode: 'page', next } })
    }
    this.#complete(version)
    this.#watch()
  }

  #event(item: Listed<Item>, isGone: boolean): void {
    if (this.#phase !== 'streaming' && this.#phase !== 'watching') return
    if (this.#phase === 'watching') this.#heard()
    else this.#isStreamOpen = true
    if (isGone) this.#remove(item)
    else if (this.#phase === 'streaming') this.#mention(item)
    else if (isNewer(item.version, this.#known.get(item.key)) && isNewer(item.version, this.#gone.get(item.key))) this.#set(item)
    if (this.#phase === 'watching') this.#reach(item.version)
  }

  #bookmark(version: string, endsList: boolean): void {
    if (this.#phase === 'streaming' && endsList) {
      if (!isDecimal(version)) return this.#failed(undefined, 'the end of a streamed list has no resource version that is a number')
      this.#complete(version)
      this.#phase = 'watching'
    } else if (this.#phase === 'watching') {
      this.#heard()
      this.#reach(version)
    }
  }

  /** The watch continues after this version if it is one: a version that is no number cannot be continued after. */
  #reach(version: string): void {
    if (isDecimal(version) && isNewer(version, this.#version)) this.#version = version
  }

  /** Takes an object of a list. What a list says counts also where its version is older: the store of the server may have been restored. */
  #mention(item: Listed<Item>): void {
    const { key, version } = item
    const mentioned = this.#mentioned?.get(key)
    if (!isNewer(version, mentioned) || !isNewer(version, this.#gone.get(key))) return
    this.#mentioned?.set(key, version)
    if (this.#known.get(key) !== version) this.#set(item)
    else this.#do({ type: 'same' })
  }

  #set({ key, version, object }: Listed<Item>): void {
    const isNew = !this.#known.has(key)
    this.#known.set(key, version)
    this.#gone.delete(key)
    if (object !== undefined) this.#do({ type: 'set', key, object, isNew })
  }

  #remove({ key, version }: Listed<Item>): void {
    const known = this.#phase === 'streaming' ? this.#mentioned?.get(key) : this.#known.get(key)
    if (!isNewer(version, known) || !isNewer(version, this.#gone.get(key))) return
    this.#mentioned?.delete(key)
    this.#gone.delete(key)
    this.#gone.set(key, version)
    for (const oldest of this.#gone.keys()) {
      if (this.#gone.size <= mostGone) break
      this.#gone.delete(oldest)
    }
    if (this.#known.delete(key)) this.#do({ type: 'remove', key })
  }

  /** A list was read whole. Nothing less ends the failures of lists: a server that breaks each of them in its middle is asked less and less often. */
  #complete(version: string): void {
    this.#brokenStreams = 0
    this.#isWhole = false
    this.#failures = 0
    this.#recovered()
    this.#isJustListed = true
    // A watch that goes on in the response of its list has told something.
    this.#hasHeard = true
    for (const key of this.#known.keys()) {
      if (this.#mentioned?.has(key)) continue
      this.#known.delete(key)
      this.#do({ type: 'remove', key })
    }
    this.#mentioned = undefined
    this.#version = version
    this.#do({ type: 'complete' })
  }

  #heard(): void {
    this.#hasHeard = true
    this.#isJustListed = false
    this.#fruitlessLists = 0
    this.#failures = 0
    this.#recovered()
  }

  #recovered(): void {
    if (!this.#isFailing) return
    this.#isFailing = false
    this.#do({ type: 'recovered' })
  }

  #refused(refusal: Refusal): void {
    if (this.#phase === 'paused') return
    const { code, reason } = refusal
    if (this.#phase === 'streaming' && (code === codes.invalid || code === codes.badRequest)) {
      // A server without streamed lists does not know their parameters.
      this.#streams = false
      return this.#relist()
    }
    if (code !== codes.gone) return this.#failed(refusal, reason)
    this.#version = ''
    // The next pages may expire as well, while the objects of one answer are of one moment.
    if (this.#phase === 'paging') this.#isWhole = this.#isLaterPage
    if (this.#phase === 'watching') {
      if (this.#failures === 0 && this.#hasHeard && !this.#isJustListed) return this.#relist()
      // A server that has nothing as old as the list that it has just sent is asked less and less often.
      if (this.#isJustListed) this.#failures = Math.max(this.#failures, this.#fruitlessLists++)
    }
    this.#failed(refusal, reason)
  }

  #ended(): void {
    if (this.#phase === 'paused') return
    if (this.#phase === 'watching' && this.#hasHeard) return this.#watch()
    this.#failed(undefined, 'the server ended the response before it sent anything')
  }

  #failed(refusal: Refusal | undefined, reason: string): void {
    if (this.#phase === 'streaming' && this.#isStreamOpen && ++this.#brokenStreams >= mostBrokenStreams) this.#streams = false
    // A list in one piece that breaks may be too long for one answer.
    if (this.#phase === 'paging' && refusal?.code !== codes.gone) this.#isWhole = false
    this.#phase = 'paused'
    this.#mentioned = undefined
    this.#failures++
    this.#isFailing = true
    this.#do({ type: 'failed', refusal, reason })
    this.#do({ type: 'pause', failures: this.#failures, askedMs: refusal?.askedMs ?? 0 })
  }

  #auditing(input: Extract<WatchInput<Item>, { type: `audit${string}` }>): void {
    if (input.type === 'auditDue') {
      if (this.#audit || this.#phase !== 'watching') return
      this.#audit = { since: this.#version, versions: new Map(), version: '', isWhole: false }
      return this.#do({ type: 'auditRequest', request: listRequest(false) })
    }
    const audit = this.#audit
    if (!audit) return
    if (input.type === 'auditFailed') {
      if (input.refusal?.code === codes.gone && audit.version !== '' && !audit.isWhole) {
        this.#audit = { ...audit, versions: new Map(), isWhole: true }
        return this.#do({ type: 'auditRequest', request: listRequest(true) })
      }
      this.#audit = undefined
      this.#do(input)
    } else if (input.type === 'auditPage') {
      for (const [key, version] of input.versions) audit.versions.set(key, version)
      audit.version = input.version
      this.#do(input.next === '' ? { type: 'auditWait' } : { type: 'auditRequest', request: { mode: 'page', next: input.next } })
    } else this.#settle(audit)
  }

  #abandonAudit(): void {
    if (!this.#audit) return
    this.#audit = undefined
    this.#do({ type: 'auditAbandoned' })
  }

  #settle(audit: Audit): void {
    this.#audit = undefined
    // A list that is older than what was known when it began is of a store that was restored, also when that has no objects.
    const isRestored = isNewer(audit.since, audit.version)
    const missed = isRestored ? Math.max(1, audit.versions.size, this.#known.size) : this.#missedIn(audit)
    this.#do({ type: 'audited', missed })
    if (missed === 0) return
    this.#version = ''
    if (this.#phase === 'watching') this.#relist()
  }

  #missedIn({ versions, version: listed }: Audit): number {
    let missed = 0
    for (const [key, version] of versions) {
      const now = this.#known.get(key) ?? this.#gone.get(key)
      if (now === undefined || isNewer(version, now)) missed++
    }
    // An object that the list does not have was added after it, or its removal was missed.
    for (const [key, version] of this.#known) if (!versions.has(key) && !isNewer(version, listed)) missed++
    return missed
  }
}
