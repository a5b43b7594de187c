/** Injects pods before they are stored (docs/injection.md, N13). */
import type { AdmissionRequest, WebhooksConfig } from '../../../protocols/messages/admission.ts'
import { attentionNote } from '../../../protocols/messages/notes.ts'
import type { TrustEvent } from '../../../protocols/messages/trust.ts'
import type { Features } from '../../../src/config/features.ts'
import { defaultMeshConfig, type MeshConfig } from '../../../src/config/mesh-config.ts'
import { decidePod, type PodVerdict, unconfigured } from '../../../src/inject/admit-pod.ts'
import { type AgentDefaults, agentDefaults } from '../../../src/inject/agent-defaults.ts'
import type { InjectionConfiguration } from '../../../src/inject/configuration.ts'
import type { Remarks } from '../../../src/inject/inject-pod.ts'
import { LineBounds } from '../../../src/logging/line-bounds.ts'
import { type MeshNames, meshNames } from '../../../src/names/mesh-names.ts'
import { readReview, reviewText, unreadText } from '../../../src/orchestrator/admission-review.ts'
import { SlowCall } from '../../../src/template/budget.ts'
import type { ActorContext } from '../../runtime/actor.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { Counter } from '../../runtime/metrics.ts'
import { createPool, type Pool } from '../../runtime/pool.ts'
import { type AdmissionCall, type AdmissionHandler, type Admitted, Busy, type HandlerMaker, type WebhookMessage } from './admission-handler.ts'
import type { InjectedReview, InjectTask } from './inject-task.ts'
import { InjectionSource } from './injection-source.ts'
import { NativeSidecars } from './native-sidecars.ts'
import { podReview, rehearse } from './rehearsal.ts'
import { WebhookBundles } from './webhook-bundles.ts'

/**
 * The threads for large pods and for templates with slow functions, the reviews that wait for one, the heap of one in MiB, and the longest
 * time of one, in milliseconds.
 */
const pool = { threads: 1, queue: 32, heapMib: 256, deadlineMs: 5000 } as const

/** What slow functions may take there for one pod (docs/templates.md, T11). */
const slow = 4000

/** The most remarks that are kept as logged, after which all are forgotten. */
const mostRemarked = 1000

/** How long a review waits until the configuration is known, in milliseconds: right after a start. */
const knownWithinMs = 2000

class Injection implements AdmissionHandler {
  readonly paths = ['/inject']
  readonly takesMore = true
  readonly asks = { injection: () => this.#page() }
  readonly #features: Features
  readonly #agent: AgentDefaults
  readonly #names: MeshNames
  readonly #log: ScopedLogger
  readonly #lines = new LineBounds()
  readonly #source: InjectionSource
  /** By the other cluster; undefined: the own one. Each writes by itself, so that a slow server delays no others. */
  readonly #bundles = new Map<string | undefined, WebhookBundles>()
  readonly #bundlesOf: (cluster: string | undefined) => WebhookBundles
  readonly #trust = new Map<string, TrustEvent>()
  readonly #native: NativeSidecars
  readonly #requests: Counter
  readonly #successes: Counter
  readonly #skips: Counter
  readonly #failures: Counter
  #mesh: MeshConfig = defaultMeshConfig()
  /** Whether a pod was injected for trial, with the first configuration. A thread that the first review has started has nothing to rehearse for. */
  #isRehearsed: boolean
  /** Whether pods were asked about without a configuration. */
  #isUnconfigured = false
  readonly #noteUnconfigured: (lines: readonly string[]) => void
  #pool: Pool | undefined
  /** The remarks that were logged, of the configuration that was in force then. */
  readonly #remarked = new Set<string>()
  #remarkedOf: InjectionConfiguration | undefined

  constructor(context: ActorContext<WebhooksConfig>, features: Features) {
    this.#features = features
    this.#agent = agentDefaults(features)
    this.#names = meshNames(features.MESH_DOMAIN)
    this.#log = context.log('validationServer')
    const notes = new Map<string, readonly string[]>()
    const note = (part: string) => (faults: readonly string[]) => {
      notes.set(part, faults)
      context.note(attentionNote, [...notes.values()].flat())
    }
    const { hasCluster, port } = context.config
    this.#isRehearsed = port === undefined
    this.#noteUnconfigured = note('unconfigured')
    this.#source = new InjectionSource(this.#log, { noted: note('source'), taken: () => this.#rehearse() }, hasCluster)
    this.#bundlesOf = (cluster) => {
      const known = this.#bundles.get(cluster)
      if (known) return known
      const made = new WebhookBundles(context, features, note(`bundles/${cluster ?? ''}`), cluster)
      this.#bundles.set(cluster, made)
      for (const trust of this.#trust.values()) made.receive(trust)
      return made
    }
    this.#native = new NativeSidecars(context, features)
    const counter = (name: string, help: string) => new Counter({ name, help, registers: [context.metrics] })
    this.#requests = counter('sidecar_injection_requests_total', 'sidecar injection requests')
    this.#successes = counter('sidecar_injection_success_total', 'successful sidecar injection requests')
    this.#skips = counter('sidecar_injection_skip_total', 'skipped sidecar injection requests')
    this.#failures = counter('sidecar_injection_failure_total', 'failed sidecar injection requests')
  }

  receive(message: WebhookMessage): void {
    if (message.type === 'InjectorChanged') this.#source.receive(message)
    else if (message.type === 'MeshSettingsChanged') this.#mesh = message.mesh as MeshConfig
    else if (message.type === 'InjectorWebhooksChanged') this.#bundlesOf(message.cluster).receive(message)
    else if (message.type === 'TrustChanged') {
      this.#trust.set(message.source, message)
      for (const bundles of this.#bundles.values()) bundles.receive(message)
    }
  }

  admit(request: AdmissionRequest, call: AdmissionCall): Admitted | Promise<Admitted> {
    if (this.#source.isKnown) return this.#admit(request, call)
    return this.#known().then(() => this.#admit(request, call))
  }

  #admit(request: AdmissionRequest, { rest }: AdmissionCall): Admitted {
    const { configuration } = this.#source.state
    this.#tellUnconfigured(!configuration)
    try {
      const verdict = decidePod(request, rest, configuration && { ...this.#settings, configuration, names: this.#names, slow: 0 })
      this.#requests.inc()
      this.#decided(verdict)
      return verdict.answer
    } catch (error) {
      if (error instanceof SlowCall) return 'long'
      this.#requests.inc()
      throw error
    }
  }

  /** Tells, while pods are asked about, that none gets a sidecar. */
  #tellUnconfigured(isSo: boolean): void {
    if (isSo === this.#isUnconfigured) return
    this.#isUnconfigured = isSo
    this.#noteUnconfigured(isSo ? [unconfigured] : [])
    if (isSo) this.#log.warn(unconfigured)
  }

  #rehearse(): void {
    const { configuration } = this.#source.state
    if (configuration) this.#tellUnconfigured(false)
    if (this.#isRehearsed || !configuration) return
    this.#isRehearsed = true
    const settings = { ...this.#settings, configuration, names: this.#names, slow: 0 }
    rehearse(podReview, this.#log, (request) => decidePod(request, '', settings).answer)
  }

  /** Large pods, and those whose templates call slow functions, are injected elsewhere: some take a second, and other pods are waiting. */
  async admitLarge(body: Uint8Array, { rest, asking }: AdmissionCall): Promise<string> {
    await this.#known()
    const { configuration, texts } = this.#source.state
    if (!configuration || !texts) return this.#admitUnconfigured(body)
    const task: InjectTask = { body, rest, texts, settings: { ...this.#settings, slow }, domain: this.#features.MESH_DOMAIN }
    const { text, verdict } = await this.#onPool(task, asking.restMs())
    if (!verdict) this.unread()
    else {
      this.#requests.inc()
      this.#decided(verdict)
    }
    return text
  }

  /** Resolves when it is known what is in force. Rejects when that takes too long: the pod is asked for again, or `failurePolicy` decides. */
  async #known(): Promise<void> {
    if (!this.#source.isKnown) await this.#source.known(knownWithinMs)
    if (!this.#source.isKnown) throw new Busy('the pod could not be injected: the configuration of injection was not read yet, or cannot be used')
  }

  unread(): void {
    this.#requests.inc()
    this.#failures.inc()
  }

  refused(): void {
    this.unread()
  }

  async close(): Promise<void> {
    this.#source.close()
    for (const bundles of this.#bundles.values()) bundles.close()
    this.#native.close()
    await this.#pool?.destroy()
  }

  get #settings(): Omit<InjectTask['settings'], 'slow'> {
    const { REVISION: revision, ENABLE_LEGACY_FSGROUP_INJECTION: setsFsGroup } = this.#features
    return { mesh: this.#mesh, revision, hasNativeSidecars: this.#native.areThere, setsFsGroup, agent: this.#agent }
  }

  #admitUnconfigured(body: Uint8Array): string {
    const review = readReview(body)
    if ('fault' in review) {
      this.unread()
      return unreadText(review)
    }
    this.#requests.inc()
    this.#skips.inc()
    this.#tellUnconfigured(true)
    return reviewText(review.apiVersion, review.request.uid, { allowed: true, warnings: [unconfigured] })
  }

  /** Rejects when the thread has too much to do, or is ended: by the deadline, or because it needs too much memory. */
  async #onPool(task: InjectTask, restMs: number): Promise<InjectedReview> {
    const { deadlineMs, ...size } = pool
    this.#pool ??= createPool(new URL(`./inject-task${import.meta.url.slice(-3)}`, import.meta.url), size)
    try {
      return await this.#pool.run<InjectedReview>(task, Math.max(1, Math.min(deadlineMs, restMs)))
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (this.#lines.take('large', monotonicMs()) !== 'no')
        this.#log.warn(`a large pod, or one whose templates are slow, was not injected: ${reason}`)
      throw new Busy('the pod could not be injected: too many large pods, or slow templates', { cause: error })
    }
  }

  #decided({ outcome, reason, namespace, remarks }: Omit<PodVerdict, 'answer'>): void {
    if (outcome === 'injected') {
      if (remarks) this.#remark(remarks, namespace)
      return this.#successes.inc()
    }
    if (outcome === 'skipped') {
      this.#skips.inc()
      return this.#log.debug(`a pod of namespace ${namespace} gets no sidecar: ${reason}`)
    }
    this.#failures.inc()
    // Whoever may make pods of one namespace must not fill the log.
    const line = this.#lines.bounded(namespace, `a pod of namespace ${namespace} gets no sidecar and is refused: ${reason}`, monotonicMs())
    if (line !== undefined) this.#log.error(line)
  }

  /** Logs what has no effect: once a template while its configuration is there, and once a pod's annotation in a namespace. */
  #remark({ pod, templates }: Remarks, namespace: string): void {
    const { configuration } = this.#source.state
    if (configuration !== this.#remarkedOf) this.#remarked.clear()
    this.#remarkedOf = configuration
    const lines = [...templates, ...pod.map((remark) => `pods of namespace ${namespace}: ${remark}`)]
    for (const line of lines) {
      if (this.#remarked.has(line)) continue
      if (this.#remarked.size === mostRemarked) this.#remarked.clear()
      this.#remarked.add(line)
      const bounded = this.#lines.bounded(`remarks ${namespace}`, line, monotonicMs())
      if (bounded !== undefined) this.#log.warn(bounded)
    }
  }

  #page() {
    const { place, texts, fault } = this.#source.state
    const { REVISION } = this.#features
    return { place, revision: REVISION === '' ? 'default' : REVISION, fault, nativeSidecars: this.#native.areThere, ...texts }
  }
}

/** Makes the handler, unless `INJECT_ENABLED` is false. */
export const injection: HandlerMaker = (context) => {
  const features = context.config.features as Features
  return features.INJECT_ENABLED ? new Injection(context, features) : undefined
}
