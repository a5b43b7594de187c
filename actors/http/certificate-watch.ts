/** Watches the files of a serving certificate. */
import type { CertificateFiles } from '../../protocols/messages/certificates.ts'
import { wallClockMs } from '../runtime/clock.ts'
import { FilesWatch } from '../runtime/files-watch.ts'
import { type CertificateContent, readCertificate, validityFault } from './certificate.ts'

/** The callbacks of a watch. */
export interface CertificateListener {
  /** Called when the files contain another usable certificate. */
  changed(certificate: CertificateContent): void
  /** Called when the files are unusable, once for each distinct reason. The certificate in force stays. */
  refused(reason: string): void
  /** Called when a directory exists and cannot be watched. */
  unwatchable(directory: string, error: Error): void
}

/** Reads all files together whenever they may have changed. Unusable files are read again at every audit. */
export class CertificateWatch {
  readonly #files: CertificateFiles
  readonly #listener: CertificateListener
  readonly #watch: FilesWatch
  #current: CertificateContent | undefined

  /** `current`: the certificate in force. Without one, the first usable certificate is reported, even if it is not valid at present. */
  constructor(files: CertificateFiles, current: CertificateContent | undefined, listener: CertificateListener) {
    this.#files = files
    this.#current = current
    this.#listener = listener
    const paths = [files.cert, files.key, ...(files.ca ? [files.ca] : [])].map(({ path }) => path)
    this.#watch = new FilesWatch(paths, {
      read: () => this.#read(),
      refused: (reason) => listener.refused(reason),
      unwatchable: (directory, error) => listener.unwatchable(directory, error),
    })
  }

  /** The certificate in force. */
  get certificate(): CertificateContent | undefined {
    return this.#current
  }

  /** Reads the files now. */
  read(): Promise<void> {
    return this.#watch.read()
  }

  close(): void {
    this.#watch.close()
  }

  async #read(): Promise<void> {
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
