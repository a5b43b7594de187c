/** Certificates for gateways, and Secret documents that contain them. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A certificate and its key, as PEM. */
export interface Pair {
  readonly chain: string
  readonly key: string
}

/** Creates certificates with openssl. */
export class SiteCertificates {
  readonly #dir = mkdtempSync(join(tmpdir(), 'mesh-sites-'))
  #made = 0

  /** Creates an authority. */
  authority(name: string): Pair {
    const [key, chain] = this.#files()
    this.openssl('req', '-x509', ...newKey(), '-days', '2', '-subj', `/CN=${name}`, '-keyout', key, '-out', chain)
    return this.#read(chain, key)
  }

  /**
   * Creates a certificate for a host, or for any subject alternative name (`URI:...`), signed by an authority. `key` are openssl's options
   * for the key.
   */
  issue(name: string, authority: Pair, { key: options = newKey(), days = 1 }: { key?: readonly string[]; days?: number } = {}): Pair {
    const [key, chain, request, extensions, signer, signerKey] = this.#files() as string[] as [string, string, string, string, string, string]
    writeFileSync(signer, authority.chain)
    writeFileSync(signerKey, authority.key)
    writeFileSync(extensions, `subjectAltName=${name.includes(':') ? name : `DNS:${name}`}\nextendedKeyUsage=serverAuth,clientAuth\n`)
    this.openssl('req', ...options, '-subj', '/O=test', '-keyout', key, '-out', request)
    const signing = ['-CA', signer, '-CAkey', signerKey, '-CAcreateserial', '-days', String(days), '-extfile', extensions]
    this.openssl('x509', '-req', '-in', request, ...signing, '-out', chain)
    return this.#read(chain, key)
  }

  /** Runs openssl. */
  openssl(...args: string[]): void {
    execFileSync('openssl', args, { stdio: 'ignore', cwd: this.#dir })
  }

  /** Removes the files. */
  dispose(): void {
    rmSync(this.#dir, { recursive: true, force: true })
  }

  #files(): [string, string, ...string[]] {
    const made = this.#made++
    return ['key', 'pem', 'csr', 'ext', 'ca', 'ca-key'].map((kind) => join(this.#dir, `${made}.${kind}`)) as [string, string, ...string[]]
  }

  #read(chain: string, key: string): Pair {
    return { chain: readFileSync(chain, 'utf8'), key: readFileSync(key, 'utf8') }
  }
}

/** The options of openssl that create a key. */
export const newKey = (curve = 'prime256v1'): string[] => ['-newkey', 'ec', '-pkeyopt', `ec_paramgen_curve:${curve}`, '-nodes']

/**
 * Formats a Secret `<namespace>/<name>`. Values are given as text and encoded in base64. `accounts`: the value of the annotation that names
 * service accounts; null for none.
 */
export function secretDocument(
  path: string,
  values: Readonly<Record<string, string>>,
  type = 'kubernetes.io/tls',
  accounts: string | null = 'gateway',
): string {
  const [namespace, name] = path.split('/')
  const annotations = accounts === null ? {} : { 'security.mesh.io/service-accounts': accounts }
  const data = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]))
  return `${JSON.stringify({ apiVersion: 'v1', kind: 'Secret', type, metadata: { name, namespace, annotations }, data })}\n`
}

/** The values of a Secret with a certificate and, if given, an authority. */
export const pairValues = ({ chain, key }: Pair, authority?: Pair): Record<string, string> => ({
  'tls.crt': chain,
  'tls.key': key,
  ...(authority ? { 'ca.crt': authority.chain } : {}),
})
