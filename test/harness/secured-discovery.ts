/** A discovery service with a secured port beside a cluster, and what it says to tokens. */
import { X509Certificate } from 'node:crypto'
import { credentials, Metadata } from '@grpc/grpc-js'
import { freePort } from '../../bench/ports.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { CertificateClient } from './certificate-client.ts'
import { Service } from './service.ts'
import { ServingCertificates } from './serving-certificates.ts'
import { keys } from './signing-requests.ts'
import { until } from './until.ts'
import { XdsClient } from './xds-client.ts'

/** One writer, and a log with the reason of each refusal. */
const quiet = ['--writers', '1', '--log_output_level', 'default:info,authn:debug']

/** A discovery service with a secured port and a certificate authority, beside the cluster. */
export class SecuredDiscovery {
  readonly service: Service
  readonly made: ServingCertificates
  readonly #clients: { close(): void }[] = []
  readonly #port: number

  private constructor(port: number, kubeconfig: string, env: Record<string, string>) {
    this.#port = port
    this.service = new Service({
      env,
      flags: ['--registries', 'Orchestrator', '--orchconfig', kubeconfig, '--secureGRPCAddr', `127.0.0.1:${port}`, ...quiet],
    })
    this.made = new ServingCertificates(this.service.dir)
    this.made.authority('ca')
    this.made.issue('server', 'ca')
    this.service.flags.push(...this.made.servingFlags())
  }

  static async start(kubeconfig: string, env: Record<string, string> = {}): Promise<SecuredDiscovery> {
    const made = new SecuredDiscovery(await freePort(), kubeconfig, env)
    await made.service.start()
    return made
  }

  /** Opens a discovery stream of a sidecar in `shop` with these call headers. */
  open(headers: Record<string, string>, client: { readonly key: string; readonly cert: string } | undefined = undefined): XdsClient {
    const bytes = (text: string | undefined) => (text === undefined ? null : Buffer.from(text))
    const tls = credentials.createSsl(Buffer.from(this.made.text('ca.pem')), bytes(client?.key), bytes(client?.cert), {
      checkServerIdentity: () => undefined,
    })
    const call = credentials.createFromMetadataGenerator((_, give) => {
      const metadata = new Metadata()
      for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
      give(null, metadata)
    })
    const node = { id: 'sidecar~10.99.0.1~web.shop~shop.svc.cluster.local', metadata: { NAMESPACE: 'shop', SERVICE_ACCOUNT: 'cart' } }
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

  async dispose(): Promise<void> {
    for (const client of this.#clients) client.close()
    await this.service.dispose()
  }
}
