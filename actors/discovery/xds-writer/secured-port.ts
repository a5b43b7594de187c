/** What the secured port of a writer serves with, and whose certificates it takes: both come from other actors. */
import type { CertificateEvent, ServingCertificate } from '../../../protocols/messages/certificates.ts'
import type { MeshNamesEvent } from '../../../protocols/messages/identity.ts'
import type { TrustEvent } from '../../../protocols/messages/trust.ts'
import { ClientTrust } from '../../../src/identity/client-trust.ts'
import type { GrpcServer } from '../../grpc/grpc-server.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'

/** Messages that are about the secured port. */
export type SecuredPortEvent = CertificateEvent | TrustEvent | MeshNamesEvent

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

  /** `sources` are the actors that say at least once what they trust. */
  constructor(sources: readonly string[], server: () => Pick<GrpcServer, 'useCertificate' | 'trustChanged'>, log: ScopedLogger) {
    this.#awaited = new Set<string>(['MeshNamesChanged' satisfies MeshNamesEvent['type'], ...sources])
    this.#server = server
    this.#log = log
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

  #take({ source, roots }: TrustEvent): void {
    try {
      this.trust.set(source, roots)
      this.#changed(source)
    } catch (error) {
      this.#log.error(`roots of ${source} cannot be read and stay as they were: ${(error as Error).message}`)
    }
  }

  #changed(what: string): void {
    this.#awaited.delete(what)
    this.#server().trustChanged()
  }
}
