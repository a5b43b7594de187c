/** Creates certificates of servers and clients as files in a directory. */
import { execFileSync } from 'node:child_process'
import { createPrivateKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { lstatSync, mkdtempSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { connect as tlsConnect } from 'node:tls'
import { type Certificate, readCertificates } from '../../src/ca/certificate.ts'
import { issueWorkload, signingKeyOf } from '../../src/ca/issue.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { pemOf } from '../../src/identity/pem.ts'

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

/** Creates certificates with openssl in a directory. */
export class ServingCertificates {
  readonly #dir: string

  constructor(dir: string) {
    this.#dir = dir
  }

  file(name: string): string {
    return join(this.#dir, name)
  }

  text(name: string): string {
    return readFileSync(this.file(name), 'utf8')
  }

  /** The flags of a service with the certificate `server`, whose clients have certificates of the authority `ca`. */
  servingFlags(): string[] {
    return ['--tlsCertFile', this.file('server.pem'), '--tlsKeyFile', this.file('server-key.pem'), '--caCertFile', this.file('ca.pem')]
  }

  /** Creates an authority: `<name>.pem` and `<name>-key.pem`. */
  authority(name: string): void {
    const uses = ['-addext', 'keyUsage=critical,keyCertSign,cRLSign']
    this.#openssl('req', ...newKey, '-x509', ...uses, '-days', '1', '-subj', `/CN=${name}`, '-keyout', `${name}-key.pem`, '-out', `${name}.pem`)
  }

  /** Creates an intermediate authority that another one signs, with the files of {@link authority}. */
  intermediate(name: string, authority: string): void {
    this.issue(
      name,
      authority,
      1,
      'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n',
    )
  }

  /**
   * Creates a certificate with `name` as its common name, signed by an authority, and its key. With negative `days` it has expired.
   * `extensions` are lines of openssl's configuration.
   */
  issue(name: string, authority: string, days = 1, extensions = ''): void {
    writeFileSync(this.file(`${name}.ext`), extensions)
    this.#openssl('req', ...newKey, '-subj', `/CN=${name}`, '-keyout', `${name}-key.pem`, '-out', `${name}.csr`)
    const signer = ['-CA', `${authority}.pem`, '-CAkey', `${authority}-key.pem`, '-CAcreateserial', '-extfile', `${name}.ext`]
    this.#openssl('x509', '-req', '-days', String(days), '-in', `${name}.csr`, ...signer, '-out', `${name}.pem`)
  }

  /** Creates the certificate of a workload with the URIs `uris` as subject alternative names. */
  workload(name: string, authority: string, uris: readonly string[], days = 1): void {
    const names = ['DNS:localhost', ...uris.map((uri) => `URI:${uri}`)].join(',')
    const uses = 'keyUsage=critical,digitalSignature\nextendedKeyUsage=clientAuth\nbasicConstraints=critical,CA:FALSE\n'
    this.issue(name, authority, days, `subjectAltName=${names}\n${uses}`)
  }

  /** Creates a workload certificate that is valid between two Unix times in milliseconds; openssl accepts only whole days. */
  between(name: string, authority: string, identity: string, notBefore: number, notAfter: number): void {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const [signing] = readCertificates(this.text(`${authority}.pem`)) as [Certificate]
    const signer = signingKeyOf(signing, createPrivateKey(this.text(`${authority}-key.pem`)))
    const grant = { notBefore, notAfter, serial: randomBytes(16) }
    const leaf = issueWorkload(makeSigningRequest(privateKey, []), identity, grant, signer)
    writeFileSync(this.file(`${name}-key.pem`), privateKey.export({ type: 'pkcs8', format: 'pem' }))
    writeFileSync(this.file(`${name}.pem`), pemOf('CERTIFICATE', leaf))
  }

  /**
   * Replaces `tls.crt` and `tls.key` of a directory in one step, as an orchestrator mounts a Secret: both are links through `..data`, which is
   * exchanged. Undefined removes a file.
   */
  mount(files: { readonly 'tls.crt': string | undefined; readonly 'tls.key': string | undefined }, directory = this.#dir): void {
    const version = mkdtempSync(join(directory, '..version-'))
    for (const [name, content] of Object.entries(files)) if (content !== undefined) writeFileSync(join(version, name), content)
    symlinkSync(basename(version), join(directory, '..next'))
    renameSync(join(directory, '..next'), join(directory, '..data'))
    for (const name of Object.keys(files))
      if (!lstatSync(join(directory, name), { throwIfNoEntry: false })) symlinkSync(join('..data', name), join(directory, name))
  }

  /** The files of a certificate for {@link mount}. */
  pair(name: string) {
    return { 'tls.crt': this.text(`${name}.pem`), 'tls.key': this.text(`${name}-key.pem`) }
  }

  /** Replaces one file, or a link to it, in one step. */
  replace(name: string, content: string): void {
    writeFileSync(this.file(`${name}.next`), content)
    renameSync(this.file(`${name}.next`), this.file(name))
  }

  #openssl(...args: string[]): void {
    execFileSync('openssl', args, { stdio: 'ignore', cwd: this.#dir })
  }
}

/** Resolves with the common name of the certificate that a port serves, or with the reason when the handshake fails. */
export function servedName(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = tlsConnect({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['h2', 'http/1.1'] }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN))
      socket.destroy()
    })
    socket.on('error', (error) => resolve(error.message))
  })
}
