/** Watches the files of a serving certificate. */
import type { CertificateFiles } from '../../protocols/messages/certificates.ts'
import { wallClockMs } from '../runtime/clock.ts'
import { FilesWatch } from '../runtime/files-watch.ts'
import { type CertificateContent, readCertificate, validityFault } from './certificate.ts'

/** Who is told. */
export interface CertificateListener {
  /** The files hold another certificate that can be used. */
  changed(certificate: CertificateContent): void
  /** The files hold something that cannot be used, told once for each reason: what was in force stays. */
  refused(reason: string): void
  /** A directory that is there cannot be watched. */
  unwatchable(directory: string, error: Error): void
}

/** Reads the files when they may have changed, all of them together. What cannot be used is read again at every look. */
export class CertificateWatch {
  readonly #files: CertificateFiles
  readonly #listener: CertificateListener
  readonly #watch: FilesWatch
  #current: CertificateContent | undefined

  /** `current` is what is in force; without one, the first that can be used is told, whether or not it is valid at present. */
  constructor(files: CertificateFiles, current: CertificateContent | undefined, listener: CertificateListener) {
    this.#files = files
    this.#current = current
    this.#listener = listener
    const paths = [files.cert, files.key, ...(files.ca ? [files.ca] : [])].map(({ path }) => path)
    this.#watch = new FilesWatch(paths, {
      look: () => this.#look(),
      refused: (reason) => listener.refused(reason),
      unwatchable: (directory, error) => listener.unwatchable(directory, error),
    })
  }

  /** What is in force. */
  get certificate(): CertificateContent | undefined {
    return this.#current
  }

  /** Reads the files now. */
  look(): Promise<void> {
    return this.#watch.look()
  }

  close(): void {
    this.#watch.close()
  }

  async #look(): Promise<void> {
    const certificate = await readCertificate(this.#files)
    if (this.#current && isSame(certificate, this.#current)) return
    const fault = this.#current && validityFault(certificate, wallClockMs())
    if (fault !== undefined) throw new Error(`--${this.#files.cert.flag} ${this.#files.cert.path}: ${fault}`)
    this.#current = certificate
    this.#listener.changed(certificate)
  }
}

const isSame = (one: CertificateContent, other: CertificateContent): boolean =>
  one.cert === other.cert && one.key === other.key && one.ca === other.ca
