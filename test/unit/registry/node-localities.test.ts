import { expect } from 'chai'
import type { Endpoint, Service } from '../../../protocols/data.ts'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { Faults } from '../../../src/model/faults.ts'
import { MeshState } from '../../../src/snapshot/state.ts'
import { names, testSettings } from '../../harness/settings.ts'

const documents = (...texts: string[]) => {
  const { objects, faults } = parseConfigFile('f', texts.join('---\n'), names)
  expect(faults).to.deep.equal([])
  return objects
}
const node = (name: string, labels: string) => `apiVersion: v1\nkind: Node\nmetadata: {name: ${name}, labels: ${labels}}\n`
const pod = (name: string, of: string, status = '{podIP: 10.1.0.1}', more = '') =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}, namespace: ns, labels: {app: web${more}}}\nspec: {nodeName: ${of}, serviceAccountName: web}\nstatus: ${status}\n`
const entry = `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: web, namespace: ns}\nspec: {hosts: [web.test], resolution: STATIC, location: MESH_INTERNAL, ports: [{number: 80, name: http}], workloadSelector: {labels: {app: web}}}\n`

class Mesh {
  readonly state: MeshState

  constructor(env: Record<string, string> = {}) {
    this.state = new MeshState(testSettings(env), new Faults())
  }

  set(...texts: string[]): this {
    for (const object of documents(...texts)) this.state.setConfig(configKey(object), object)
    return this
  }

  remove(kind: string, namespace: string, name: string): this {
    this.state.setConfig(configKey({ kind, namespace, name }), undefined)
    return this
  }

  /** The endpoints of a host after all changes so far, and the hosts that the last change concerned. */
  take(host: string): { endpoints: readonly Endpoint[]; hosts: string[] } {
    const { snapshot, changes } = this.state.take(0)
    return { endpoints: (snapshot.services.get(host) ?? []).flatMap(({ endpoints }) => endpoints), hosts: [...changes.hosts] }
  }
}

describe('pods and nodes', () => {
  it('ServiceEntries select pods by their labels: an endpoint at its first address, which accepts mutual TLS where the label says so', () => {
    const mesh = new Mesh().set(entry, pod('a', 'n1', '{podIPs: [{ip: 10.1.0.2}, {ip: "fd00::2"}]}', ', security.istio.io/tlsMode: istio'))
    mesh.set(pod('b', 'n1', '{conditions: [{type: Ready, status: "False"}], podIP: 10.1.0.3}'), pod('c', 'n1', '{}'))
    mesh.set(pod('d', 'n1', '{podIP: 10.1.0.4, phase: Succeeded}'))
    const { endpoints } = mesh.take('web.test')
    const mode = 'security.mesh.io/tlsMode'
    expect(
      endpoints.map((endpoint) => [
        endpoint.address,
        endpoint.workload,
        endpoint.node,
        endpoint.serviceAccount,
        endpoint.readiness,
        endpoint.labels[mode],
      ]),
    ).to.deep.equal([
      ['10.1.0.2', 'a', 'n1', 'web', undefined, 'istio'],
      ['10.1.0.3', 'b', 'n1', 'web', 'unready', 'disabled'],
    ])
    expect(mesh.remove('Pod', 'ns', 'a').remove('Pod', 'ns', 'b').take('web.test').endpoints).to.deep.equal([])
    const without = new Mesh({ PILOT_ENABLE_SERVICEENTRY_SELECT_PODS: 'false' }).set(entry, pod('a', 'n1'))
    expect(without.take('web.test').endpoints).to.deep.equal([])
  })

  it('give an endpoint without a locality that of its node, which may change; a label of the pod comes first', () => {
    const mesh = new Mesh().set(entry, pod('a', 'n1'))
    const locality = () => mesh.take('web.test').endpoints.map((endpoint) => endpoint.locality)
    expect(locality()).to.deep.equal([''])
    mesh.set(node('n1', '{topology.kubernetes.io/region: r, topology.kubernetes.io/zone: z, topology.istio.io/subzone: s}'))
    expect(locality()).to.deep.equal(['r/z/s'])
    mesh.set(node('n1', '{failure-domain.beta.kubernetes.io/region: old, failure-domain.beta.kubernetes.io/zone: z}'))
    expect(locality()).to.deep.equal(['old/z'])
    mesh.set(node('n2', '{topology.kubernetes.io/region: other}'))
    expect(mesh.take('web.test').hosts).to.deep.equal([])
    mesh.set(pod('a', 'n2'))
    expect(locality()).to.deep.equal(['other'])
    mesh.set(node('n1', '{}'))
    expect(mesh.take('web.test').hosts).to.deep.equal([])
    mesh.set(pod('a', 'n2', '{podIP: 10.1.0.1}', ', istio-locality: a.b.c'))
    expect(locality()).to.deep.equal(['a/b/c'])
    mesh.set(pod('a', 'n2')).remove('Node', '', 'n2')
    expect(locality()).to.deep.equal([''])
  })

  it('change the slices with endpoints of the node only, whose other endpoints stay the same objects; nodes of other clusters are others', () => {
    const mesh = new Mesh()
    const service: Service = {
      ...{ hostname: 's.ns', namespace: 'ns', name: 's', provider: 'Orchestrator', cluster: 'east', addresses: [], ports: [], resolution: 'static' },
      ...{ external: false, exportTo: [], serviceAccounts: [], selector: undefined, createdAt: 0 },
    }
    const endpointOn = (address: string, of: string): Endpoint => ({
      ...{ address, ports: {}, labels: {}, locality: '', network: '', weight: 1, serviceAccount: '', namespace: 'ns', workload: '', node: of },
    })
    const slice = (key: string, ...endpoints: Endpoint[]) => ({ key, version: '1', endpoints })
    const slices = [slice('a', endpointOn('10.0.0.1', 'n1'), endpointOn('10.0.0.2', 'n2')), slice('b', endpointOn('10.0.0.3', 'n3'))]
    mesh.state.services.set('Orchestrator/east', 'ns/s.ns', { service, slices })
    const tell = (cluster: string, name: string, region: string) => {
      const [object] = documents(node(name, `{topology.kubernetes.io/region: ${region}}`))
      const told = { ...(object as NonNullable<typeof object>), cluster }
      mesh.state.setConfig(configKey(told), told)
    }
    for (const name of ['n1', 'n2', 'n3']) tell('east', name, 'r')
    tell('west', 'n1', 'wrong')
    const shards = () => mesh.state.take(0).snapshot.services.get('s.ns')?.[0]?.shards ?? []
    const [before] = shards()
    expect(before?.endpoints.map(({ locality }) => locality)).to.deep.equal(['r', 'r', 'r'])
    tell('east', 'n1', 'moved')
    const [after] = shards()
    expect(after?.endpoints.map(({ locality }) => locality)).to.deep.equal(['moved', 'r', 'r'])
    expect(after?.endpoints[1]).to.equal(before?.endpoints[1])
    expect(after?.slices[1]).to.equal(before?.slices[1])
    mesh.state.services.set('Orchestrator/east', 'ns/s.ns', undefined)
    mesh.state.take(0)
    tell('east', 'n1', 'again')
    expect(mesh.take('s.ns').hosts).to.deep.equal([])
  })
})
