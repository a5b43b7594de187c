/** A request to a service whose endpoints its caller does not get is said to fail for the reason why it does not get them (docs/commands.md, Q8). */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { Explanations } from '../../actors/discovery/admin/explanations.ts'
import { PageSources } from '../../actors/discovery/admin/page-sources.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { routingReason } from '../harness/routing-reason.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const document = (kind: string, namespace: string, name: string, spec: string) =>
  `{apiVersion: networking.mesh.io/v1, kind: ${kind}, metadata: {name: ${name}, namespace: ${namespace}}, spec: ${spec}}\n---\n`
const entry = (namespace: string, name: string, port: string, rest: string) =>
  document('ServiceEntry', namespace, name, `{hosts: [${name}.example], location: MESH_INTERNAL, resolution: STATIC, ports: [${port}], ${rest}}`)
const gateways = [
  entry('edge', 'gateway', '{number: 15443, name: tls, protocol: TLS}', 'endpoints: [{address: 10.0.9.1, labels: {app: gateway}}]'),
  document(
    'Gateway',
    'edge',
    'passing',
    '{selector: {app: gateway}, servers: [{port: {number: 15443, name: tls, protocol: TLS}, hosts: ["*.example"], tls: {mode: AUTO_PASSTHROUGH}}]}',
  ),
].join('')
const ledger = (exportTo: string, mode: string) =>
  entry(
    'shop',
    'ledger',
    '{number: 80, name: http, protocol: HTTP}',
    `exportTo: [${exportTo}], endpoints: [{address: 10.0.0.1, network: west, labels: {${mode}}}]`,
  )

describe('a service of which a caller does not get the endpoints', () => {
  const discovery = new LocalDiscovery({ mode: 'in-thread' })
  let client: XdsClient | undefined
  let sources: PageSources
  const reason = (sees?: (namespace: string) => boolean) => routingReason(sources, 'ledger.example', sees)

  after(async () => {
    client?.close()
    await discovery.dispose()
  })

  it('is said to have none because of the gateways of their network, or because they accept no mutual TLS', async () => {
    const networksConfig = join(discovery.dir, 'networks')
    writeFileSync(networksConfig, 'networks: {west: {gateways: [{registryServiceName: gateway.example}]}}')
    const { supervisor, ready } = await discovery.start({ networksConfig })
    await ready()
    sources = new PageSources(supervisor, true, new Explanations())
    const mutual = '"security.mesh.io/tlsMode": mesh'
    discovery.write('a.yaml', gateways + ledger('.', mutual))
    const node = sidecarNode('10.1.0.1', 'web', 'shop')
    client = await new XdsClient(discovery.grpcPort, { ...node, metadata: { ...node.metadata, NETWORK: 'first' } }, true).connect().ready()
    await until('the service', () => client?.resources.get(clusterType)?.has('outbound|80||ledger.example') ?? false)
    const none = 'ledger.example has no endpoints on port 80'
    const refused =
      'the gateways of network west do not pass ledger.example on: their namespace edge does not see it (exportTo) (E4 in docs/resources.md)'
    await until('the refusal', async () => (await reason()) === `${none}: ${refused}`)
    expect(await reason((namespace) => namespace !== 'shop')).to.equal(none)
    discovery.write('a.yaml', gateways + ledger('"*"', ''))
    const plain = 'endpoint 10.0.0.1 of network west accepts no mutual TLS, which its gateways require (E4 in docs/resources.md)'
    await until('the next reason', async () => (await reason()) === `${none}: ${plain}`)
    discovery.write('a.yaml', gateways + ledger('"*"', mutual))
    await until('traffic', async () => (await reason()).startsWith('it is sent to ledger.example'))
  })
})
