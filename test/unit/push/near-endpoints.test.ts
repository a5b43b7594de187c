/** Which endpoints callers have by where they are: those of their cluster (docs/resources.md, E11), and first those near them (E10). */
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import type { Endpoint, Service } from '../../../protocols/data.ts'
import { ClusterLoadAssignmentSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { configKey } from '../../../src/config/kinds.ts'
import { readMeshConfig } from '../../../src/config/mesh-config.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { endpointType } from '../../../src/xds/type-urls.ts'
import { names, testSettings } from '../../harness/settings.ts'

const host = 'web.shop.svc.cluster.local'
const endpointOf = (address: string, locality: string): Endpoint => ({
  ...{ address, locality, ports: {}, labels: {}, network: '', weight: 1, serviceAccount: '', namespace: 'shop', workload: '' },
})

describe('endpoints near a caller', () => {
  /** A mesh with a Service that has endpoints in two zones of each of two clusters. */
  const meshWith = (config: string, distribution?: 'PreferSameZone') => {
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
    const groups = planner.present.manifest(planner.servedClass(cluster)?.id ?? '')?.groups[endpointType] ?? []
    const [resource] = groups.flatMap(({ group }) => planner.groups.resources(group).get(`outbound|80||${host}`) ?? [])
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
})
