/** The API server of a real cluster reviews the tokens of workloads (docs/identity.md, K7, K11): for discovery streams and for certificates. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { credentials, Metadata } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { status } from '../../src/model/status-codes.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { CertificateClient } from '../harness/certificate-client.ts'
import { TestCluster } from '../harness/cluster.ts'
import { Issuer } from '../harness/issuer.ts'
import { Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { keys } from '../harness/signing-requests.ts'
import { until } from '../harness/until.ts'
import { XdsClient } from '../harness/xds-client.ts'

/** The role of discovery. */
const role = (verbs: { readonly reviews: boolean }) => `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: discovery}
rules:
- {apiGroups: [""], resources: [namespaces, nodes, services, pods, configmaps], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
${verbs.reviews ? '- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}' : ''}`
const pod = (name: string) => `apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: shop}
spec: {serviceAccountName: cart, terminationGracePeriodSeconds: 0, containers: [{name: idle, image: idle}]}`

/** One writer, and a log with the reason of each refusal. */
const quiet = ['--writers', '1', '--log_output_level', 'default:info,authn:debug']

/** A discovery service with a secured port and a certificate authority, beside the cluster. */
class Discovery {
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

  static async start(kubeconfig: string, env: Record<string, string> = {}): Promise<Discovery> {
    const made = new Discovery(await freePort(), kubeconfig, env)
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

const refused = [`${status.unauthenticated} authentication failure`, `${status.unauthenticated} request authenticate failure`]
const cart = 'spiffe://cluster.local/ns/shop/sa/cart'

describe('tokens of service accounts of a real cluster', () => {
  let cluster: TestCluster
  /** With the defaults, with `REQUIRE_3P_TOKEN`, and with `JWT_POLICY=first-party-jwt`. */
  let plain: Discovery
  let strict: Discovery
  let first: Discovery
  let legacy: string
  const token = (...options: readonly string[]) => cluster.kubectl(['create', 'token', 'cart', '-n', 'shop', ...options]).trim()
  const tokenOf = (name: string) => token('--audience', 'mesh-ca', '--bound-object-kind', 'Pod', '--bound-object-name', name)
  const both = async (at: Discovery, text: string) => [await at.stream(text), await at.certificate(text)]

  before(async () => {
    cluster = await TestCluster.start()
    cluster.apply(
      'apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}',
      'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: cart, namespace: shop}',
      'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: discovery, namespace: default}',
      'apiVersion: v1\nkind: Secret\nmetadata: {name: old, namespace: shop, annotations: {kubernetes.io/service-account.name: cart}}\ntype: kubernetes.io/service-account-token',
      role({ reviews: true }),
      'apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: discovery}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: discovery}\nsubjects: [{kind: ServiceAccount, name: discovery, namespace: default}]',
      ...['one', 'two'].map(pod),
    )
    const config = cluster.tokenConfig('discovery', cluster.kubectl(['create', 'token', 'discovery']).trim())
    ;[plain, strict, first] = await Promise.all([
      Discovery.start(config),
      Discovery.start(config, { REQUIRE_3P_TOKEN: 'true' }),
      Discovery.start(config, { JWT_POLICY: 'first-party-jwt' }),
    ])
    await until('a token in the Secret', () => {
      const found = cluster.kubectl(['get', 'secret', '-n', 'shop', 'old', '-o', 'jsonpath={.data.token}'])
      legacy = Buffer.from(found, 'base64').toString()
      return legacy !== ''
    })
  })
  after(async () => {
    await Promise.all([plain, strict, first].map((each) => each?.dispose()))
    await cluster?.dispose()
  })

  it('for the audience of the mesh open discovery streams and are given certificates of their account', async () => {
    for (const each of [plain, strict, first]) expect(await both(each, tokenOf('one'))).to.deep.equal(['served', cart])
    expect(await plain.stream(tokenOf('two'), { clusterid: 'Orchestrator' })).to.equal('served')
    await plain.service.output.says('tokens of service accounts of the cluster Orchestrator for mesh-ca are accepted: its API server reviews them')
    plain.service.output.lacks('tokens of an orchestrator are not accepted')
    expect(await plain.service.metrics()).to.match(/^pilot_token_review_seconds_count\{outcome="accepted"\} [1-9]/m)
  })

  it('for another audience, of nobody, and of another issuer are refused, and the log says why', async () => {
    for (const each of [plain, strict, first]) expect(await both(each, token('--audience', 'other'))).to.deep.equal(refused)
    await plain.service.output.says(
      /stream from 127\.0\.0\.1\S* refused: authentication failure: .*token-review: the API server refuses it: .*audience/,
    )
    const forger = await new Issuer('https://kubernetes.default.svc.cluster.local').rotateOnly('RS256')
    const claims = { sub: 'system:serviceaccount:shop:cart', aud: ['mesh-ca'] }
    for (const wrong of [await forger.token(claims), await forger.token({ ...claims, sub: 'jane' }), 'x', `${tokenOf('one')}x`])
      expect(await both(plain, wrong)).to.deep.equal(refused)
  })

  it('for the API server are accepted by JWT_POLICY=first-party-jwt, those of old Secrets unless REQUIRE_3P_TOKEN is set', async () => {
    expect(await both(plain, token())).to.deep.equal(refused)
    expect(await both(strict, token())).to.deep.equal(refused)
    expect(await both(first, token())).to.deep.equal(['served', cart])
    expect(await both(plain, legacy)).to.deep.equal(['served', cart])
    expect(await both(first, legacy)).to.deep.equal(['served', cart])
    expect(await both(strict, legacy)).to.deep.equal(refused)
  })

  it('name their own account only, and are of this cluster', async () => {
    const other = cluster.kubectl(['create', 'token', 'default', '-n', 'shop', '--audience', 'mesh-ca']).trim()
    expect(await plain.certificate(other)).to.equal('spiffe://cluster.local/ns/shop/sa/default')
    expect(await plain.stream(other)).to.match(new RegExp(`^${status.permissionDenied} `))
    expect(await plain.stream(tokenOf('one'), { clusterid: 'elsewhere' })).to.equal(refused[0])
    await plain.service.output.says('the call is for the cluster "elsewhere" (metadata clusterid), and only tokens of "Orchestrator" can be reviewed')
  })

  it('are needed: the certificate of a user of the cluster opens nothing', async () => {
    const config = readFileSync(cluster.kubeconfig, 'utf8')
    const part = (name: string) => Buffer.from(new RegExp(`${name}: (\\S+)`).exec(config)?.[1] ?? '', 'base64').toString()
    const user = { key: part('client-key-data'), cert: part('client-certificate-data') }
    expect(user.cert).to.contain('BEGIN CERTIFICATE')
    const client = plain.open({}, user)
    await until('the refusal', () => client.closed !== undefined)
    expect(client.responses.size).to.equal(0)
  })

  it('end with their pod: no new stream and no certificate; a stream that is open stays until its token expires', async () => {
    const bound = tokenOf('two')
    const open = plain.open({ authorization: `Bearer ${bound}` })
    await until('the stream', () => open.responses.has(clusterType))
    cluster.kubectl(['delete', 'pod', '-n', 'shop', 'two', '--now'])
    await until('the refusal', async () => (await plain.certificate(bound)) === refused[1])
    expect(await both(plain, bound)).to.deep.equal(refused)
    expect(open.closed).to.equal(undefined)
  })

  it('are neither refused nor accepted while the role does not permit reviews: clients are told to try again', async () => {
    cluster.apply(role({ reviews: false }))
    await until('the refusal by the server', async () => (await plain.stream(tokenOf('one'))).startsWith(`${status.unavailable} `))
    expect(await plain.certificate(tokenOf('one'))).to.match(new RegExp(`^${status.unavailable} `))
    await plain.service.output.says(
      'tokens of service accounts cannot be reviewed, their callers are told to try again: the role of this service account does not permit "create" of "tokenreviews.authentication.k8s.io"',
    )
    cluster.apply(role({ reviews: true }))
    await until('reviews', async () => (await plain.stream(tokenOf('one'))) === 'served')
    await plain.service.output.says('tokens of service accounts are reviewed again')
  })

  it('are neither refused nor accepted while the API server is away', async () => {
    const [before, fresh] = [tokenOf('one'), tokenOf('one')]
    expect(await plain.stream(before)).to.equal('served')
    cluster.signalServer('SIGSTOP')
    try {
      expect(await plain.stream(fresh)).to.equal(`${status.unavailable} credentials cannot be checked at present`)
      expect(await plain.certificate(fresh)).to.match(new RegExp(`^${status.unavailable} `))
    } finally {
      cluster.signalServer('SIGCONT')
    }
    await until('the stream', async () => (await plain.stream(fresh)) === 'served')
    expect(await plain.certificate(fresh)).to.equal(cart)
  })
})
