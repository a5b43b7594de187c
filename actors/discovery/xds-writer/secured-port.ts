/** The serving certificate and the client trust of a writer's secured port; other actors supply both. */
import type { CertificateEvent, ServingCertificate } from '../../../protocols/messages/certificates.ts'
import type { SecurePortConfig } from '../../../protocols/messages/config.ts'
import type { MeshNamesEvent } from '../../../protocols/messages/identity.ts'
import type { TrustEvent } from '../../../protocols/messages/trust.ts'
import { ClientTrust } from '../../../src/identity/client-trust.ts'
import { isHost } from '../../../src/names/control-plane-hosts.ts'
import type { GrpcServer } from '../../grpc/grpc-server.ts'
import { splitAddress } from '../../http/address.ts'
import { ValidityReport } from '../../http/validity-report.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import type { MetricRegistry } from '../../runtime/metrics.ts'
import { every } from '../../runtime/timers.ts'
import { OwnCertificate, type OwnCertificateParts } from '../own-keys/own-certificate.ts'

/** Messages about the secured port. */
export type SecuredPortEvent = CertificateEvent | TrustEvent | MeshNamesEvent

/** Dependencies and settings of {@link SecuredPort}. */
export interface SecuredPortParts extends Pick<OwnCertificateParts, 'sign'> {
  /** Undefined when there is no secured port. */
  readonly config: SecurePortConfig | undefined
  readonly server: () => Pick<GrpcServer, 'useCertificate' | 'trustChanged'>
  readonly log: ScopedLogger
  readonly metrics: MetricRegistry
  /** Whether this writer logs what all writers see. */
  readonly isFirst: boolean
  /** Called with sentences for `/ready` about the certificate that is served, when they have changed. */
  noted(lines: readonly string[]): void
  /** Called with why the port is not open, since its certificate was not signed, and with nothing when it is. */
  unopened(lines: readonly string[]): void
}

/** Interval at which the validity of the certificate in force is examined, in milliseconds. */
const examineMs = 5000
/** After this many failures to obtain the first certificate the port counts as not served, and the others do not wait for it. */
const patience = 5

/**
 * Puts certificates and trust into force. The port opens with the first certificate, once the mesh names and the roots of all trust
 * sources are known: before that, valid client certificates would be refused.
 */
export class SecuredPort {
  readonly trust = new ClientTrust()
  readonly #server: () => Pick<GrpcServer, 'useCertificate' | 'trustChanged'>
  readonly #log: ScopedLogger
  #names: MeshNamesEvent | undefined
  /** The mesh names and trust sources that have not been received yet. */
  readonly #awaited: Set<string>
  #certificate: ServingCertificate | undefined
  /** Generation of the authority's signing material, as last received; 0 if none. */
  #generation = 0
  readonly #own: OwnCertificate | undefined
  /** Hosts of the own certificate in addition to the mesh's discovery address. */
  readonly #hosts: readonly string[] = []
  readonly #validity: ValidityReport | undefined
  readonly #unopened: (lines: readonly string[]) => void
  readonly #missing = Promise.withResolvers<void>()
  /** The certificate that is served. */
  #served: ServingCertificate | undefined

  constructor({ config, server, sign, log, metrics, isFirst, noted, unopened }: SecuredPortParts) {
    this.#awaited = new Set<string>(['MeshNamesChanged' satisfies MeshNamesEvent['type'], ...(config?.trustSources ?? [])])
    this.#server = server
    this.#log = log
    this.#unopened = unopened
    if (!config) return
    this.#validity = new ValidityReport({ kinds: ['serving'], metrics, log: isFirst ? log : undefined, noted })
    every(examineMs, () => this.#examine()).unref()
    if (!config.ownHosts) return
    this.#hosts = config.ownHosts
    this.#own = new OwnCertificate({
      sign,
      log,
      use: (certificate) => this.receive({ type: 'CertificateChanged', certificate }),
      failed: (times, reason) => this.#failed(times, reason),
    })
  }

  /** Resolves when no certificate could be obtained for some seconds: until there is one, the port is not open. */
  get missing(): Promise<void> {
    return this.#missing.promise
  }

  /** The mesh names; undefined until they are received. */
  get names(): MeshNamesEvent | undefined {
    return this.#names
  }

  receive(event: SecuredPortEvent): void {
    switch (event.type) {
      case 'CertificateChanged':
        this.#certificate = event.certificate
        break
      case 'MeshNamesChanged':
        this.#names = event
        this.trust.rename(event)
        this.#changed(event.type)
        this.#serveOwn()
        break
      case 'TrustChanged':
        this.#take(event)
        break
    }
    if (this.#awaited.size === 0 && this.#certificate) {
      this.#server().useCertificate(this.#certificate)
      if (!this.#served) this.#unopened([])
      this.#served = this.#certificate
      this.#certificate = undefined
      this.#examine()
    }
  }

  #examine(): void {
    if (!this.#served) return
    const { cert } = this.#served
    this.#validity?.check([{ kind: 'serving', described: 'the serving certificate of the secured port', certificate: cert }], wallClockMs())
  }

  #failed(times: number, reason: string): void {
    if (this.#served || times < patience) return
    this.#unopened([`the secured port is not open: its certificate was not signed: ${reason}`])
    this.#missing.resolve()
  }

  #take({ source, roots, generation }: TrustEvent): void {
    if (generation > 0 && this.#generation > 0 && generation !== this.#generation) this.#own?.renew()
    if (generation > 0) this.#generation = generation
    this.#serveOwn()
    try {
      this.trust.set(source, roots)
      this.#changed(source)
    } catch (error) {
      this.#log.error(`roots of ${source} cannot be read and stay as they were: ${(error as Error).message}`)
    }
  }

  /** Requests an own certificate, once the hosts are known and the authority is able to sign. */
  #serveOwn(): void {
    if (!this.#names || this.#generation === 0) return
    this.#own?.serve([splitAddress(this.#names.discoveryAddress)[0], ...this.#hosts].filter(isHost))
  }

  #changed(what: string): void {
    this.#awaited.delete(what)
    this.#server().trustChanged()
  }
}
