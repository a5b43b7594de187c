/**
 * The certificate authority. Answers `signCertificate` and `signServingCertificate`; emits `TrustChanged` to each writer when it is
 * linked, and to all writers when other roots or another signing certificate come into force. With a state directory it holds public data
 * only, and private keys stay in the threads of its pool; with Secrets it hands each key to them (docs/certificates.md, K13).
 */
import { availableParallelism } from 'node:os'
import type {
  AuthorityConfig,
  CertificateAnswer,
  CertificateRequest,
  ServingCertificateRequest,
  SignError,
} from '../../../protocols/messages/authority.ts'
import type { AuthorityStatus } from '../../../protocols/messages/authority-status.ts'
import type { MeshNamesEvent } from '../../../protocols/messages/identity.ts'
import { attentionNote } from '../../../protocols/messages/notes.ts'
import type { IdentityEvent, TrustEvent } from '../../../protocols/messages/trust.ts'
import { isValidAt, LifetimeFault, servingLife, type Validity, validityWithin, workloadValidity } from '../../../src/ca/lifetime.ts'
import { readSigningRequest } from '../../../src/ca/signing-request.ts'
import type { Features } from '../../../src/config/features.ts'
import { identityToCertify, otherCluster, principalOf } from '../../../src/identity/access.ts'
import type { Pauses } from '../../../src/model/back-off.ts'
import { status } from '../../../src/model/status-codes.ts'
import { ValidityReport } from '../../http/validity-report.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { type Asking, patient } from '../../runtime/ask.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import type { Logger } from '../../runtime/logger.ts'
import { gaugesOf } from '../../runtime/metrics.ts'
import { Renewal } from '../../runtime/renewal.ts'
import { after, every, type Timer } from '../../runtime/timers.ts'
import { type AuthorityMetrics, authorityMetrics } from './authority-metrics.ts'
import { AuthoritySource } from './authority-source.ts'
import { distrust, trust } from './distrust.ts'
import { ExternalIssuer } from './external-issuer.ts'
import { type InForce, informed } from './in-force.ts'
import { type AdmittedRequest, type CertificateIssuer, type Made, type NotMade, OwnIssuer } from './issuer.ts'
import { type Refusal, Refusals } from './refusals.ts'
import type { RootRotation } from './root-rotation.ts'
import { SecretAccess } from './secret-access.ts'
import { acceptTime, authorityStatus, ledgerRows, rotate, usedCertificates } from './shown-authority.ts'
import { Signing } from './signing.ts'

/** Retry delay for a request whose signing authority was replaced before the answer, in milliseconds. */
const replacedRetry = 250

/** Interval at which the clock and the validity of root and chain are examined, in milliseconds. */
const watchMs = 5000

/** The delays before the state is looked for again in Secrets that could not be read. */
const openPauses: Pauses = { firstMs: 1000, longestMs: 15_000, jitter: 0.2 }

/** Retry delay while there is no authority to sign with, in milliseconds. */
const unreadyRetry = 1000

class CertificateAuthority implements Behaviour<MeshNamesEvent | IdentityEvent, TrustEvent> {
  readonly asks = {
    signCertificate: (request: CertificateRequest, asking = patient) => this.#signWorkload(request, asking),
    signServingCertificate: (request: ServingCertificateRequest, asking = patient) => this.#signServing(request, asking),
    /** Reads the files of `ROOT_CA_DIR` now, and Secrets. */
    reload: () => (this.#source ? this.#source.read() : this.#opening?.retryNow()),
    /** The content of the debug pages about the authority; undefined until one is in force. */
    status: () => this.#refreshed(() => this.#status()),
    ledger: (start: number, length: number) => this.#refreshed(() => ledgerRows(this.#rotation, start, length)),
    /** The streams of this replica, for the others. */
    streams: () => this.#source?.rotation.ledger.streams() ?? [],
    /** Starts a rotation of the own root, or advances it by one stage. */
    rotate: (force: boolean) => rotate(this.#rotation, force, () => this.#status()),
    /** Distrusts the root that the first digits of a fingerprint name, or says who would be cut off. */
    distrust: (id: string, isDry: boolean) => this.#refreshed(() => distrust(this.#rotation, this.#source?.inForce, id, isDry)),
    /** Trusts a root again that was distrusted. */
    trust: (id: string) => trust(this.#rotation, id),
    /** Takes the wall clock for right. */
    acceptTime: () => acceptTime(this.#rotation).finally(() => this.#look()),
  }
  readonly #context: ActorContext<AuthorityConfig>
  readonly #features: Features
  readonly #log: Logger
  readonly #metrics: AuthorityMetrics
  readonly #refusals: Refusals
  /** Signs serving certificates in place of the own authority (`PILOT_CERT_PROVIDER=orchestrator`). */
  readonly #external: ExternalIssuer | undefined
  readonly #signing: Signing
  /** Where an authority is plugged in beside the state in a directory. */
  #plugged: SecretAccess | undefined
  /** Undefined until the state has been read. */
  #source: AuthoritySource | undefined
  #issuer: CertificateIssuer | undefined
  /** Reads the state, where it is not read before the start. */
  #opening: Renewal<AuthoritySource> | undefined
  /** Why the state has not been read. */
  #unopened: string | undefined
  /** The streams of proxies since the start, by their names, until the state has been read. */
  readonly #early = new Map<string, Extract<IdentityEvent, { type: 'IdentityConnected' }>>()
  readonly #writers = new Map<string, Peer<TrustEvent>>()
  /** The serial number of the last serving certificate of each server. */
  readonly #served = new Map<string, string>()
  readonly #trustDomain = Promise.withResolvers<string>()
  readonly #validity: ValidityReport
  readonly #timer: Timer
  #names: MeshNamesEvent | undefined
  #generation = 0
  /** What `/ready` says about this actor. */
  #noted: readonly string[] = []
  #isDrained = false

  /** A directory that cannot be used ends the actor. Secrets that cannot be read are waited for, and nothing is signed before that. */
  static async start(context: ActorContext<AuthorityConfig>): Promise<CertificateAuthority> {
    const authority = new CertificateAuthority(context)
    const { place, pluggedNamespace } = context.config
    if (pluggedNamespace !== undefined) authority.#plugged = authority.#secretsOf(pluggedNamespace)
    if (place.kind === 'directory') authority.#use(await authority.#open(undefined))
    else {
      authority.#openPatiently(authority.#secretsOf(place.namespace))
    }
    return authority
  }

  private constructor(context: ActorContext<AuthorityConfig>) {
    this.#context = context
    this.#features = context.config.features as Features
    this.#log = context.log
    this.#metrics = authorityMetrics(context.metrics, wallClockMs)
    this.#refusals = new Refusals(this.#metrics, context.log)
    const { MESHD_CA_SIGNERS, ORCH_SIGNER: signer, PILOT_CERT_PROVIDER } = this.#features
    if (PILOT_CERT_PROVIDER === 'orchestrator') {
      const { askFor, log } = context
      this.#external = new ExternalIssuer({ askFor, log, signer, refusals: this.#refusals, changed: () => this.#look() })
    }
    this.#signing = new Signing(MESHD_CA_SIGNERS > 0 ? MESHD_CA_SIGNERS : Math.max(1, Math.floor(availableParallelism() / 2)))
    const gauge = gaugesOf(context.metrics)
    gauge(
      'citadel_server_clock_disputed',
      'whether the wall clock is believed: 0 it is, 1 not yet, after a start of the machine, 2 it is disputed',
      () => (this.#source ? ['agreed', 'unconfirmed', 'disputed'].indexOf(this.#clock.judge().verdict) : 0),
    )
    this.#validity = new ValidityReport({ kinds: ['root', 'chain'], metrics: context.metrics, log: context.log('ca'), noted: () => {} })
    this.#timer = every(watchMs, () => this.#look()).unref()
  }

  linked(peer: Peer<TrustEvent>): void {
    if (!informed.has(peer.kind)) return
    this.#writers.set(peer.name, peer)
    this.#send(peer)
  }

  unlinked(peer: Peer): void {
    this.#writers.delete(peer.name)
    this.#served.delete(peer.name)
    for (const name of [...this.#early.keys()]) if (name.startsWith(streamsOf(peer))) this.#early.delete(name)
    this.#source?.rotation.ledger.allDisconnected(streamsOf(peer))
  }

  receive(event: MeshNamesEvent | IdentityEvent, from: Peer): void {
    if (event.type === 'MeshNamesChanged') {
      this.#names = event
      return this.#trustDomain.resolve(event.trustDomain)
    }
    const name = `${streamsOf(from)}${event.connection}`
    if (event.type === 'IdentityGone') {
      this.#early.delete(name)
      this.#source?.rotation.ledger.disconnected(name)
    } else if (this.#source) this.#connected(this.#source, name, event)
    else this.#early.set(name, event)
  }

  async drain(): Promise<void> {
    this.#isDrained = true
    this.#timer.cancel()
    this.#opening?.close()
    this.#external?.close()
    await this.#signing.close()
    await this.#source?.close()
  }

  /** Called when another authority has come into force. */
  use(next: InForce): void {
    // Increases across restarts of the actor, too.
    this.#generation = Math.max(this.#generation + 1, Math.floor(wallClockMs()))
    this.#metrics.inForce(next)
    const { by, within } = next.workloads
    this.#log('ca').info(
      `certificates are signed with ${by.id.slice(0, 16)} of ${this.#source?.described} until ${new Date(within.notAfter).toISOString()}; roots that are handed out: ${next.bundle.length}`,
    )
    for (const writer of this.#writers.values()) this.#send(writer)
    this.#look()
  }

  #secretsOf(namespace: string): SecretAccess {
    return new SecretAccess((call) => this.#context.askFor(patient, 'secretCall', call), namespace)
  }

  async #open(secrets: SecretAccess | undefined): Promise<AuthoritySource> {
    const [features, signing] = [this.#features, this.#signing]
    const { log, metrics } = this.#context
    const elsewhere = () => this.#context.askFor(patient, 'streamsElsewhere')
    const changed = (inForce: InForce) => {
      if (this.#source) this.use(inForce)
    }
    const source = await AuthoritySource.open(
      { features, signing, log, metrics, secrets, plugged: this.#plugged, elsewhere, changed },
      this.#trustDomain.promise,
    )
    if (this.#isDrained) await source.close()
    return source
  }

  #openPatiently(secrets: SecretAccess): void {
    this.#opening = new Renewal({
      pauses: openPauses,
      obtain: () => this.#open(secrets),
      use: (source) => {
        this.#unopened = undefined
        this.#use(source)
        return Number.POSITIVE_INFINITY
      },
      failed: ({ message }) => {
        const line = `the state of the certificate authority cannot be used, and no certificate is signed until it can: ${message}`
        if (this.#unopened !== line) this.#log('ca').error(line)
        this.#unopened = line
        this.#look()
      },
    })
    // Questions are answered once the actor has started.
    after(0, () => this.#opening?.start())
  }

  /** Called once when the state has been read. */
  #use(source: AuthoritySource): void {
    this.#source = source
    this.#issuer = new OwnIssuer(this.#signing, source, () => this.#clock.now())
    for (const [name, event] of this.#early) this.#connected(source, name, event)
    this.#early.clear()
    if (source.inForce) this.use(source.inForce)
    this.#look()
  }

  #connected({ rotation }: AuthoritySource, name: string, { caller, node }: Extract<IdentityEvent, { type: 'IdentityConnected' }>): void {
    const { certificate, expiresAt = 0 } = caller ?? {}
    const presented = certificate && { ...certificate, notAfter: expiresAt }
    rotation.connected(name, { node, identities: caller?.identities ?? [], presented })
  }

  get #rotation(): RootRotation {
    if (!this.#source) throw new Error(this.#unopened ?? 'the state of the certificate authority has not been read yet')
    return this.#source.rotation
  }

  get #clock() {
    return this.#rotation.clock
  }

  /** Examines the clock, the validity of root and chain and the stored state, and notes what is wrong for `/ready`. */
  #look(): void {
    const inForce = this.#source?.inForce
    if (inForce) this.#validity.check(usedCertificates(inForce), wallClockMs())
    const faults = [this.#unopened, ...(this.#external?.faults ?? []), ...(this.#source?.faults ?? []), this.#source && this.#clock.dispute()].filter(
      (fault) => fault !== undefined,
    )
    const noted = [...faults, ...this.#validity.lines]
    if (noted.join('\n') === this.#noted.join('\n')) return
    this.#noted = noted
    this.#context.note(attentionNote, noted)
  }

  /** Returns an answer that covers what other replicas have issued, and the proxies that are connected to them. */
  async #refreshed<T>(answer: () => T | Promise<T>): Promise<T> {
    await this.#source?.rotation.refresh()
    return answer()
  }

  #status(): AuthorityStatus | undefined {
    if (!this.#source) return undefined
    const { inForce, rotation, keptIn } = this.#source
    return inForce && authorityStatus(inForce, rotation, keptIn, new Set(this.#served.values()))
  }

  #send(writer: Peer<TrustEvent>): void {
    const inForce = this.#source?.inForce
    if (!inForce) return
    const event: TrustEvent = {
      type: 'TrustChanged',
      source: this.#context.name,
      roots: { '': inForce.trusted.join('') },
      announced: inForce.bundle.join(''),
      generation: this.#generation,
    }
    writer.tell(event, this.#context.name)
  }

  async #signWorkload({ csr, ttlMs, caller, peer }: CertificateRequest, asking: Asking): Promise<CertificateAnswer> {
    if (!this.#names) return this.#refuse(status.internal, 'CA_NOT_READY', 'the trust domain is not known yet', peer, unreadyRetry)
    const named = identityToCertify(caller, this.#names)
    if ('refused' in named) {
      this.#metrics.nameless()
      return this.#refuse(status.invalidArgument, 'UNKNOWN', named.refused, peer)
    }
    const { identity } = named
    if (!this.#source) return this.#refuse(status.internal, 'CA_NOT_READY', 'the state has not been read', peer, unreadyRetry)
    const { rotation } = this.#source
    const { DEFAULT_WORKLOAD_CERT_TTL, MAX_WORKLOAD_CERT_TTL } = this.#features
    const rules = { default: DEFAULT_WORKLOAD_CERT_TTL, most: MAX_WORKLOAD_CERT_TTL }
    const validity = (within: Validity) => workloadValidity(ttlMs, rules, this.#clock.judge(), within)
    try {
      const within = this.#issuer?.within('workloads')
      const isReady = within && isValidAt(within, this.#clock.now()) && validity(within).notAfter > this.#clock.now()
      if (!isReady) return this.#refuse(status.internal, 'CA_NOT_READY', 'the certificate authority is not ready', peer, unreadyRetry)
    } catch (error) {
      if (error instanceof LifetimeFault) return this.#refuse(status.invalidArgument, 'TTL_ERROR', error.message, peer)
      throw error
    }
    const cluster = otherCluster(caller)
    const made = await this.#make({ use: 'workloads', caller: principalOf(identity, caller), csr, identity, cluster, validity, asking }, peer)
    if (!('serial' in made)) return made
    const { serial, notAfter, root } = made
    const { certificate } = caller
    if (certificate) rotation.seen(certificate.root)
    rotation.issued({ identities: [identity], serial, root, issuedAt: this.#clock.now(), notAfter, peer, renews: certificate?.serial })
    const until = new Date(notAfter).toISOString()
    const of = cluster === undefined ? '' : ` of the cluster ${cluster}`
    this.#log('serverca').info(`certificate ${serial} for ${identity}${of}, authenticated by ${caller.method}, to ${peer}, valid until ${until}`)
    return { chain: made.chain }
  }

  async #signServing({ csr, server }: ServingCertificateRequest, asking: Asking): Promise<CertificateAnswer> {
    if (this.#external) {
      const made = await this.#external.make({
        use: 'serving',
        csr,
        request: readSigningRequest(csr),
        lifeMs: servingLife,
        client: '',
        peer: server,
        asking,
      })
      return 'code' in made ? made : { chain: made.chain }
    }
    if (!this.#source) return this.#refuse(status.internal, 'CA_NOT_READY', 'the state has not been read', server, unreadyRetry)
    const { rotation } = this.#source
    const validity = (within: Validity) => validityWithin(servingLife, this.#clock.judge(), within)
    const made = await this.#make({ use: 'serving', caller: '', csr, identity: undefined, validity, asking }, server)
    if (!('serial' in made)) return made
    const { serial, notAfter, root } = made
    this.#served.set(server, serial)
    rotation.issuedServing({ serial, root, issuedAt: this.#clock.now(), notAfter })
    this.#log('serverca').info(`serving certificate ${serial}, valid until ${new Date(notAfter).toISOString()}`)
    return { chain: made.chain }
  }

  async #make(request: AdmittedRequest, peer: string): Promise<Made | Refusal> {
    const made = await (this.#issuer as CertificateIssuer).make(request)
    if (!('serial' in made)) return this.#failure(made, peer)
    this.#metrics.issued()
    return made
  }

  #failure(result: NotMade, peer: string): Refusal {
    if ('refused' in result) {
      if (result.refused === 'replaced')
        return this.#refuse(status.unavailable, 'CA_NOT_READY', 'the authority has just been replaced', peer, replacedRetry)
      const { refused, reason, retryAfterMs } = result
      if (refused === 'unready') return this.#refuse(status.internal, 'CA_NOT_READY', reason, peer, unreadyRetry)
      if (refused === 'keyless') this.#refusals.warn('signing', `signing failed: ${reason}`)
      const message = refused === 'keyless' ? 'a signer has no key' : reason
      const code = refused === 'died' || refused === 'keyless' || refused === 'gone' ? status.unavailable : status.resourceExhausted
      return this.#refuse(code, 'CA_NOT_READY', message, peer, retryAfterMs)
    }
    if (result.fault === 'signing') {
      this.#refusals.warn('signing', `signing failed: ${result.message}`)
      return this.#refuse(status.internal, 'CERT_GEN_ERROR', 'the certificate cannot be made', peer)
    }
    if (result.fault === 'identity') this.#metrics.nameless()
    else this.#metrics.unread()
    return this.#refuse(status.invalidArgument, 'CSR_ERROR', result.message, peer)
  }

  #refuse(code: number, error: SignError, reason: string, peer: string, retryAfterMs?: number): Refusal {
    return this.#refusals.refuse(code, error, reason, peer, retryAfterMs)
  }
}

/** Prefix of the names of a writer's streams in the ledger. */
const streamsOf = ({ name }: Peer): string => `${name} `

/** The actor definition of the certificate authority. */
export const actor: ActorDefinition<AuthorityConfig, MeshNamesEvent | IdentityEvent, TrustEvent> = {
  kind: 'certificate-authority',
  start: (context) => CertificateAuthority.start(context),
}
