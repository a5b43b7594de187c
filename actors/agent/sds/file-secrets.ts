/** Secrets in files that Envoy asks for by their paths: `file-cert:<chain>~<key>` and `file-root:<roots>` (docs/certificates.md, S7). */
import { pairSecret, readFileSecretName, rootsSecret, type SecretResource } from '../../../src/agent/secret-resources.ts'
import { FilesWatch } from '../../runtime/files-watch.ts'
import { authoritiesReader, pairReader } from '../credentials/credential-file.ts'

/** Most secrets in files at a time, of all streams together. */
const mostSecrets = 256

/** What becomes of files: their listener counts and logs it. */
export interface FileListener {
  /** Another content may be served. */
  changed(): void
  /** Files cannot be used: told once for each reason. What was served before is served on. */
  refused(name: string, reason: string): void
  /** A directory cannot be watched: its files are looked at every ten seconds. */
  unwatchable(directory: string, error: Error): void
}

/** A secret that streams want: how many do, and its last good content. */
interface Wanted {
  streams: number
  readonly watch: FilesWatch
  secret: SecretResource | undefined
}

/** Secrets in files, read and watched while a stream wants them. */
export class FileSecrets {
  readonly #listener: FileListener
  readonly #quietMs: number
  readonly #wanted = new Map<string, Wanted>()

  /** Files are read once they have been left alone for `quietMs`. */
  constructor(quietMs: number, listener: FileListener) {
    this.#quietMs = quietMs
    this.#listener = listener
  }

  /** The last good content of a secret that is wanted; undefined before there was one. */
  get(name: string): SecretResource | undefined {
    return this.#wanted.get(name)?.secret
  }

  /** One more stream wants a secret. It is read soon. Other names than those of files are passed over. */
  want(name: string): void {
    const known = this.#wanted.get(name)
    if (known) return void known.streams++
    const read = readerOf(name)
    if (!read) return
    if (this.#wanted.size >= mostSecrets) return this.#listener.refused(name, `there are ${mostSecrets} secrets in files already`)
    const wanted: Wanted = {
      streams: 1,
      secret: undefined,
      watch: new FilesWatch(
        read.paths,
        {
          look: async () => {
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

  /** One stream less wants a secret. */
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
  const read = authoritiesReader(named.file)
  return { paths: [named.file], secret: async () => rootsSecret(there(await read(), named.file), name).secret }
}

function there<T>(found: T | undefined, path: string): T {
  if (found === undefined) throw new Error(`${path}: there is no such file, or it is empty`)
  return found
}
