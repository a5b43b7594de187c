/** Workload certificates as files, signed by an authority generated for the test. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The files of one workload. */
export interface Certificate {
  readonly chain: string
  readonly key: string
}

/** A certificate authority. */
export class Authority {
  readonly dir = mkdtempSync(join(tmpdir(), 'mesh-certs-'))
  readonly root = join(this.dir, 'root.pem')
  readonly #key = join(this.dir, 'root.key')

  constructor() {
    const made = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1', '-subj', '/O=test']
    this.#openssl(['req', ...made, '-keyout', this.#key, '-out', this.root])
  }

  /** Signs a certificate for an identity, `spiffe://...`. */
  issue(name: string, identity: string): Certificate {
    const [chain, key, request, names] = ['pem', 'key', 'csr', 'ext'].map((kind) => join(this.dir, `${name}.${kind}`)) as [
      string,
      string,
      string,
      string,
    ]
    writeFileSync(names, `subjectAltName=critical,URI:${identity}\nkeyUsage=digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n`)
    this.#openssl(['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/', '-keyout', key, '-out', request])
    this.#openssl([
      'x509',
      '-req',
      '-in',
      request,
      '-CA',
      this.root,
      '-CAkey',
      this.#key,
      '-CAcreateserial',
      '-days',
      '1',
      '-extfile',
      names,
      '-out',
      chain,
    ])
    return { chain, key }
  }

  /** Reads the files of a certificate, for clients in this process. */
  static read({ chain, key }: Certificate): { cert: string; key: string } {
    return { cert: readFileSync(chain, 'utf8'), key: readFileSync(key, 'utf8') }
  }

  dispose(): void {
    rmSync(this.dir, { recursive: true, force: true })
  }

  #openssl(args: readonly string[]): void {
    execFileSync('openssl', [...args], { stdio: 'ignore' })
  }
}
