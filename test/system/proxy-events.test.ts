/** Streams about the service: the generator `event` over two writers (docs/xds-protocol.md, "Streams about the service"). */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Client, credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import {
  ClustersConfigDumpSchema,
  ListenersConfigDumpSchema,
  RoutesConfigDumpSchema,
} from '../../protocols/gen/envoy/admin/v3/config_dump_shared_pb.js'
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  type DiscoveryResponse,
} from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { ClientConfigSchema, ConfigStatus } from '../../protocols/gen/envoy/service/status/v3/csds_pb.js'
import { clusterType, listenerType } from '../../src/xds/type-urls.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { namesOf, nodesOf, Watcher } from '../harness/status-watcher.ts'
import { until } from '../harness/until.ts'
import { adsPath, sidecarNode, XdsClient } from '../harness/xds-client.ts'

const same = (bytes: Uint8Array) => Buffer.from(bytes)

describe('streams about the service', () => {
  const service = new Service()
  const made = new ServingCertificates(service.dir)
  const open: { close(): void }[] = []
  let secured = 0
  const watch = (...given: ConstructorParameters<typeof Watcher>) => {
    const watcher = new Watcher(...given)
    open.push(watcher)
    return watcher
  }
  const proxy = async (name: string, delta = true) => {
    const client = await new XdsClient(service.grpcPort, sidecarNode(`10.0.0.${open.length + 1}`, name, 'shop', { ISTIO_VERSION: '1.9.0' }), delta)
      .connect()
      .ready()
    open.push(client)
    return client
  }
  /** The writers that have proxies, by the remainder of their connections' numbers. */
  const writers = async () => {
    const { clients } = await service.debug<{ clients: { connectionId: string }[] }>('adsz')
    return new Set(clients.map(({ connectionId }) => Number(connectionId.split('-').at(-1)) % 2))
  }

  before(async () => {
    made.authority('ca')
    made.issue('server', 'ca')
    made.workload('shop', 'ca', ['spiffe://cluster.local/ns/shop/sa/cart'])
    made.workload('root', 'ca', ['spiffe://cluster.local/ns/mesh-system/sa/operator'])
    secured = await freePort()
    service.env.ENABLE_DEBUG_ON_LOOPBACK = 'true'
    service.flags.push('--writers', '2', '--secureGRPCAddr', `127.0.0.1:${secured}`, ...made.servingFlags())
    service.write('entry.yaml', serviceEntry('web'))
    await service.start()
  })
  afterEach(() => {
    for (const each of open.splice(0)) each.close()
  })
  after(() => service.dispose())

  const tls = (identity: string) => {
    const [ca, key, cert] = ['ca.pem', `${identity}-key.pem`, `${identity}.pem`].map((name) => Buffer.from(made.text(name)))
    return credentials.createSsl(ca as Buffer, key as Buffer, cert as Buffer, { checkServerIdentity: () => undefined })
  }

  it('connect answers the connected nodes of all writers; later ones, their refusals and their ends are told at once', async () => {
    const watcher = watch(service.grpcPort)
    watcher.ask('istio.io/disconnect').ask('mesh.io/nack').ask('mesh.io/connect')
    const first = await watcher.answered('mesh.io/connect')
    expect(first.versionInfo).not.to.equal('')
    expect(first.nonce).not.to.equal('')
    const before = namesOf(first)
    let count = 0
    while ((await writers()).size < 2) await proxy(`pod-${count++}`, count % 2 === 0)
    const events = () => watcher.of('mesh.io/connect').slice(1)
    await until('the proxies', () => events().length >= count)
    expect(events().flatMap(namesOf).sort()).to.deep.equal(Array.from({ length: count }, (_, index) => `pod-${index}.shop`).sort())
    expect(before).not.to.include('watcher.mesh-system')
    const [told] = nodesOf(events()[0] as DiscoveryResponse)
    expect(told?.metadata).to.include({ NAMESPACE: 'shop', MESH_VERSION: '1.9.0' })
    expect(events().map(({ nonce, versionInfo }) => nonce + versionInfo)).to.deep.equal(events().map(() => ''))
    // A second watcher, which may be at the other writer, is answered with all of them.
    const second = watch(service.grpcPort)
    second.ask('istio.io/connect')
    expect(namesOf(await second.answered('istio.io/connect')).filter((name) => name?.startsWith('pod-')).length).to.equal(count)

    for (const delta of [false, true]) {
      const refusing = new XdsClient(service.grpcPort, sidecarNode('10.0.0.50', `refuses-${delta}`, 'shop'), delta)
      refusing.refuseNext = 'not this one'
      refusing.connect()
      open.push(refusing)
      const refusals = () =>
        watcher.of('mesh.io/nack').flatMap(({ resources }) => resources.map(({ value }) => fromBinary(DiscoveryRequestSchema, value)))
      await until('the refusal', () => refusals().some(({ node }) => node?.id === refusing.node.id))
      const refusal = refusals().find(({ node }) => node?.id === refusing.node.id)
      expect(refusal).to.deep.include({ typeUrl: clusterType })
      expect(refusal?.errorDetail?.message).to.equal('not this one')
      expect(refusal?.responseNonce).not.to.equal('')
      refusing.close()
      await until('its end', () =>
        watcher
          .of('istio.io/disconnect')
          .flatMap(nodesOf)
          .some(({ id }) => id === refusing.node.id),
      )
    }
  })

  it('acknowledgements are not answered, requests without a nonce are', async () => {
    const watcher = watch(service.grpcPort)
    const { nonce } = await watcher.ask('mesh.io/connect').answered('mesh.io/connect')
    watcher.ask('mesh.io/connect', [], nonce).ask('mesh.io/debug/syncz')
    await watcher.answered('mesh.io/debug/syncz')
    expect(watcher.of('mesh.io/connect').length).to.equal(1)
    await watcher.ask('mesh.io/debug/syncz').answered('mesh.io/debug/syncz', 2)
  })

  it('syncz tells of each proxy what it was sent and what it has acknowledged', async () => {
    const silent = new XdsClient(service.grpcPort, sidecarNode('10.0.0.60', 'silent', 'shop'), false)
    silent.silent = true
    silent.connect()
    open.push(silent)
    await proxy('synced')
    await until('its responses', () => silent.responses.has(listenerType))
    const watcher = watch(service.grpcPort, { generator: 'status' })
    const states = async (times: number) => {
      const { resources } = await watcher.ask('istio.io/debug/syncz').answered('istio.io/debug/syncz', times)
      return new Map(
        resources
          .map(({ value }) => fromBinary(ClientConfigSchema, value))
          .map(({ node, xdsConfig, genericXdsConfigs }) => {
            expect(genericXdsConfigs.map(({ configStatus }) => configStatus)).to.deep.equal(xdsConfig.map(({ status }) => status))
            return [node?.id.split('~')[2], xdsConfig.map(({ perXdsConfig, status }) => [perXdsConfig.case, ConfigStatus[status]])]
          }),
      )
    }
    const types = ['listenerConfig', 'routeConfig', 'endpointConfig', 'clusterConfig']
    const found = await states(1)
    expect(found.get('silent.shop')).to.deep.equal(types.map((type) => [type, /listener|cluster/.test(type) ? 'STALE' : 'NOT_SENT']))
    expect(found.get('synced.shop')?.map(([type]) => type)).to.deep.equal(types)
    let times = 1
    await until('the acknowledgements', async () => (await states(++times)).get('synced.shop')?.some(([, state]) => state === 'STALE') === false)
    expect(found.has('watcher.mesh-system')).to.equal(false)
  })

  it('config_dump answers the configuration of the one proxy that it names', async () => {
    const client = await proxy('dumped', false)
    const watcher = watch(service.grpcPort)
    const { resources, nonce } = await watcher.ask('istio.io/debug/config_dump', ['dumped.shop']).answered('istio.io/debug/config_dump')
    const part = (name: string) => resources.find(({ typeUrl }) => typeUrl === `type.googleapis.com/envoy.admin.v3.${name}`)?.value as Uint8Array
    const clusters = fromBinary(ClustersConfigDumpSchema, part('ClustersConfigDump')).dynamicActiveClusters
    expect(clusters.map(({ cluster }) => Buffer.from(cluster?.value ?? []).toString('base64')).sort()).to.deep.equal(
      Object.values(client.state()[clusterType] ?? {}).sort(),
    )
    const listeners = fromBinary(ListenersConfigDumpSchema, part('ListenersConfigDump')).dynamicListeners
    expect(listeners.map(({ name }) => name).sort()).to.deep.equal([...(client.resources.get(listenerType)?.keys() ?? [])].sort())
    expect(listeners.every(({ activeState }) => activeState?.listener !== undefined)).to.equal(true)
    expect(fromBinary(RoutesConfigDumpSchema, part('RoutesConfigDump')).dynamicRouteConfigs).not.to.have.length(0)
    // With other names an acknowledgement asks again.
    await watcher.ask('istio.io/debug/config_dump', [client.node.id], nonce).answered('istio.io/debug/config_dump', 2)
    for (const [names, code] of [
      [[], 3],
      [['a', 'b'], 3],
      [['nowhere'], 5],
    ] as const) {
      const wrong = watch(service.grpcPort).ask('mesh.io/debug/config_dump', [...names])
      await until('the refusal', () => wrong.ended !== undefined)
      expect([wrong.ended?.code, wrong.ended?.details]).to.deep.equal([code, wrong.ended?.details])
      expect(wrong.ended?.details).to.match(code === 3 ? /exactly one resource name/ : /no proxy "nowhere"/)
    }
  })

  it('is served over delta, too, and other types of such a stream are those of a proxy', async () => {
    const { id, metadata } = sidecarNode('10.0.0.70', 'both', 'shop', { GENERATOR: 'event' })
    const client = new Client(`127.0.0.1:${service.grpcPort}`, credentials.createInsecure())
    const stream = client.makeBidiStreamRequest(adsPath.replace('Stream', 'Delta'), same, (bytes) => fromBinary(DeltaDiscoveryResponseSchema, bytes))
    open.push({ close: () => client.close() })
    const seen: string[] = []
    stream.on('data', ({ typeUrl, resources }) => seen.push(`${typeUrl} ${resources.length > 0}`))
    stream.on('error', () => undefined)
    const node = { id, metadata: metadata as never }
    stream.write(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { node, typeUrl: 'mesh.io/connect' })))
    await until('the first answer', () => seen.length === 1)
    stream.write(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { typeUrl: clusterType })))
    await until('clusters, and itself as a proxy', () => seen.length >= 3)
    expect(seen.sort()).to.include.members(['mesh.io/connect true', `${clusterType} true`])
  })

  it('a watcher that does not read ends with the reason, and holds no more than its share meanwhile', async () => {
    const watcher = watch(service.grpcPort)
    await watcher.ask('mesh.io/nack').ask('mesh.io/connect').answered('mesh.io/connect')
    watcher.stream.pause()
    const client = await proxy('refusing', false)
    const errorDetail = { code: 13, message: 'no' }
    const resourceNames = Array.from({ length: 1000 }, (_, index) => `${index}-${'x'.repeat(200)}`)
    const refusal = toBinary(
      DiscoveryRequestSchema,
      create(DiscoveryRequestSchema, { typeUrl: clusterType, responseNonce: 'old', resourceNames, errorDetail }),
    )
    for (let times = 0; times < 40; times++) client.sendRaw(refusal)
    await service.output.says(/refusing.* rejected/)
    watcher.stream.resume()
    await until('the end', () => watcher.ended !== undefined)
    expect(watcher.ended?.code).to.equal(8)
    expect(watcher.ended?.details).to.match(/events come faster than this stream takes them/)
    await service.output.says('a stream about the service is ended: events come faster than this stream takes them')
    expect(watcher.of('mesh.io/nack').length).to.be.below(40)
  })

  it('shows a caller its namespace, the root namespace everything, and refuses all others with a reason', async () => {
    await proxy('seen')
    const types = ['istio.io/connect', 'istio.io/debug/syncz'] as const
    for (const [namespace, identity, sees] of [
      ['shop', 'shop', true],
      ['mesh-system', 'root', true],
    ] as const) {
      const watcher = watch(secured, { namespace, channel: tls(identity) })
      for (const type of types) expect((await watcher.ask(type).answered(type)).resources.length > 0).to.equal(sees)
    }
    made.workload('bank', 'ca', ['spiffe://cluster.local/ns/bank/sa/teller'])
    const bank = watch(secured, { namespace: 'bank', channel: tls('bank') })
    for (const type of types) expect((await bank.ask(type).answered(type)).resources).to.deep.equal([])
    bank.ask('istio.io/debug/config_dump', ['seen.shop'])
    await until('the refusal', () => bank.ended !== undefined)
    expect(bank.ended).to.include({ code: 5 })
    // Events of other namespaces are not told, those of its own are.
    const shop = watch(secured, { namespace: 'shop', channel: tls('shop') })
    const other = watch(secured, { namespace: 'bank', channel: tls('bank') })
    for (const watcher of [shop, other]) await watcher.ask('mesh.io/connect').answered('mesh.io/connect')
    await proxy('later')
    await until('the event', () => shop.of('mesh.io/connect').slice(1).flatMap(namesOf).includes('later.shop'))
    expect(other.of('mesh.io/connect')).to.have.length(1)
  })
})

describe('streams about the service without ENABLE_DEBUG_ON_LOOPBACK', () => {
  it('are refused in plain text', async () => {
    const service = new Service({ env: { ENABLE_DEBUG_ON_LOOPBACK: 'false' } })
    await service.start()
    try {
      const watcher = new Watcher(service.grpcPort).ask('mesh.io/connect')
      await until('the refusal', () => watcher.ended !== undefined)
      expect(watcher.ended).to.include({ code: 16, details: 'authentication failure' })
      watcher.close()
    } finally {
      await service.dispose()
    }
  })
})
