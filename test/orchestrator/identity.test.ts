import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { status } from '../../src/model/status-codes.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { TestCluster } from '../harness/cluster.ts'
import { Issuer } from '../harness/issuer.ts'
import { SecuredDiscovery } from '../harness/secured-discovery.ts'
import { until } from '../harness/until.ts'

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

const refused = [`${status.unauthenticated} authentication failure`, `${status.unauthenticated} request authenticate failure`]
const cart = 'spiffe://cluster.local/ns/shop/sa/cart'

describe('tokens of service accounts of a real cluster', () => {
  let cluster: TestCluster
  /** With the defaults, with `REQUIRE_3P_TOKEN`, and with `JWT_POLICY=first-party-jwt`. */
  let plain: SecuredDiscovery
  let strict: SecuredDiscovery
  let first: SecuredDiscovery
  let legacy: string
  const token = (...options: readonly string[]) => cluster.kubectl(['create', 'token', 'cart', '-n', 'shop', ...options]).trim()
  const tokenOf = (name: string) => token('--audience', 'mesh-ca', '--bound-object-kind', 'Pod', '--bound-object-name', name)
  const both = async (at: SecuredDiscovery, text: string) => [await at.stream(text), await at.certificate(text)]

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
      SecuredDiscovery.start(config),
      SecuredDiscovery.start(config, { REQUIRE_3P_TOKEN: 'true' }),
      SecuredDiscovery.start(config, { JWT_POLICY: 'first-party-jwt' }),
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
    await plain.service.output.says('the call is for the cluster "elsewhere" (metadata clusterid): no remote secret that can be read names it')
  })

  it('are needed: the certificate of a user of the cluster opens nothing', async () => {
    const config = readFileSync(cluster.adminConfig, 'utf8')
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
