/** Proxies of several clusters have services at the addresses of their own cluster (docs/resources.md, O13). */
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import type { Service } from '../../../protocols/data.ts'
import { ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { type NameTable, NameTableSchema } from '../../../protocols/gen/mesh/networking/nds/v1/nds_pb.js'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { listenerType, nameTableType, routeType } from '../../../src/xds/type-urls.ts'
import { resourcesOf } from '../../harness/held.ts'
import { names, testSettings } from '../../harness/settings.ts'

const planner = () => {
  const made = new Planner(testSettings())
  const service = (name: string, cluster: string, address: string, protocol: 'http' | 'tcp', createdAt: number) => {
    const definition: Service = {
      ...{ hostname: `${name}.shop.svc.cluster.local`, namespace: 'shop', name, provider: 'Orchestrator', cluster, addresses: [address] },
      ports: [{ number: protocol === 'http' ? 80 : 3306, name: protocol, protocol, targetPort: 8080 }],
      ...{ resolution: 'static', external: false, exportTo: [], serviceAccounts: [], selector: {}, createdAt },
    }
    made.state.services.set(`Orchestrator/${cluster}`, `shop/${definition.hostname}`, { service: definition, slices: [] })
  }
  const connect = (connection: string, cluster: string) => {
    const id = `sidecar~10.1.0.1~p.shop~shop.svc.cluster.local`
    made.connect(connection, readNode({ id, metadata: { CLUSTER_ID: cluster, DNS_CAPTURE: 'true' }, locality: undefined }, names, false))
  }
  return { made, service, connect }
}

describe('the addresses of a service in several clusters', () => {
  it('are those of the cluster of the proxy, in listeners, routes and names', () => {
    const { made, service, connect } = planner()
    // Another service has the address in the other cluster: clusters do not agree on addresses.
    service('web', 'east', '172.20.0.1', 'http', 1)
    service('web', 'west', '172.20.0.2', 'http', 2)
    service('shop', 'east', '172.20.0.2', 'http', 1)
    service('shop', 'west', '172.20.0.1', 'http', 2)
    service('db', 'east', '172.20.0.3', 'tcp', 1)
    service('db', 'west', '172.20.0.4', 'tcp', 2)
    for (const cluster of ['east', 'west', 'elsewhere']) connect(cluster, cluster)
    made.advance()
    const seen = (connection: string) => {
      const resources = resourcesOf(made, connection)
      const bytes = (type: string) => (resources.get(type) ?? []).map((resource) => made.groups.valueOf(resource))
      const [names80] = bytes(routeType)
        .map((value) => fromBinary(RouteConfigurationSchema, value))
        .filter(({ name }) => name === '80')
      const domains = (host: string) =>
        names80?.virtualHosts
          .find(({ name }) => name.startsWith(host))
          ?.domains.filter((domain) => /^172.*\d$/.test(domain))
          .filter((domain) => !domain.includes(':'))
      const [table] = bytes(nameTableType).map((value): NameTable['table'] => fromBinary(NameTableSchema, value).table)
      return {
        listeners: bytes(listenerType)
          .map((value) => fromBinary(ListenerSchema, value).name)
          .filter((name) => name.endsWith('_3306')),
        domains: [domains('web'), domains('shop')],
        names: ['web', 'shop', 'db'].map((name) => table?.[`${name}.shop.svc.cluster.local`]?.ips),
      }
    }
    const east = {
      listeners: ['172.20.0.3_3306'],
      domains: [['172.20.0.1'], ['172.20.0.2']],
      names: [['172.20.0.1'], ['172.20.0.2'], ['172.20.0.3']],
    }
    expect(seen('east')).to.deep.equal(east)
    expect(seen('elsewhere'), 'those of the oldest definition').to.deep.equal(east)
    expect(seen('west')).to.deep.equal({
      listeners: ['172.20.0.4_3306'],
      domains: [['172.20.0.2'], ['172.20.0.1']],
      names: [['172.20.0.2'], ['172.20.0.1'], ['172.20.0.4']],
    })
    for (const name of ['web', 'shop', 'db']) made.state.services.set('Orchestrator/west', `shop/${name}.shop.svc.cluster.local`, undefined)
    made.advance()
    expect(seen('west'), 'without the cluster').to.deep.equal(east)
  })
})
