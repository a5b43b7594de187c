import { expect } from 'chai'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { endpointType, listenerType } from '../../../src/xds/type-urls.ts'
import { resourcesOf } from '../../harness/held.ts'
import { madeOf } from '../../harness/made.ts'
import { names, testSettings } from '../../harness/settings.ts'

const document = (endpoints: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: a, namespace: lab}\nspec: {hosts: [a.lab.example], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [${endpoints}]}\n`
const node = (namespace: string, metadata: Record<string, unknown> = {}) =>
  readNode({ id: `sidecar~10.1.0.1~p.${namespace}~${namespace}.svc.cluster.local`, metadata, locality: undefined }, names, false)

/** A mesh in which the endpoints of a service change. `all` returns the addresses that each caller has. */
function mesh() {
  const planner = new Planner(testSettings())
  planner.connect('own', node('lab'))
  planner.connect('other', node('shop'))
  planner.connect('third', node('cart'))
  planner.connect('bound', node('shop', { INTERCEPTION_MODE: 'NONE' }))
  const set = (endpoints: string) => {
    const { objects, faults } = parseConfigFile('f', document(endpoints), names)
    expect(faults).to.deep.equal([])
    planner.state.setConfig('ServiceEntry/lab/a', objects[0])
    planner.advance()
  }
  const addresses = (connection: string) => {
    const [assignment] = resourcesOf(planner, connection).get(endpointType) ?? []
    const text = assignment ? Buffer.from(planner.builder.valueOf(assignment)).toString('latin1') : ''
    return [...text.matchAll(/\d+\.\d+\.\d+\.\d+/g)].map(([address]) => address)
  }
  return { planner, set, all: () => ['own', 'other', 'third', 'bound'].map((connection) => addresses(connection).join(' ')) }
}

describe('endpoints with a loopback address', () => {
  it('are added and removed like other endpoints, but only for callers that may use them', () => {
    const { set, all, planner } = mesh()
    const [ordinary, loopback] = ['{address: 10.0.0.9}', '{address: 127.0.0.1, ports: {http: 8080}}']
    const losses = () => planner.faults.all().map(({ resource, isLoss, objects: lost }) => [resource, isLoss, lost])
    for (let round = 0; round < 2; round++) {
      set(ordinary)
      expect(losses()).to.deep.equal([])
      expect(all()).to.deep.equal(['10.0.0.9', '10.0.0.9', '10.0.0.9', '10.0.0.9'])
      set(`${ordinary}, ${loopback}`)
      expect(all()).to.deep.equal(['10.0.0.9 127.0.0.1', '10.0.0.9', '10.0.0.9', '10.0.0.9 127.0.0.1'])
      set(loopback)
      expect(all()).to.deep.equal(['127.0.0.1', '', '', '127.0.0.1'])
      expect(losses()).to.deep.equal([['a.lab.example', true, ['ServiceEntry/lab/a']]])
    }
  })

  it('form one group for all callers that see the same ones', () => {
    const { planner, set } = mesh()
    set('{address: 127.0.0.1, ports: {http: 8080}}')
    const groups = (connection: string) => (planner.servedClass(connection)?.manifest?.groups[endpointType] ?? []).map(({ group }) => group)
    expect(groups('other')).to.deep.equal(groups('third'))
    expect(groups('own')).to.include.members(groups('third'))
  })

  it("in a Sidecar's ingress are rejected if they lead to the proxy or its agent, and other listeners are kept", () => {
    const ingress = (port: number, to: string) => `{port: {number: ${port}, protocol: HTTP, name: p${port}}, defaultEndpoint: '${to}'}`
    const { reported, resources } = madeOf(
      `apiVersion: networking.mesh.io/v1\nkind: Sidecar\nmetadata: {name: s, namespace: ns}\nspec: {ingress: [${ingress(9001, '127.0.0.1:15000')}, ${ingress(9002, '0.0.0.0:15020')}, ${ingress(9003, 'unix:///x/etc/mesh/proxy/SDS')}, ${ingress(9004, '127.0.0.1:8080')}]}\n`,
      {},
      { metadata: { INTERCEPTION_MODE: 'NONE' } },
    )
    expect(resources[listenerType]?.map(({ name }) => name)).to.deep.equal(['10.0.0.1_9004'])
    expect(reported.map(({ resource, objects, reason }) => [resource, objects.join(), reason.slice(0, 30)])).to.deep.equal([
      ['10.0.0.1_9001', 'Sidecar/ns/s', 'inbound port 9001 leads to 127'],
      ['10.0.0.1_9002', 'Sidecar/ns/s', 'inbound port 9002 leads to 10.'],
      ['10.0.0.1_9003', 'Sidecar/ns/s', 'inbound port 9003 leads to uni'],
    ])
  })
})
