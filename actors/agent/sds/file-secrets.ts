/**
 * Secrets whose resource names contain file paths: `file-cert:<chain>~<key>`, `file-root:<roots>` and `file-root:<roots>~<revocation
 * lists>` (docs/certificates.md, S7).
 */
import { pairSecret, readFileSecretName, rootsSecret, type SecretResource } from '../../../src/agent/secret-resources.ts'
import { FilesWatch } from '../../runtime/files-watch.ts'
import { authoritiesReader, pairReader, revocableReader } from '../credentials/credential-file.ts'

/** The maximum number of subscribed file secrets, over all streams. */
const maxSecrets = 256

/** Reports events of secret files, which the listener counts and logs. */
export interface FileListener {
  /** Called when the content to be served has changed. */
  changed(): void
  /** Called when files cannot be used, once for each reason. The last good content stays in use. */
  refused(name: string, reason: string): void
  /** Called when a directory cannot be watched; its files are then read every ten seconds. */
  unwatchable(directory: string, error: Error): void
}

/** A subscribed secret: the number of subscribed streams, its watch, and its last good content. */
interface Wanted {
  streams: number
  readonly watch: FilesWatch
  secret: SecretResource | undefined
}

/** Reads and watches secret files while a stream subscribes to them. */
export class FileSecrets {
  readonly #listener: FileListener
  readonly #quietMs: number
  readonly #wanted = new Map<string, Wanted>()

  /** Files are read once they have not changed for `quietMs` milliseconds. */
  constructor(quietMs: number, listener: FileListener) {
    this.#quietMs = quietMs
    this.#listener = listener
  }

  /** Returns the last good content of a subscribed secret. Undefined before it was read. */
  get(name: string): SecretResource | undefined {
    return this.#wanted.get(name)?.secret
  }

  /** Adds one subscription to a secret and starts to read its files. Names of other secrets are ignored. */
  want(name: string): void {
    const known = this.#wanted.get(name)
    if (known) return void known.streams++
    const read = readerOf(name)
    if (!read) return
    if (this.#wanted.size >= maxSecrets) return this.#listener.refused(name, `there are ${maxSecrets} secrets in files already`)
    const wanted: Wanted = {
      streams: 1,
      secret: undefined,
      watch: new FilesWatch(
        read.paths,
        {
          read: async () => {
            const secret = await read.secret()
            if (this.#wanted.get(name) !== wanted || secret.version === wanted.secret?.version) return
            wanted.secret = secret
            this.#listener.changed()
          },
          refused: (reason) => this.#listener.refused(name, reason),
          unwatchable: this.#listener.unwatchable,
        },
        this.#quietMs,
      ),
    }
    this.#wanted.set(name, wanted)
  }

  /** Removes one subscription from a secret. After the last one its files are no longer watched. */
  forget(name: string): void {
    const known = this.#wanted.get(name)
    if (!known || --known.streams > 0) return
    known.watch.close()
    this.#wanted.delete(name)
  }

  close(): void {
    for (const { watch } of this.#wanted.values()) watch.close()
    this.#wanted.clear()
  }
}

function readerOf(name: string): { readonly paths: readonly string[]; secret(): Promise<SecretResource> } | undefined {
  const named = readFileSecretName(name)
  if (named?.kind === 'pair') {
    const { chain, key } = named.files
    const read = pairReader(named.files)
    return {
      paths: [chain, key],
      secret: async () => pairSecret(there(await read(), `${chain} or ${key}`), name).secret,
    }
  }
  if (!named) return undefined
  const { file, revocations } = named
  if (revocations === undefined) {
    const read = authoritiesReader(file)
    return { paths: [file], secret: async () => rootsSecret(there(await read(), file), name).secret }
  }
  const read = revocableReader(file, revocations)
  return {
    paths: [file, revocations],
    secret: async () => {
      const found = there(await read(), `${file} or ${revocations}`)
      return rootsSecret(found.authorities, name, found.revocations).secret
    },
  }
}

function there<T>(found: T | undefined, path: string): T {
  if (found === undefined) throw new Error(`${path}: there is no such file, or it is empty`)
  return found
}
