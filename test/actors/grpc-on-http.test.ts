/** gRPC at the HTTP address, where `--grpcAddr` is empty. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Client, credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as Serving,
} from '../../protocols/gen/grpc/health/v1/health_pb.js'
import { status } from '../../src/model/status-codes.ts'
import { clusterType, endpointType } from '../../src/xds/type-urls.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { grpcCall } from '../harness/grpc-call.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
/** An empty SETTINGS frame. */
const settings = Buffer.from('000000040000000000', 'hex')
const settingsFrame = 4

describe('gRPC at the HTTP address', () => {
  const discovery = new LocalDiscovery({ mode: 'threads' }, { PILOT_DEBOUNCE_AFTER: '10ms' })
  const clients: XdsClient[] = []
  const sockets: Socket[] = []
  const found = new Set(readdirSync(tmpdir()))
  let directory = ''

  before(async () => {
    discovery.write('a.yaml', serviceEntry('a', '10.0.0.1'))
    await (await discovery.start({ grpcAddr: '' })).ready()
    directory = join(tmpdir(), readdirSync(tmpdir()).find((name) => name.startsWith('meshd-') && !found.has(name)) ?? '')
  })
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
    for (const client of clients.splice(0)) client.close()
  })
  after(() => discovery.dispose())

  const proxy = async (delta: boolean, address: string) => {
    const client = new XdsClient(discovery.httpPort, sidecarNode(address, 'pod', 'ns'), delta).connect()
    clients.push(client)
    return client.ready()
  }
  const opened = (bytes: string) => {
    const socket = connect(discovery.httpPort, '127.0.0.1')
    sockets.push(socket)
    const client = { socket, came: Buffer.alloc(0), isClosed: false }
    socket.on('data', (more: Buffer) => (client.came = Buffer.concat([client.came, more])))
    socket.on('close', () => (client.isClosed = true))
    socket.on('error', () => undefined)
    socket.write(bytes, 'latin1')
    return client
  }
  const has = (client: XdsClient, address: string) =>
    client.resources.get(endpointType)?.get('outbound|80||a.ns.svc.cluster.local')?.includes(address) === true

  for (const delta of [false, true])
    it(`${delta ? 'delta' : 'state of the world'} streams are served there, and pages beside them`, async () => {
      const client = await proxy(delta, delta ? '10.1.0.1' : '10.1.0.2')
      const address = delta ? '10.0.0.3' : '10.0.0.2'
      discovery.write('a.yaml', serviceEntry('a', address))
      await until('the change', () => has(client, address))
      expect(client.resources.get(clusterType)?.size).to.be.greaterThan(0)
      expect(await discovery.ready()).to.deep.equal({ status: 200, text: '' })
      const shown = await discovery.debug<{ clients: { connectionId: string; address: string }[] }>('adsz')
      expect(shown.clients.map((shownClient) => shownClient.address)).to.deep.equal(['127.0.0.1'])
    })

  it('answers health to an independent client', async () => {
    const client = new Client(`127.0.0.1:${discovery.httpPort}`, credentials.createInsecure())
    const answer = await new Promise((resolve, reject) =>
      client.makeUnaryRequest(
        '/grpc.health.v1.Health/Check',
        (value: Uint8Array) => Buffer.from(value),
        (bytes) => fromBinary(HealthCheckResponseSchema, bytes).status,
        toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, {})),
        (error, value) => (error ? reject(error) : resolve(value)),
      ),
    )
    client.close()
    expect(answer).to.equal(Serving.SERVING)
  })

  it('takes no client there for one of this machine', async () => {
    for (const method of ['envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus', 'mesh.admin.v1.AdminService/ListProxies'])
      expect((await grpcCall(`http://127.0.0.1:${discovery.httpPort}`, `/${method}`, Buffer.alloc(0))).status).to.equal(
        String(status.unauthenticated),
      )
    // A page over HTTP/1.1 is shown to the same program.
    expect(await discovery.debug('mesh')).to.be.an('object')
  })

  it('reads a preface and a request that come byte by byte', async () => {
    for (const [bytes, isAnswered] of [
      [preface + settings.toString('latin1'), (came: Buffer) => came[3] === settingsFrame],
      ['PUT /ready HTTP/1.1\r\nHost: a\r\n\r\n', (came: Buffer) => came.toString().startsWith('HTTP/1.1 405 ')],
      ['PRICE / HTTP/1.1\r\nHost: a\r\n\r\n', (came: Buffer) => came.toString().startsWith('HTTP/1.1 400 ')],
    ] as const) {
      const client = opened('')
      client.socket.setNoDelay(true)
      for (const byte of bytes) {
        client.socket.write(byte, 'latin1')
        await new Promise(setImmediate)
      }
      await until('the answer', () => isAnswered(client.came))
    }
  })

  it('answers what is neither with an error and closes', async () => {
    for (const bytes of ['\x16\x03\x01\x02\x00', 'PRI * HTTP/2.0\r\n\r\nSX\r\n\r\n', `${'x'.repeat(100_000)}\r\n\r\n`]) {
      const client = opened(bytes)
      await until('the end', () => client.isClosed)
      expect(client.came.toString()).to.match(/^HTTP\/1\.1 4/)
    }
    const half = opened(preface.slice(0, 10))
    half.socket.end()
    await until('the end', () => half.isClosed)
    expect(half.came.toString()).to.match(/^HTTP\/1\.1 400 /)
  })

  it('keeps its sockets from other users, and closes connections to them without the key', async () => {
    expect(statSync(directory).mode & 0o777).to.equal(0o700)
    for (const bytes of ['', `${'k'.repeat(32)}\x09127.0.0.1${preface}`]) {
      const socket = connect(join(directory, '0.sock'))
      sockets.push(socket)
      let isClosed = false
      socket.on('close', () => (isClosed = true))
      socket.on('error', () => undefined)
      socket.write(bytes, 'latin1')
      await until('the end', () => isClosed)
    }
  })

  it('survives the restart of a writer: its proxies connect again, the others stay', async () => {
    const [one, other] = [await proxy(true, '10.1.0.4'), await proxy(true, '10.1.0.5')]
    discovery.service.supervisor.kill('xds-writer/0')
    await until('the end of one connection', () => [one, other].filter(({ closed }) => closed).length === 1)
    const again = await proxy(true, '10.1.0.6')
    const stayed = one.closed ? other : one
    discovery.write('a.yaml', serviceEntry('a', '10.0.0.7'))
    await until('the change at both', () => has(again, '10.0.0.7') && has(stayed, '10.0.0.7'))
    await until('the writer', () => discovery.state('xds-writer/0').state === 'running')
    await until('its socket', () => existsSync(join(directory, '0.sock')))
    const next = await proxy(false, '10.1.0.8')
    await until('the change', () => has(next, '10.0.0.7'))
  })

  it('ends streams and removes its sockets when the service stops', async () => {
    const client = await proxy(true, '10.1.0.9')
    await discovery.service.stop()
    await until('the end', () => client.closed !== undefined)
    expect(existsSync(directory)).to.equal(false)
  })
})
