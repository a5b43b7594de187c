/** Policies on the server name of TLS connections (`connection.sni`) are judged by `explain`, at gateways and at destinations. */
import { expect } from 'chai'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const document = (group: string, kind: string, name: string, spec: string) =>
  `apiVersion: ${group}.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ns}\nspec: ${spec}\n`
const passedThrough = (name: string) => `{port: {number: 443, name: ${name}, protocol: TLS}, hosts: [${name}.example], tls: {mode: PASSTHROUGH}}`
const entry = (name: string) =>
  document(
    'networking',
    'ServiceEntry',
    name,
    `{hosts: [${name}.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 443, name: tls, protocol: TLS}], endpoints: [{address: 10.1.0.1}]}`,
  )
/** A service whose port 443 is of plain text. */
const plain = entry('plain').replace('name: tls, protocol: TLS', 'name: http, protocol: HTTP')
/** A service at another address of the same workload, in another spelling. */
const other = entry('other').replace('10.1.0.1', "'fd00:0::9'")
const route = (name: string) =>
  document(
    'networking',
    'VirtualService',
    name,
    `{hosts: [${name}.example], gateways: [edge], tls: [{match: [{sniHosts: [${name}.example]}], route: [{destination: {host: ${name}.example}}]}]}`,
  )
const denied = (name: string, app: string, host: string) =>
  document(
    'security',
    'AuthorizationPolicy',
    name,
    `{selector: {matchLabels: {app: ${app}}}, action: DENY, rules: [{when: [{key: connection.sni, values: [${host}.example]}]}]}`,
  )

describe('explain of requests by TLS', () => {
  const service = new Service({ flags: ['--writers', '1'] })
  const clients: XdsClient[] = []
  const explained = async (host: string, ...args: string[]) => {
    const { code, stdout } = await runCommand(['explain', 'edge-0', `https://${host}.example`, ...args], service.env)
    return { code, said: stdout.split('\n')[1] ?? '', stdout }
  }

  before(async () => {
    const gateway = document(
      'networking',
      'Gateway',
      'edge',
      `{selector: {app: edge}, servers: [${['a', 'b', 'c', 'plain', 'other'].map(passedThrough).join(', ')}]}`,
    )
    service.write(
      'mesh.yaml',
      [gateway, plain, route('plain'), other, route('other'), ...['a', 'b', 'c'].flatMap((name) => [entry(name), route(name)])].join('---\n'),
    )
    service.write('policies.yaml', [denied('of-edge', 'edge', 'a'), denied('of-web', 'web', 'b')].join('---\n'))
    await service.start()
    const web = sidecarNode('10.1.0.1', 'web-0', 'ns', { LABELS: { app: 'web' }, INSTANCE_IPS: '10.1.0.1,fd00::9' })
    const edge = { id: 'router~10.1.0.2~edge-0.ns~ns.svc.cluster.local', metadata: { NAMESPACE: 'ns', LABELS: { app: 'edge' } } }
    for (const node of [web, edge]) clients.push(await new XdsClient(service.grpcPort, node, true).connect().ready())
    await until('the routes', async () => (await explained('c')).code === 0)
  })
  after(async () => {
    for (const client of clients) client.close()
    await service.dispose()
  })

  it('judges policies of the gateway and of the destination by the server name', async () => {
    const { code, said } = await explained('c')
    expect([code, said]).to.deep.equal([0, 'ROUTED: it is sent to c.example; the proxy there lets it in'])
    const atGateway = await explained('a')
    expect([atGateway.code, atGateway.stdout.includes('AuthorizationPolicy ns/of-edge (policies.yaml, document 1), rule 0')]).to.deep.equal([1, true])
    const there = await explained('b')
    expect([there.code, there.stdout.includes('AuthorizationPolicy ns/of-web (policies.yaml, document 2), rule 0')]).to.deep.equal([1, true])
  })

  it('judges proxies of the destination that are at another of their addresses', async () => {
    const { said, stdout } = await explained('other')
    expect(said).to.equal('ROUTED: it is sent to other.example; the proxy there lets it in')
    expect(stdout).to.match(/\nweb-0\.ns +fd00:0?:?:9:443 +lets it in/)
  })

  it('fails at a port of plain text, by the protocol that is declared for it', async () => {
    const { code, said } = await explained('plain')
    expect([code, said]).to.deep.equal([
      1,
      'FAILS: the connection is closed: it is sent to plain.example; port 443 of plain.example is http: plain text is expected there, and TLS arrives, which nothing on the way ends',
    ])
  })

  it('of authz takes the host of a service that the proxy serves where none is given', async () => {
    const onHost = document('security', 'AuthorizationPolicy', 'hosts', '{action: DENY, rules: [{to: [{operation: {hosts: [evil.example]}}]}]}')
    service.write('hosts.yaml', onHost)
    const judged = (proxy: string, ...args: string[]) => runCommand(['authz', proxy, ...args], service.env)
    await until('the policy', async () => (await judged('web-0', '--host', 'evil.example')).code === 1)
    const { code, stdout } = await judged('web-0')
    expect(code).to.equal(0)
    expect(stdout).to.match(/operation\.hosts is none of evil\.example; no host was given: \S+\.example was taken, which the proxy serves/)
    expect((await judged('edge-0')).stdout, 'a gateway').to.contain('no host was given, and this rule is on it: name the host')
    service.remove('hosts.yaml')
  })

  it('says which source address it took where policies are on it', async () => {
    const source = (address: string) => `rules: [{from: [{source: {ipBlocks: [${address}]}}]}]`
    const onSource = (name: string, app: string, rules: string) =>
      document('security', 'AuthorizationPolicy', name, `{selector: {matchLabels: {app: ${app}}}, action: DENY, ${rules}}`)
    expect((await explained('c')).stdout).to.not.contain('assumed')
    service.write('sources.yaml', [onSource('edge', 'edge', source('10.9.0.1')), onSource('web', 'web', source('10.1.0.7'))].join('---\n'))
    const there =
      "policies of the destination on the source address (ipBlocks): it is taken to be 10.1.0.2, that of the caller's node; behind NAT, or on one machine, connections may come from another\n"
    await until('the policies', async () => (await explained('c')).stdout.includes(there))
    const atGateway = 'assumed:      policies of the gateway on the source address (ipBlocks): no address of the client was given\n'
    expect((await explained('c')).stdout).to.contain(atGateway)
    const named = await explained('c', '--source-ip', '10.9.0.2')
    expect([named.code, named.stdout.includes(atGateway)]).to.deep.equal([0, false])
    expect((await explained('c', '--source-ip', '10.9.0.1')).code).to.equal(1)
    const { stderr } = await runCommand(['explain', 'edge-0', 'https://c.example', '--source-ip', '10.9'], service.env)
    expect(stderr).to.contain('sourceIp: "10.9" is not an IP address')
    service.remove('sources.yaml')
  })

  it('judges policies of the gateway by what its listener reads: connections that it passes on have no method', async () => {
    const onMethod = document(
      'security',
      'AuthorizationPolicy',
      'methods',
      '{selector: {matchLabels: {app: edge}}, action: DENY, rules: [{to: [{operation: {methods: [DELETE]}}]}]}',
    )
    service.write('methods.yaml', onMethod)
    const asConnection = () => runCommand(['authz', 'edge-0', '--protocol', 'tcp', '--sni', 'c.example'], service.env)
    await until('the policy', async () => (await asConnection()).code === 1)
    const { code, stdout } = await explained('c')
    expect([code, stdout.includes('AuthorizationPolicy ns/methods (methods.yaml, document 1), rule 0')], stdout).to.deep.equal([1, true])
    service.remove('methods.yaml')
  })

  it('takes a URL with a bar for a request, and not for the name of a cluster', async () => {
    const { code, stdout } = await runCommand(['explain', 'web-0', 'http://plain.example:443/a?b=c|d'], service.env)
    expect([code, stdout.split('\n')[1]]).to.deep.equal([0, 'ROUTED: it is sent to plain.example; the proxy there lets it in'])
  })

  it('takes neither a port nor a path for a host', async () => {
    for (const target of ['443', '/exact']) {
      const { code, stderr } = await runCommand(['explain', 'web-0', target], service.env)
      expect([code, stderr]).to.deep.equal([
        255,
        `Error: "${target}" is neither a host, nor a URL of http or https, nor a resource: the type of a resource is given by --type\n`,
      ])
    }
  })

  it('takes the server name of the URL, not that of a header host', async () => {
    expect((await explained('a', '--header', 'host:c.example')).stdout).to.contain('AuthorizationPolicy ns/of-edge')
    expect((await explained('c', '--header', 'host:a.example')).code).to.equal(0)
    expect((await explained('c', '--sni', 'a.example')).stdout, 'a server name that is not the host').to.contain('AuthorizationPolicy ns/of-edge')
    const { stderr } = await runCommand(['explain', 'edge-0', 'http://c.example', '--sni', 'a.example'], service.env)
    expect(stderr).to.contain('--sni: a request of http has no TLS, and so no server name: name a URL of https')
  })
})
