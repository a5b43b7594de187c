/**
 * A signer of the orchestrator as users run one beside the mesh: watches CertificateSigningRequests of its name and signs those that are
 * approved with an authority of its own. It can be told to misbehave.
 */
import { execFileSync } from 'node:child_process'
import { createPrivateKey, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CertificatesV1Api, KubeConfig, type V1CertificateSigningRequest, Watch } from '@kubernetes/client-node'
import { type Certificate, readCertificates } from '../../src/ca/certificate.ts'
import { issueServing, signingKeyOf } from '../../src/ca/issue.ts'
import { pemOf } from '../../src/identity/pem.ts'

/** What a signer does with a request. `brief`: signs for 40 s. */
export type SignerHabit =
  | 'sign'
  | 'brief'
  | 'nothing'
  | 'fail'
  | 'another key'
  | 'another name'
  | 'one more name'
  | 'an authority'
  | 'a longer life'
  | 'another root'
  | 'for servers only'

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

/** A running signer. */
export class MeshSigner {
  readonly name: string
  /** By what a request is for: the second part of its name. */
  readonly habits = new Map<string, SignerHabit>()
  /** The requests that were seen, by name, as they were last. */
  readonly seen = new Map<string, V1CertificateSigningRequest>()
  /** The names of requests that were signed. */
  readonly signed = new Set<string>()
  readonly #dir = mkdtempSync(join(tmpdir(), 'mesh-signer-'))
  readonly #config = new KubeConfig()
  readonly #api: CertificatesV1Api
  #watch: AbortController | undefined
  #isClosed = false

  private constructor(kubeconfig: string, name: string) {
    this.name = name
    this.#config.loadFromFile(kubeconfig)
    this.#api = this.#config.makeApiClient(CertificatesV1Api)
    for (const authority of ['root', 'other']) this.#authority(authority)
    this.#issue('between', 'root', 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n')
  }

  /** Starts a signer that acts as the user of a kubeconfig. */
  static async start(kubeconfig: string, name: string): Promise<MeshSigner> {
    const made = new MeshSigner(kubeconfig, name)
    await made.#follow()
    return made
  }

  /** The root of its authority, PEM. */
  get root(): string {
    return this.#text('root.pem')
  }

  /** The names of its requests in the cluster. */
  async open(): Promise<string[]> {
    const { items } = await this.#api.listCertificateSigningRequest()
    return items.filter(({ spec }) => spec.signerName === this.name).map(({ metadata }) => metadata?.name ?? '')
  }

  close(): void {
    this.#isClosed = true
    this.#watch?.abort()
    rmSync(this.#dir, { recursive: true, force: true })
  }

  async #follow(): Promise<void> {
    if (this.#isClosed) return
    this.#watch = await new Watch(this.#config).watch(
      '/apis/certificates.k8s.io/v1/certificatesigningrequests',
      {},
      (type: string, csr: V1CertificateSigningRequest) => {
        if (csr.spec?.signerName !== this.name || type === 'DELETED') return
        this.seen.set(csr.metadata?.name ?? '', csr)
        void this.#handle(csr).catch(() => undefined)
      },
      () => setTimeout(() => void this.#follow().catch(() => undefined), 100),
    )
  }

  async #handle({ metadata, spec }: V1CertificateSigningRequest): Promise<void> {
    const name = metadata?.name ?? ''
    const read = await this.#api.readCertificateSigningRequest({ name })
    const conditions = read.status?.conditions ?? []
    if (!conditions.some(({ type }) => type === 'Approved') || read.status?.certificate || this.signed.has(name)) return
    const habit = this.habits.get(name.split('-')[1] ?? '') ?? 'sign'
    if (habit === 'nothing') return
    this.signed.add(name)
    const failed = { type: 'Failed', status: 'True', reason: 'PolicyViolation', message: 'not today' }
    const status =
      habit === 'fail'
        ? { ...read.status, conditions: [...conditions, failed] }
        : { ...read.status, certificate: Buffer.from(this.#sign(Buffer.from(spec.request, 'base64').toString(), habit)).toString('base64') }
    await this.#api.replaceCertificateSigningRequestStatus({ name, body: { ...read, status } })
  }

  #sign(csr: string, habit: SignerHabit): string {
    const number = randomBytes(8).toString('hex')
    writeFileSync(join(this.#dir, `${number}.csr`), csr)
    if (habit === 'brief') {
      const [authority] = readCertificates(this.#text('between.pem')) as [Certificate]
      const key = signingKeyOf(authority, createPrivateKey(this.#text('between-key.pem')))
      const now = Math.floor(Date.now() / 1000) * 1000
      const leaf = issueServing(csr, { serial: randomBytes(16), notBefore: now, notAfter: now + 40_000 }, key)
      return pemOf('CERTIFICATE', leaf) + this.#text('between.pem')
    }
    const uses = `keyUsage=critical,digitalSignature,keyEncipherment\nextendedKeyUsage=serverAuth${habit === 'for servers only' ? '' : ',clientAuth'}\n`
    const own = 'URI:spiffe://cluster.local/ns/shop/sa/cart'
    const names: Partial<Record<SignerHabit, string>> = {
      'another name': 'subjectAltName=URI:spiffe://cluster.local/ns/mesh-system/sa/meshd\n',
      'one more name': `subjectAltName=${own},URI:spiffe://cluster.local/ns/shop/sa/admin\n`,
      // What -copy_extensions takes over, the file may not have too.
      'an authority': 'basicConstraints=critical,CA:TRUE\n',
    }
    writeFileSync(join(this.#dir, `${number}.ext`), uses + (names[habit] ?? ''))
    const by = habit === 'another root' ? 'other' : 'between'
    const copies = habit in names && habit !== 'an authority' ? 'none' : 'copyall'
    const days = habit === 'a longer life' ? '30' : '1'
    const key = habit === 'another key' ? ['-force_pubkey', this.#publicKey()] : []
    const signing = ['-CA', `${by}.pem`, '-CAkey', `${by}-key.pem`, '-set_serial', `0x${number}`, '-copy_extensions', copies, ...key]
    this.#openssl('x509', '-req', '-days', days, '-in', `${number}.csr`, ...signing, '-extfile', `${number}.ext`, '-out', `${number}.pem`)
    return this.#text(`${number}.pem`) + (by === 'between' ? this.#text('between.pem') : '')
  }

  #publicKey(): string {
    this.#openssl('pkey', '-in', 'other-key.pem', '-pubout', '-out', 'public.pem')
    return 'public.pem'
  }

  #authority(name: string): void {
    const uses = ['-addext', 'keyUsage=critical,keyCertSign,cRLSign']
    this.#openssl('req', ...newKey, '-x509', ...uses, '-days', '30', '-subj', `/O=${name}`, '-keyout', `${name}-key.pem`, '-out', `${name}.pem`)
  }

  #issue(name: string, authority: string, extensions: string): void {
    writeFileSync(join(this.#dir, `${name}.ext`), extensions)
    this.#openssl('req', ...newKey, '-subj', `/CN=${name}`, '-keyout', `${name}-key.pem`, '-out', `${name}.csr`)
    const signing = ['-CA', `${authority}.pem`, '-CAkey', `${authority}-key.pem`, '-CAcreateserial', '-extfile', `${name}.ext`]
    this.#openssl('x509', '-req', '-days', '30', '-in', `${name}.csr`, ...signing, '-out', `${name}.pem`)
  }

  #text(name: string): string {
    return readFileSync(join(this.#dir, name), 'utf8')
  }

  #openssl(...args: string[]): void {
    execFileSync('openssl', args, { stdio: 'ignore', cwd: this.#dir })
  }
}
