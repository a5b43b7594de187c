/** Pool task: validates one large or costly review. */
import type { AdmissionRequest } from '../../../protocols/messages/admission.ts'
import { type AdmissionVerdict, decideAdmission } from '../../../src/config/admitted.ts'
import { readOptOuts } from '../../../src/config/opt-outs.ts'
import { PatternChecks } from '../../../src/config/patterns.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { readReview, reviewText, unreadText } from '../../../src/orchestrator/admission-review.ts'
import { threadCpuMs } from '../../runtime/clock.ts'

/** A review to validate: the JSON of one, or a request that was read. */
export interface ValidateTask {
  readonly body?: Uint8Array
  readonly request?: AdmissionRequest
  readonly domain: string
  /** Names of the policy checks that are switched off, separated by commas. */
  readonly optOuts: string
}

/** A validated review. */
export interface ValidatedReview {
  /** The JSON of the answer; empty where the request was read before. */
  readonly text: string
  /** Undefined where the review cannot be read. */
  readonly verdict: AdmissionVerdict | undefined
}

/** How long the regular expressions of a review may take, in milliseconds. */
const patternsMs = 1000

/** Runs on a thread of the pool. */
export default async function validate({ body, request, ...given }: ValidateTask): Promise<ValidatedReview> {
  if (request) return { text: '', verdict: await decided(request, given) }
  const review = readReview(body ?? new Uint8Array())
  if ('fault' in review) return { text: unreadText(review), verdict: undefined }
  const verdict = await decided(review.request, given)
  return { text: reviewText(review.apiVersion, review.request.uid, verdict.answer), verdict }
}

async function decided(request: AdmissionRequest, { domain, optOuts }: Pick<ValidateTask, 'domain' | 'optOuts'>): Promise<AdmissionVerdict> {
  // The types of Envoy take longer to load than most reviews take.
  const types = request.kind.kind === 'EnvoyFilter' ? await import('../../../src/xds/envoy-filter/patch-check.ts') : {}
  const patterns = new PatternChecks(patternsMs, threadCpuMs)
  const verdict = decideAdmission(request, { names: meshNames(domain), patterns, optOuts: readOptOuts(optOuts), ...types })
  if (!patterns.isExhausted) return verdict
  const message = `configuration is invalid: its regular expressions take longer than ${patternsMs} ms to check`
  const { kind, isDryRun, namespace, name } = request
  const told = isDryRun ? undefined : `${kind.kind} ${namespace}/${name}: ${message}`
  return { ...verdict, outcome: 'invalid_resource', answer: { allowed: false, code: 400, message }, told }
}
