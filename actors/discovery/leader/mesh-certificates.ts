/**
 * Keeps the certificates of the mesh configuration (`certificates`) in Secrets, while this process leads (docs/certificates.md, M1 to M6): takes
 * the entries from the push queue (`MeshNamesChanged`) and has the main thread look at each Secret, and write it.
 */
import type { MeshNamesEvent, WantedCertificates } from '../../../protocols/messages/identity.ts'
import { attentionNote } from '../../../protocols/messages/notes.ts'
import type { CertificateOutcome, MeshCertificatesConfig } from '../../../protocols/messages/signer.ts'
import { KeptCertificates } from '../../../src/orchestrator/kept-certificates.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import { chance } from '../../runtime/chance.ts'
import { monotonicMs, wallClockMs } from '../../runtime/clock.ts'
import { Counter, Gauge } from '../../runtime/metrics.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { FollowedTerm } from './followed-term.ts'

/** The number of Secrets that are looked at at a time. */
const mostAtOnce = 4

class MeshCertificates implements Behaviour<MeshNamesEvent, never> {
  readonly #context: ActorContext<MeshCertificatesConfig>
  readonly #kept = new KeptCertificates()
  readonly #writes: Counter<'outcome'>
  readonly #expiry: Gauge<'secret'>
  /** Begins with the first entry: who keeps none stands for no election. */
  #term: FollowedTerm | undefined
  #wanted = ''
  #underWay = 0
  #timer: Timer | undefined
  /** What is wrong with the entries, and with each Secret. */
  #faults: readonly string[] = []
  readonly #troubles = new Map<string, string>()

  constructor(context: ActorContext<MeshCertificatesConfig>) {
    this.#context = context
    const registers = [context.metrics]
    this.#writes = new Counter({
      name: 'pilot_mesh_certificate_looks_total',
      help: 'looks at Secrets with certificates of the mesh configuration, by what came of them',
      labelNames: ['outcome'] as const,
      registers,
    })
    this.#expiry = new Gauge({
      name: 'pilot_mesh_certificate_expiry_timestamp',
      help: 'Unix seconds when a certificate of the mesh configuration expires, by Secret; only while this process leads',
      labelNames: ['secret'] as const,
      registers,
    })
  }

  receive({ certificates = [] }: MeshNamesEvent): void {
    const text = JSON.stringify(certificates)
    if (text === this.#wanted || (this.#wanted === '' && certificates.length === 0)) return
    this.#wanted = text
    const { signer } = this.#context.config
    const faults = [...this.#kept.want(certificates)]
    if (signer === '' && this.#kept.size > 0) faults.push('certificates of the mesh configuration are not made: ORCH_SIGNER names no signer')
    for (const fault of faults) if (!this.#faults.includes(fault)) this.#context.log('ca').error(fault)
    this.#faults = faults
    const names = new Set(certificates.map(({ secretName }) => secretName))
    for (const name of [...this.#troubles.keys()]) if (!names.has(name)) this.#troubles.delete(name)
    this.#expiry.reset()
    this.#note()
    if (signer === '' || this.#kept.size === 0) return
    this.#term ??= new FollowedTerm({
      ...{ ask: this.#context.askFor, duty: 'certificates', log: this.#context.log('orch') },
      changed: () => this.#termChanged(),
    })
    this.#work()
  }

  async drain(): Promise<void> {
    this.#term?.close()
    this.#timer?.cancel()
  }

  #termChanged(): void {
    this.#kept.again()
    this.#troubles.clear()
    this.#expiry.reset()
    this.#note()
    this.#work()
  }

  /** Looks at what is due. */
  #work(): void {
    this.#timer?.cancel()
    const term = this.#term?.now ?? 0
    if (term === 0) return
    while (this.#underWay < mostAtOnce) {
      const wanted = this.#kept.next(monotonicMs())
      if (!wanted) break
      this.#underWay++
      void this.#keep(wanted, term)
    }
    const waitMs = this.#kept.waitMs(monotonicMs())
    if (this.#underWay < mostAtOnce && waitMs !== undefined) this.#timer = after(waitMs, () => this.#work()).unref()
  }

  async #keep(wanted: WantedCertificates, term: number): Promise<void> {
    const outcome = await this.#context
      .askFor(patient, 'keepCertificate', { term, ...wanted })
      .catch((error: Error): CertificateOutcome => ({ outcome: 'failed', reason: error.message }))
    this.#underWay--
    this.#writes.inc({ outcome: outcome.outcome })
    if ('renewAt' in outcome) this.#done(wanted, outcome)
    else if ('reason' in outcome) this.#failed(wanted, outcome)
    else this.#kept.lost(wanted, monotonicMs())
    this.#work()
  }

  #done(wanted: WantedCertificates, { outcome, renewAt, notAfter }: Extract<CertificateOutcome, { renewAt: number }>): void {
    this.#kept.kept(wanted, monotonicMs(), renewAt - wallClockMs())
    this.#expiry.set({ secret: wanted.secretName }, notAfter / 1000)
    if (outcome === 'written')
      this.#context
        .log('ca')
        .info(`Secret ${wanted.secretName} has a new certificate for ${wanted.dnsNames.join(', ')}, valid until ${new Date(notAfter).toISOString()}`)
    if (this.#troubles.delete(wanted.secretName)) this.#note()
  }

  #failed(wanted: WantedCertificates, { outcome, reason }: Extract<CertificateOutcome, { reason: string }>): void {
    this.#kept.failed(wanted, monotonicMs(), chance())
    const line =
      outcome === 'foreign'
        ? `Secret ${wanted.secretName} of certificates of the mesh configuration is left as it is: ${reason}`
        : `Secret ${wanted.secretName} of certificates of the mesh configuration cannot be kept: ${reason}`
    if (this.#troubles.get(wanted.secretName) === line) return
    this.#troubles.set(wanted.secretName, line)
    this.#context.log('ca').error(line)
    this.#note()
  }

  #note(): void {
    this.#context.note(attentionNote, [...this.#faults, ...this.#troubles.values()])
  }
}

/** The actor definition of the keeper of certificates. */
export const actor: ActorDefinition<MeshCertificatesConfig, MeshNamesEvent, never> = {
  kind: 'mesh-certificates',
  start: (context) => new MeshCertificates(context),
}
