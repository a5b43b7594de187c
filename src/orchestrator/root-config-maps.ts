/** The ConfigMap with the root certificates in each namespace: what it holds, and which one is to be written next (docs/certificates.md, B1 to B4). */
import { createHash } from 'node:crypto'
import type { NamespaceRoots } from '../../protocols/messages/root-certificates.ts'
import { type Pauses, pauseAfter } from '../model/back-off.ts'

/** The name of the ConfigMap, and its key. */
export const rootConfigMap = { name: 'mesh-ca-root-cert', key: 'root-cert.pem' }

/** The label of the ConfigMap; its value is `true`. */
export const rootLabel = (domain: string): string => `${domain}/config`

/** Returns the digest of what a ConfigMap holds. */
export const rootsDigest = (roots: string, isLabelled: boolean): string =>
  createHash('sha256')
    .update(isLabelled ? 'labelled\n' : '\n')
    .update(roots)
    .digest('base64')

/** Pauses after failures. */
const pauses: Pauses = { firstMs: 1000, longestMs: 30_000, jitter: 0.2 }
/** A ConfigMap that somebody changes again within so many milliseconds after it was written is written again after a pause. */
const contestedMs = 60_000
/** How often in a row that is done at once. */
const mostContests = 3

/** A write that is to be made, of one namespace among those that had its name. */
export interface DueWrite {
  readonly namespace: string
  /** A number that no other namespace has had, not even one with the same name. */
  readonly incarnation: number
}

interface Entry extends NamespaceRoots {
  readonly incarnation: number
  /** Whether a write was answered with that the namespace is gone, since it was told of last. */
  readonly isGone: boolean
  readonly isUnderWay: boolean
  readonly failures: number
  /** When it was written last, and how often others have changed it soon after that. */
  readonly writtenAt: number
  readonly contests: number
}

/** What is to be written, in which order. Times are monotonic milliseconds. */
export class RootConfigMaps {
  #wanted: string | undefined
  #incarnations = 0
  readonly #namespaces = new Map<string, Entry>()
  /** Those that are due: namespaces that have no ConfigMap come first, since their pods wait for it. */
  readonly #missing = new Set<string>()
  readonly #stale = new Set<string>()
  /** When those that wait are due. */
  readonly #waiting = new Map<string, number>()
  #failures = 0
  #pausedUntil = Number.NEGATIVE_INFINITY

  /** The number of namespaces that can have a ConfigMap, and of those whose one does not hold what it has to. */
  get counts(): { readonly namespaces: number; readonly outdated: number } {
    const active = [...this.#namespaces.values()].filter(({ isActive, isGone }) => isActive && !isGone)
    return { namespaces: active.length, outdated: this.#wanted === undefined ? 0 : active.filter(({ held }) => held !== this.#wanted).length }
  }

  /** Sets the digest of what all are to hold; undefined: nothing is written. */
  want(digest: string | undefined): void {
    if (digest === this.#wanted) return
    this.#wanted = digest
    this.again()
  }

  /**
   * Looks at all again, without the pauses of failures, and as the watcher has told of them last: a term has begun, or something else is
   * wanted.
   */
  again(): void {
    this.#failures = 0
    this.#pausedUntil = Number.NEGATIVE_INFINITY
    this.#waiting.clear()
    this.#missing.clear()
    this.#stale.clear()
    for (const [namespace, entry] of this.#namespaces) this.#put(namespace, { ...entry, isGone: false, failures: 0, contests: 0 })
  }

  /** Sets what a namespace has; undefined: it is gone. A write of the namespace that had the name before does not count for it. */
  set(namespace: string, state: NamespaceRoots | undefined, now: number): void {
    const known = this.#namespaces.get(namespace)
    const before = known?.uid === state?.uid ? known : undefined
    this.#forget(namespace)
    if (!state) return void this.#namespaces.delete(namespace)
    const fresh = before ?? {
      ...{ incarnation: ++this.#incarnations, isUnderWay: false },
      ...{ failures: 0, writtenAt: Number.NEGATIVE_INFINITY, contests: 0 },
    }
    const isContested = before?.held === this.#wanted && state.held !== this.#wanted && now - fresh.writtenAt < contestedMs
    const contests = isContested ? fresh.contests + 1 : now - fresh.writtenAt < contestedMs ? fresh.contests : 0
    this.#put(namespace, { ...fresh, ...state, isGone: false, contests, failures: 0 })
    const late = contests - mostContests
    if (late > 0 && this.#isDue(namespace)) this.#delay(namespace, now + pauseAfter(late, pauses))
  }

  /** Returns what is to be written next, and counts it as being written; undefined: nothing is due. */
  next(now: number): DueWrite | undefined {
    if (this.#wanted === undefined || now < this.#pausedUntil) return undefined
    for (const [namespace, at] of this.#waiting) {
      if (at > now) continue
      this.#waiting.delete(namespace)
      const entry = this.#namespaces.get(namespace)
      if (entry) this.#put(namespace, entry)
    }
    const [namespace] = this.#missing.size > 0 ? this.#missing : this.#stale
    const entry = namespace === undefined ? undefined : this.#namespaces.get(namespace)
    if (namespace === undefined || !entry) return undefined
    this.#forget(namespace)
    this.#namespaces.set(namespace, { ...entry, isUnderWay: true })
    return { namespace, incarnation: entry.incarnation }
  }

  /** The milliseconds until something is due, if nothing changes; undefined: nothing waits. */
  waitMs(now: number): number | undefined {
    const isDue = this.#missing.size + this.#stale.size > 0
    const at = Math.max(this.#pausedUntil, isDue ? now : Math.min(...this.#waiting.values()))
    return Number.isFinite(at) && this.#wanted !== undefined ? Math.max(0, at - now) : undefined
  }

  /** A ConfigMap was written; it holds `digest`. */
  written(write: DueWrite, digest: string, now: number): void {
    this.#failures = 0
    this.#ended(write, (entry) => ({ ...entry, held: digest, writtenAt: now, failures: 0 }))
  }

  /** A namespace is gone or being deleted: nothing is written to it until it is told of again, or {@link again}. */
  gone(write: DueWrite): void {
    this.#ended(write, (entry) => ({ ...entry, isGone: true }))
  }

  /** Nothing was written, and it was not tried. */
  untried(write: DueWrite): void {
    this.#ended(write, (entry) => entry)
  }

  /** It could not be written. `isCommon`: for a reason that concerns all. */
  failed(write: DueWrite, isCommon: boolean, now: number, chance: number): void {
    const isOwn = this.#ended(write, (entry) => ({ ...entry, failures: entry.failures + (isCommon ? 0 : 1) }))
    if (isCommon && now >= this.#pausedUntil) this.#pausedUntil = now + pauseAfter(++this.#failures, pauses, chance)
    const failures = this.#namespaces.get(write.namespace)?.failures ?? 0
    if (isOwn && !isCommon && failures > 0) this.#delay(write.namespace, now + pauseAfter(failures, pauses, chance))
  }

  /** Returns false, without a change, for the write of a namespace that is no more: another one may have its name. */
  #ended({ namespace, incarnation }: DueWrite, change: (entry: Entry) => Entry): boolean {
    const entry = this.#namespaces.get(namespace)
    if (entry?.incarnation !== incarnation) return false
    this.#put(namespace, { ...change(entry), isUnderWay: false })
    return true
  }

  #put(namespace: string, entry: Entry): void {
    this.#namespaces.set(namespace, entry)
    this.#forget(namespace)
    if (this.#isDue(namespace)) (entry.held === undefined ? this.#missing : this.#stale).add(namespace)
  }

  #isDue(namespace: string): boolean {
    const entry = this.#namespaces.get(namespace)
    return entry?.isActive === true && !entry.isGone && !entry.isUnderWay && this.#wanted !== undefined && entry.held !== this.#wanted
  }

  #delay(namespace: string, until: number): void {
    this.#forget(namespace)
    this.#waiting.set(namespace, until)
  }

  #forget(namespace: string): void {
    this.#missing.delete(namespace)
    this.#stale.delete(namespace)
    this.#waiting.delete(namespace)
  }
}
