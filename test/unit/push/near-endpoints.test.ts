/** Which endpoints callers have by where they are: those of their cluster and address family (docs/resources.md, E11, E12), and first those near them (E10). */
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import type { ConfigObject, Endpoint, Service, TrafficDistribution } from '../../../protocols/data.ts'
import { ClusterLoadAssignmentSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { configKey } from '../../../src/config/kinds.ts'
import { readMeshConfig } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { endpointType, listenerType } from '../../../src/xds/type-urls.ts'
import { names, testSettings } from '../../harness/settings.ts'

const host = 'web.shop.svc.cluster.local'
const endpointOf = (address: string, locality: string): Endpoint => ({
  ...{ address, locality, ports: {}, labels: {}, network: '', weight: 1, serviceAccount: '', namespace: 'shop', workload: '' },
})

describe('endpoints near a caller', () => {
  /** A mesh with a Service that has endpoints in two zones of each of two clusters. */
  const meshWith = (config: string, distribution?: TrafficDistribution) => {
    const planner = new Planner(testSettings())
    const read = readMeshConfig(config)
    if ('error' in read) throw new Error(read.error)
    planner.state.setMesh(read.value)
    for (const [index, cluster] of ['c1', 'c2'].entries()) {
      const service: Service = {
        ...{ hostname: host, namespace: 'shop', name: 'web', provider: 'Orchestrator', cluster, addresses: ['10.9.0.1'], exportTo: [] },
        ports: [{ number: 80, name: 'http', protocol: 'http', targetPort: 0 }],
        resolution: 'static',
        ...{ external: false, serviceAccounts: [], selector: undefined, createdAt: 0 },
        ...(distribution ? { distribution } : {}),
      }
      const endpoints = ['r1/z1', 'r1/z2'].map((locality, zone) => endpointOf(`10.${index}.0.${zone}`, locality))
      planner.state.services.set(`Orchestrator/${cluster}`, `shop/${host}`, { service, slices: [{ key: 'a', version: '', endpoints }] })
    }
    planner.advance()
    return planner
  }
  /** The endpoints of a proxy, with their priorities. */
  const seen = (planner: Planner, cluster: string): Record<string, number> => {
    const locality = { region: 'r1', zone: 'z1', subZone: '' } as never
    const id = `sidecar~10.3.0.1~p.shop~shop.svc.cluster.local`
    planner.connect(cluster, {
      ...readNode({ id, metadata: { NAMESPACE: 'shop', CLUSTER_ID: cluster }, locality }, names, false),
      takesVirtualHosts: false,
    })
    return endpointsOf(planner, cluster, 80)
  }
  const endpointsOf = (planner: Planner, connection: string, port: number): Record<string, number> => {
    const groups = planner.present.manifest(planner.servedClass(connection)?.id ?? '')?.groups[endpointType] ?? []
    const name = `outbound|${port}||${host}`
    // A name that leaves one group may have come to another.
    const [resource] = groups.flatMap(({ group }) => (planner.groups.isLeaving(group, name) ? [] : (planner.groups.resources(group).get(name) ?? [])))
    if (!resource) return {}
    const { endpoints } = fromBinary(ClusterLoadAssignmentSchema, planner.groups.valueOf(resource))
    return Object.fromEntries(
      endpoints.flatMap(({ priority, lbEndpoints }) =>
        lbEndpoints.map(({ hostIdentifier }) => {
          const at = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined
          return [at?.case === 'socketAddress' ? at.value.address : '', priority]
        }),
      ),
    )
  }
  const local = `{serviceSettings: [{settings: {clusterLocal: true}, hosts: ["*.shop.svc.cluster.local"]}]}`

  it('are those of its cluster where the host is local to clusters', () => {
    expect(Object.keys(seen(meshWith('{}'), 'c1')).sort()).to.deep.equal(['10.0.0.0', '10.0.0.1', '10.1.0.0', '10.1.0.1'])
    const planner = meshWith(local)
    expect(Object.keys(seen(planner, 'c1')).sort()).to.deep.equal(['10.0.0.0', '10.0.0.1'])
    expect(Object.keys(seen(planner, 'c2')).sort()).to.deep.equal(['10.1.0.0', '10.1.0.1'])
    expect(Object.keys(seen(planner, ''))).to.have.length(4)
    expect(Object.keys(seen(meshWith('{serviceSettings: [{settings: {clusterLocal: false}, hosts: ["*"]}]}'), 'c1'))).to.have.length(4)
  })

  it('are those of its address family where the Service has both, as long as one of them is ready', () => {
    const planner = new Planner(testSettings())
    const service: Service = {
      ...{
        hostname: host,
        namespace: 'shop',
        name: 'web',
        provider: 'Orchestrator',
        cluster: 'c1',
        addresses: ['fd00::1', '10.9.0.1'],
        exportTo: [],
      },
      ports: [{ number: 90, name: 'tcp', protocol: 'tcp', targetPort: 0 }],
      resolution: 'static',
      ...{ external: false, serviceAccounts: [], selector: undefined, createdAt: 0 },
    }
    const slices = (...ready: readonly string[]) =>
      ['10.0.0.1', 'fd00:1::1'].map((address) => ({
        ...{ key: address, version: '' },
        endpoints: [{ ...endpointOf(address, ''), ...(ready.includes(address) ? {} : { readiness: 'unready' as const }) }],
      }))
    const set = (...ready: readonly string[]) => {
      planner.state.services.set('Orchestrator/c1', `shop/${host}`, { service, slices: slices(...ready) })
      planner.advance()
    }
    set('10.0.0.1', 'fd00:1::1')
    const proxies = { v4: ['10.3.0.1'], v6: ['fd00:3::1'], both: ['10.3.0.2', 'fd00:3::2'] }
    for (const [name, addresses] of Object.entries(proxies)) {
      const metadata = { NAMESPACE: 'shop', INSTANCE_IPS: addresses.join(','), ...(name === 'both' ? { MESH_DUAL_STACK: 'true' } : {}) }
      const node = readNode({ id: `sidecar~${addresses[0]}~${name}.shop~shop.svc.cluster.local`, metadata, locality: undefined }, names, false)
      planner.connect(name, { ...node, takesVirtualHosts: false })
    }
    const targets = () => Object.keys(proxies).map((name) => Object.keys(endpointsOf(planner, name, 90)).join())
    expect(targets()).to.deep.equal(['10.0.0.1', 'fd00:1::1', 'fd00:1::1'])
    set('10.0.0.1')
    expect(targets()).to.deep.equal(['10.0.0.1', '10.0.0.1', '10.0.0.1'])
    // Whatever its own family, a proxy redirects connections to either address of the service.
    for (const name of Object.keys(proxies)) {
      const groups = planner.present.manifest(planner.servedClass(name)?.id ?? '')?.groups[listenerType] ?? []
      const listeners = groups.flatMap(({ group }) => [...planner.groups.resources(group).keys()])
      expect(listeners, name).to.include.members(['10.9.0.1_90', 'fd00::1_90'])
    }
  })

  it('come first where the Service prefers them, unless a rule has locality settings of its own', () => {
    expect(seen(meshWith(local), 'c1')).to.deep.equal({ '10.0.0.0': 0, '10.0.0.1': 0 })
    const planner = meshWith(local, 'PreferSameZone')
    expect(seen(planner, 'c1')).to.deep.equal({ '10.0.0.0': 0, '10.0.0.1': 1 })
    // The settings of the mesh are for services that say nothing.
    const off = '{localityLbSetting: {enabled: false}, serviceSettings: [{settings: {clusterLocal: true}, hosts: ["*.shop.svc.cluster.local"]}]}'
    expect(seen(meshWith(off, 'PreferSameZone'), 'c1')).to.deep.equal({ '10.0.0.0': 0, '10.0.0.1': 1 })
    const rule = `{apiVersion: networking.mesh.io/v1, kind: DestinationRule, metadata: {name: r, namespace: shop}, spec: {host: ${host}, trafficPolicy: {loadBalancer: {localityLbSetting: {enabled: false}}}}}`
    for (const object of parseConfigFile('f', rule, names).objects) planner.state.setConfig(configKey(object), object)
    planner.advance()
    expect(seen(planner, 'c1')).to.deep.equal({ '10.0.0.0': 0, '10.0.0.1': 0 })
  })

  it('on its own node come first where the Service prefers these, then those of its zone, live', () => {
    const planner = new Planner(testSettings())
    const at = (cluster: string, distribution: TrafficDistribution | undefined, ...nodes: readonly string[]) => {
      const service: Service = {
        ...{ hostname: host, namespace: 'shop', name: 'web', provider: 'Orchestrator', cluster, addresses: ['10.9.0.1'], exportTo: [] },
        ports: [{ number: 80, name: 'http', protocol: 'http', targetPort: 0 }],
        resolution: 'static',
        ...{ external: false, serviceAccounts: [], selector: undefined, createdAt: 0 },
        ...(distribution ? { distribution } : {}),
      }
      const endpoints = nodes.map((node, index) => ({
        ...endpointOf(`10.${cluster === 'c1' ? 0 : 1}.0.${index}`, `r1/z${node === 'n3' ? 2 : 1}`),
        node,
      }))
      planner.state.services.set(`Orchestrator/${cluster}`, `shop/${host}`, { service, slices: [{ key: 'a', version: '', endpoints }] })
      planner.advance()
    }
    const pod = (name: string, node: string, last: number): ConfigObject => ({
      ...{ kind: 'Pod', group: '', version: 'v1', namespace: 'shop', name, labels: {}, annotations: {}, createdAt: 0, generation: 1 },
      spec: { addresses: [`10.3.0.${last}`], node, serviceAccount: 'default', hostNetwork: false, readiness: 'ready' },
      ...{ source: 'orchestrator', cluster: 'c1', uid: '', resourceVersion: '', place: 'cluster c1' },
    })
    const connect = (name: string, last: number) => {
      const id = `sidecar~10.3.0.${last}~${name}.shop~shop.svc.cluster.local`
      const locality = { region: 'r1', zone: 'z1', subZone: '' } as never
      const node = readNode({ id, metadata: { NAMESPACE: 'shop', CLUSTER_ID: 'c1' }, locality }, names, false)
      planner.connect(name, { ...node, takesVirtualHosts: false })
    }
    const of = (name: string) => endpointsOf(planner, name, 80)
    for (const [index, node] of ['n1', 'n2', 'n1'].entries()) {
      const object = pod(`p${index}`, node, index)
      planner.state.setConfig(configKey(object), object)
    }
    at('c1', undefined, 'n1', 'n2', 'n3')
    at('c2', undefined, 'n1')
    for (const index of [0, 1, 2, 3]) connect(`p${index}`, index)
    expect(of('p0')).to.deep.equal({ '10.0.0.0': 0, '10.0.0.1': 0, '10.0.0.2': 0, '10.1.0.0': 0 })
    expect(planner.servedClass('p0')).to.equal(planner.servedClass('p1'))

    at('c1', 'PreferSameNode', 'n1', 'n2', 'n3')
    expect(of('p0')).to.deep.equal({ '10.0.0.0': 0, '10.0.0.1': 1, '10.0.0.2': 2, '10.1.0.0': 1 })
    expect(of('p1')).to.deep.equal({ '10.0.0.0': 1, '10.0.0.1': 0, '10.0.0.2': 2, '10.1.0.0': 1 })
    expect(of('p3'), 'its node is not known').to.deep.equal({ '10.0.0.0': 0, '10.0.0.1': 0, '10.0.0.2': 1, '10.1.0.0': 0 })
    expect(planner.servedClass('p0'), 'of one node').to.equal(planner.servedClass('p2'))
    at('c1', 'PreferSameNode', 'n2', 'n3')
    expect(of('p0'), 'none on its node').to.deep.equal({ '10.0.0.0': 0, '10.0.0.1': 1, '10.1.0.0': 0 })
    at('c1', 'PreferSameZone', 'n1', 'n2', 'n3')
    expect(of('p0')).to.deep.equal({ '10.0.0.0': 0, '10.0.0.1': 0, '10.0.0.2': 1, '10.1.0.0': 0 })
    expect(planner.servedClass('p0')).to.equal(planner.servedClass('p1'))
  })
})
