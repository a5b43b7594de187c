/** Which fields of a VirtualService the routes of a proxy are said to be made from, where the same rules say something else to other callers. */
import { expect } from 'chai'
import { debugAnswers } from '../../../../actors/discovery/push-queue/push-queue-debug.ts'
import { configKey } from '../../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../../src/config/parse.ts'
import { readNode } from '../../../../src/model/proxy.ts'
import { routing } from '../../../../src/push/explain/routing.ts'
import { Planner } from '../../../../src/push/planner.ts'
import { describedRequest } from '../../../harness/described-request.ts'
import { resourcesByProxy } from '../../../harness/made.ts'
import { networkingDocument as document } from '../../../harness/mesh-document.ts'
import { names, testSettings } from '../../../harness/settings.ts'

const entry = (name: string) =>
  document(
    'ServiceEntry',
    name,
    `{hosts: [${name}.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}`,
  )

const gateway = (name: string, port: number) =>
  document('Gateway', name, `{selector: {app: edge}, servers: [{port: {number: ${port}, name: http, protocol: HTTP}, hosts: ['*']}]}`)

/** The cluster that a request for ext.example is sent to, the fields of its routes, and the rules that are said to have none. */
async function fieldsOf(http: string, type: 'router' | 'sidecar', port: number) {
  const route = document('VirtualService', 'egress', `{hosts: [ext.example], gateways: [mesh, egress, other], http: ${http}}`)
  const documents = [entry('ext'), entry('out'), gateway('egress', 8080), gateway('other', 9090), route].join('---\n')
  const planner = new Planner(testSettings())
  for (const object of parseConfigFile('in.yaml', documents, names).objects) planner.state.setConfig(configKey(object), object)
  planner.advance()
  const metadata = { NAMESPACE: 'shop', LABELS: { app: type === 'router' ? 'edge' : 'web' } }
  planner.connect('p', readNode({ id: `${type}~10.1.0.1~web.shop~shop.svc.cluster.local`, metadata, locality: undefined }, names, true))
  const { tried, clusters } = routing({
    request: { ...describedRequest, scheme: 'http', host: 'ext.example', destinationPort: port },
    ...{ namespace: 'shop', domain: 'cluster.local', envoy: [1, 40], missingSecrets: [], resources: resourcesByProxy(planner).get('p') ?? {} },
    isGateway: type === 'router',
  })
  const answers = debugAnswers(planner, { pushAgain: () => 0, shares: () => [] }, () => false)
  const said = await answers.routeFields(
    'p',
    tried.map((each) => ({ ...each, port })),
  )
  return { cluster: clusters[0]?.name, fields: said?.fields, unused: said?.unused.map(({ field, reason }) => `${field}: ${reason}`) }
}

const egress =
  '[{match: [{gateways: [mesh], port: 80}], route: [{destination: {host: out.example}}]}, {match: [{gateways: [egress]}], route: [{destination: {host: ext.example, port: {number: 80}}}]}]'

describe('the fields that routes are made from', () => {
  it('are those of the rules for the gateway that is asked: the rule for the mesh before it, with the same conditions, was named', async () => {
    expect(await fieldsOf(egress, 'router', 8080)).to.deep.equal({
      cluster: 'outbound|80||ext.example',
      fields: ['http[1].match[0]'],
      unused: ['http[0].match[0]: it is for other callers or ports: port 80, gateways ["mesh"]'],
    })
    expect(await fieldsOf(egress, 'sidecar', 80)).to.deep.equal({
      cluster: 'outbound|80||out.example',
      fields: ['http[0].match[0]'],
      unused: ['http[1].match[0]: it is for other callers or ports: gateways ["shop/egress"]'],
    })
  })

  it('are those of the rules for the Gateway with the port, and for the port', async () => {
    const gateways =
      '[{match: [{gateways: [other]}], route: [{destination: {host: out.example, port: {number: 80}}}]}, {match: [{gateways: [egress]}], route: [{destination: {host: ext.example, port: {number: 80}}}]}]'
    expect((await fieldsOf(gateways, 'router', 8080)).fields).to.deep.equal(['http[1].match[0]'])
    expect((await fieldsOf(gateways, 'router', 9090)).fields).to.deep.equal(['http[0].match[0]'])
    const ports =
      '[{match: [{port: 9090}], route: [{destination: {host: out.example, port: {number: 80}}}]}, {match: [{port: 8080}], route: [{destination: {host: ext.example, port: {number: 80}}}]}]'
    expect((await fieldsOf(ports, 'router', 8080)).fields).to.deep.equal(['http[1].match[0]'])
  })
})
