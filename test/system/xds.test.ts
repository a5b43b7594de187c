import { connect as http2 } from 'node:http2'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { Cluster_DiscoveryType, ClusterSchema } from '../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { ClusterLoadAssignmentSchema } from '../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { DiscoveryRequestSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { seededRandom } from '../../src/registry/mock.ts'
import { clusterType, endpointType, listenerType, routeType } from '../../src/xds/type-urls.ts'
import { OwnTime } from '../harness/own-time.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const entry = (
  name: string,
  options: { namespace?: string; endpoints?: string[]; port?: string; group?: string; extra?: string } = {},
) => `apiVersion: networking.${options.group ?? 'mesh.io'}/v1alpha3
kind: ServiceEntry
metadata: {name: ${name}, namespace: ${options.namespace ?? 'ns-0'}}
spec:
  hosts: [${name}.${options.namespace ?? 'ns-0'}.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [${options.port ?? '{number: 80, name: http, protocol: HTTP}'}]
  endpoints: [${(options.endpoints ?? ['10.0.0.1']).map((address) => `{address: ${address}, labels: {version: v1}}`).join(', ')}]
${options.extra ?? ''}`

describe('XDS', () => {
  const service = new Service()
  const clients: XdsClient[] = []
  const connect = (delta: boolean, address = '10.9.0.1', namespace = 'ns-0', metadata = {}) => {
    const client = new XdsClient(service.grpcPort, sidecarNode(address, `pod-${clients.length}`, namespace, metadata), delta).connect()
    clients.push(client)
    return client.ready()
  }

  before(async () => {
    service.write('a.yaml', entry('a'))
    service.write('b.yaml', entry('b', { group: 'istio.io', namespace: 'ns-1' }))
    await service.start()
  })
  after(async () => {
    for (const client of clients) client.close()
    await service.dispose()
  })

  it('announces windows large enough for a request with thousands of names', async () => {
    const session = http2(`http://127.0.0.1:${service.grpcPort}`)
    try {
      await until('the windows', () => session.remoteSettings?.initialWindowSize === 262_144 && session.state.remoteWindowSize === 262_144)
    } finally {
      session.destroy()
    }
  })

  for (const delta of [false, true]) {
    const mode = delta ? 'delta' : 'state of the world'
    it(`${mode}: sends the first configuration in order, then an endpoint change as endpoints only`, async () => {
      const client = await connect(delta)
      expect([...(client.resources.get(clusterType)?.keys() ?? [])]).to.include.members([
        'outbound|80||a.ns-0.svc.cluster.local',
        'outbound|80||b.ns-1.svc.cluster.local',
        'BlackHoleCluster',
        'PassthroughCluster',
      ])
      expect(client.order.indexOf(clusterType)).to.be.lessThan(client.order.indexOf(listenerType))
      await until(
        'what earlier tests removed to be gone',
        () => ![...(client.resources.get(clusterType)?.keys() ?? [])].some((name) => /\|[c-e]\.ns-0/.test(name)),
      )
      const before = new Map(client.responses)
      const address = delta ? '10.0.7.1' : '10.0.7.2'
      service.write('a.yaml', entry('a', { endpoints: [address] }))
      const held = () => client.resources.get(endpointType)?.get('outbound|80||a.ns-0.svc.cluster.local') as Buffer
      await until('the endpoint', () => held().includes(address))
      for (const type of [clusterType, listenerType, routeType]) expect(client.responses.get(type)).to.equal(before.get(type))
      expect(fromBinary(ClusterLoadAssignmentSchema, held()).endpoints[0]?.lbEndpoints).to.have.length(1)
    })

    it(`${mode}: removes a deleted service, its cluster after its routes`, async () => {
      service.write('c.yaml', entry('c'))
      const client = await connect(delta)
      const cluster = 'outbound|80||c.ns-0.svc.cluster.local'
      await until('the cluster', () => client.resources.get(clusterType)?.has(cluster) ?? false)
      client.order.length = 0
      service.remove('c.yaml')
      await until('the route to go', () => !client.resources.get(routeType)?.get('80')?.includes('c.ns-0.svc'))
      await until('the cluster to go', () => !client.resources.get(clusterType)?.has(cluster))
      expect(client.order.indexOf(routeType)).to.be.lessThan(client.order.lastIndexOf(clusterType))
    })

    it(`${mode}: records a NACK with its message, and continues to push`, async () => {
      const client = await connect(delta, '10.9.0.44')
      client.refuseNext = `resource outbound|80||a is not to the taste of ${mode}`
      service.write('d.yaml', entry('d'))
      await until('the refusal on the debug page', async () => (await service.rejections()).some((line) => line.includes(`taste of ${mode}`)))
      expect(await service.metrics()).to.match(/pilot_total_xds_rejects\{type="cds"\} [1-9]/)
      service.write('d.yaml', entry('d', { endpoints: ['10.0.8.8'] }))
      service.write('e.yaml', entry('e'))
      await until('the next push', () => client.resources.get(clusterType)?.has('outbound|80||e.ns-0.svc.cluster.local') ?? false)
      service.remove('d.yaml')
      service.remove('e.yaml')
    })
  }

  it('pushes nothing if no resource of a proxy changed', async () => {
    const client = await connect(false)
    const before = JSON.stringify([...client.responses])
    const avoided = async () => Number(/pilot_pushes_avoided_total (\d+)/.exec(await service.metrics())?.[1] ?? 0)
    const start = await avoided()
    service.write('a.yaml', `# only a comment\n${entry('a', { endpoints: ['10.0.7.1'] })}`)
    service.write('b.yaml', `# only a comment\n${entry('b', { group: 'istio.io', namespace: 'ns-1' })}`)
    await until('the change to be counted as avoided', async () => (await avoided()) > start)
    service.write('marker.yaml', entry('marker'))
    await until('a later change', () => client.resources.get(clusterType)?.has('outbound|80||marker.ns-0.svc.cluster.local') ?? false)
    expect(JSON.stringify([...client.responses])).not.to.equal(before)
    service.remove('marker.yaml')
  })

  it('delta: sends a reconnecting proxy only differences and removed names', async () => {
    const first = await connect(true, '10.9.0.60')
    await until('settled', () => first.resources.get(clusterType)?.has('outbound|80||a.ns-0.svc.cluster.local') ?? false)
    const versions = Object.fromEntries(
      [...first.versions].filter(([key]) => key.startsWith(`${clusterType}|`)).map(([key, version]) => [key.slice(clusterType.length + 1), version]),
    )
    first.close()
    const again = new XdsClient(service.grpcPort, first.node, true).connect({ ...versions, 'outbound|80||gone': 'old', BlackHoleCluster: 'stale' })
    clients.push(again)
    again.resources.get(clusterType)?.set('outbound|80||gone', Buffer.alloc(1))
    await until('the difference', () => again.resources.get(clusterType)?.has('BlackHoleCluster') ?? false)
    expect([...(again.resources.get(clusterType)?.keys() ?? [])]).to.deep.equal(['BlackHoleCluster'])
  })

  it('ignores stale nonces, and answers an unsubscription with nothing', async () => {
    const client = await connect(false, '10.9.0.61')
    const count = client.responses.get(endpointType)
    client.sendRaw(
      toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl: endpointType, responseNonce: 'never-sent', resourceNames: ['x'] })),
    )
    await until('the expired nonce', async () => /pilot_xds_expired_nonce\{type="eds"\} [1-9]/.test(await service.metrics()))
    client.sendRaw(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl: endpointType })))
    await until('the watch to be gone', async () => {
      const { clients: listed } = await service.debug<{ clients: { connectionId: string; watches: Record<string, string[]> }[] }>('adsz')
      const own = listed.find((entry) => entry.connectionId.startsWith(client.node.id))
      return own !== undefined && own.watches[endpointType] === undefined
    })
    expect(client.responses.get(endpointType)).to.equal(count)
  })

  it('limits services by Sidecar and exportTo', async () => {
    service.write('private.yaml', entry('private', { namespace: 'ns-2', extra: '  exportTo: ["."]' }))
    service.write(
      'scope.yaml',
      'apiVersion: networking.mesh.io/v1\nkind: Sidecar\nmetadata: {name: scoped, namespace: ns-3}\nspec: {workloadSelector: {labels: {app: scoped}}, egress: [{hosts: ["ns-0/*"]}], outboundTrafficPolicy: {mode: REGISTRY_ONLY}}\n',
    )
    const own = await connect(false, '10.9.2.1', 'ns-2')
    await until('the private service', () => own.resources.get(clusterType)?.has('outbound|80||private.ns-2.svc.cluster.local') ?? false)
    const other = await connect(true, '10.9.2.2', 'ns-1')
    expect(other.resources.get(clusterType)?.has('outbound|80||private.ns-2.svc.cluster.local')).to.equal(false)
    const scoped = await connect(false, '10.9.3.1', 'ns-3', { LABELS: { app: 'scoped' } })
    await until('the scope', () => {
      const outbound = [...(scoped.resources.get(clusterType)?.keys() ?? [])].filter((name) => name.startsWith('outbound|'))
      expect(outbound).not.to.deep.equal([])
      expect(outbound.filter((name) => !name.includes('.ns-0.'))).to.deep.equal([])
      return scoped.resources.get(routeType)?.get('80')?.includes('block_all') ?? false
    })
    expect(own.resources.get(routeType)?.get('80')?.includes('private:80')).to.equal(true)
  })

  it('gives SotW, delta and a new proxy the same resources after random changes', async () => {
    const random = seededRandom(42)
    const pair = [await connect(false, '10.9.5.1', 'ns-1'), await connect(true, '10.9.5.1', 'ns-1')] as const
    for (let step = 0; step < 30; step++) {
      const name = `r${Math.floor(random() * 6)}`
      const what = random()
      const file = `random-${name}.yaml`
      if (what < 0.25) service.remove(file)
      else if (what < 0.4)
        service.write(
          `vs-${name}.yaml`,
          `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: ${name}, namespace: ns-1}\nspec: {hosts: [${name}], http: [{match: [{uri: {prefix: /${step}}}], route: [{destination: {host: ${name}}}]}]}\n`,
        )
      else if (what < 0.5)
        service.write(
          `dr-${name}.yaml`,
          `apiVersion: networking.mesh.io/v1\nkind: DestinationRule\nmetadata: {name: ${name}, namespace: ns-1}\nspec: {host: ${name}, subsets: [{name: s${step % 3}, labels: {version: v1}}]}\n`,
        )
      else
        service.write(
          file,
          entry(name, {
            namespace: 'ns-1',
            endpoints: [`10.1.${step}.${Math.floor(random() * 200) + 1}`],
            port: random() < 0.3 ? '{number: 81, name: tcp, protocol: TCP}' : undefined,
          }),
        )
      if (random() < 0.3)
        await until(
          'time to pass',
          (
            (count) => () =>
              count++ > 8
          )(0),
        )
    }
    service.write('last.yaml', entry('last', { namespace: 'ns-1' }))
    for (const client of pair)
      await until('the last change', () => client.resources.get(clusterType)?.has('outbound|80||last.ns-1.svc.cluster.local') ?? false)
    const fresh = await connect(false, '10.9.5.1', 'ns-1')
    await until('all three to agree', async () => {
      const [one, other, third] = [...pair, fresh].map((client) => JSON.stringify(client.state()))
      return one === other && other === third
    })
  })

  it('replaces a cluster at once when the resolution of its service changes, with and without private services', async () => {
    const found = (resolution: string) => `${entry('found', { namespace: 'ns-1' }).replace('STATIC', resolution)}\n`
    service.write('found.yaml', found('STATIC'))
    service.write('own.yaml', `${entry('only-own', { namespace: 'ns-2' })}\n  exportTo: [.]\n`)
    const cluster = (client: XdsClient, name: string) => client.resources.get(clusterType)?.get(`outbound|80||${name}.ns-1.svc.cluster.local`)
    const type = (client: XdsClient) => {
      const value = cluster(client, 'found')
      return value && fromBinary(ClusterSchema, value).clusterDiscoveryType.value
    }
    const kinds = [false, true].flatMap((delta) => ['ns-2', 'ns-3'].map((namespace) => ({ delta, namespace })))
    const connectAll = () => Promise.all(kinds.map(({ delta, namespace }, index) => connect(delta, `10.9.7.${index + 1}`, namespace)))
    const proxies = await connectAll()
    for (const [resolution, wanted] of [
      ['DNS', Cluster_DiscoveryType.STRICT_DNS],
      ['STATIC', Cluster_DiscoveryType.EDS],
    ] as const) {
      service.write('going.yaml', entry('going', { namespace: 'ns-1' }))
      for (const proxy of proxies) await until('both services', () => cluster(proxy, 'going') !== undefined && cluster(proxy, 'found') !== undefined)
      const changed = new OwnTime()
      service.write('found.yaml', found(resolution))
      service.remove('going.yaml')
      await until('the new cluster', () => proxies.every((proxy) => type(proxy) === wanted))
      // A cluster that was only removed stays for two seconds, a replaced one must not.
      expect(changed.ms(), 'milliseconds of own time until the new cluster').to.be.below(1900)
      for (const proxy of await connectAll()) expect(type(proxy)).to.equal(wanted)
    }
  })

  it('refuses an invalid node with the reason', async () => {
    const bad = new XdsClient(service.grpcPort, { id: 'sidecar~not-an-address~x~y', metadata: {} }, false).connect()
    clients.push(bad)
    await until('the stream to end', () => bad.closed !== undefined)
    expect([bad.closed?.code, bad.closed?.details]).to.deep.equal([3, 'no valid IP address in node ID or INSTANCE_IPS (got "not-an-address")'])
    const none = new XdsClient(service.grpcPort, { id: '', metadata: {} }, false).connect()
    clients.push(none)
    await until('the stream to end', () => none.closed !== undefined)
    expect(none.closed?.details).to.equal('missing node ID')
  })

  for (const delta of [false, true])
    it(`ends a stream whose request cannot be decoded with a status and a log line that say so, over ${delta ? 'delta' : 'state of the world'}`, async () => {
      for (const [bytes, reason] of [
        [Buffer.alloc(11, 0xff), 'varint is too long'],
        [Buffer.from([0x0c]), 'wire type 4 is not supported'],
      ] as const) {
        const client = await connect(delta, '10.9.8.1', 'ns-1')
        client.sendRaw(bytes)
        await until('the stream to end', () => client.closed !== undefined)
        expect([client.closed?.code, client.closed?.details]).to.deep.equal([3, `the discovery request cannot be decoded: ${reason}`])
      }
      await service.output.says('ended: the discovery request cannot be decoded: varint is too long')
    })
})
