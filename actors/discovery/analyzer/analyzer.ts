/**
 * The analyzer: consumes what is in force from the push queue (`InForceEvent`), and from sources what they have read beside it (`SeenEvent`), finds
 * mistakes in it (docs/analysis.md), and tells the status writer what it finds in which object (`ObjectAnalysed`). Nobody waits for it. After a change it looks at the objects that it concerns, a few at a time.
 */
import type { AnalyzerConfig, FindingRow, FoundNow, InForceEvent, SeenEvent } from '../../../protocols/messages/analysis.ts'
import type { ObjectAnalysed } from '../../../protocols/messages/object-status.ts'
import { codes, type Finding } from '../../../src/analysis/finding.ts'
import { type LiveFinding, LiveMesh } from '../../../src/analysis/live-mesh.ts'
import type { Features } from '../../../src/config/features.ts'
import { readKey } from '../../../src/config/kinds.ts'
import { LineBounds } from '../../../src/logging/line-bounds.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { patchFaults } from '../../../src/xds/envoy-filter/patch-check.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { gaugesOf } from '../../runtime/metrics.ts'
import type { ObjectRule } from '../../runtime/register.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { seenObject, seenWithdrawal } from '../events/seen-events.ts'

/** How long changes are collected, and how long objects are looked at in one turn, in milliseconds. */
const limits = { quietMs: 200, turnMs: 50 }

type Told = InForceEvent | SeenEvent

/** What a replay withdraws. */
const told: ObjectRule<Told> = {
  objectOf(event) {
    if (event.type === 'ObjectInForce') return { key: `o${event.key}`, there: event.object !== undefined }
    if (event.type === 'ServicesInForce') return { key: `h${event.host}`, there: event.services.length > 0 }
    return event.type === 'MeshInForce' ? undefined : seenObject(event)
  },
  withdrawal: (key) =>
    seenWithdrawal(key) ??
    (key.startsWith('o')
      ? { type: 'ObjectInForce', key: key.slice(1), object: undefined }
      : { type: 'ServicesInForce', host: key.slice(1), services: [] }),
}

class Analyzer implements Behaviour<Told, ObjectAnalysed> {
  readonly objects = told
  readonly #context: ActorContext<AnalyzerConfig>
  readonly #mesh: LiveMesh
  readonly #domain: string
  readonly #bounds = new LineBounds()
  /** The findings that were logged, by object. */
  readonly #logged = new Map<string, ReadonlyMap<string, Finding>>()
  /** Findings whose lines were suppressed, so that nobody is told when they go; and how many came, and told ones went, since the last line about that. */
  readonly #untold = new WeakSet<Finding>()
  #untoldNow = 0
  #untoldGone = 0
  #isComplete = false
  #timer: Timer | undefined
  #statuses: Peer<ObjectAnalysed> | undefined

  constructor(context: ActorContext<AnalyzerConfig>) {
    this.#context = context
    const features = context.config.features as Features
    const { MESH_DOMAIN } = features
    this.#domain = MESH_DOMAIN
    this.#mesh = new LiveMesh({ domain: context.config.domain, names: meshNames(MESH_DOMAIN), patchFaults, features })
    gaugesOf(context.metrics)('pilot_analysis_findings', 'mistakes that analysis finds in configuration at present', () => this.#mesh.size)
  }

  readonly asks = {
    /** All findings. */
    findings: (): FoundNow => ({
      findings: this.#mesh.all().map((finding) => this.#row(finding)),
      due: this.#mesh.due,
      isComplete: this.#isComplete,
    }),
  }

  linked(peer: Peer<ObjectAnalysed>): void {
    if (peer.kind !== 'status-writer') return
    this.#statuses = peer
    if (this.#isComplete && this.#mesh.due === 0) this.#replay()
  }

  unlinked({ kind }: Peer): void {
    if (kind === 'status-writer') this.#statuses = undefined
  }

  receive(event: Told): void {
    this.#mesh.apply(event)
    this.#later()
  }

  /** What sources have read beside it may come later: nothing is missing by it. */
  synced(source: Peer): void {
    this.#isComplete ||= source.kind === 'push-queue'
    this.#later()
  }

  async drain(): Promise<void> {
    this.#timer?.cancel()
  }

  /** Looks at what has changed when it was collected for a while; nothing is said of a mesh of which a part has not been told yet. */
  #later(delayMs = limits.quietMs): void {
    this.#timer ??= after(delayMs, () => {
      this.#timer = undefined
      if (!this.#isComplete) return
      const until = monotonicMs() + limits.turnMs
      while (this.#mesh.due > 0 && monotonicMs() < until) this.#look()
      if (this.#mesh.due > 0) this.#later(0)
      else this.#logUntold()
    })
  }

  /** Looks at one object. */
  #look(): void {
    for (const [key, findings] of this.#mesh.refresh(1)) {
      this.#tell(key)
      this.#logChanges(key, findings)
    }
  }

  #replay(): void {
    const replay = this.#statuses?.replay()
    for (const key of this.#mesh.keys()) this.#tell(key)
    replay?.finish()
  }

  /** Tells the status writer what is found in an object. */
  #tell(key: string): void {
    const messages = this.#mesh
      .findingsOf(key)
      ?.map(({ code, path, message }) => ({ code, name: codes[code].name, level: codes[code].level, path, message }))
    this.#statuses?.tell({ type: 'ObjectAnalysed', key, messages }, key)
  }

  /** Logs what has come and gone of an object. Findings for information are on the page only. */
  #logChanges(key: string, findings: readonly Finding[]): void {
    const before = this.#logged.get(key) ?? new Map<string, Finding>()
    const now = new Map(findings.filter(({ code }) => codes[code].level !== 'info').map((finding) => [`${finding.code} ${finding.path}`, finding]))
    for (const [id, finding] of now) {
      if (before.has(id) || this.#log(finding, true)) continue
      this.#untold.add(finding)
      this.#untoldNow++
    }
    for (const [id, finding] of before) {
      const kept = now.get(id)
      if (!kept && !this.#untold.delete(finding) && !this.#log(finding, false)) this.#untoldGone++
      // Later findings of the same field stand for the first one, with what was told of it.
      else if (kept && kept !== finding && this.#untold.delete(finding)) this.#untold.add(kept)
    }
    if (now.size > 0) this.#logged.set(key, now)
    else this.#logged.delete(key)
  }

  /** Logs how many findings came and went that were not told by themselves. */
  #logUntold(): void {
    const log = this.#context.log('analysis')
    if (this.#untoldNow > 0) log.warn(`${this.#untoldNow} further findings came; all are on /debug/analysisz`)
    if (this.#untoldGone > 0) log.info(`no longer: ${this.#untoldGone} further findings; those that are left are on /debug/analysisz`)
    this.#untoldNow = 0
    this.#untoldGone = 0
  }

  /** Logs a finding that came or has gone. Returns whether it was told: very many alike are not. */
  #log(finding: Finding, isNew: boolean): boolean {
    const { code, level, kind, namespace, object, path, message, place } = this.#row({ ...finding, place: this.#mesh.placeOf(finding.object) })
    const where = `${kind} ${namespace === '' ? '' : `${namespace}/`}${object}${path === '' ? '' : `: ${path}`}`
    const text = isNew ? `${level} ${code} ${where}: ${message}${place === '' ? '' : ` (${place})`}` : `no longer: ${code} ${where}`
    const line = this.#bounds.bounded(`${code} ${isNew}`, text, monotonicMs())
    if (line !== undefined) this.#context.log('analysis')[isNew ? 'warn' : 'info'](line)
    return line !== undefined
  }

  #row({ code, object: key, path, message, place }: LiveFinding): FindingRow {
    const { kind, namespace, name: object } = readKey(key, this.#domain)
    const { name, level } = codes[code]
    return { code, name, level, kind, namespace, object, path, message, place }
  }
}

/** The actor definition of the analyzer. */
export const actor: ActorDefinition<AnalyzerConfig, Told, ObjectAnalysed> = {
  kind: 'analyzer',
  start: (context) => new Analyzer(context),
}
