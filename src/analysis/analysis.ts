/** Analyzes a mesh, and again after changes: only the objects whose own content, or an answer that they depended on, has changed. */
import type { ConfigObject } from '../../protocols/data.ts'
import { kindOfKey } from '../config/kinds.ts'
import { reasonOf } from '../model/faults.ts'
import { addTo } from '../model/lists.ts'
import { compare } from '../model/order.ts'
import { analyzeSubject } from './analyze.ts'
import { type Finding, Findings } from './finding.ts'
import type { MeshFacts } from './mesh-facts.ts'

/** The annotation with the codes of findings that are not wanted of an object, with commas; `*` for all. The domain follows. */
const suppressing = 'galley'

/** The findings of a mesh. */
export class Analysis {
  readonly #facts: MeshFacts
  readonly #findings = new Map<string, readonly Finding[]>()
  readonly #reads = new Map<string, ReadonlySet<string>>()
  readonly #readers = new Map<string, Set<string>>()
  readonly #due = new Set<string>()
  /** The objects that were looked at. */
  readonly #seen = new Set<string>()
  readonly #meshKeys: readonly string[] = ['MeshNetworks//']
  readonly #analyze: typeof analyzeSubject

  /** `analyze`: tells what is wrong with one object. */
  constructor(facts: MeshFacts, analyze = analyzeSubject) {
    this.#facts = facts
    this.#analyze = analyze
    for (const key of this.#meshKeys) this.#due.add(key)
  }

  /** The number of objects that are to be looked at. */
  get due(): number {
    this.#collect()
    return this.#due.size
  }

  /**
   * Looks at up to `most` objects that are due. Returns the findings of those that are new, are gone, or whose findings differ from before, by key.
   */
  refresh(most = Number.POSITIVE_INFINITY): Map<string, readonly Finding[]> {
    this.#collect()
    const changed = new Map<string, readonly Finding[]>()
    let left = most
    for (const key of this.#due) {
      if (left-- <= 0) break
      this.#due.delete(key)
      const before = this.#findings.get(key) ?? []
      const now = this.#look(key)
      const isNew = !this.#seen.has(key)
      this.#seen.add(key)
      if (!isNew && JSON.stringify(before) === JSON.stringify(now) && this.#isThere(key)) continue
      if (!this.#isThere(key)) this.#seen.delete(key)
      if (now.length > 0) this.#findings.set(key, now)
      else this.#findings.delete(key)
      changed.set(key, now)
    }
    return changed
  }

  /** All findings, sorted by object, path and code. */
  all(): Finding[] {
    return [...this.#findings.values()].flat().sort(byPlace)
  }

  of(key: string): readonly Finding[] {
    return this.#findings.get(key) ?? []
  }

  #collect(): void {
    for (const topic of this.#facts.takeTouched()) {
      if (topic.startsWith('subject ')) this.#due.add(topic.slice('subject '.length))
      for (const key of this.#readers.get(topic) ?? []) this.#due.add(key)
    }
  }

  #isThere(key: string): boolean {
    return this.#facts.subject(key) !== undefined || kindOfKey(key) === 'Service' || this.#meshKeys.includes(key)
  }

  #look(key: string): readonly Finding[] {
    const findings = new Findings(key)
    const isThere = this.#isThere(key)
    const reads = this.#facts.record(() => {
      if (!isThere) return
      try {
        this.#analyze(key, this.#facts, findings.tell)
      } catch (error) {
        findings.tell('IST0001', '', `it could not be analyzed: ${reasonOf(error).slice(0, 300)}`)
      }
    })
    this.#remember(key, reads)
    return suppressed(findings.all(), this.#facts, key).sort(byPlace)
  }

  #remember(key: string, reads: ReadonlySet<string>): void {
    for (const topic of this.#reads.get(key) ?? []) {
      if (reads.has(topic)) continue
      const readers = this.#readers.get(topic)
      readers?.delete(key)
      if (readers?.size === 0) this.#readers.delete(topic)
    }
    for (const topic of reads) addTo(this.#readers, topic, key)
    if (reads.size > 0) this.#reads.set(key, reads)
    else this.#reads.delete(key)
  }
}

const byPlace = (one: Finding, other: Finding): number =>
  compare(one.object, other.object) || compare(one.path, other.path) || compare(one.code, other.code)

/** Leaves out the findings that an annotation of the object says are not wanted. */
function suppressed(findings: Finding[], facts: MeshFacts, key: string): Finding[] {
  if (findings.length === 0) return findings
  const annotations = facts.names.canonicalKeys((facts.subject(key) as Pick<ConfigObject, 'annotations'> | undefined)?.annotations ?? {})
  const given = annotations[`${suppressing}.${facts.names.domain}/analyze-suppress`]
  if (given === undefined) return findings
  const unwanted = new Set(given.split(',').map((code) => code.trim()))
  return unwanted.has('*') ? [] : findings.filter(({ code }) => !unwanted.has(code))
}
