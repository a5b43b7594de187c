/** Validates objects of the mesh's kinds before they are stored (docs/operation.md, W5 and W6). */
import type { AdmissionAnswer, AdmissionRequest, WebhooksConfig } from '../../../protocols/messages/admission.ts'
import { type AdmissionVerdict, decideAdmission } from '../../../src/config/admitted.ts'
import type { Features } from '../../../src/config/features.ts'
import { type OptOuts, readOptOuts } from '../../../src/config/opt-outs.ts'
import { PatternChecks } from '../../../src/config/patterns.ts'
import { LineBounds } from '../../../src/logging/line-bounds.ts'
import { type MeshNames, meshNames } from '../../../src/names/mesh-names.ts'
import { trialAnswer, triedBy } from '../../../src/orchestrator/validation-webhook.ts'
import type { ActorContext } from '../../runtime/actor.ts'
import { monotonicMs, threadCpuMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { Counter } from '../../runtime/metrics.ts'
import { createPool, type Pool } from '../../runtime/pool.ts'
import { after } from '../../runtime/timers.ts'
import { type AdmissionCall, type AdmissionHandler, Busy, type HandlerMaker } from './admission-handler.ts'
import { rehearse, routeReview } from './rehearsal.ts'
import type { ValidatedReview, ValidateTask } from './validate-task.ts'

/** The CPU time that the regular expressions of a review may take on the thread of the webhooks, in milliseconds; those that take longer go to the pool. */
const patternsMs = 25
/** A regular expression that is longer when its repetitions are written out, in characters, goes to the pool too: it may take longer alone. */
const longestPattern = 2000
/** The threads for large and costly reviews, the reviews that wait for one, the heap of one in MiB, and the longest time of one, in milliseconds. */
const pool = { threads: 1, queue: 32, heapMib: 256, deadlineMs: 5000 } as const

class Validation implements AdmissionHandler {
  readonly paths = ['/validate', '/admitpilot']
  readonly takesMore = false
  readonly #configuration: string
  readonly #names: MeshNames
  readonly #given: Pick<ValidateTask, 'domain' | 'optOuts'>
  readonly #optOuts: OptOuts
  readonly #log: ScopedLogger
  readonly #lines = new LineBounds()
  readonly #passed: Counter<'group' | 'version' | 'resource'>
  readonly #failed: Counter<'group' | 'version' | 'resource' | 'reason'>
  readonly #errors: Counter<'status'>
  #pool: Pool | undefined

  constructor({ config, log, metrics }: ActorContext<WebhooksConfig>, { MESH_DOMAIN, MESH_POLICY_OPT_OUTS }: Features) {
    this.#log = log('validationServer')
    this.#configuration = config.configuration
    this.#names = meshNames(MESH_DOMAIN)
    this.#given = { domain: MESH_DOMAIN, optOuts: MESH_POLICY_OPT_OUTS }
    this.#optOuts = readOptOuts(MESH_POLICY_OPT_OUTS)
    const registers = [metrics]
    const labelNames = ['group', 'version', 'resource'] as const
    this.#passed = new Counter({ name: 'galley_validation_passed', help: 'resources that are valid', labelNames, registers })
    const failed = { name: 'galley_validation_failed', help: 'resources that are not valid', labelNames: [...labelNames, 'reason'] as const }
    this.#failed = new Counter({ ...failed, registers })
    const errors = {
      name: 'galley_validation_http_error',
      help: 'requests for validation that could not be answered',
      labelNames: ['status'] as const,
    }
    this.#errors = new Counter({ ...errors, registers })
    // A thread that the first review has started has nothing to rehearse for.
    if (config.port) after(0, () => rehearse(routeReview, this.#log, (request) => this.#judge(request).verdict.answer))
  }

  admit(request: AdmissionRequest, { asking }: AdmissionCall): AdmissionAnswer | Promise<AdmissionAnswer> {
    const { verdict, isLong } = this.#judge(request)
    // The trials of a leader say nothing of anybody's objects.
    const tried = triedBy(request)
    if (tried !== undefined) return trialAnswer(tried, this.#configuration, verdict.answer)
    // The types of Envoy are loaded for its own objects only, beside this thread.
    const needsTypes = request.kind.kind === 'EnvoyFilter' && request.subResource === '' && verdict.outcome === 'passed'
    if (!isLong && !needsTypes) return this.#decided(verdict)
    return this.#onPool({ ...this.#given, request }, asking.restMs()).then(({ verdict: later }) => this.#decided(later as AdmissionVerdict))
  }

  /** Decides on a request. `isLong`: its regular expressions take too long here, so that the verdict does not count. */
  #judge(request: AdmissionRequest): { readonly verdict: AdmissionVerdict; readonly isLong: boolean } {
    const patterns = new PatternChecks(patternsMs, threadCpuMs, longestPattern)
    const verdict = decideAdmission(request, { names: this.#names, patterns, optOuts: this.#optOuts })
    return { verdict, isLong: patterns.isExhausted }
  }

  async admitLarge(body: Uint8Array, { asking }: AdmissionCall): Promise<string> {
    const { verdict, text } = await this.#onPool({ ...this.#given, body }, asking.restMs())
    if (verdict) this.#decided(verdict)
    else this.unread()
    return text
  }

  unread(): void {
    this.#failed.inc({ reason: 'yaml_decode_error' })
  }

  refused(status: number): void {
    this.#errors.inc({ status: String(status) })
  }

  async close(): Promise<void> {
    await this.#pool?.destroy()
  }

  /** Rejects when the thread has too much to do, or is ended: by the deadline, or because it needs too much memory. */
  async #onPool(task: ValidateTask, restMs: number): Promise<ValidatedReview> {
    const { deadlineMs, ...size } = pool
    this.#pool ??= createPool(new URL(`./validate-task${import.meta.url.slice(-3)}`, import.meta.url), size)
    try {
      return await this.#pool.run<ValidatedReview>(task, Math.max(1, Math.min(deadlineMs, restMs)))
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (this.#lines.take('costly', monotonicMs()) !== 'no') this.#log.warn(`a large or costly review was not validated: ${reason}`)
      throw new Busy('the review could not be validated: too many large or costly reviews', { cause: error })
    }
  }

  #decided({ outcome, answer, labels, told }: AdmissionVerdict): AdmissionAnswer {
    if (outcome === 'passed') this.#passed.inc(labels)
    else this.#failed.inc({ ...labels, reason: outcome })
    const line = told && this.#lines.bounded('denied', `denied: ${told}`, monotonicMs())
    if (line) this.#log.info(line)
    return answer
  }
}

/** Makes the handler of validation (`VALIDATION_ENABLED`). */
export const validation: HandlerMaker = (context) => {
  const features = context.config.features as Features
  return features.VALIDATION_ENABLED ? new Validation(context, features) : undefined
}
