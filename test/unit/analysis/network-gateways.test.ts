/** What the gateways of networks do not pass on (docs/analysis.md, MESH0016). */
import { expect } from 'chai'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { mesh, service, workload } from '../../harness/faulty-objects.ts'
import { testSettings } from '../../harness/settings.ts'

const configMap = (name: string, value: object) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mesh, namespace: mesh-system}\ndata: {${name}: ${JSON.stringify(JSON.stringify(value))}}`
const remote =
  'apiVersion: v1\nkind: Secret\nmetadata: {name: remotes, namespace: mesh-system, labels: {mesh/multiCluster: "true"}}\nstringData: {west: ""}'

/** What is told of the gateways of networks by documents, in a mesh with another cluster. `others`: the document that says so. */
function messages(documents: readonly string[], others = [remote]): string[] {
  const offline = new OfflineMesh(testSettings())
  offline.add('all.yaml', [...documents, ...others].join('\n---\n'))
  expect(offline.faults).to.deep.equal([])
  const analysis = new Analysis(offline.facts())
  analysis.refresh()
  return analysis.all().flatMap(({ code, object, message }) => (code === 'MESH0016' ? [`${object}: ${message}`] : []))
}

const gateway = (hosts: string, mode = 'AUTO_PASSTHROUGH') =>
  mesh(
    'Gateway',
    'edge/passing',
    `{selector: {app: eastwest}, servers: [{port: {number: 15443, name: tls, protocol: TLS}, hosts: [${hosts}], tls: {mode: ${mode}}}]}`,
  )
const labelled = ', labels: {topology.mesh.io/network: first}'
const eastwest = [
  service('edge/eastwest', '{name: tls, port: 15443}', '{app: eastwest}, externalIPs: [192.0.2.1]', labelled),
  workload('Deployment', 'edge/eastwest', 'labels: {app: eastwest}'),
]
const shop = (name: string, exportTo = '*') => [
  service(`shop/${name}`, '{name: http, port: 80}', `{app: ${name}}`, `, annotations: {networking.mesh.io/exportTo: "${exportTo}"}`),
  workload('Deployment', `shop/${name}`, `labels: {app: ${name}}`),
]
const hostOf = (name: string) => `${name}.shop.svc.cluster.local`
const at = 'Service/edge/eastwest: '
const unreached = (names: string) => `${at}the gateway of the network first does not pass ${names} on, so callers of other networks do not reach`

describe('the analysis of gateways of networks', () => {
  it('tells once for each reason what they do not pass on', () => {
    const many = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].flatMap((name) => shop(name))
    expect(messages([...eastwest, gateway('"bank/*"'), ...many])).to.deep.equal([
      `${unreached(`${['a', 'b', 'c', 'd', 'e'].map(hostOf).join(', ')} and 2 more`)} them: no host of their servers covers it (Gateway edge/passing)`,
    ])
    const some = [...shop('a', 'bank'), ...shop('b'), ...shop('c'), mesh('PeerAuthentication', 'shop/p', plainOf('c'), '', 'security')]
    expect(messages([...eastwest, gateway('"*.local"'), ...some])).to.deep.equal([
      `${unreached(hostOf('a'))} it: their namespace edge does not see it (exportTo)`,
      `${unreached(hostOf('c'))} it: PeerAuthentication shop/p disables mutual TLS, which gateways of networks require (E4)`,
    ])
  })

  it('tells nothing of what they pass on, and of what is meant for its own cluster', () => {
    expect(messages([...eastwest, gateway('"*.local"'), ...shop('a')])).to.deep.equal([])
    const local = configMap('mesh', { serviceSettings: [{ settings: { clusterLocal: true }, hosts: [hostOf('a')] }] })
    expect(messages([...eastwest, gateway('"bank/*"'), ...shop('a'), local])).to.deep.equal([])
    for (const own of ['.', 'shop', '~']) expect(messages([...eastwest, gateway('"bank/*"'), ...shop('a', own)])).to.deep.equal([])
    const [withoutWorkload = ''] = shop('a')
    expect(messages([...eastwest, gateway('"bank/*"'), withoutWorkload])).to.deep.equal([])
  })

  it('tells nothing where what they pass on is not known, or no other network is', () => {
    expect(messages([...eastwest, ...shop('a')])).to.deep.equal([])
    const refusing = [...eastwest, gateway('"bank/*"'), ...shop('a')]
    expect(messages(refusing, [])).to.deep.equal([])
    expect(messages(refusing)).to.have.length(1)
    const [, deployment = ''] = eastwest
    const given = configMap('meshNetworks', {
      networks: { first: { gateways: [{ registryServiceName: 'eastwest.edge.svc.cluster.local' }] }, west: {} },
    })
    const unlabelled = [service('edge/eastwest', '{name: tls, port: 15443}', '{app: eastwest}'), deployment]
    expect(messages([...unlabelled, gateway('"bank/*"'), ...shop('a')], [given])).to.have.length(1)
  })

  it('tells of a server of another mode at their port', () => {
    expect(messages([...eastwest, gateway('"*.local"', 'PASSTHROUGH'), ...shop('a')])).to.deep.equal([
      `${at}the gateway of the network first passes nothing on, so callers of other networks reach no service behind it: the server of Gateway edge/passing at the port 15443 has tls.mode PASSTHROUGH, and only AUTO_PASSTHROUGH passes the services of the mesh on`,
    ])
  })

  it('finds ports that the Service of a gateway names', () => {
    const named = service(
      'edge/eastwest',
      '{name: tls, port: 443, targetPort: sni}',
      '{app: eastwest}, externalIPs: [192.0.2.1]',
      `${labelled.slice(0, -1)}, networking.mesh.io/gatewayPort: "443"}`,
    )
    const pods = workload(
      'Deployment',
      'edge/eastwest',
      'labels: {app: eastwest}',
      'containers: [{name: proxy, image: a, ports: [{name: sni, containerPort: 15443}]}]',
    )
    expect(messages([named, pods, gateway('"bank/*"'), ...shop('a')])).to.have.length(1)
  })
})

function plainOf(app: string): string {
  return `{selector: {matchLabels: {app: ${app}}}, mtls: {mode: DISABLE}}`
}
