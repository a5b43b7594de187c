/**
 * The certificate authority of a service that has a signer of the orchestrator sign for it (`EXTERNAL_CA`): admits requests as the own
 * authority does, and passes them on. It has no key, no state and no ledger (docs/certificates.md, E1 to E9).
 */
import type { AuthorityConfig, CertificateAnswer, CertificateRequest, ServingCertificateRequest } from '../../../protocols/messages/authority.ts'
import type { MeshNamesEvent } from '../../../protocols/messages/identity.ts'
import { attentionNote } from '../../../protocols/messages/notes.ts'
import type { IdentityEvent, TrustEvent } from '../../../protocols/messages/trust.ts'
import { LifetimeFault, servingLife, workloadLife } from '../../../src/ca/lifetime.ts'
import { RequestFault, readSigningRequest, type SigningRequest } from '../../../src/ca/signing-request.ts'
import type { Features } from '../../../src/config/features.ts'
import { identityToCertify, otherCluster } from '../../../src/identity/access.ts'
import { status } from '../../../src/model/status-codes.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { type Asking, patient } from '../../runtime/ask.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { type AuthorityMetrics, authorityMetrics } from './authority-metrics.ts'
import { ExternalIssuer, type ExternalOrder } from './external-issuer.ts'
import { informed } from './in-force.ts'
import { type Refusal, Refusals } from './refusals.ts'

/** Why nothing is passed on for identities of other clusters (docs/identity.md, I10). */
const namelessCluster = (cluster: string): string =>
  `with EXTERNAL_CA certificates do not say that the cluster ${cluster} vouches for the caller, who would count as one of the own cluster: it signs for identities of the own cluster only`

class RegistrationAuthority implements Behaviour<MeshNamesEvent | IdentityEvent, TrustEvent> {
  readonly asks = {
    signCertificate: (request: CertificateRequest, asking = patient) => this.#signWorkload(request, asking),
    signServingCertificate: (request: ServingCertificateRequest, asking = patient) => this.#signServing(request, asking),
    /** Reads the roots of the signer now. */
    reload: () => this.#issuer.read(),
    status: () => this.#elsewhere(),
    ledger: () => this.#elsewhere(),
    rotate: () => this.#elsewhere(),
    distrust: () => this.#elsewhere(),
    trust: () => this.#elsewhere(),
    acceptTime: () => this.#elsewhere(),
  }
  readonly #context: ActorContext<AuthorityConfig>
  readonly #features: Features
  readonly #metrics: AuthorityMetrics
  readonly #refusals: Refusals
  readonly #issuer: ExternalIssuer
  readonly #peers = new Map<string, Peer<TrustEvent>>()
  #names: MeshNamesEvent | undefined
  /** The roots that were sent last, and the number of their version. */
  #sent = ''
  #generation = 0

  constructor(context: ActorContext<AuthorityConfig>) {
    this.#context = context
    this.#features = context.config.features as Features
    this.#metrics = authorityMetrics(context.metrics, wallClockMs)
    this.#refusals = new Refusals(this.#metrics, context.log)
    const { askFor, log } = context
    const changed = () => this.#changed()
    this.#issuer = new ExternalIssuer({ askFor, log, refusals: this.#refusals, signer: this.#features.ORCH_SIGNER, changed })
  }

  linked(peer: Peer<TrustEvent>): void {
    if (!informed.has(peer.kind)) return
    this.#peers.set(peer.name, peer)
    this.#send(peer)
  }

  unlinked({ name }: Peer): void {
    this.#peers.delete(name)
  }

  receive(event: MeshNamesEvent | IdentityEvent): void {
    if (event.type === 'MeshNamesChanged') this.#names = event
  }

  async drain(): Promise<void> {
    this.#issuer.close()
  }

  #changed(): void {
    const { faults, roots } = this.#issuer
    this.#context.note(attentionNote, faults)
    if (roots === this.#sent) return
    this.#sent = roots
    // Increases across restarts of the actor, too.
    this.#generation = Math.max(this.#generation + 1, Math.floor(wallClockMs()))
    this.#metrics.roots(roots)
    this.#context.log('ca').info(`certificates are signed by the signer ${this.#features.ORCH_SIGNER} of the orchestrator`)
    for (const peer of this.#peers.values()) this.#send(peer)
  }

  #send(peer: Peer<TrustEvent>): void {
    if (this.#sent === '') return
    const event: TrustEvent = {
      type: 'TrustChanged',
      source: this.#context.name,
      roots: { '': this.#sent },
      announced: this.#sent,
      generation: this.#generation,
    }
    peer.tell(event, this.#context.name)
  }

  async #signWorkload({ csr, ttlMs, caller, peer }: CertificateRequest, asking: Asking): Promise<CertificateAnswer> {
    if (!this.#names) return this.#refusals.refuse(status.internal, 'CA_NOT_READY', 'the trust domain is not known yet', peer, 1000)
    const named = identityToCertify(caller, this.#names)
    if ('refused' in named) {
      this.#metrics.nameless()
      return this.#refusals.refuse(status.invalidArgument, 'UNKNOWN', named.refused, peer)
    }
    const { identity } = named
    const other = otherCluster(caller)
    if (other !== undefined) return this.#refusals.refuse(status.permissionDenied, 'UNKNOWN', namelessCluster(other), peer)
    const { DEFAULT_WORKLOAD_CERT_TTL, MAX_WORKLOAD_CERT_TTL } = this.#features
    let lifeMs: number
    try {
      lifeMs = workloadLife(ttlMs, { default: DEFAULT_WORKLOAD_CERT_TTL, most: MAX_WORKLOAD_CERT_TTL })
    } catch (error) {
      if (error instanceof LifetimeFault) return this.#refusals.refuse(status.invalidArgument, 'TTL_ERROR', error.message, peer)
      throw error
    }
    const request = this.#read(csr, peer)
    if ('code' in request) return request
    const fault = passingFault(request, identity)
    if (fault !== undefined) return this.#refusals.refuse(status.invalidArgument, 'CSR_ERROR', fault, peer)
    const made = await this.#make({ use: 'workload', csr, request, lifeMs, client: identity, peer, asking })
    if ('code' in made) return made
    const until = new Date(made.notAfter).toISOString()
    this.#context
      .log('serverca')
      .info(`certificate ${made.serial} of the signer for ${identity}, authenticated by ${caller.method}, to ${peer}, valid until ${until}`)
    return { chain: made.chain }
  }

  async #signServing({ csr, server: peer }: ServingCertificateRequest, asking: Asking): Promise<CertificateAnswer> {
    const request = this.#read(csr, peer)
    if ('code' in request) return request
    const made = await this.#make({ use: 'serving', csr, request, lifeMs: servingLife, client: '', peer, asking })
    return 'code' in made ? made : { chain: made.chain }
  }

  async #make(order: ExternalOrder) {
    const made = await this.#issuer.make(order)
    if ('serial' in made) this.#metrics.issued()
    return made
  }

  #read(csr: string, peer: string): SigningRequest | Refusal {
    try {
      return readSigningRequest(csr)
    } catch (error) {
      if (!(error instanceof RequestFault)) throw error
      this.#metrics.unread()
      return this.#refusals.refuse(status.invalidArgument, 'CSR_ERROR', error.message, peer)
    }
  }

  #elsewhere(): never {
    throw new Error(
      `certificates are signed by the signer ${this.#features.ORCH_SIGNER} of the orchestrator (EXTERNAL_CA): this server has no authority of its own`,
    )
  }
}

/**
 * Why a request is not passed on; undefined when it is. The signer copies what the request names, so that it must name the caller and
 * nothing else.
 */
function passingFault({ names, hasSubject, hasOthers }: SigningRequest, identity: string): string | undefined {
  const [name] = names
  if (names.length !== 1 || name?.kind !== 'URI' || name.value !== identity)
    return `an external signer signs the names of the request, which must be ${identity} alone`
  if (hasSubject) return 'an external signer signs the subject of the request, which must be empty'
  return hasOthers ? 'the request asks for extensions other than names, key usages and basic constraints' : undefined
}

/** The actor definition. */
export const actor: ActorDefinition<AuthorityConfig, MeshNamesEvent | IdentityEvent, TrustEvent> = {
  kind: 'certificate-authority',
  start: (context) => new RegistrationAuthority(context),
}
