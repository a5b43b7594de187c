/** What the secured port of a writer serves with, and whose certificates it takes: both come from other actors. */
import type { CertificateEvent, ServingCertificate } from '../../../protocols/messages/certificates.ts'
import type { SecurePortConfig } from '../../../protocols/messages/config.ts'
import type { MeshNamesEvent } from '../../../protocols/messages/identity.ts'
import type { TrustEvent } from '../../../protocols/messages/trust.ts'
import { ClientTrust } from '../../../src/identity/client-trust.ts'
import { isHost } from '../../../src/names/control-plane-hosts.ts'
import type { GrpcServer } from '../../grpc/grpc-server.ts'
import { splitAddress } from '../../http/address.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { OwnCertificate, type OwnCertificateParts } from './own-certificate.ts'

/** Messages that are about the secured port. */
export type SecuredPortEvent = CertificateEvent | TrustEvent | MeshNamesEvent

/** What the secured port needs of its writer. */
export interface SecuredPortParts extends Pick<OwnCertificateParts, 'sign'> {
  /** Undefined where there is no such port. */
  readonly config: SecurePortConfig | undefined
  readonly server: () => Pick<GrpcServer, 'useCertificate' | 'trustChanged'>
  readonly log: ScopedLogger
}

/**
 * Puts certificates and trust in force. The port is opened with the first certificate once the names of the mesh and all awaited sources of
 * trust are known: before that a good client certificate would be refused.
 */
export class SecuredPort {
  readonly trust = new ClientTrust()
  readonly #server: () => Pick<GrpcServer, 'useCertificate' | 'trustChanged'>
  readonly #log: ScopedLogger
  #names: MeshNamesEvent | undefined
  /** Names of what has not been told yet. */
  readonly #awaited: Set<string>
  #certificate: ServingCertificate | undefined
  /** What the authority signs with, as it was last told. */
  #generation = 0
  readonly #own: OwnCertificate | undefined
  /** Hosts of the own certificate beside that of the mesh's discovery address. */
  readonly #hosts: readonly string[] = []

  constructor({ config, server, sign, log }: SecuredPortParts) {
    this.#awaited = new Set<string>(['MeshNamesChanged' satisfies MeshNamesEvent['type'], ...(config?.trustSources ?? [])])
    this.#server = server
    this.#log = log
    if (!config?.ownHosts) return
    this.#hosts = config.ownHosts
    this.#own = new OwnCertificate({ sign, log, use: (certificate) => this.receive({ type: 'CertificateChanged', certificate }) })
  }

  /** The names of the mesh; undefined until they were told. */
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
      this.#certificate = undefined
    }
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

  /** Has an own certificate signed, once the hosts are known and the authority has something to sign with. */
  #serveOwn(): void {
    if (!this.#names || this.#generation === 0) return
    this.#own?.serve([splitAddress(this.#names.discoveryAddress)[0], ...this.#hosts].filter(isHost))
  }

  #changed(what: string): void {
    this.#awaited.delete(what)
    this.#server().trustChanged()
  }
}
