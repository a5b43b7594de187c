import { expect } from 'chai'
import type { Endpoint } from '../../../protocols/data.ts'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { withNetworks } from '../../../src/snapshot/networks.ts'
import { names, testSettings } from '../../harness/settings.ts'

const endpoint = { address: '10.1.0.1', network: '' } as Endpoint

/** A planner that is told of namespaces and pods of clusters. */
class Mesh {
  readonly planner = new Planner(testSettings({ CLUSTER_ID: 'east' }))

  tell(kind: string, metadata: string, cluster = ''): this {
    const { objects, faults } = parseConfigFile('f', `apiVersion: v1\nkind: ${kind}\nmetadata: ${metadata}\n`, names)
    expect(faults).to.deep.equal([])
    for (const object of objects) {
      const told = { ...object, cluster }
      this.planner.state.setConfig(configKey(told), told)
    }
    return this
  }

  /** The network of an endpoint of a registry. */
  network(provider: string, cluster: string, address = '10.1.0.1'): string | undefined {
    this.planner.advance()
    return withNetworks([{ ...endpoint, address }], { provider, cluster }, this.planner.snapshot.networks)[0]?.network
  }

  connect(name: string, metadata: Record<string, unknown>): this {
    const id = `sidecar~10.2.0.1~${name}.ns~ns.svc.cluster.local`
    this.planner.connect(name, readNode({ id, metadata, locality: undefined }, names, false))
    return this
  }

  /** The network of a connected proxy. */
  of(name: string): string | undefined {
    this.planner.advance()
    return this.planner.servedClass(name)?.proxyClass.traits.network
  }
}

describe('the network label of the system namespace', () => {
  it('is the network of the endpoints of its cluster that have no other, and for entries that of the own cluster', () => {
    const mesh = new Mesh().tell('Namespace', '{name: mesh-system, labels: {topology.istio.io/network: n-east}}', 'east')
    expect([mesh.network('Orchestrator', 'east'), mesh.network('ServiceEntry', ''), mesh.network('Orchestrator', 'west')]).to.deep.equal([
      'n-east',
      'n-east',
      '',
    ])
    mesh.tell('Namespace', '{name: other, labels: {topology.istio.io/network: n-other}}', 'west')
    expect(mesh.network('Orchestrator', 'west')).to.equal('')
    mesh.tell('Namespace', '{name: mesh-system, labels: {topology.istio.io/network: n-all}}')
    expect([mesh.network('Orchestrator', 'east'), mesh.network('Mock', 'west')]).to.deep.equal(['n-east', 'n-all'])
    mesh.planner.state.setNetworks({ networks: { far: { endpoints: [{ fromCidr: '10.9.0.0/16' }, { fromRegistry: 'east' }] } } })
    expect([mesh.network('Orchestrator', 'east'), mesh.network('Mock', 'west', '10.9.0.1'), mesh.network('Mock', 'west')]).to.deep.equal([
      'far',
      'far',
      'n-all',
    ])
    mesh.tell('Namespace', '{name: mesh-system}')
    expect(mesh.network('Mock', 'west')).to.equal('')
  })

  it('is the network of proxies that name none and whose pod has no label, and changes with the label', () => {
    const mesh = new Mesh()
      .connect('a', { CLUSTER_ID: 'east' })
      .connect('b', { CLUSTER_ID: 'east', NETWORK: 'own' })
      .connect('c', { CLUSTER_ID: 'west' })
    expect(['a', 'b', 'c'].map((name) => mesh.of(name))).to.deep.equal(['', 'own', ''])
    mesh.tell('Namespace', '{name: mesh-system, labels: {topology.mesh.io/network: n-east}}', 'east')
    expect(['a', 'b', 'c'].map((name) => mesh.of(name))).to.deep.equal(['n-east', 'own', ''])
    mesh.tell('Pod', '{name: a, namespace: ns, labels: {topology.istio.io/network: of-pod}}', 'east')
    expect(mesh.of('a')).to.equal('of-pod')
    mesh.tell('Pod', '{name: a, namespace: ns}', 'east').tell('Namespace', '{name: mesh-system}', 'east')
    expect(['a', 'b', 'c'].map((name) => mesh.of(name))).to.deep.equal(['', 'own', ''])
  })
})
