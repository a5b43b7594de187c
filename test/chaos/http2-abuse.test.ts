import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { type Socket, connect as tcpConnect } from 'node:net'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { DeltaDiscoveryRequestSchema, DiscoveryRequestSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { clusterType, endpointType } from '../../src/xds/type-urls.ts'
import { endHeaders, frame, frameType, literal, preface, requestHeaders } from '../harness/http2-frames.ts'
import { OwnTime } from '../harness/own-time.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { adsPath, sidecarNode, XdsClient } from '../harness/xds-client.ts'

describe('discovery withstands abuse of HTTP/2:', () => {
  const service = new Service({
    env: { PILOT_DEBOUNCE_AFTER: '20ms', PILOT_XDS_SEND_TIMEOUT: '2s' },
    flags: ['--keepaliveInterval', '2s', '--keepaliveTimeout', '2s'],
  })
  const sockets: Socket[] = []
  let witness: XdsClient
  let rounds = 0
  let restingMib = 0

  const residentMib = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8'))?.[1]) / 1024
  /** Opens a connection of an attacker that never reads. */
  const attack = (greeting = preface): Promise<Socket> =>
    new Promise((resolve) => {
      const socket = tcpConnect(service.grpcPort, '127.0.0.1', () => {
        socket.write(greeting)
        resolve(socket)
      })
      socket.on('error', () => undefined)
      socket.pause()
      sockets.push(socket)
    })
  /** Writes the chunk up to `times` times, until the server closes the connection or reads nothing for a second. */
  const flood = async (socket: Socket, chunk: Buffer, times: number): Promise<void> => {
    for (let i = 0; i < times && !socket.destroyed && socket.writable; i++) {
      if (socket.write(chunk)) continue
      const drained = new Promise((resolve) => socket.once('drain', () => resolve(true)).once('close', () => resolve(false)))
      const stuck = new Promise((resolve) => setTimeout(() => resolve(false), 1000).unref())
      if (!(await Promise.race([drained, stuck]))) return
    }
  }
  /** Asserts that another proxy gets a change within 2.5 s, and that memory grew by less than 200 MiB. */
  const othersAreServed = async () => {
    const address = `10.0.${++rounds}.1`
    const changed = new OwnTime()
    service.write('a.yaml', serviceEntry('a', address))
    await until(
      'the change at the witness',
      () => witness.resources.get(endpointType)?.get('outbound|80||a.ns.svc.cluster.local')?.includes(address) ?? false,
    )
    expect(changed.ms()).to.be.below(2500)
    expect(witness.closed).to.equal(undefined)
    expect(residentMib() - restingMib).to.be.below(200)
  }
  const nothingRestarted = async () => {
    const actors = await service.debug<{ name: string; restarts: number }[]>('actorsz')
    expect(actors.filter(({ restarts }) => restarts > 0)).to.deep.equal([])
  }

  before(async () => {
    service.write('a.yaml', serviceEntry('a', '10.0.0.1'))
    for (let index = 0; index < 300; index++) service.write(`many-${index}.yaml`, serviceEntry(`many-${index}`, '10.0.0.9'))
    await service.start()
    witness = await new XdsClient(service.grpcPort, sidecarNode('10.6.0.1', 'witness', 'ns'), true).connect().ready()
    restingMib = residentMib()
  })
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
  })
  after(async () => {
    witness.close()
    await service.dispose()
  })

  it('streams that are opened and reset at once', async () => {
    const socket = await attack()
    const pairs = Array.from({ length: 20_000 }, (_, index) => [
      frame(frameType.headers, endHeaders, index * 2 + 1, requestHeaders),
      frame(frameType.reset, 0, index * 2 + 1, Buffer.from([0, 0, 0, 8])),
    ]).flat()
    await flood(socket, Buffer.concat(pairs), 1)
    await othersAreServed()
  })

  it('header blocks that never end', async () => {
    for (let i = 0; i < 5; i++) {
      const socket = await attack()
      socket.write(frame(frameType.headers, 0, 1, requestHeaders))
      await flood(
        socket,
        frame(frameType.continuation, 0, 1, Buffer.concat(Array.from({ length: 100 }, () => literal('x-filler', 'y'.repeat(100))))),
        5000,
      )
    }
    await othersAreServed()
  })

  it('endless SETTINGS and PING frames whose answers are not read', async () => {
    for (const kind of [frame(frameType.settings, 0, 0), frame(frameType.ping, 0, 0, Buffer.alloc(8))]) {
      const socket = await attack()
      await flood(socket, Buffer.concat(Array.from({ length: 1000 }, () => kind)), 1000)
    }
    await othersAreServed()
  })

  it('small header blocks that decompress to very many headers', async () => {
    const socket = await attack()
    // One entry of almost the whole dynamic table, then references to it (RFC 7541, section 6.1).
    const large = Buffer.concat([Buffer.from([0x40, 1]), Buffer.from('x'), Buffer.from([0x7f, 0xa1, 0x1e]), Buffer.alloc(4000, 'y')])
    const bomb = Buffer.concat([requestHeaders, large, Buffer.alloc(10_000, 0xbe)])
    for (let stream = 1; stream < 200; stream += 2) await flood(socket, frame(frameType.headers, endHeaders, stream, bomb), 1)
    await othersAreServed()
  })

  it('peers that send nothing or only the preface, which are disconnected', async () => {
    await Promise.all([...Array(200).keys()].map((index) => attack(index % 2 === 0 ? Buffer.alloc(0) : preface)))
    await othersAreServed()
    let open = sockets.length
    for (const socket of sockets) socket.on('close', () => open--).resume()
    await until('most of them to be cut off', () => open < 20)
  })

  it('a peer that keeps its half of an ended stream open', async () => {
    const session = connect(`http://127.0.0.1:${service.grpcPort}`)
    const stream = session.request({ ':method': 'POST', ':path': adsPath, 'content-type': 'application/grpc' })
    let closed = false
    stream.on('close', () => (closed = true)).resume()
    stream.write(messageFrame(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl: clusterType }))))
    await until('the stream to be closed by the server alone', () => closed)
    session.destroy()
    await othersAreServed()
  })

  it('paths, schemes, types, labels and resources named like inherited properties', async () => {
    const words = ['valueOf', 'constructor', '__proto__', 'toString', 'hasOwnProperty']
    const open = (path: string, scheme: string, body?: Uint8Array) =>
      new Promise<string>((resolve) => {
        const session = connect(`http://127.0.0.1:${service.grpcPort}`)
        session.on('error', (error) => resolve(error.message))
        const stream = session.request({ ':method': 'POST', ':path': path, ':scheme': scheme, 'content-type': 'application/grpc' })
        const end = (status: unknown) => {
          resolve(String(status))
          session.destroy()
        }
        stream.on('response', (headers) => headers['grpc-status'] && end(headers['grpc-status']))
        stream.on('trailers', (trailers) => end(trailers['grpc-status']))
        stream.on('error', (error) => resolve(error.message)).on('close', () => resolve('closed'))
        stream.resume()
        if (body) stream.end(messageFrame(body))
      })
    const { id, metadata } = sidecarNode('10.6.0.3', 'odd', 'ns')
    for (const word of words) {
      expect(await open(word, 'foo')).to.equal('12')
      const node = { id, metadata: { ...metadata, [word]: word, LABELS: { [word]: word } } as never }
      const request = create(DiscoveryRequestSchema, { typeUrl: word, node, resourceNames: ['a', word] })
      expect(await open(adsPath, 'foo', toBinary(DiscoveryRequestSchema, request))).to.equal('0')
      const names = { resourceNamesSubscribe: ['*', word], resourceNamesUnsubscribe: [word], initialResourceVersions: { a: word } }
      const delta = create(DeltaDiscoveryRequestSchema, { typeUrl: word, node, ...names })
      expect(await open(adsPath.replace('Stream', 'Delta'), 'foo', toBinary(DeltaDiscoveryRequestSchema, delta))).to.equal('0')
    }
    await othersAreServed()
    await nothingRestarted()
  })

  it('peers that send GOAWAY and keep their half open, whose connections are closed', async () => {
    const descriptors = () => readdirSync(`/proc/${service.pid}/fd`).length
    const before = descriptors()
    const goodbye = Buffer.concat([preface, frame(frameType.goaway, 0, 0, Buffer.alloc(8))])
    for (let index = 0; index < 50; index++) {
      const socket = tcpConnect({ port: service.grpcPort, host: '127.0.0.1', allowHalfOpen: true }, () => socket.write(goodbye))
      socket.on('error', () => undefined).resume()
      sockets.push(socket)
    }
    await until('them to be there', () => descriptors() > before + 40)
    await othersAreServed()
    await until('the server to close its end alone', () => descriptors() <= before + 2)
    await othersAreServed()
    await nothingRestarted()
  })

  it('an ended stream whose peer reads nothing, which is removed although its connection stays open', async () => {
    const session = connect(`http://127.0.0.1:${service.grpcPort}`, { settings: { initialWindowSize: 0 } })
    session.on('error', () => undefined)
    const stream = session.request({ ':method': 'POST', ':path': adsPath, 'content-type': 'application/grpc' })
    stream.on('error', () => undefined)
    const { id, metadata } = sidecarNode('10.6.0.4', 'ended', 'ns')
    const say = (fields: object) => stream.write(messageFrame(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, fields))))
    const known = async (name: string) => JSON.stringify(await service.debug('adsz')).includes(name)
    say({ typeUrl: clusterType, node: { id, metadata: metadata as never } })
    await until('the response to be under way', async () =>
      (await service.debug<{ connectionId: string }[]>('slowz')).some(({ connectionId }) => connectionId.includes('ended.ns')),
    )
    say({ typeUrl: endpointType, resourceNames: Array.from({ length: 5000 }, (_, index) => `outbound|80||made-up-${index}.example.com`) })
    await until('the stream to be ended', async () =>
      (await service.debug<{ proxy: string }[]>('budgetz')).some(({ proxy }) => proxy.includes('ended.ns')),
    )
    await until('the stream to be forgotten, though the connection lives', async () => !(await known('ended.ns')))
    expect(session.destroyed).to.equal(false)
    session.destroy()
    await nothingRestarted()
  })

  it('very many small requests that are each expensive, whose stream is ended', async () => {
    const session = connect(`http://127.0.0.1:${service.grpcPort}`)
    session.on('error', () => undefined)
    const path = adsPath.replace('Stream', 'Delta')
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' })
    let ended = false
    stream
      .on('error', () => undefined)
      .on('close', () => (ended = true))
      .resume()
    const { id, metadata } = sidecarNode('10.6.0.5', 'costly', 'ns')
    const say = (fields: object) => stream.write(messageFrame(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, fields))))
    // Each further name causes a copy of the whole list, until the names are known not to exist.
    const names = Array.from({ length: 150_000 }, (_, index) => index.toString(36))
    say({ typeUrl: endpointType, node: { id, metadata: metadata as never }, resourceNamesSubscribe: names })
    for (let index = 0; index < 2000; index++) say({ typeUrl: endpointType, resourceNamesSubscribe: [`x${index}`] })
    await othersAreServed()
    await until('the stream to be ended', () => ended)
    session.destroy()
    await nothingRestarted()
  })

  it('a thousand streams that never read', async () => {
    const session = connect(`http://127.0.0.1:${service.grpcPort}`, { settings: { initialWindowSize: 0 } })
    session.on('error', () => undefined)
    const node = sidecarNode('10.6.0.2', 'deaf', 'ns')
    const request = messageFrame(
      toBinary(
        DiscoveryRequestSchema,
        create(DiscoveryRequestSchema, { typeUrl: clusterType, node: { id: node.id, metadata: node.metadata as never } }),
      ),
    )
    for (let i = 0; i < 1000; i++) {
      const stream = session.request({ ':method': 'POST', ':path': adsPath, 'content-type': 'application/grpc' })
      stream.on('error', () => undefined)
      stream.write(request)
    }
    await until('some of them to be known', async () => JSON.stringify(await service.debug('adsz')).includes('deaf.ns'))
    await othersAreServed()
    session.destroy()
    await until('all of them to be forgotten', async () => !JSON.stringify(await service.debug('adsz')).includes('deaf.ns'))
    await othersAreServed()
  })
})
