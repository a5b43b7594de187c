/** Which services of other clusters may be gateways of networks (docs/resources.md, O12). */
import { expect } from 'chai'
import type { Service } from '../../../protocols/data.ts'
import type { MeshNetworks } from '../../../src/config/mesh-config.ts'
import { networkGateways } from '../../../src/snapshot/networks.ts'

const system = new Map([
  ['own', 'first'],
  ['west', 'far'],
  ['east', 'other'],
])

function gateway(cluster: string, network: string, address = '203.0.113.5'): Service {
  return {
    ...{ hostname: `edge.${cluster}.svc.cluster.local`, namespace: 'tenant', name: 'edge', provider: 'Orchestrator', cluster },
    ...{ addresses: [], ports: [{ number: 15_443, name: 'tls', protocol: 'tls', targetPort: 15_443 }], resolution: 'static', external: false },
    ...{ exportTo: [], serviceAccounts: [], selector: {}, createdAt: 0 },
    outside: { addresses: [address], ports: {}, gateway: { network, port: 15_443 } },
  } as Service
}

function result(networks: MeshNetworks['networks'], ...services: readonly Service[]) {
  const { gateways, faults } = networkGateways({ networks } as MeshNetworks, new Map(), services, { system, own: 'own' })
  return { found: Object.fromEntries([...gateways].map(([name, list]) => [name, list.map(({ address }) => address)])), faults }
}

describe('a gateway of a network in another cluster', () => {
  it('is one of the network that the label of its system namespace names, and of no other', () => {
    expect(result({}, gateway('west', 'far')).found).to.deep.equal({ far: ['203.0.113.5'] })
    const { found, faults } = result({}, gateway('west', 'first'), gateway('west', 'other'), gateway('west', 'nowhere'))
    expect(found).to.deep.equal({})
    expect(faults.map(({ reason }) => reason)).to.deep.equal([
      'gateway edge.west.svc.cluster.local of the cluster west: the network is that of the own cluster; meshNetworks may say that it is that of both',
      ...Array(2).fill(
        'gateway edge.west.svc.cluster.local of the cluster west: no label of the system namespace of its cluster says that the cluster is in the network',
      ),
    ])
    expect(result({}, gateway('own', 'anything')).found, 'the own cluster').to.deep.equal({ anything: ['203.0.113.5'] })
  })

  it('is what meshNetworks says, whatever the labels say', () => {
    const west = [{ fromRegistry: 'west' }]
    expect(result({ first: { endpoints: west } }, gateway('west', 'first')).found).to.deep.equal({ first: ['203.0.113.5'] })
    expect(result({ first: { endpoints: west } }, gateway('west', 'far')).found, 'of another network').to.deep.equal({})
    expect(result({ far: { endpoints: [{ fromRegistry: 'east' }] } }, gateway('west', 'far')).found).to.deep.equal({})
    expect(result({ far: { endpoints: west, gateways: [{ address: '192.0.2.1', port: 1 }] } }, gateway('west', 'far')).found).to.deep.equal({
      far: ['192.0.2.1'],
    })
  })

  it('is told where it is refused, a limited number of times', () => {
    const many = Array.from({ length: 500 }, () => gateway('west', 'first'))
    expect(result({}, ...many).faults.length).to.be.lessThan(50)
  })
})
