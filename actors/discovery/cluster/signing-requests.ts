/**
 * Certificates of a signer of the orchestrator (`ORCH_SIGNER`), on the main thread (docs/certificates.md, E1 to E9): makes a
 * CertificateSigningRequest (`certificates.k8s.io/v1`), approves it where the role permits, waits for its signer, and removes the object.
 */
import { randomInt, randomUUID } from 'node:crypto'
import type { V1CertificateSigningRequest } from '@kubernetes/client-node'
import type { SignerAnswer, SignerOrder } from '../../../protocols/messages/signer.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import { type Asking, patient } from '../../runtime/ask.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { FairWork, refusedJob } from '../../runtime/fair-work.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Gauge, Histogram, type MetricRegistry } from '../../runtime/metrics.ts'
import { after, pause } from '../../runtime/timers.ts'
import { ApiFailure, type CallName, type ClusterCalls } from './cluster-api.ts'

/** How many requests are open at a time, of all callers and of one, and how many wait, with the size of what they have signed in bytes. */
const bounds = { atOnce: 64, ofClient: 4, waiting: 1024, bytes: 16_777_216 }
/** The pause between two looks at the open requests, in milliseconds. */
const lookMs = 250
/** How often something is tried, and the pauses before the next attempt, in milliseconds. */
const attempts = { create: 3, approve: 3, remove: 4, pauseMs: 200 }
/** The shortest lifetime that can be asked for, in milliseconds. */
export const shortestLife = 600_000
/** The number of characters of a name that are drawn at random. */
const randomLength = 18
const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'

const resource = 'certificatesigningrequests.certificates.k8s.io'
const usages = ['digital signature', 'key encipherment', 'server auth', 'client auth']

type Calls = Pick<ClusterCalls, 'call'>
type Csr = V1CertificateSigningRequest

/** What signing requests are made with. */
export interface SigningRequestsParts {
  readonly api: Calls
  /** The name of the signer: `<domain>/<path>`. */
  readonly signer: string
  /** The domain of labels. */
  readonly domain: string
  readonly log: Logger
  readonly metrics: MetricRegistry
}

/** An open request, and who is told when something becomes of it. `undefined`: the object is gone. */
type Open = (found: Csr | undefined, failure?: ApiFailure) => void

/** Has certificates signed. */
export class SigningRequests {
  readonly answers: BoundedAnswers<'signBySigner'> = { signBySigner: (order, asking = patient) => this.sign(order, asking) }
  readonly #parts: SigningRequestsParts
  readonly #work = new FairWork(bounds)
  /** The value of the label of this process's requests. */
  readonly #requester = randomUUID()
  readonly #open = new Map<string, Open>()
  readonly #seconds: Histogram<'outcome'>
  #isLooking = false
  /** Why the open requests could not be read at the last look. */
  #unread = ''
  /** Whether the last request could not be approved for lack of the right to. */
  #mayNotApprove = false

  constructor(parts: SigningRequestsParts) {
    this.#parts = parts
    const registers = [parts.metrics]
    this.#seconds = new Histogram({
      name: 'pilot_signer_request_seconds',
      help: 'seconds until a signer of the orchestrator has signed or refused a request, or until nobody waited for it any more',
      labelNames: ['outcome'],
      buckets: [0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
      registers,
    })
    const open = () => this.#open.size
    new Gauge({
      name: 'pilot_signer_requests_open',
      help: 'requests that wait for a signer of the orchestrator',
      registers,
      collect() {
        this.set(open())
      },
    })
  }

  /** Has a certificate signed, for as long as somebody waits. `calls`: with what the request is made and approved. Never rejects. */
  async sign(order: SignerOrder, asking: Asking, calls: Calls = this.#parts.api): Promise<SignerAnswer> {
    const began = monotonicMs()
    const isGone = () => asking.signal.aborted || asking.restMs() <= 0
    const answer = await this.#work.run({ client: order.client, bytes: order.csr.length, run: () => this.#sign(order, asking, calls), isGone })
    const told: SignerAnswer =
      answer !== refusedJob
        ? answer
        : isGone()
          ? { outcome: 'late', reason: 'its turn did not come before the deadline' }
          : { outcome: 'busy', reason: `more than ${bounds.waiting} requests wait for the signer` }
    this.#seconds.observe({ outcome: told.outcome }, (monotonicMs() - began) / 1000)
    return told
  }

  async #sign(order: SignerOrder, asking: Asking, calls: Calls): Promise<SignerAnswer> {
    const names: string[] = []
    try {
      const made = await this.#create(order, calls, names)
      const name = made.metadata?.name ?? ''
      // Waited for first: an answer that comes before the approval has ended is one too.
      const answer = this.#awaited(name, asking)
      void this.#approve(made, calls)
      return await answer
    } catch (error) {
      return awayOr(error)
    } finally {
      for (const name of names) void this.#remove(name)
    }
  }

  /** Makes the object. The names that it may have are added to `names`. Rejects with {@link ApiFailure}, or with that of `calls`. */
  async #create({ use, csr, lifeMs }: SignerOrder, calls: Calls, names: string[]): Promise<Csr> {
    const { signer, domain } = this.#parts
    const spec = {
      request: Buffer.from(csr).toString('base64'),
      signerName: signer,
      usages: [...usages],
      ...(lifeMs > 0 ? { expirationSeconds: Math.ceil(Math.max(lifeMs, shortestLife) / 1000) } : {}),
    }
    for (let attempt = 1; ; attempt++) {
      const name = `csr-${use}-${Array.from({ length: randomLength }, () => alphabet[randomInt(alphabet.length)]).join('')}`
      const body = { metadata: { name, labels: { [labelOf(domain)]: this.#requester } }, spec }
      try {
        // An attempt that seems to have failed may have been carried out.
        names.push(name)
        return await calls.call(named('create', name), certificatesApi, (api) => api.createCertificateSigningRequest({ body }))
      } catch (error) {
        const { mayPass, isConflict } = error as Partial<ApiFailure>
        if (isConflict) names.pop()
        if (attempt === attempts.create || !(mayPass || isConflict)) throw error
        await pause(attempts.pauseMs * attempt)
      }
    }
  }

  /** Approves a request, unless somebody else has decided on it. A refusal is told once: somebody else may approve it. */
  async #approve(made: Csr, calls: Calls): Promise<void> {
    const name = made.metadata?.name ?? ''
    let body = made
    for (let attempt = 1; attempt <= attempts.approve && this.#open.has(name); attempt++) {
      const conditions = body.status?.conditions ?? []
      if (conditions.some(({ type }) => type === 'Approved' || type === 'Denied')) return
      const approved = { type: 'Approved', status: 'True', reason: 'MeshApproved', message: 'discovery has verified the identity of the caller' }
      const next = { ...body, status: { ...body.status, conditions: [...conditions, approved] } }
      try {
        await calls.call(named('update', name, '/approval'), certificatesApi, (api) =>
          api.replaceCertificateSigningRequestApproval({ name, body: next }),
        )
        return this.#tellApproval(undefined)
      } catch (error) {
        if (!(error instanceof ApiFailure) || error.isMissing) return
        if (error.code === 403) return this.#tellApproval(error.message)
        if (!error.isConflict && !error.mayPass) return this.#parts.log('ca').warn(`CertificateSigningRequest ${name}: ${error.message}`)
        if (error.mayPass) await pause(attempts.pauseMs * attempt)
        try {
          body = await calls.call(named('get', name), certificatesApi, (api) => api.readCertificateSigningRequest({ name }))
        } catch {
          // The next attempt finds out more.
        }
      }
    }
  }

  #tellApproval(refusal: string | undefined): void {
    const { log, signer } = this.#parts
    if ((refusal !== undefined) === this.#mayNotApprove) return
    this.#mayNotApprove = refusal !== undefined
    if (refusal === undefined) log('ca').info(`requests to the signer ${signer} are approved again`)
    else log('ca').warn(`requests to the signer ${signer} are not approved by this process, and wait for another approver: ${refusal}`)
  }

  /** Resolves when something has become of a request, or nobody waits for it any more. */
  #awaited(name: string, { signal, restMs }: Asking): Promise<SignerAnswer> {
    const { signer } = this.#parts
    const { promise, resolve } = Promise.withResolvers<SignerAnswer>()
    const late = () => resolve({ outcome: 'late', reason: `the signer ${signer} has not signed before the deadline${this.#waits(name)}` })
    this.#open.set(name, (found, failure) => {
      if (failure) return resolve({ outcome: 'away', reason: failure.message })
      const answer = found ? verdictOf(found, signer) : ({ outcome: 'refused', reason: `CertificateSigningRequest ${name} was removed` } as const)
      if (answer) resolve(answer)
    })
    const rest = restMs()
    const timer = Number.isFinite(rest) ? after(rest, late) : undefined
    signal.addEventListener('abort', late)
    if (signal.aborted) late()
    void this.#look()
    return promise.finally(() => {
      this.#open.delete(name)
      this.#approvals.delete(name)
      timer?.cancel()
      signal.removeEventListener('abort', late)
    })
  }

  /** Which open requests are approved, as last seen. */
  readonly #approvals = new Map<string, boolean>()

  #waits(name: string): string {
    if (this.#unread !== '') return `: ${this.#unread}`
    const isApproved = this.#approvals.get(name)
    return isApproved === undefined ? '' : isApproved ? ', although the request is approved' : ', and nobody has approved the request'
  }

  /** Looks at all open requests of this process with one call at a time, while there are any. */
  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    const labelSelector = `${labelOf(this.#parts.domain)}=${this.#requester}`
    while (this.#open.size > 0) {
      const asked = [...this.#open]
      try {
        const { items } = await this.#parts.api.call({ verb: 'list', resource }, certificatesApi, (api) =>
          api.listCertificateSigningRequest({ labelSelector }),
        )
        this.#unread = ''
        const found = new Map(items.map((item) => [item.metadata?.name ?? '', item]))
        for (const [name, open] of asked) {
          const csr = found.get(name)
          this.#approvals.set(name, csr?.status?.conditions?.some(({ type }) => type === 'Approved') === true)
          open(csr)
        }
      } catch (error) {
        const failure = error as ApiFailure
        this.#unread = failure.message
        if (failure.code === 403) for (const [, open] of asked) open(undefined, failure)
      }
      await pause(lookMs)
    }
    this.#isLooking = false
  }

  /** Removes an object. One that stays is removed by the orchestrator's controllers after a while. */
  async #remove(name: string): Promise<void> {
    for (let attempt = 1; attempt <= attempts.remove; attempt++) {
      try {
        await this.#parts.api.call(named('delete', name), certificatesApi, (api) => api.deleteCertificateSigningRequest({ name }))
        return
      } catch (error) {
        const { isMissing, message, mayPass } = error as ApiFailure
        if (isMissing) return
        if (!mayPass || attempt === attempts.remove) return this.#parts.log('ca').warn(`CertificateSigningRequest ${name} is not removed: ${message}`)
        await pause(attempts.pauseMs * 2 ** attempt)
      }
    }
  }
}

const certificatesApi = (library: typeof import('@kubernetes/client-node')) => library.CertificatesV1Api

const named = (verb: CallName['verb'], object: string, subresource = ''): CallName => ({ verb, resource: `${resource}${subresource}`, object })

/** The label that tells whose requests they are. */
const labelOf = (domain: string): string => `${domain}/requester`

/** What has become of a request; undefined: nothing yet. */
function verdictOf({ status }: Csr, signer: string): SignerAnswer | undefined {
  const { conditions = [], certificate = '' } = status ?? {}
  for (const [type, who] of [
    ['Denied', 'an approver has denied the request'],
    ['Failed', `the signer ${signer} refuses the request`],
  ] as const) {
    const found = conditions.find((condition) => condition.type === type)
    if (found) return { outcome: 'refused', reason: `${who}: ${[found.reason, found.message].filter(Boolean).join(': ').slice(0, 500)}` }
  }
  return certificate === '' ? undefined : { outcome: 'signed', certificate: Buffer.from(certificate, 'base64').toString('utf8') }
}

function awayOr(error: unknown): SignerAnswer {
  const { message, code } = error as Partial<ApiFailure> & Error
  // What the server refuses for its content is refused again.
  return { outcome: code === 400 || code === 413 || code === 422 ? 'refused' : 'away', reason: message }
}
