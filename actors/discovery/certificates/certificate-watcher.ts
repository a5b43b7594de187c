/**
 * The actor that watches the certificate files of the secured port (`--tlsCertFile`, `--tlsKeyFile`, `--caCertFile`). Emits
 * `CertificateChanged`, and `TrustChanged` with the CA certificates for client certificates, to each writer when it is linked and to all
 * writers when the content of the files changes. While the files cannot be used, writers keep what they last received.
 */
import { X509Certificate } from 'node:crypto'
import type { CertificateEvent, CertificateWatcherConfig } from '../../../protocols/messages/certificates.ts'
import type { TrustEvent } from '../../../protocols/messages/trust.ts'
import { CertificateWatch } from '../../http/certificate-watch.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import type { Peer } from '../../runtime/link.ts'
import { Counter } from '../../runtime/metrics.ts'

const certificateWatcher = 'certificate-watcher'

/** The kinds of actors that are told of the certificate and of trust. */
const informed: ReadonlySet<string> = new Set(['xds-writer', 'webhooks', 'validation-controller'])

type Sent = CertificateEvent | TrustEvent

class CertificateWatcher implements Behaviour<never, Sent> {
  /** `reload` reads the files now. */
  readonly asks = { reload: () => this.#watch.read() }
  readonly #watch: CertificateWatch
  /** Whether the files could be used since this actor started. */
  #isLoaded = false
  readonly #writers = new Map<string, Peer<Sent>>()

  constructor({ config: { files }, log, metrics }: ActorContext<CertificateWatcherConfig>) {
    const labelNames = ['outcome']
    const reloads = new Counter({
      name: 'pilot_certificate_reloads_total',
      help: 'changes of the certificate files of the secured port, by whether they were applied',
      labelNames,
      registers: [metrics],
    })
    for (const outcome of ['used', 'refused']) reloads.inc({ outcome }, 0)
    this.#watch = new CertificateWatch(files, undefined, {
      changed: (changed) => {
        for (const writer of this.#writers.values()) this.#send(writer)
        const isFirst = !this.#isLoaded
        this.#isLoaded = true
        if (isFirst) return
        reloads.inc({ outcome: 'used' })
        const { serialNumber, validTo } = new X509Certificate(changed.cert)
        log('default').info(
          `--${files.cert.flag} ${files.cert.path}: new connections get the certificate with the serial number ${serialNumber}, valid until ${validTo}`,
        )
      },
      refused: (reason) => {
        reloads.inc({ outcome: 'refused' })
        log('default').error(`${reason}; the certificate that is in force stays`)
      },
      unwatchable: (directory, error) => log('default').warn(`${directory} cannot be watched: ${error.message}; it is checked every ten seconds`),
    })
  }

  linked(writer: Peer<Sent>): void {
    if (!informed.has(writer.kind)) return
    this.#writers.set(writer.name, writer)
    this.#send(writer)
  }

  unlinked(peer: Peer): void {
    this.#writers.delete(peer.name)
  }

  receive(): void {}

  async drain(): Promise<void> {
    this.#watch.close()
  }

  /** Trust is sent first, so that a port opened with the certificate can verify client certificates. */
  #send(writer: Peer<Sent>): void {
    const { certificate: content } = this.#watch
    if (!content) return
    const { ca = '', ...certificate } = content
    writer.tell({ type: 'TrustChanged', source: certificateWatcher, roots: { '': ca }, generation: 0 }, 'trust')
    writer.tell({ type: 'CertificateChanged', certificate }, 'certificate')
  }
}

/** The actor definition of the watcher of certificate files. */
export const actor: ActorDefinition<CertificateWatcherConfig, never, Sent> = {
  kind: certificateWatcher,
  start: (context) => new CertificateWatcher(context),
}
