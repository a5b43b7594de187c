/** Whose endpoints services of other clusters stand for that are gateways of networks (docs/resources.md, O12). */
import { expect } from 'chai'
import type { Endpoint, Service } from '../../../protocols/data.ts'
import type { MeshNetworks } from '../../../src/config/mesh-config.ts'
import { gatewaysFor, networkGateways, sameGateways } from '../../../src/snapshot/networks.ts'
import type { Gateway } from '../../../src/snapshot/objects.ts'
import type { SystemNetworks } from '../../../src/snapshot/system-networks.ts'

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

const result = (networks: MeshNetworks['networks'], ...services: readonly Service[]) => resultOf(system, networks, ...services)

function resultOf(labels: SystemNetworks, networks: MeshNetworks['networks'], ...services: readonly Service[]) {
  const { gateways, faults } = networkGateways({ networks } as MeshNetworks, new Map(), services, { system: labels, own: 'own' })
  const addresses = (network: string, cluster: string) => gatewaysFor(gateways, network, cluster)?.map(({ address }) => address)
  return { found: Object.fromEntries([...gateways].map(([name, of]) => [name, [...of.keys()]])), addresses, faults }
}

describe('a gateway of a network in another cluster', () => {
  it('stands for the endpoints of its cluster in the network that the label of its system namespace names, and for no others', () => {
    const { addresses, found } = result({}, gateway('west', 'far'))
    expect(found, 'the clusters').to.deep.equal({ far: ['west'] })
    expect([addresses('far', 'west'), addresses('far', 'east'), addresses('far', 'own'), addresses('far', '')]).to.deep.equal([
      ['203.0.113.5'],
      ...[undefined, undefined, undefined],
    ])
    const refused = result({}, gateway('west', 'first'), gateway('west', 'other'), gateway('west', 'nowhere'))
    expect(refused.found).to.deep.equal({})
    expect(refused.faults.map(({ reason }) => reason)).to.deep.equal(
      Array(3).fill(
        'gateway edge.west.svc.cluster.local of the cluster west: no label of the system namespace of its cluster says that the cluster is in the network',
      ),
    )
    expect(result({}, gateway('own', 'anything')).found, 'the own cluster').to.deep.equal({ anything: [''] })
  })

  it('of a cluster in the network of the own one stands for its own endpoints, and that of the own cluster for those that have no other', () => {
    const flat = new Map([...system, ['west', 'first'], ['east', 'first']])
    const one = resultOf(flat, {}, gateway('own', 'first', '192.0.2.1'))
    expect(['own', 'west', ''].map((cluster) => one.addresses('first', cluster))).to.deep.equal(Array(3).fill(['192.0.2.1']))
    const two = resultOf(flat, {}, gateway('own', 'first', '192.0.2.1'), gateway('west', 'first'))
    expect(['own', 'east', 'west'].map((cluster) => two.addresses('first', cluster)?.join())).to.deep.equal(['192.0.2.1', '192.0.2.1', '203.0.113.5'])
    expect(two.faults).to.deep.equal([])
  })

  it('of a stranger that names the network of another cluster takes nothing from that cluster, with a gateway of its own or without', () => {
    const claimed = new Map([...system, ['east', 'far']])
    const both = resultOf(claimed, {}, gateway('west', 'far', '192.0.2.1'), gateway('east', 'far'))
    expect([both.addresses('far', 'west'), both.addresses('far', 'east')]).to.deep.equal([['192.0.2.1'], ['203.0.113.5']])
    const without = resultOf(claimed, {}, gateway('east', 'far'))
    expect(without.addresses('far', 'west')).to.equal(undefined)
    expect(without.faults.map(({ resource, reason }) => `${resource}: ${reason}`)).to.deep.equal([
      'far: no gateway stands for the endpoints of the cluster west; that of another cluster does where meshNetworks says that its cluster is in the network',
    ])
    const said = resultOf(claimed, { far: { endpoints: [{ fromRegistry: 'west' }, { fromRegistry: 'east' }] } }, gateway('east', 'far'))
    expect([said.addresses('far', 'west'), said.faults]).to.deep.equal([['203.0.113.5'], []])
  })

  it('is what meshNetworks says, whatever the labels say', () => {
    const west = [{ fromRegistry: 'west' }]
    expect(result({ first: { endpoints: west } }, gateway('west', 'first')).found).to.deep.equal({ first: [''] })
    expect(result({ first: { endpoints: west } }, gateway('west', 'far')).found, 'of another network').to.deep.equal({})
    const others = result({ far: { endpoints: [{ fromRegistry: 'east' }] } }, gateway('west', 'far'), gateway('east', 'far', '192.0.2.1'))
    expect([others.addresses('far', 'west'), others.addresses('far', 'east')]).to.deep.equal([['203.0.113.5'], ['192.0.2.1']])
    const given = result({ far: { endpoints: west, gateways: [{ address: '192.0.2.1', port: 1 }] } }, gateway('west', 'far'))
    expect(given.addresses('far', 'west')).to.deep.equal(['192.0.2.1'])
  })

  it('is told where it is refused, a limited number of times', () => {
    const many = Array.from({ length: 500 }, () => gateway('west', 'first'))
    expect(result({}, ...many).faults.length).to.be.lessThan(50)
  })
})

describe('what a gateway of a network passes on', () => {
  const configuration = (...hosts: readonly string[]) =>
    ({
      ...{ kind: 'Gateway', namespace: 'tenant', name: 'edge' },
      spec: {
        selector: { app: 'edge' },
        servers: [{ port: { number: 15_443, name: 'tls', protocol: 'TLS' }, hosts, tls: { mode: 'AUTO_PASSTHROUGH' } }],
      },
    }) as unknown as Gateway
  const service = gateway('own', 'first')
  const pod = (app: string) => ({ address: '10.0.0.1', labels: { app }, ports: {}, namespace: 'tenant', workload: app }) as unknown as Endpoint
  const found = (gateways: readonly Gateway[], ...endpoints: readonly Endpoint[]) => {
    const shards = [{ provider: 'Orchestrator', cluster: 'own', slices: [], endpoints }]
    const services = new Map([[service.hostname, [{ service, endpoints, shards, hasLocalEndpoints: false }]]])
    return networkGateways({}, services as never, [service], { system, own: 'own' }, { gateways, isScoped: false }).gateways
  }
  const passedOn = (of: ReturnType<typeof found>) => gatewaysFor(of, 'first', 'own')?.map((each) => each.passedOn)

  it('is what the Gateways say that select its pods, and not known where none does', () => {
    const eastwest = configuration('*.local', './*.corp')
    const hosts = [
      { namespace: '*', host: '*.local' },
      { namespace: 'tenant', host: '*.corp' },
    ]
    expect(passedOn(found([eastwest], pod('edge')))).to.deep.equal([{ namespace: 'tenant', gateways: ['tenant/edge'], hosts }])
    expect(passedOn(found([eastwest], pod('another')))).to.deep.equal([undefined])
    expect(passedOn(found([eastwest]))).to.deep.equal([undefined])
    expect(passedOn(found([], pod('edge')))).to.deep.equal([undefined])
  })

  it('stays the same object while its pods come and go, and is another one with another configuration', () => {
    const eastwest = configuration('*.local')
    const one = found([eastwest], pod('edge'))
    const two = found([eastwest], { ...pod('edge'), address: '10.0.0.2' }, pod('edge'), pod('another'))
    expect(sameGateways(one, two)).to.equal(true)
    expect(sameGateways(one, found([configuration('*.local', '*.corp')], pod('edge')))).to.equal(false)
    expect(sameGateways(one, found([eastwest], pod('another')))).to.equal(false)
  })
})
