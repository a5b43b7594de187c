/** Limits of one client against fabricated and hostile proxies, with the real command. */

import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { DeltaDiscoveryRequestSchema, DiscoveryRequestSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { clusterType, endpointType } from '../../src/xds/type-urls.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { adsPath, type ClientNode, sidecarNode, XdsClient } from '../harness/xds-client.ts'

const deltaPath = adsPath.replace('Stream', 'Delta')
const madeUp = (count: number, prefix: string) => Array.from({ length: count }, (_, index) => `outbound|80||${prefix}-${index}.example.com`)

/** Opens a stream on an existing connection and sends the first request of a proxy. */
function openStream(session: ClientHttp2Session, { id, metadata }: ClientNode, resourceNames: string[] = []): ClientHttp2Stream {
  const stream = session.request({ ':method': 'POST', ':path': adsPath, 'content-type': 'application/grpc' })
  stream.on('error', () => undefined).resume()
  const request = create(DiscoveryRequestSchema, { node: { id, metadata: metadata as never }, typeUrl: endpointType, resourceNames })
  stream.write(messageFrame(toBinary(DiscoveryRequestSchema, request)))
  return stream
}

describe('limits for one client', () => {
  let service: Service

  before(async () => {
    service = new Service({ env: { PILOT_MOCK_SERVICES: '300' } })
    await service.start()
  })
  after(() => service.dispose())

  const exceeded = () => service.debug<{ proxy: string; reason: string }[]>('budgetz')
  const subscribe = (client: XdsClient, names: readonly string[]) =>
    client.sendRaw(
      client.delta
        ? toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { typeUrl: endpointType, resourceNamesSubscribe: [...names] }))
        : toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl: endpointType, resourceNames: [...names] })),
    )

  for (const delta of [false, true])
    it(`over 64 KiB of nonexistent names end a ${delta ? 'delta' : 'state-of-the-world'} stream, with an entry in /debug/budgetz and a metric`, async () => {
      const good = await new XdsClient(service.grpcPort, sidecarNode('10.1.0.1', 'good', 'ns'), delta).connect().ready()
      const greedy = await new XdsClient(service.grpcPort, sidecarNode('10.1.0.2', `greedy${delta}`, 'ns'), delta).connect().ready()
      subscribe(greedy, madeUp(1500, 'a'))
      subscribe(greedy, madeUp(1500, 'b'))
      // A state-of-the-world request replaces the list of names, so only a longer list exceeds the limit.
      if (!delta) subscribe(greedy, madeUp(3000, 'c'))
      await until('the stream to end', () => greedy.closed !== undefined)
      expect(greedy.closed?.code).to.equal(8)
      expect(greedy.closed?.details).to.match(/resource names: \d+ bytes of names that do not exist, at most 65536 on one stream/)
      const events = await service.debug<{ proxy: string; reason: string }[]>('budgetz')
      expect(events.some(({ proxy }) => proxy.includes(`greedy${delta}`))).to.equal(true)
      expect(await service.metrics()).to.match(/pilot_xds_exceeded_budgets_total(\{[^}]*\})? [1-9]/)
      expect(good.closed).to.equal(undefined)
      good.close()
      greedy.close()
    })

  it('streams beyond 100 proxies on one connection are ended with RESOURCE_EXHAUSTED, and reported', async () => {
    const session = connectHttp2(`http://127.0.0.1:${service.grpcPort}`)
    const statuses: string[] = []
    for (let index = 0; index < 103; index++)
      openStream(session, sidecarNode('10.1.0.4', `many-${index}`, 'ns')).on('trailers', (trailers) =>
        statuses.push(`${trailers['grpc-status']} ${trailers['grpc-message']}`),
      )
    await until('three streams to end', () => statuses.length >= 3)
    expect(new Set(statuses)).to.deep.equal(new Set(['8 streams: more than 100 proxies on one connection']))
    const named = (await exceeded()).filter(({ reason }) => reason.startsWith('streams: '))
    expect(named.map(({ proxy }) => proxy.replace(/^.*~(many-\d+)\.ns.*$/, '$1')).sort()).to.deep.equal(['many-100', 'many-101', 'many-102'])
    session.destroy()
  })

  it('a stream whose first request exceeds a limit is reported once', async () => {
    const session = connectHttp2(`http://127.0.0.1:${service.grpcPort}`)
    const statuses: unknown[] = []
    openStream(session, sidecarNode('10.1.0.9', 'at-once', 'ns'), madeUp(3000, 'd')).on('trailers', (trailers) =>
      statuses.push(trailers['grpc-status']),
    )
    await until('the stream to end', () => statuses.length > 0)
    expect(statuses).to.deep.equal(['8'])
    expect((await exceeded()).filter(({ proxy }) => proxy.includes('at-once'))).to.have.length(1)
    session.destroy()
  })

  it('initial resource versions are limited to 16 MiB over all streams of a connection, and freed when a stream ends', async () => {
    const versions = Object.fromEntries(Array.from({ length: 75_000 }, (_, index) => [index.toString(36), '']))
    // The client's window is tiny, so the server's answers stay queued, and the versions of later requests stay in memory.
    const stuck = () => {
      const session = connectHttp2(`http://127.0.0.1:${service.grpcPort}`, { settings: { initialWindowSize: 10 } })
      session.on('error', () => undefined)
      const statuses: string[] = []
      const open = (name: string, types: readonly string[]) => {
        const { id, metadata } = sidecarNode('10.1.0.5', name, 'ns')
        const stream = session.request({ ':method': 'POST', ':path': deltaPath, 'content-type': 'application/grpc' })
        stream.on('error', () => undefined).on('trailers', (trailers) => statuses.push(`${trailers['grpc-status']} ${trailers['grpc-message']}`))
        stream.pause()
        for (const [index, typeUrl] of types.entries()) {
          const initialResourceVersions = types.length > 1 && index === 0 ? {} : versions
          const node = index === 0 ? { id, metadata: metadata as never } : undefined
          const request = create(DeltaDiscoveryRequestSchema, { node, typeUrl, resourceNamesSubscribe: ['*'], initialResourceVersions })
          stream.write(messageFrame(toBinary(DeltaDiscoveryRequestSchema, request)))
        }
        return stream
      }
      return { session, statuses, open }
    }
    const watched = (name: string) => async () =>
      (await service.debug<{ clients: { connectionId: string; watches: object }[] }>('adsz')).clients.some(
        ({ connectionId, watches }) => connectionId.includes(name) && Object.keys(watches).length === 2,
      )
    const client = stuck()
    const kept = ['kept-a', 'kept-b'].map((name) => client.open(name, [clusterType, 'one']))
    for (const name of ['kept-a', 'kept-b']) await until('the versions to be taken', watched(name))
    client.open('beyond', [clusterType])
    await until('the stream to be refused', () => client.statuses.length > 0)
    expect(client.statuses[0]).to.match(/^8 initial_resource_versions: more than 16777216 bytes in memory before they are answered on one connection/)
    const other = stuck()
    other.open('elsewhere', [clusterType, 'one'])
    await until('another connection to have its own', watched('elsewhere'))
    for (const stream of kept) stream.close(8)
    await until('the streams to be gone', async () => !(await watched('kept')()))
    client.open('again', [clusterType, 'one'])
    await until('what they took to be free', watched('again'))
    const refused = await service.debug<{ proxy: string }[]>('budgetz')
    expect(refused.some(({ proxy }) => proxy.includes('beyond'))).to.equal(true)
    expect(refused.some(({ proxy }) => proxy.includes('again') || proxy.includes('elsewhere'))).to.equal(false)
    for (const { session } of [client, other]) session.destroy()
  })

  it('nodes are limited to 2 MiB over all streams of a connection, which suffices for 99 nodes of 10 kB', async () => {
    const text = (bytes: number) => 'x'.repeat(bytes)
    const session = connectHttp2(`http://127.0.0.1:${service.grpcPort}`)
    const other = connectHttp2(`http://127.0.0.1:${service.grpcPort}`)
    for (const each of [session, other]) each.on('error', () => undefined)
    const statuses: string[] = []
    const said = (index: number, on = session, bytes = 50_000) =>
      openStream(on, sidecarNode('10.1.0.6', `large-${index}`, 'ns', { SOMETHING: text(bytes) })).on('trailers', (trailers) =>
        statuses.push(`${trailers['grpc-status']} ${trailers['grpc-message']}`),
      )
    const connected = async () => Number(/^pilot_xds\{[^}]*\} (\d+)/m.exec(await service.metrics())?.[1] ?? 0)
    try {
      await until('earlier clients to be gone', async () => (await connected()) === 0)
      const streams = Array.from({ length: 43 }, (_, index) => said(index))
      await until('all to be served or refused', async () => (await connected()) + statuses.length === streams.length)
      const refused = statuses.length
      expect(refused).to.be.within(2, 5)
      expect(new Set(statuses)).to.deep.equal(new Set(['8 nodes: more than 2097152 bytes in memory on one connection']))
      const named = (await exceeded()).filter(({ proxy, reason }) => reason.startsWith('nodes: ') && /~large-\d+\.ns/.test(proxy))
      expect(named).to.have.length(refused)
      for (const stream of streams) stream.close(8)
      await until('the others to be gone', async () => (await connected()) === 0)
      said(100)
      for (let index = 0; index < 99; index++) said(index, other, 10_000)
      await until('all of them to be served', async () => (await connected()) === 100)
      expect(statuses.length).to.equal(refused)
    } finally {
      session.destroy()
      other.destroy()
    }
  })

  it('a connection with 99 streams does not make the server disconnect other proxies to balance its writers', async () => {
    const two = new Service({ flags: ['--writers', '2'] })
    await two.start()
    const session = connectHttp2(`http://127.0.0.1:${two.grpcPort}`)
    session.on('error', () => undefined)
    const good: XdsClient[] = []
    try {
      for (let index = 0; index < 99; index++) openStream(session, sidecarNode('10.1.0.4', `many-${index}`, 'ns'))
      for (let index = 0; index < 10; index++) good.push(new XdsClient(two.grpcPort, sidecarNode(`10.1.1.${index}`, 'good', 'ns'), true).connect())
      await Promise.all(good.map((client) => client.ready()))
      const since = performance.now()
      await until('several looks at how connections are spread', () => performance.now() - since > 7000)
      expect(good.filter(({ closed }) => closed !== undefined)).to.deep.equal([])
      two.output.lacks('to balance them among the writers')
    } finally {
      session.destroy()
      for (const client of good) client.close()
      await two.dispose()
    }
  })

  it('a node, certificate path or label that is too large ends the stream with INVALID_ARGUMENT and the name of the field', async () => {
    const refused = async (metadata: Record<string, unknown>, reason: string) => {
      const client = new XdsClient(service.grpcPort, sidecarNode('10.1.0.3', 'large', 'ns', metadata), false).connect()
      await until('the stream to end', () => client.closed !== undefined)
      expect(client.closed?.code).to.equal(3)
      expect(client.closed?.details).to.include(reason)
      client.close()
    }
    await refused({ SOMETHING: 'x'.repeat(70_000) }, 'node: metadata makes it larger than 65536 bytes')
    await refused({ TLS_CLIENT_CERT_CHAIN: 'x'.repeat(5000) }, 'TLS_CLIENT_CERT_CHAIN has 5000 bytes, at most 4096')
    await refused({ LABELS: { app: 'x'.repeat(5000) } }, 'LABELS: app')
  })
})

describe('disconnected proxies', () => {
  it('leave neither classes nor shared memory behind, even if no configuration changes', async () => {
    const service = new Service({ env: { PILOT_MOCK_SERVICES: '50' } })
    await service.start()
    try {
      const value = async (name: string) =>
        Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)`, 'm').exec(await service.metrics())?.[1] ?? Number.NaN)
      const start = await value('pilot_slab_bytes')
      const clients = await Promise.all(
        Array.from({ length: 40 }, (_, index) => {
          const file = `/certs/${index}`
          const metadata = { NETWORK: `n${index}`, TLS_CLIENT_CERT_CHAIN: file, TLS_CLIENT_KEY: file, TLS_CLIENT_ROOT_CERT: file }
          return new XdsClient(service.grpcPort, sidecarNode(`10.1.0.${index}`, 'p', `made-up-${index}`, metadata), index % 2 === 0).connect().ready()
        }),
      )
      expect(await value('pilot_proxy_classes')).to.equal(40)
      for (const client of clients) client.close()
      await until('classes to go', async () => (await value('pilot_proxy_classes')) === 0)
      await until('shared memory to go', async () => (await value('pilot_slab_bytes')) === start)
    } finally {
      await service.dispose()
    }
  })
})

describe('a limit of file descriptors', () => {
  it('limits connections, in total and by address, while files, pages and connected proxies continue to work', async () => {
    const service = new Service({ descriptors: 300, flags: ['--writers', '1'] })
    const policy =
      'apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: ns}\nspec: {action: DENY, rules: [{}]}\n'
    service.write('policy.yaml', policy)
    await service.start()
    const policies = async () =>
      (await service.debug<{ kind: string; spec: { action?: string } }[]>('configz')).flatMap(({ kind, spec }) =>
        kind === 'AuthorizationPolicy' ? [spec.action] : [],
      )
    const sockets: Socket[] = []
    try {
      const good = await new XdsClient(service.grpcPort, sidecarNode('10.1.0.1', 'good', 'ns'), true).connect().ready()
      let closed = 0
      const open = (port: number) => {
        const socket = connect(port, '127.0.0.1')
        socket.on('error', () => undefined)
        socket.on('close', () => closed++)
        sockets.push(socket)
      }
      for (let index = 0; index < 400; index++) open(service.grpcPort)
      await until('connections to be refused', () => closed >= 400 - 75)
      await service.output.says(/refused \d+ connections, the last from .*: the maximum is 150 connections, and half of that from one client/)
      service.write('policy.yaml', policy.replace('DENY', 'AUDIT'))
      service.write('a.yaml', serviceEntry('a'))
      await until('the new service', () => good.resources.get(endpointType)?.has('outbound|80||a.ns.svc.cluster.local') ?? false)
      await until('the changed policy', async () => (await policies()).join() === 'AUDIT')
      expect(await service.metrics()).to.match(/pilot_xds_refused_connections_total(\{[^}]*\})? [1-9]\d\d/)
      // A quarter of the reserve of 150 descriptors is for pages, and each of the three page servers gets a third of that.
      for (const socket of sockets.splice(0)) socket.destroy()
      await until('the connections to be gone', () => closed === 400)
      for (let index = 0; index < 100; index++) open(service.httpPort)
      await until('connections for pages to be refused', () => closed >= 500 - 12)
      // Idle connections must not keep out a client that sends a request.
      expect((await fetch(`http://127.0.0.1:${service.httpPort}/ready`)).status).to.equal(200)
      service.remove('a.yaml')
      await until('the service to go', () => !good.resources.get(endpointType)?.has('outbound|80||a.ns.svc.cluster.local'))
      expect(await service.metrics()).to.contain('pilot_xds_refused_connections_total')
      for (const socket of sockets.splice(0)) socket.destroy()
      await until('pages to be answered again', async () => (await service.debug<object[]>('syncz')).length === 1)
      good.close()
    } finally {
      for (const socket of sockets) socket.destroy()
      await service.dispose()
    }
  })
})
