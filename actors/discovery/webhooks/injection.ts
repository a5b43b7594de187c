/** Injects pods before they are stored (docs/injection.md, N13). */
import type { AdmissionAnswer, AdmissionRequest, WebhooksConfig } from '../../../protocols/messages/admission.ts'
import { attentionNote } from '../../../protocols/messages/notes.ts'
import type { Features } from '../../../src/config/features.ts'
import { defaultMeshConfig, type MeshConfig } from '../../../src/config/mesh-config.ts'
import { type AgentDefaults, agentDefaults } from '../../../src/inject/agent-defaults.ts'
import { type Injection as Injected, injectPod } from '../../../src/inject/inject-pod.ts'
import { jsonPatch } from '../../../src/inject/patch.ts'
import { InjectionError } from '../../../src/inject/pod.ts'
import { pathVariables } from '../../../src/inject/request-path.ts'
import { LineBounds } from '../../../src/logging/line-bounds.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import type { ActorContext } from '../../runtime/actor.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { Counter } from '../../runtime/metrics.ts'
import type { AdmissionCall, AdmissionHandler, HandlerMaker, WebhookMessage } from './admission-handler.ts'
import { InjectionSource } from './injection-source.ts'
import { NativeSidecars } from './native-sidecars.ts'
import { WebhookBundles } from './webhook-bundles.ts'

class Injection implements AdmissionHandler {
  readonly paths = ['/inject']
  readonly takesMore = true
  readonly asks = { injection: () => this.#page() }
  readonly #features: Features
  readonly #agent: AgentDefaults
  readonly #log: ScopedLogger
  readonly #lines = new LineBounds()
  readonly #source: InjectionSource
  readonly #bundles: WebhookBundles
  readonly #native: NativeSidecars
  readonly #requests: Counter
  readonly #successes: Counter
  readonly #skips: Counter
  readonly #failures: Counter
  #mesh: MeshConfig = defaultMeshConfig()

  constructor(context: ActorContext<WebhooksConfig>, features: Features) {
    this.#features = features
    this.#agent = agentDefaults(features)
    this.#log = context.log('validationServer')
    const notes = { source: [] as readonly string[], bundles: [] as readonly string[] }
    const note = (part: keyof typeof notes) => (faults: readonly string[]) => {
      notes[part] = faults
      context.note(attentionNote, [...notes.source, ...notes.bundles])
    }
    this.#source = new InjectionSource(this.#log, note('source'))
    this.#bundles = new WebhookBundles(context, features, note('bundles'))
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
    else if (message.type === 'InjectorWebhooksChanged' || message.type === 'TrustChanged') this.#bundles.receive(message)
  }

  admit(request: AdmissionRequest, { rest }: AdmissionCall): AdmissionAnswer {
    this.#requests.inc()
    const { configuration } = this.#source.state
    if (!configuration || request.kind.kind !== 'Pod' || request.object === undefined || request.subResource !== '') {
      this.#skips.inc()
      return { allowed: true }
    }
    let injected: Injected
    try {
      injected = injectPod(
        { pod: request.object, namespace: request.namespace, variables: pathVariables(rest) },
        {
          ...{ configuration, mesh: this.#mesh, revision: this.#features.REVISION, hasNativeSidecars: this.#native.areThere },
          setsFsGroup: this.#features.ENABLE_LEGACY_FSGROUP_INJECTION,
          agent: this.#agent,
          names: meshNames(this.#features.MESH_DOMAIN),
        },
      )
    } catch (error) {
      this.#failures.inc()
      if (!(error instanceof InjectionError) && !(error as Error).message.startsWith('the path of the webhook')) throw error
      return this.#failed(request, (error as Error).message)
    }
    if ('skipped' in injected) {
      this.#skips.inc()
      this.#log.debug(`pod of namespace ${request.namespace} gets no sidecar: ${injected.skipped}`)
      return { allowed: true }
    }
    this.#successes.inc()
    return { allowed: true, patch: jsonPatch(request.object, injected.pod) }
  }

  refused(): void {
    this.#requests.inc()
    this.#failures.inc()
  }

  async close(): Promise<void> {
    this.#source.close()
    this.#bundles.close()
    this.#native.close()
  }

  #failed({ namespace }: AdmissionRequest, reason: string): AdmissionAnswer {
    // Whoever may make pods of one namespace must not fill the log.
    const line = this.#lines.bounded(namespace, `a pod of namespace ${namespace} gets no sidecar and is refused: ${reason}`, monotonicMs())
    if (line !== undefined) this.#log.error(line)
    return { allowed: false, code: 400, message: `injection failed: ${reason}` }
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
