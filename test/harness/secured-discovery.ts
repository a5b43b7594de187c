/** A discovery service with a secured port beside a cluster, and what it says to tokens. */
import { type KeyObject, X509Certificate } from 'node:crypto'
import { connect } from 'node:http2'
import { create, toBinary } from '@bufbuild/protobuf'
import { credentials, Metadata } from '@grpc/grpc-js'
import { freePort } from '../../bench/ports.ts'
import { MeshCertificateRequestSchema } from '../../protocols/gen/mesh/v1/auth/ca_pb.js'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { CertificateClient, createCertificate } from './certificate-client.ts'
import { Service } from './service.ts'
import { ServingCertificates } from './serving-certificates.ts'
import { keys } from './signing-requests.ts'
import { until } from './until.ts'
import { XdsClient } from './xds-client.ts'

/** One writer, and a log with the reason of each refusal. */
const quiet = ['--writers', '1', '--log_output_level', 'default:info,authn:debug']

/** A proxy as it names itself. */
export interface NamedNode {
  readonly id: string
  readonly metadata: Readonly<Record<string, unknown>>
}

const sidecar: NamedNode = { id: 'sidecar~10.99.0.1~web.shop~shop.svc.cluster.local', metadata: { NAMESPACE: 'shop', SERVICE_ACCOUNT: 'cart' } }

/** A discovery service with a secured port and a certificate authority, beside the cluster. */
export class SecuredDiscovery {
  readonly service: Service
  readonly made: ServingCertificates
  readonly #clients: { close(): void }[] = []
  readonly #port: number

  private constructor(port: number, kubeconfig: string, env: Record<string, string>, flags: readonly string[]) {
    this.#port = port
    this.service = new Service({
      env,
      flags: ['--registries', 'Orchestrator', '--orchconfig', kubeconfig, '--secureGRPCAddr', `127.0.0.1:${port}`, ...quiet, ...flags],
    })
    this.made = new ServingCertificates(this.service.dir)
    this.made.authority('ca')
    this.made.issue('server', 'ca')
    this.service.flags.push(...this.made.servingFlags())
  }

  static async start(kubeconfig: string, env: Record<string, string> = {}, flags: readonly string[] = []): Promise<SecuredDiscovery> {
    const made = new SecuredDiscovery(await freePort(), kubeconfig, env, flags)
    await made.service.start()
    return made
  }

  /** Opens a discovery stream of a sidecar in `shop`, or of another node, with these call headers. */
  open(headers: Record<string, string>, client: { readonly key: string; readonly cert: string } | undefined = undefined, node = sidecar): XdsClient {
    const bytes = (text: string | undefined) => (text === undefined ? null : Buffer.from(text))
    const tls = credentials.createSsl(Buffer.from(this.made.text('ca.pem')), bytes(client?.key), bytes(client?.cert), {
      checkServerIdentity: () => undefined,
    })
    const call = credentials.createFromMetadataGenerator((_, give) => {
      const metadata = new Metadata()
      for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
      give(null, metadata)
    })
    const opened = new XdsClient(this.#port, node, true, credentials.combineChannelCredentials(tls, call))
    this.#clients.push(opened)
    return opened.connect()
  }

  /** What becomes of a stream: it is served, or its status. */
  async stream(token: string, headers: Record<string, string> = {}): Promise<string> {
    const client = this.open({ authorization: `Bearer ${token}`, ...headers })
    await until('an answer', () => client.responses.has(clusterType) || client.closed !== undefined)
    return client.closed ? `${client.closed.code} ${client.closed.details}` : 'served'
  }

  /** What becomes of a signing request: the names in the certificate, or its status. */
  async certificate(token: string): Promise<string> {
    const client = new CertificateClient(this.#port, { roots: this.made.text('ca.pem'), token })
    this.#clients.push(client)
    const outcome = await client.ask(makeSigningRequest(keys.p256, []))
    if (!('chain' in outcome)) return `${outcome.code} ${outcome.details}`
    return new X509Certificate(outcome.chain[0] as string).subjectAltName?.replace(/^URI:/, '') ?? ''
  }

  /** Has a key certified for the caller of these headers, or of the certificate. Returns the leaf and its chain, or throws the status. */
  async certify(key: KeyObject, headers: Record<string, string>, by: { readonly key: string; readonly cert: string } | undefined = undefined) {
    const client = new CertificateClient(this.#port, { roots: this.made.text('ca.pem'), ...by })
    this.#clients.push(client)
    const metadata = new Metadata()
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
    const message = toBinary(MeshCertificateRequestSchema, create(MeshCertificateRequestSchema, { csr: makeSigningRequest(key, []) }))
    const outcome = await client.call(message, createCertificate, 60_000, metadata)
    if (!('chain' in outcome)) throw new Error(`${outcome.code} ${outcome.details}`)
    return { key: key.export({ type: 'pkcs8', format: 'pem' }) as string, cert: outcome.chain.slice(0, -1).join('') }
  }

  /** The status of a page on the secured port. */
  page(path: string, headers: Record<string, string>): Promise<number> {
    return new Promise((resolve, reject) => {
      const session = connect(`https://127.0.0.1:${this.#port}`, { ca: this.made.text('ca.pem'), checkServerIdentity: () => undefined })
      session.on('error', reject)
      const stream = session.request({ ':path': path, ...headers })
      let status = 0
      stream.on('response', (answered) => (status = Number(answered[':status'])))
      stream.on('error', reject)
      stream.on('close', () => {
        session.close()
        resolve(status)
      })
      stream.resume()
    })
  }

  async dispose(): Promise<void> {
    for (const client of this.#clients) client.close()
    await this.service.dispose()
  }
}
