/**
 * Networks, subsets, ports, modes of TLS, accounts, localities and changes in products: what a proxy sends where, held against a direct
 * reading of docs/resources.md, E1 to E6.
 */
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import fc from 'fast-check'
import { ClusterLoadAssignmentSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { configKey } from '../../../src/config/kinds.ts'
import { readMeshNetworks } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { endpointType } from '../../../src/xds/type-urls.ts'
import { resourcesOf } from '../../harness/held.ts'
import { seed } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'

const networks = ['near', 'far', 'further', 'lonely'] as const
/** By network its gateways, of which two networks share one. `lonely` has none, and its endpoints are reached directly. */
const gateways: Readonly<Record<string, readonly string[]>> = { near: ['192.0.2.1'], far: ['192.0.2.2', '192.0.2.3'], further: ['192.0.2.3'] }
const product = 2
const ports = [
  { number: 80, name: 'http', target: 8080 },
  { number: 81, name: 'tcp', target: 81 },
]

interface Given {
  readonly network: (typeof networks)[number]
  readonly version: 'v1' | 'v2'
  readonly account: boolean
  readonly tlsMode: '' | 'istio' | 'disabled'
  readonly isOpen: boolean
  readonly locality: '' | 'r1/z1' | 'r1/z2' | 'r2/z1'
}
interface World {
  readonly endpoints: readonly Given[]
  /** The mode of the PeerAuthentication of workloads with the label `open` on port 8080. */
  readonly peers: '' | 'DISABLE' | 'STRICT'
  readonly rule: '' | 'DISABLE' | 'MESH_MUTUAL'
  readonly spread: '' | 'distribute' | 'failover'
}

const worlds: fc.Arbitrary<World> = fc.record({
  endpoints: fc.array(
    fc.record({
      network: fc.constantFrom(...networks),
      version: fc.constantFrom('v1' as const, 'v2' as const),
      account: fc.boolean(),
      tlsMode: fc.constantFrom('' as const, '' as const, 'istio' as const, 'disabled' as const),
      isOpen: fc.boolean(),
      locality: fc.constantFrom('' as const, 'r1/z1' as const, 'r1/z2' as const, 'r2/z1' as const),
    }),
    { maxLength: 8 },
  ),
  peers: fc.constantFrom('' as const, 'DISABLE' as const, 'STRICT' as const),
  rule: fc.constantFrom('' as const, '' as const, 'DISABLE' as const, 'MESH_MUTUAL' as const),
  spread: fc.constantFrom('' as const, 'distribute' as const, 'failover' as const),
})

const addressOf = (index: number) => `10.0.0.${index + 1}`
const shares = { 'r1/z1': 70, 'r1/*': 20, '*': 10 }

function documentsOf({ endpoints, peers, rule, spread }: World): string {
  const object = (group: string, kind: string, name: string, spec: object) =>
    JSON.stringify({ apiVersion: `${group}.mesh.io/v1`, kind, metadata: { name, namespace: 'ns' }, spec })
  const tls = rule === '' ? {} : { tls: { mode: rule } }
  const loadBalancer =
    spread === 'distribute' ? { localityLbSetting: { distribute: [{ from: 'r1/*', to: shares }] } } : { localityLbSetting: { enabled: true } }
  const trafficPolicy = { ...tls, ...(spread === '' ? {} : { loadBalancer, outlierDetection: { consecutive5xxErrors: 5 } }) }
  return [
    object('networking', 'ServiceEntry', 'a', {
      hosts: ['a.ns.svc.cluster.local'],
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      ports: ports.map(({ number, name }) => ({ number, name })),
      endpoints: endpoints.map(({ network, version, account, tlsMode, isOpen, locality }, index) => ({
        address: addressOf(index),
        network,
        labels: { version, ...(isOpen ? { open: 'yes' } : {}), ...(tlsMode === '' ? {} : { 'security.mesh.io/tlsMode': tlsMode }) },
        ports: { http: 8080 },
        ...(account ? { serviceAccount: 'a' } : {}),
        ...(locality === '' ? {} : { locality }),
      })),
    }),
    object('networking', 'DestinationRule', 'a', {
      host: 'a.ns.svc.cluster.local',
      ...(Object.keys(trafficPolicy).length > 0 ? { trafficPolicy } : {}),
      subsets: ['v1', 'v2'].map((version) => ({ name: version, labels: { version } })),
    }),
    object('security', 'PeerAuthentication', 'open', {
      selector: { matchLabels: { open: 'yes' } },
      ...(peers === '' ? {} : { portLevelMtls: { 8080: { mode: peers } } }),
    }),
  ].join('\n---\n')
}

/** By address and port `<priority> <share of the traffic of this priority>`, and whether it gets mutual TLS. */
type Seen = Readonly<Record<string, { readonly priority: number; readonly share: number; readonly tls: boolean }>>

const own = 'r1/z1'

/** What the rules say that a proxy of a network sends to a port of a subset. */
function expected(world: World, network: string, port: (typeof ports)[number], subset: string, forwards: boolean): Seen {
  const parts: { key: string; locality: string; weight: number; tls: boolean }[] = []
  for (const [index, endpoint] of world.endpoints.entries()) {
    if (subset !== '' && endpoint.version !== subset) continue
    const proxied = endpoint.tlsMode === '' ? endpoint.account : endpoint.tlsMode === 'istio'
    const tls = proxied && !(endpoint.isOpen && world.peers === 'DISABLE' && port.target === 8080)
    const through = endpoint.network === network ? undefined : gateways[endpoint.network]
    const { locality } = endpoint
    if (forwards && !tls) continue
    if (!through) parts.push({ key: `${addressOf(index)}:${port.target}`, locality, weight: product, tls })
    else if (tls && (forwards || world.rule !== 'DISABLE'))
      for (const gateway of through) parts.push({ key: `${gateway}:15443`, locality, weight: product / through.length, tls })
  }
  const direct = parts.filter(({ key }) => !key.endsWith(':15443'))
  // What a gateway passes on stays in its network while there are endpoints in it (G6).
  if (forwards && direct.length > 0) parts.splice(0, parts.length, ...direct)
  const rank = (locality: string) => (world.spread !== 'failover' ? 0 : locality === own ? 0 : locality === 'r1/z2' ? 2 : 3)
  const weightOf = (some: typeof parts) => some.reduce((sum, { weight }) => sum + weight, 0)
  const patternOf = (locality: string) => (locality === own ? 'r1/z1' : locality === 'r1/z2' ? 'r1/*' : '*')
  const traffic = (part: (typeof parts)[number]) => {
    if (world.spread !== 'distribute') return part.weight
    const pattern = patternOf(part.locality)
    const same = parts.filter(({ locality }) => locality === part.locality)
    const covered = weightOf(parts.filter(({ locality }) => patternOf(locality) === pattern))
    // The weights of localities are whole numbers.
    return (Math.ceil((weightOf(same) / covered) * shares[pattern]) * part.weight) / weightOf(same)
  }
  const used = [...new Set(parts.map(({ locality }) => rank(locality)))].sort()
  const best = new Map<string, number>()
  for (const { key, locality } of parts) best.set(key, Math.min(best.get(key) ?? 9, rank(locality)))
  const ranks = used.filter((each) => [...best.values()].includes(each))
  const seen: Record<string, { priority: number; share: number; tls: boolean }> = {}
  const ofRank = (each: number) => parts.filter(({ key, locality }) => rank(locality) === each && best.get(key) === each)
  for (const each of ranks) {
    const total = ofRank(each).reduce((sum, part) => sum + traffic(part), 0)
    for (const part of ofRank(each))
      seen[part.key] = { priority: ranks.indexOf(each), share: (seen[part.key]?.share ?? 0) + traffic(part) / total, tls: part.tls }
  }
  return seen
}

class Mesh {
  readonly planner = new Planner(testSettings())

  constructor() {
    const read = readMeshNetworks(
      JSON.stringify({
        networks: Object.fromEntries(Object.entries(gateways).map(([name, list]) => [name, { gateways: list.map((address) => ({ address })) }])),
      }),
    )
    if ('error' in read) throw new Error(read.error)
    this.planner.state.setNetworks(read.value)
    const locality = { region: 'r1', zone: 'z1', subZone: '' } as never
    for (const network of networks)
      for (const [type, metadata] of [
        ['sidecar', { NETWORK: network }],
        ['router', { NETWORK: network, ROUTER_MODE: 'sni-dnat' }],
      ] as const)
        this.planner.connect(`${type} ${network}`, readNode({ id: `${type}~10.1.0.1~p.ns~ns.svc.cluster.local`, metadata, locality }, names, false))
  }

  readonly #assignments = new Map<string, ReadonlyMap<string, Uint8Array>>()

  set(world: World): void {
    const { objects, faults } = parseConfigFile('f', documentsOf(world), names)
    expect(faults).to.deep.equal([])
    for (const object of objects) this.planner.state.setConfig(configKey(object), object)
    this.planner.advance()
    for (const { connection } of this.planner.proxies()) {
      const resources = resourcesOf(this.planner, connection).get(endpointType) ?? []
      this.#assignments.set(connection, new Map(resources.map((resource) => [resource.name, this.planner.groups.valueOf(resource)])))
    }
  }

  /** What Envoy makes of the assignment: of equal addresses the first one stays, and weights count within their locality. */
  seen(connection: string, cluster: string): Seen {
    const bytes = this.#assignments.get(connection)?.get(cluster)
    if (!bytes) throw new Error(`${connection} has no assignment ${cluster}`)
    const { endpoints } = fromBinary(ClusterLoadAssignmentSchema, bytes)
    const seen: Record<string, { priority: number; share: number; tls: boolean }> = {}
    const totals = new Map<number, number>()
    for (const { priority, loadBalancingWeight } of endpoints) totals.set(priority, (totals.get(priority) ?? 0) + (loadBalancingWeight ?? 0))
    for (const { priority, loadBalancingWeight = 0, lbEndpoints } of endpoints) {
      const sum = lbEndpoints.reduce((all, { loadBalancingWeight: weight = 0 }) => all + weight, 0)
      for (const { hostIdentifier, loadBalancingWeight: weight = 0, metadata } of lbEndpoints) {
        const address = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined
        const key = address?.case === 'socketAddress' ? `${address.value.address}:${address.value.portSpecifier.value}` : '?'
        if (seen[key]) continue
        const share = ((loadBalancingWeight / (totals.get(priority) ?? 1)) * weight) / sum
        seen[key] = { priority, share, tls: metadata?.filterMetadata['envoy.transport_socket_match'] !== undefined }
      }
    }
    return seen
  }
}

const host = 'a.ns.svc.cluster.local'
const products = networks.flatMap((network) =>
  ports.flatMap((port) =>
    ['', 'v1', 'v2'].flatMap((subset) => [
      { network, port, subset, proxy: 'sidecar', cluster: `outbound|${port.number}|${subset}|${host}` },
      { network, port, subset, proxy: 'router', cluster: `outbound|${port.number}|${subset}|${host}` },
      { network, port, subset, proxy: 'router', cluster: `outbound_.${port.number}_.${subset}_.${host}` },
    ]),
  ),
)

describe('networks with subsets, ports, modes of TLS, accounts and localities', () => {
  it('are what the rules say, whatever changed before', () => {
    fc.assert(
      fc.property(fc.array(worlds, { minLength: 1, maxLength: 3 }), (history) => {
        const mesh = new Mesh()
        for (const world of history) {
          mesh.set(world)
          for (const { network, port, subset, proxy, cluster } of products) {
            const wanted = expected(world, network, port, subset, cluster.startsWith('outbound_'))
            const seen = mesh.seen(`${proxy} ${network}`, cluster)
            expect(Object.keys(seen).sort(), `${network} ${cluster}`).to.deep.equal(Object.keys(wanted).sort())
            for (const [key, { priority, share, tls }] of Object.entries(wanted)) {
              expect([seen[key]?.priority, seen[key]?.tls], `${network} ${cluster} ${key}`).to.deep.equal([priority, tls])
              expect(seen[key]?.share, `${network} ${cluster} ${key}`).to.be.closeTo(share, 0.003)
            }
          }
        }
      }),
      { seed, numRuns: 60 },
    )
  })
})
