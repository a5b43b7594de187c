/** Services of several clusters: what is merged of them does not depend on the order of events, against a model (docs/resources.md, O13). */
import { expect } from 'chai'
import fc from 'fast-check'
import type { Endpoint, Service, ServicePort } from '../../../protocols/data.ts'
import { Faults } from '../../../src/model/faults.ts'
import { MergedServices } from '../../../src/registry/merged-services.ts'
import { slicesOf } from '../../../src/registry/slices.ts'
import { runs } from '../../harness/seed.ts'

interface Definition {
  readonly age: number
  readonly address: string
  readonly port: number
  readonly pods: readonly number[]
}

const portOf = (number: number): ServicePort => ({ number, name: `http-${number}`, protocol: 'http', targetPort: 8080 })
const hostOf = (name: string) => `${name}.shop.svc.cluster.local`

function recordOf(name: string, cluster: string, { age, address, port, pods }: Definition) {
  const service: Service = {
    ...{ hostname: hostOf(name), namespace: 'shop', name, provider: 'Orchestrator', cluster, addresses: address === '' ? [] : [address] },
    ...{ ports: [portOf(port)], resolution: 'static', external: false, exportTo: [], serviceAccounts: [], selector: {}, createdAt: age },
  }
  const endpoints = pods.map(
    (last): Endpoint => ({
      ...{ address: `10.${cluster.charCodeAt(0)}.0.${last}`, ports: {}, labels: {}, locality: '', network: '', weight: 1 },
      ...{ serviceAccount: 'a', namespace: 'shop', workload: `p${last}` },
    }),
  )
  return { service, slices: slicesOf(endpoints) }
}

const shown = (services: MergedServices) => {
  const { services: merged, vipClusters } = services.merge()
  const states = [...merged].map(([host, [state]]) => [
    host,
    {
      definition: [state?.service.cluster, state?.service.addresses, state?.service.ports.map(({ number }) => number)],
      vips: state?.service.clusterVIPs ?? {},
      endpoints: state?.shards.map(({ cluster, endpoints }) => [cluster, endpoints.map(({ address, serves }) => [address, serves ?? 'all'])]),
    },
  ])
  return { states: Object.fromEntries(states), vipClusters: [...vipClusters].sort() }
}

/** What must come of the definitions that are there in the end. */
function model(held: ReadonlyMap<string, Definition>) {
  const states: Record<string, unknown> = {}
  const vipClusters = new Set<string>()
  for (const name of ['a', 'b']) {
    const all = [...held].flatMap(([at, definition]) => (at.endsWith(`/${name}`) ? [{ cluster: at.split('/')[0] as string, ...definition }] : []))
    // The own cluster is north: what it has counts, then the id of the cluster decides, and never the age, which a server may say as it likes.
    const rank = (cluster: string) => (cluster === 'north' ? '' : cluster)
    const [first] = all.toSorted((one, other) => (rank(one.cluster) < rank(other.cluster) ? -1 : 1))
    if (!first) continue
    const vips = all.filter(({ address }) => address !== first.address).sort((one, other) => (one.cluster < other.cluster ? -1 : 1))
    for (const { cluster } of vips) vipClusters.add(cluster)
    states[hostOf(name)] = {
      definition: [first.cluster, first.address === '' ? [] : [first.address], [first.port]],
      vips: Object.fromEntries(vips.map(({ cluster, address }) => [cluster, address === '' ? [] : [address]])),
      endpoints: all
        .toSorted((one, other) => (one.cluster < other.cluster ? -1 : 1))
        .map(({ cluster, port, pods }) => [
          cluster,
          pods.map((last) => [`10.${cluster.charCodeAt(0)}.0.${last}`, port === first.port ? 'all' : [`http-${port}`]]),
        ]),
    }
  }
  return { states, vipClusters: [...vipClusters].sort() }
}

describe('services of several clusters', () => {
  it('are one service with the endpoints of all, and the addresses that each cluster has, whatever the order of events', () => {
    const definition = fc.record({
      age: fc.integer({ min: 0, max: 2 }),
      address: fc.constantFrom('', '172.20.0.1', '172.20.0.2'),
      port: fc.constantFrom(80, 81),
      pods: fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { maxLength: 3 }).map((pods) => pods.sort()),
    })
    const event = fc.record({
      cluster: fc.constantFrom('east', 'north', 'west'),
      name: fc.constantFrom('a', 'b'),
      definition: fc.option(definition, { freq: 3, nil: undefined }),
      merges: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 20 }), (events) => {
        const services = new MergedServices(new Faults(), undefined, undefined, 'north')
        const held = new Map<string, Definition>()
        for (const { cluster, name, definition: given, merges } of events) {
          services.set(`Orchestrator/${cluster}`, `shop/${hostOf(name)}`, given && recordOf(name, cluster, given))
          if (given) held.set(`${cluster}/${name}`, given)
          else held.delete(`${cluster}/${name}`)
          if (merges) services.merge()
        }
        expect(shown(services)).to.deep.equal(model(held))
      }),
      { numRuns: runs(200) },
    )
  })

  it('keep their definition while only endpoints of another cluster change', () => {
    const services = new MergedServices(new Faults())
    const set = (cluster: string, address: string, ...pods: number[]) =>
      services.set(`Orchestrator/${cluster}`, `shop/${hostOf('a')}`, recordOf('a', cluster, { age: 1, address, port: 80, pods }))
    set('east', '172.20.0.1', 1)
    set('west', '172.20.0.2', 1)
    const [before] = services.merge().services.get(hostOf('a')) ?? []
    set('west', '172.20.0.2', 1, 2)
    const { services: merged, redefined } = services.merge()
    expect([merged.get(hostOf('a'))?.[0]?.service, [...redefined]]).to.deep.equal([before?.service, []])
    expect(merged.get(hostOf('a'))?.[0]?.service).to.equal(before?.service)
  })
})
