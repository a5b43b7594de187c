/**
 * Makes key stores from the served secrets, for programs that do not read PEM, such as Java (docs/certificates.md, S10). The library for them
 * is loaded with the first one.
 */
import { createPrivateKey, randomBytes } from 'node:crypto'
import { readPem } from '../../../src/identity/pem.ts'
import { passwordToWriteOf } from '../../../src/keystore/password.ts'
import { inFile, readIfThere } from '../../runtime/bounded-file.ts'

/** The names of the key stores. */
export type StoredFile = 'key.p12' | 'truststore.p12'

/** The secrets in PEM. A key store is left unchanged while one that it needs is undefined. */
export interface StoredSecrets {
  readonly key: string | undefined
  readonly chain: string | undefined
  readonly roots: string | undefined
}

/** The name of the key in `key.p12`. */
const keyName = 'workload'

/** Makes the key stores of one workload. */
export class StoredFiles {
  readonly #passwordFile: string
  /** What each file that was written was made from. A file made again from the same would differ. */
  readonly #madeFrom = new Map<StoredFile, string>()

  constructor(passwordFile: string) {
    this.#passwordFile = passwordFile
  }

  /**
   * Reads the password, makes what has changed since the last call, and hands it to `replace`. Rejects with its error, or with an Error that
   * names the password file when that holds no password.
   */
  async write({ key, chain, roots }: StoredSecrets, replace: (name: StoredFile, content: Buffer) => void): Promise<void> {
    const password = await this.#password()
    const { writeKeyStore, writeTrustStore } = await import('../../../src/keystore/pkcs12.ts')
    const put = async (name: StoredFile, parts: readonly string[], make: () => Promise<Buffer>) => {
      const from = JSON.stringify([password, ...parts])
      if (this.#madeFrom.get(name) === from) return
      replace(name, await make())
      this.#madeFrom.set(name, from)
    }
    if (key !== undefined && chain !== undefined) {
      const bytes = () => createPrivateKey(key).export({ type: 'pkcs8', format: 'der' })
      await put('key.p12', [key, chain], () => writeKeyStore({ name: keyName, key: bytes(), chain: certificatesIn(chain) }, password, randomBytes))
    }
    if (roots !== undefined) await put('truststore.p12', [roots], () => writeTrustStore(certificatesIn(roots), password, randomBytes))
  }

  /** Makes the written key stores that are not among the files that are there again with the next call of {@link write}. Returns whether there are any. */
  forgetRemoved(found: ReadonlySet<string>): boolean {
    const removed = [...this.#madeFrom.keys()].filter((name) => !found.has(name))
    for (const name of removed) this.#madeFrom.delete(name)
    return removed.length > 0
  }

  async #password(): Promise<string> {
    const text = await readIfThere(this.#passwordFile)
    if (text === undefined) throw new Error(`${this.#passwordFile}: there is no such file, which is to hold the password of the key stores`)
    return inFile(this.#passwordFile, () => passwordToWriteOf(text))
  }
}

const certificatesIn = (pem: string): Buffer[] => readPem(pem, (label) => label === 'CERTIFICATE').map(({ der }) => der)
