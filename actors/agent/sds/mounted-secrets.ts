/** Mounted certificate files that take precedence over certificates of the authority (docs/certificates.md, S8). */
import { join } from 'node:path'
import { type PairSecret, pairSecret, type RootsSecret, rootsSecret } from '../../../src/agent/secret-resources.ts'
import { FilesWatch } from '../../runtime/files-watch.ts'
import { authoritiesReader, type FilesReader, type PairText, pairReader } from '../credentials/credential-file.ts'
import type { FileListener } from './file-secrets.ts'

/** The secrets in the files. */
export interface Mounted {
  readonly pair: PairSecret | undefined
  readonly roots: RootsSecret | undefined
}

/** Reads and watches `cert-chain.pem` with `key.pem`, and `root-cert.pem`, in a directory. */
export class MountedSecrets {
  readonly #listener: FileListener
  readonly #readPair: FilesReader<PairText>
  readonly #readRoots: FilesReader<string>
  readonly #watch: FilesWatch
  #current: Mounted = { pair: undefined, roots: undefined }
  #last: Mounted = this.#current

  /** Files are read once they have not changed for `quietMs` milliseconds. */
  constructor(directory: string, quietMs: number, listener: FileListener) {
    this.#listener = listener
    const [chain, key, roots] = ['cert-chain.pem', 'key.pem', 'root-cert.pem'].map((name) => join(directory, name)) as [string, string, string]
    this.#readPair = pairReader({ chain, key })
    this.#readRoots = authoritiesReader(roots)
    this.#watch = new FilesWatch(
      [chain, key, roots],
      { read: () => this.#read(), refused: (reason) => listener.refused(directory, reason), unwatchable: listener.unwatchable },
      quietMs,
    )
  }

  /** The last good content. Undefined for files that do not exist. */
  get current(): Mounted {
    return this.#current
  }

  /** The last good content, also of files that have been removed. */
  get last(): Mounted {
    return this.#last
  }

  /** Reads the files now. Resolves when they are read, also after a failure. */
  read(): Promise<void> {
    return this.#watch.read()
  }

  close(): void {
    this.#watch.close()
  }

  /** The pair and the roots are independent: a fault of one does not stop the other from being updated. */
  async #read(): Promise<void> {
    const [pair, roots] = await Promise.allSettled([this.#readPair(), this.#readRoots()])
    const before = this.#current
    const next: Mounted = {
      pair: pair.status === 'fulfilled' ? pair.value && pairSecret(pair.value) : before.pair,
      roots: roots.status === 'fulfilled' ? (roots.value === undefined ? undefined : rootsSecret(roots.value)) : before.roots,
    }
    const isSame = next.pair?.secret.version === before.pair?.secret.version && next.roots?.secret.version === before.roots?.secret.version
    this.#current = next
    this.#last = { pair: next.pair ?? this.#last.pair, roots: next.roots ?? this.#last.roots }
    if (!isSame) this.#listener.changed()
    const failed = [pair, roots].flatMap((one) => (one.status === 'rejected' ? [(one.reason as Error).message] : []))
    if (failed.length > 0) throw new Error(failed.join('; '))
  }
}
