import { once } from 'node:events'
import { connect } from 'node:http2'
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { expect } from 'chai'
import { askServer } from '../../actors/http/admin-request.ts'
import { DiscoveryRequestSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { ClientStatusRequestSchema, ClientStatusResponseSchema, ConfigStatus } from '../../protocols/gen/envoy/service/status/v3/csds_pb.js'
import type { NodeMatcherSchema } from '../../protocols/gen/envoy/type/matcher/v3/node_pb.js'
import { ServerReflectionRequestSchema, ServerReflectionResponseSchema } from '../../protocols/gen/grpc/reflection/v1/reflection_pb.js'
import { FrameBuffers, FrameReader, messageFrame } from '../../src/xds/stream/frames.ts'
import { clusterType, endpointType, routeType } from '../../src/xds/type-urls.ts'
import { grpcCall } from '../harness/grpc-call.ts'
import { textOf } from '../harness/page-text.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const grpc = (port: number, path: string, message: Uint8Array) => grpcCall(`http://127.0.0.1:${port}`, path, message)

describe('services beside ADS, and settings of the push path', () => {
  const service = new Service({
    env: {
      PILOT_ENABLE_FLOW_CONTROL: 'true',
      PILOT_FLOW_CONTROL_TIMEOUT: '10s',
      PILOT_XDS_SEND_TIMEOUT: '1s',
      MESH_GPRC_MAXRECVMSGSIZE: '20000',
      PILOT_DEBOUNCE_AFTER: '30ms',
      ENABLE_ADMIN_ENDPOINTS: 'true',
    },
  })
  let client: XdsClient
  before(async () => {
    service.write('a.yaml', serviceEntry('a'))
    await service.start()
    client = await new XdsClient(service.grpcPort, sidecarNode('10.8.0.1', 'one', 'ns', { ISTIO_VERSION: '1.9.3' }), false).connect().ready()
  })
  after(async () => {
    client.close()
    await service.dispose()
  })

  it('CSDS reports the state of every proxy, whichever writer serves it', async () => {
    const request = toBinary(ClientStatusRequestSchema, create(ClientStatusRequestSchema))
    await until('everything in sync', async () => {
      for (const method of ['FetchClientStatus', 'StreamClientStatus']) {
        const { messages, status } = await grpc(service.grpcPort, `/envoy.service.status.v3.ClientStatusDiscoveryService/${method}`, request)
        expect(status).to.equal('0')
        const [config] = fromBinary(ClientStatusResponseSchema, messages[0] as Buffer).config
        expect(config?.node?.id).to.equal(client.node.id)
        expect(config?.genericXdsConfigs.map((entry) => [entry.typeUrl, entry.configStatus])).to.deep.include([clusterType, ConfigStatus.SYNCED])
      }
      return true
    })
  })

  it('CSDS reports only the proxies that match the request', async () => {
    const matching = async (nodeMatchers: MessageInitShape<typeof NodeMatcherSchema>[]) => {
      const asked = toBinary(ClientStatusRequestSchema, create(ClientStatusRequestSchema, { nodeMatchers }))
      const { messages, status } = await grpc(service.grpcPort, '/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus', asked)
      return status === '0' ? fromBinary(ClientStatusResponseSchema, messages[0] as Buffer).config.length : `status ${status}`
    }
    const id = (value: string) => ({ nodeId: { matchPattern: { case: 'contains' as const, value } } })
    const version = (value: string) => ({
      nodeMetadatas: [
        {
          path: [{ segment: { case: 'key' as const, value: 'ISTIO_VERSION' } }],
          value: { matchPattern: { case: 'stringMatch' as const, value: { matchPattern: { case: 'exact' as const, value } } } },
        },
      ],
    })
    expect(await matching([])).to.equal(1)
    expect(await matching([id('~one.ns~')])).to.equal(1)
    expect(await matching([id('~nobody.ns~')])).to.equal(0)
    expect(await matching([id('~nobody.ns~'), version('1.9.3')])).to.equal(1)
    expect(await matching([{ ...id('~one.ns~'), ...version('1.9.4') }])).to.equal(0)
    expect(await matching([{ nodeId: { matchPattern: { case: 'safeRegex', value: { regex: '(' } } } }])).to.equal('status 3')
  })

  for (const [what, garbage] of [
    ['that breaks off', Buffer.from([0x0a, 0x7f, 1])],
    ['of a hundred equal bytes', Buffer.alloc(100, 0xff)],
    ['with a field of no number', Buffer.alloc(100)],
    ['with text that is no text', Buffer.from([0x12, 0x06, 0x0a, 0x04, 0xff, 0xfe, 0xfd, 0xfc, 0x0f])],
  ] as const)
    it(`a request ${what} to CSDS or reflection is answered with INVALID_ARGUMENT`, async () => {
      for (const path of [
        'envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus',
        'envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus',
        'grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
        'grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
      ]) {
        const { messages, status } = await grpc(service.grpcPort, `/${path}`, garbage)
        expect([messages.length, status], path).to.deep.equal([0, '3'])
      }
    })

  it('requests to reflection are answered each with its own name, however their bytes are split', async () => {
    const session = connect(`http://127.0.0.1:${service.grpcPort}`)
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      'content-type': 'application/grpc',
    })
    const names = Array.from({ length: 40 }, (_, index) => `file-${index}.${String.fromCharCode(97 + (index % 26)).repeat(9000)}`)
    const answered: unknown[] = []
    const reader = new FrameReader(1 << 26, new FrameBuffers())
    stream.on('data', (bytes: Buffer) =>
      reader.take(bytes, (message) => answered.push(fromBinary(ServerReflectionResponseSchema, message).originalRequest?.messageRequest.value)),
    )
    for (const value of names) {
      const request = create(ServerReflectionRequestSchema, { messageRequest: { case: 'fileByFilename', value } })
      // Most of them span two DATA frames.
      stream.write(messageFrame(toBinary(ServerReflectionRequestSchema, request)))
    }
    stream.end()
    await once(stream, 'end')
    session.close()
    expect(answered.map((name) => String(name).slice(0, 12))).to.deep.equal(names.map((name) => name.slice(0, 12)))
    expect(answered).to.deep.equal(names)
  })

  it('requests to CSDS exert back-pressure while one is answered, and end with the stream', async () => {
    const path = '/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus'
    const counted = async (what: string) => {
      const all = (await service.metrics()).matchAll(new RegExp(`^grpc_server_msg_${what}_total{.*StreamClientStatus"} (\\d+)$`, 'gm'))
      return [...all].reduce((sum, [, count]) => sum + Number(count), 0)
    }
    const before = await counted('received')
    const session = connect(`http://127.0.0.1:${service.grpcPort}`)
    session.on('error', () => undefined)
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' })
    let answers = 0
    const reader = new FrameReader(1 << 26, new FrameBuffers())
    stream.on('data', (bytes: Buffer) => reader.take(bytes, () => answers++)).on('error', () => undefined)
    // A million empty messages.
    stream.write(Buffer.alloc(5_000_000))
    await until('some answers', () => answers > 100)
    stream.close(8)
    await once(stream, 'close')
    session.destroy()
    await until('the answers to end with the stream', async () => {
      const [sent, , again] = [await counted('sent'), await service.debug('syncz'), await counted('sent')]
      return sent === again
    })
    // The messages of the bytes that were read together, and of the window: 13,107 in 65,535 bytes.
    expect((await counted('received')) - before).to.be.below(40_000)
  })

  it('reflection lists and describes the services', async () => {
    const ask = async (version: string, request: Parameters<typeof create<typeof ServerReflectionRequestSchema>>[1]) => {
      const { messages } = await grpc(
        service.grpcPort,
        `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
        toBinary(ServerReflectionRequestSchema, create(ServerReflectionRequestSchema, request)),
      )
      return fromBinary(ServerReflectionResponseSchema, messages[0] as Buffer).messageResponse
    }
    for (const version of ['v1', 'v1alpha']) {
      const listed = await ask(version, { messageRequest: { case: 'listServices', value: '' } })
      expect(listed.case === 'listServicesResponse' && listed.value.service.map((entry) => entry.name)).to.include.members([
        'envoy.service.discovery.v3.AggregatedDiscoveryService',
        'grpc.reflection.v1.ServerReflection',
      ])
    }
    const file = await ask('v1', { messageRequest: { case: 'fileContainingSymbol', value: 'envoy.service.discovery.v3.AggregatedDiscoveryService' } })
    if (file.case !== 'fileDescriptorResponse') throw new Error(`got ${file.case}`)
    expect(file.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name)).to.include(
      'envoy/service/discovery/v3/ads.proto',
    )
    expect((await ask('v1', { messageRequest: { case: 'fileContainingSymbol', value: 'no.such' } })).case).to.equal('errorResponse')
  })

  it('mesh configuration and networks are reloaded at run time, and an invalid file changes nothing', async () => {
    const accessLog = () => [...client.resources.values()].some((held) => [...held.values()].some((value) => value.includes('/dev/mesh-log')))
    const routes = () => client.resources.get(routeType)?.get('80')?.toString('latin1') ?? ''
    service.write('mesh-config', 'accessLogFile: /dev/mesh-log\noutboundTrafficPolicy: {mode: REGISTRY_ONLY}\n')
    await until('the mesh configuration', () => accessLog() && routes().includes('block_all'))
    service.write('mesh-config', 'accessLogFile: [not text]\n')
    await service.output.says('field accessLogFile: expected text, got a list; the settings in force stay')
    expect(accessLog()).to.equal(true)
    service.write(
      'b.yaml',
      `${serviceEntry('b').replace('{address: 10.0.0.1}', '{address: 10.0.0.5, network: far, serviceAccount: x}, {address: 10.0.0.6}')}`,
    )
    service.write('networks', 'networks: {far: {gateways: [{address: 192.0.2.1, port: 15443}]}}\n')
    const endpoints = () => client.resources.get(endpointType)?.get('outbound|80||b.ns.svc.cluster.local')?.toString('latin1') ?? ''
    await until('the gateway in place of the endpoint', () => endpoints().includes('192.0.2.1') && !endpoints().includes('10.0.0.5'))
  })

  it('flow control delays a push until the ACK of the last one, up to its timeout', async () => {
    const quiet = await new XdsClient(service.grpcPort, sidecarNode('10.8.0.2', 'quiet', 'ns'), false).connect().ready()
    quiet.silent = true
    const count = () => quiet.responses.get(endpointType) ?? 0
    const start = count()
    service.write('a.yaml', serviceEntry('a', '10.0.9.1'))
    await until('the first push', () => count() > start)
    service.write('a.yaml', serviceEntry('a', '10.0.9.2'))
    await until('the delay to be counted', async () => /pilot_xds_delayed_pushes_total\{type="eds"\} [1-9]/.test(await service.metrics()))
    expect(count()).to.equal(start + 1)
    await until('the push after all', () => count() > start + 1)
    expect(await service.metrics()).to.match(/pilot_xds_delayed_push_timeouts_total\{type="eds"\} [1-9]/)
    quiet.close()
  })

  it('a proxy that does not read is disconnected after the send timeout', async () => {
    for (let index = 0; index < 300; index++) service.write(`many-${index}.yaml`, serviceEntry(`many-${index}`))
    await until('many services', () => client.resources.get(clusterType)?.has('outbound|80||many-299.ns.svc.cluster.local') ?? false)
    const session = connect(`http://127.0.0.1:${service.grpcPort}`, { settings: { initialWindowSize: 1000 } })
    session.on('error', () => undefined)
    const stream = session.request({
      ':method': 'POST',
      ':path': '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
      'content-type': 'application/grpc',
    })
    stream.on('error', () => undefined)
    const node = sidecarNode('10.8.0.3', 'deaf', 'ns')
    stream.write(
      messageFrame(
        toBinary(
          DiscoveryRequestSchema,
          create(DiscoveryRequestSchema, { typeUrl: clusterType, node: { id: node.id, metadata: node.metadata as never } }),
        ),
      ),
    )
    await until('the write timeout', async () => /pilot_xds_write_timeout [1-9]/.test(await service.metrics()))
    await until('the connection to be gone', async () => !JSON.stringify(await service.debug('adsz')).includes('deaf.ns'))
    session.destroy()
  })

  it('a request above the size limit ends its stream with RESOURCE_EXHAUSTED', async () => {
    const big = new XdsClient(service.grpcPort, sidecarNode('10.8.0.4', 'big', 'ns', { BIG: 'x'.repeat(30_000) }), true).connect()
    await until('the end', () => big.closed !== undefined)
    expect([big.closed?.code, big.closed?.details]).to.deep.equal([
      8,
      'received message larger than max (30116 vs. 20000)'.replace('30116', /\((\d+) /.exec(big.closed?.details ?? '')?.[1] ?? ''),
    ])
  })

  it('an admin can disconnect a proxy', async () => {
    const victim = await new XdsClient(service.grpcPort, sidecarNode('10.8.0.7', 'victim', 'ns'), true).connect().ready()
    const url = `http://127.0.0.1:${service.httpPort}/debug/force_disconnect?proxyID=victim.ns`
    const asked = await fetch(url)
    expect([asked.status, asked.headers.get('allow'), await textOf(asked)]).to.deep.equal([
      405,
      'POST',
      'this action needs the method POST: POST /debug/force_disconnect with proxyID=<name or id of a proxy>',
    ])
    expect(victim.closed).to.equal(undefined)
    expect((await fetch(url, { method: 'POST', headers: { 'x-mesh-introspection': '1' } })).status, 'without a token').to.equal(403)
    expect(victim.closed).to.equal(undefined)
    const { body } = await askServer({ method: 'POST', path: '/debug/force_disconnect', form: 'proxyID=victim.ns' }, service.env)
    expect(body).to.equal('OK\n')
    await until('the end', () => victim.closed !== undefined)
    expect(victim.closed?.code).to.equal(14)
  })

  it('metrics show the version of connected proxies and the push path', async () => {
    const metrics = await service.metrics()
    for (const line of [
      'pilot_xds{version="1.9.3"} 1',
      'pilot_proxy_convergence_time_bucket{le="0.025"}',
      'pilot_push_triggers{type="config"}',
      'pilot_push_triggers{type="global"}',
      'pilot_push_triggers{type="networks"}',
      'pilot_xds_pushes{type="cds"}',
      'pilot_inbound_updates{type="config"}',
    ])
      expect(metrics).to.contain(line)
  })
})

describe('--clusterID', () => {
  it('is the cluster of the own registries, whatever CLUSTER_ID says', async () => {
    const env = { CLUSTER_ID: 'west', PILOT_MOCK_SERVICES: '1' }
    const service = new Service({ flags: ['--registries', 'Mock', '--clusterID', 'east'], env })
    try {
      await service.start()
      const shards = await service.debug<object>('endpointShardz')
      expect(JSON.stringify(shards)).to.include('east').and.not.to.include('west')
    } finally {
      await service.dispose()
    }
  })
})
