/** The certificates of the mesh configuration: which one is looked at next (docs/certificates.md, M1 to M6). */
import type { WantedCertificates } from '../../protocols/messages/identity.ts'
import { type Pauses, pauseAfter } from '../model/back-off.ts'

/** How often a Secret is looked at that has what it should, in milliseconds: somebody may have removed or changed it. */
const lookMs = 30_000
/** Pauses after failures. */
const pauses: Pauses = { firstMs: 1000, longestMs: 300_000, jitter: 0.2 }

interface Entry {
  readonly dnsNames: readonly string[]
  /** Monotonic milliseconds. */
  dueAt: number
  failures: number
  isUnderWay: boolean
}

/** What is looked at, and when. Times are monotonic milliseconds. */
export class KeptCertificates {
  #entries = new Map<string, Entry>()

  /** The number of Secrets that are kept. */
  get size(): number {
    return this.#entries.size
  }

  /** Sets what is wanted. Returns why entries cannot be kept, in words. Those that stay as they were keep their time. */
  want(wanted: readonly WantedCertificates[]): readonly string[] {
    const faults: string[] = []
    const entries = new Map<string, Entry>()
    for (const [index, { secretName, dnsNames }] of wanted.entries()) {
      const names = [...new Set(dnsNames)]
      if (secretName === '') faults.push(`certificates[${index}] has no secretName and is not kept`)
      else if (names.length === 0) faults.push(`certificates[${index}] (${secretName}) has no dnsNames and is not kept`)
      else if (entries.has(secretName)) faults.push(`certificates[${index}]: ${secretName} is named before, and the first one counts`)
      else {
        const known = this.#entries.get(secretName)
        const isSame = known && String([...known.dnsNames].sort()) === String([...names].sort())
        entries.set(secretName, isSame ? known : { dnsNames: names, dueAt: Number.NEGATIVE_INFINITY, failures: 0, isUnderWay: false })
      }
    }
    this.#entries = entries
    return faults
  }

  /** Looks at all again, without the pauses of failures: a term has begun. */
  again(): void {
    for (const entry of this.#entries.values()) {
      entry.dueAt = Number.NEGATIVE_INFINITY
      entry.failures = 0
    }
  }

  /** Returns the next one that is due, and counts it as under way; undefined: none is. */
  next(now: number): WantedCertificates | undefined {
    for (const [secretName, entry] of this.#entries) {
      if (entry.isUnderWay || entry.dueAt > now) continue
      entry.isUnderWay = true
      return { secretName, dnsNames: entry.dnsNames }
    }
    return undefined
  }

  /** The milliseconds until one is due; undefined: none waits. */
  waitMs(now: number): number | undefined {
    const waiting = [...this.#entries.values()].filter(({ isUnderWay }) => !isUnderWay).map(({ dueAt }) => dueAt)
    return waiting.length === 0 ? undefined : Math.max(0, Math.min(...waiting) - now)
  }

  /** The Secret is as it should be for so many milliseconds. */
  kept(wanted: WantedCertificates, now: number, renewInMs: number): void {
    this.#ended(wanted, now + Math.max(1000, Math.min(renewInMs, lookMs)), 0)
  }

  /** The Secret could not be kept. `chance`: a random number from 0 to 1. */
  failed(wanted: WantedCertificates, now: number, chance: number): void {
    const failures = (this.#entryOf(wanted)?.failures ?? 0) + 1
    this.#ended(wanted, now + pauseAfter(failures, pauses, chance), failures)
  }

  /** It was not tried, as the term is over, of which whoever follows the term is told soon. */
  lost(wanted: WantedCertificates, now: number): void {
    this.#ended(wanted, now + pauses.firstMs, 0)
  }

  /** The entry; undefined: it was withdrawn or has other names by now. */
  #entryOf({ secretName, dnsNames }: WantedCertificates): Entry | undefined {
    const entry = this.#entries.get(secretName)
    return entry?.dnsNames === dnsNames ? entry : undefined
  }

  #ended(wanted: WantedCertificates, dueAt: number, failures: number): void {
    const entry = this.#entryOf(wanted)
    if (entry) Object.assign(entry, { dueAt, failures, isUnderWay: false })
  }
}
