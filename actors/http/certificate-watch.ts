/** Watches the files of a serving certificate. */
import { basename, dirname, resolve } from 'node:path'
import type { CertificateFiles } from '../../protocols/messages/certificates.ts'
import { wallClockMs } from '../runtime/clock.ts'
import { DirectoryWatch } from '../runtime/directory-watch.ts'
import { after, every, type Timer } from '../runtime/timers.ts'
import { WorkQueue } from '../runtime/work-queue.ts'
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

/** How long the files must be left alone before they are read, in milliseconds: those who renew a certificate write several. */
const quietMs = 100
/** How often the files are read although nothing was told of them, in milliseconds. */
const auditMs = 10_000

/** Reads the files when they may have changed, all of them together. What cannot be used is read again at every look. */
export class CertificateWatch {
  readonly #files: CertificateFiles
  readonly #listener: CertificateListener
  readonly #watches: readonly DirectoryWatch[]
  readonly #work: WorkQueue
  readonly #audit: Timer
  #current: CertificateContent | undefined
  /** Why the files cannot be used at present. */
  #fault: string | undefined
  #quiet: Timer | undefined

  /** `current` is what is in force; without one, the first that can be used is told, whether or not it is valid at present. */
  constructor(files: CertificateFiles, current: CertificateContent | undefined, listener: CertificateListener) {
    this.#files = files
    this.#current = current
    this.#listener = listener
    this.#work = new WorkQueue((_, reason) => this.#refuse(reason))
    const paths = [files.cert, files.key, ...(files.ca ? [files.ca] : [])].map(({ path }) => resolve(path))
    const names = new Set(paths.map((path) => basename(path)))
    this.#watches = [...new Set(paths.map((path) => dirname(path)))].map(
      (directory) =>
        new DirectoryWatch(directory, false, {
          changed: (path) => {
            // Mounted secrets are links into a directory that is exchanged, the name of which begins with two dots.
            if (names.has(basename(path)) || basename(path).startsWith('..')) this.#later()
          },
          everything: () => this.#later(),
          unwatchable: (unwatched, error) => listener.unwatchable(unwatched, error),
        }),
    )
    for (const watch of this.#watches) void watch.refresh()
    void this.look()
    this.#audit = every(auditMs, () => {
      for (const watch of this.#watches) void watch.audit().catch(() => undefined)
      void this.look()
    }).unref()
  }

  /** What is in force. */
  get certificate(): CertificateContent | undefined {
    return this.#current
  }

  /** Reads the files now. */
  look(): Promise<void> {
    return this.#work.add('reading the certificate', async () => {
      const certificate = await readCertificate(this.#files)
      if (this.#current && isSame(certificate, this.#current)) {
        this.#fault = undefined
        return
      }
      const fault = this.#current && validityFault(certificate, wallClockMs())
      if (fault !== undefined) throw new Error(`--${this.#files.cert.flag} ${this.#files.cert.path}: ${fault}`)
      this.#fault = undefined
      this.#current = certificate
      this.#listener.changed(certificate)
    })
  }

  close(): void {
    this.#audit.cancel()
    this.#quiet?.cancel()
    for (const watch of this.#watches) watch.close()
  }

  #later(): void {
    this.#quiet?.cancel()
    this.#quiet = after(quietMs, () => void this.look()).unref()
  }

  #refuse(reason: string): void {
    if (this.#fault === reason) return
    this.#fault = reason
    this.#listener.refused(reason)
  }
}

const isSame = (one: CertificateContent, other: CertificateContent): boolean =>
  one.cert === other.cert && one.key === other.key && one.ca === other.ca
