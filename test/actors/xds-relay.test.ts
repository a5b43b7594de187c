import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { actor } from '../../actors/agent/xds-relay/xds-relay.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import { Registry } from '../../actors/runtime/metrics.ts'
import { DeltaDiscoveryRequestSchema, DiscoveryRequestSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import type { HealthChanged } from '../../protocols/messages/health.ts'
import type { LogRecord } from '../../protocols/messages/log.ts'
import type { NameTableChanged } from '../../protocols/messages/name-table.ts'
import type { XdsRelayConfig, XdsRelayState } from '../../protocols/messages/xds-relay.ts'
import { fieldHead, textField } from '../../src/xds/slab/wire.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { clusterType, listenerType, secretType } from '../../src/xds/type-urls.ts'
import { RecordingPeer, startActor } from '../harness/actor.ts'
import { delta, FakeDiscovery, RelayClient, sotw } from '../harness/relay.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'

const nameTable = 'type.googleapis.com/mesh.networking.nds.v1.NameTable'
const aliasNameTable = 'type.googleapis.com/istio.networking.nds.v1.NameTable'
const health = 'type.googleapis.com/mesh.v1.HealthInformation'
const node = { id: 'sidecar~10.0.0.1~web.shop~shop.svc.cluster.local' }

const message = (field: number, ...parts: Uint8Array[]) => {
  const content = Buffer.concat(parts)
  return Buffer.concat([fieldHead(field, content.length), content])
}
/** A response with one resource. */
const response = (isDelta: boolean, typeUrl: string, value: Buffer, { version = 'v1', nonce = 'n1' } = {}) => {
  const any = message(2, textField(1, typeUrl), message(2, value))
  const resource = isDelta ? message(2, textField(3, ''), any) : any
  return Buffer.concat([textField(1, version), resource, textField(4, typeUrl), textField(5, nonce)])
}

describe('the XDS relay', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-relay-'))
  const socket = join(dir, 'run/XDS')
  const certificates = new ServingCertificates(dir)
  const servers: FakeDiscovery[] = []
  const clients: RelayClient[] = []
  const relays: Behaviour<HealthChanged, NameTableChanged>[] = []
  let logged: LogRecord[] = []
  let metrics = new Registry()
  let answer: (question: string) => unknown = () => undefined

  before(() => {
    for (const root of ['root', 'other']) certificates.authority(root)
    for (const root of ['root', 'other']) certificates.issue(`server-${root}`, root, 1, 'subjectAltName=DNS:localhost\n')
    certificates.workload('client', 'root', ['spiffe://cluster.local/ns/shop/sa/web'])
  })
  after(() => rmSync(dir, { recursive: true }))
  afterEach(async () => {
    for (const client of clients.splice(0)) client.close()
    await Promise.all(relays.splice(0).map((relay) => relay.drain?.()))
    await Promise.all(servers.splice(0).map((server) => server.stop()))
    logged = []
    metrics = new Registry()
  })

  async function discovery(tls?: string): Promise<FakeDiscovery> {
    const files = tls === undefined ? undefined : { cert: certificates.file(`${tls}.pem`), key: certificates.file(`${tls}-key.pem`) }
    const server = await new FakeDiscovery(files).start()
    servers.push(server)
    return server
  }
  const plain = { roots: { files: undefined, learned: undefined, isPinned: true }, tokenFile: undefined, pair: undefined }
  async function relayTo(port: number, changes: Partial<XdsRelayConfig> = {}) {
    const address = { host: '127.0.0.1', port, isPlain: changes.discovery === undefined, serverName: 'localhost' }
    const config = {
      socket,
      headers: {},
      asksNameTable: false,
      ...changes,
      discovery: { address, credentials: changes.discovery?.credentials ?? plain },
    }
    const relay = await startActor(actor, config, {
      logged: (record) => logged.push(record),
      metrics,
      ask: async (question, token) => answer(`${question} ${token}`),
    })
    relays.push(relay)
    return { relay, state: relay.asks?.state as () => XdsRelayState }
  }
  function proxy(options: ConstructorParameters<typeof RelayClient>[1] = {}): RelayClient {
    const client = new RelayClient(socket, options)
    clients.push(client)
    return client
  }
  const warnings = () => logged.filter(({ level }) => level === 'warn').map(({ message }) => message)
  const counted = (name: string): Record<string, number> => {
    const family = metrics.collect().find((each) => each.name === `mesh_agent_${name}`)
    return Object.fromEntries((family?.series ?? []).map(({ labels, values }) => [labels, values[0] as number]))
  }

  for (const isDelta of [false, true])
    it(`passes ${isDelta ? 'delta' : 'SotW'} messages unchanged in both directions, with its own headers`, async () => {
      const server = await discovery()
      const { state } = await relayTo(server.port, { headers: { clusterid: 'east', 'x-more': 'yes' } })
      const client = proxy({ isDelta })
      const first = isDelta ? delta({ node, typeUrl: clusterType }) : sotw({ node, typeUrl: clusterType })
      client.send(first)
      await until('the request', () => server.last?.messages.length === 1)
      const [call] = server.calls
      expect(call?.messages).to.deep.equal([first])
      expect(call?.headers[':path']).to.equal(
        `/envoy.service.discovery.v3.AggregatedDiscoveryService/${isDelta ? 'Delta' : 'Stream'}AggregatedResources`,
      )
      expect(call?.headers).to.deep.include({ clusterid: 'east', 'x-more': 'yes', te: 'trailers', 'content-type': 'application/grpc' })
      expect(state()).to.deep.equal({ stream: 'open', failures: 0, fault: undefined })
      const answers = [response(isDelta, clusterType, Buffer.alloc(300_000, 1)), Buffer.alloc(0), response(isDelta, listenerType, Buffer.alloc(10))]
      for (const answer of answers) call?.send(answer)
      await until('the responses', () => client.messages.length === 3)
      expect(client.messages.map((each, index) => each.equals(answers[index] as Buffer))).to.deep.equal([true, true, true])
      expect(state().stream).to.equal('served')
      const ack = isDelta ? delta({ typeUrl: clusterType, responseNonce: 'n1' }) : sotw({ typeUrl: clusterType, responseNonce: 'n1' })
      client.send(ack)
      await until('the ACK', () => call?.messages.length === 2)
      expect(call?.messages[1]).to.deep.equal(ack)
      expect([counted('xds_proxy_requests'), counted('xds_proxy_responses')]).to.deep.equal([{ '': 2 }, { '': 3 }])
      client.stream.close(8)
      await until('the end', () => call?.isClosed === true && state().stream === 'none')
      expect(counted('proxy_connection_terminations')).to.deep.equal({ 'type="cancelled"': 1 })
      expect(warnings()).to.deep.equal([])
      expect(server.calls).to.have.length(1)
    })

  it('has a socket for its own user, and does not replace that of another agent', async () => {
    await relayTo(1)
    expect([statSync(join(dir, 'run')).mode & 0o777, statSync(socket).mode & 0o777]).to.deep.equal([0o700, 0o600])
    let fault = ''
    metrics = new Registry()
    await relayTo(1).catch((error: Error) => (fault = error.message))
    expect(fault).to.include(`${socket}: another server already listens on it`)
    metrics = new Registry()
    await relayTo(1, { socket: join(dir, 'x'.repeat(200)) }).catch((error: Error) => (fault = error.message))
    expect(fault).to.include('the path of a unix socket has at most')
  })

  for (const isDelta of [false, true])
    for (const typeUrl of [nameTable, aliasNameTable])
      it(`subscribes to name tables after the first listener request, and acknowledges them: ${isDelta ? 'delta' : 'SotW'}, ${typeUrl}`, async () => {
        const server = await discovery()
        const { relay } = await relayTo(server.port, { asksNameTable: true })
        const dns = new RecordingPeer('dns')
        relay.linked?.(dns)
        const client = proxy({ isDelta })
        const ask = (type: string) => client.send(isDelta ? delta({ node, typeUrl: type }) : sotw({ node, typeUrl: type }))
        const read = (bytes: Buffer | undefined) => fromBinary(isDelta ? DeltaDiscoveryRequestSchema : DiscoveryRequestSchema, bytes as Buffer)
        ask(clusterType)
        ask(listenerType)
        ask(listenerType)
        await until('the requests', () => server.last?.messages.length === 4)
        expect(server.last?.messages.map((each) => read(each).typeUrl)).to.deep.equal([clusterType, listenerType, nameTable, listenerType])
        server.last?.send(response(isDelta, typeUrl, Buffer.from('a table'), { version: 'v7', nonce: 'n7' }))
        server.last?.send(response(isDelta, clusterType, Buffer.alloc(0)))
        await until('the ACK', () => server.last?.messages.length === 5)
        const ack = read(server.last?.messages[4])
        expect([ack.typeUrl, ack.responseNonce, 'versionInfo' in ack ? ack.versionInfo : 'v7', ack.errorDetail]).to.deep.equal([
          typeUrl,
          'n7',
          'v7',
          undefined,
        ])
        await until('the clusters', () => client.messages.length === 1)
        const sent = [{ type: 'NameTableChanged', table: Buffer.from('a table') }]
        expect(dns.received).to.deep.equal(sent)
        const later = new RecordingPeer('dns')
        relay.linked?.(later)
        expect(later.received, 'a server that starts anew').to.deep.equal(sent)
      })

  it('sends workload health after the first listener request, on each change and each stream', async () => {
    const server = await discovery()
    const { relay } = await relayTo(server.port)
    const from = new RecordingPeer('status')
    const client = proxy()
    client.send(sotw({ node, typeUrl: clusterType }))
    await until('the request', () => server.last?.messages.length === 1)
    relay.receive({ type: 'HealthChanged', healthy: true, message: '' }, from)
    client.send(sotw({ typeUrl: listenerType }))
    await until('the first event', () => server.last?.messages.length === 3)
    relay.receive({ type: 'HealthChanged', healthy: false, message: 'it is down' }, from)
    await until('the second event', () => server.last?.messages.length === 4)
    const events = server.last?.messages.map((each) => fromBinary(DiscoveryRequestSchema, each))
    expect(events?.map(({ typeUrl, errorDetail }) => [typeUrl, errorDetail?.code, errorDetail?.message])).to.deep.equal([
      [clusterType, undefined, undefined],
      [listenerType, undefined, undefined],
      [health, undefined, undefined],
      [health, 500, 'it is down'],
    ])
    server.last?.send(response(false, health, Buffer.alloc(0)))
    server.last?.send(response(false, clusterType, Buffer.alloc(0)))
    await until('the clusters', () => client.messages.length === 1)
    const next = proxy({ isDelta: true })
    next.send(delta({ node, typeUrl: listenerType }))
    await until('the last event', () => server.calls[1]?.messages.length === 2)
    const request = fromBinary(DeltaDiscoveryRequestSchema, server.last?.messages[1] as Buffer)
    expect([request.typeUrl, request.errorDetail?.message, server.calls[0]?.messages.length]).to.deep.equal([health, 'it is down', 4])
  })

  it('inserts its own requests between those of the proxy, never into one', async () => {
    const server = await discovery()
    const { relay } = await relayTo(server.port)
    const client = proxy()
    client.send(sotw({ node, typeUrl: listenerType }))
    const second = messageFrame(sotw({ typeUrl: clusterType, resourceNames: ['a'.repeat(100)] }))
    client.stream.write(second.subarray(0, 50))
    await until('the first request', () => server.last?.messages.length === 1)
    for (const healthy of [true, false]) relay.receive({ type: 'HealthChanged', healthy, message: 'no' }, new RecordingPeer('status'))
    client.stream.write(second.subarray(50))
    await until('all', () => server.last?.messages.length === 3)
    const types = server.last?.messages.map((each) => fromBinary(DiscoveryRequestSchema, each))
    expect(types?.map(({ typeUrl, errorDetail }) => [typeUrl, errorDetail?.message])).to.deep.equal([
      [listenerType, undefined],
      [clusterType, undefined],
      [health, 'no'],
    ])
  })

  describe('over TLS', () => {
    const write = (name: string, content: string) => {
      writeFileSync(join(dir, `${name}.new`), content)
      renameSync(join(dir, `${name}.new`), join(dir, name))
    }
    const credentials = {
      roots: { files: [join(dir, 'absent.pem'), join(dir, 'roots.pem')], learned: join(dir, 'learned.pem'), isPinned: false },
      tokenFile: join(dir, 'token'),
      pair: { chain: join(dir, 'pair.pem'), key: join(dir, 'pair-key.pem') },
    }
    const settings = { discovery: { address: { host: '', port: 0, isPlain: false, serverName: '' }, credentials } }
    const ask = async (server: FakeDiscovery, count: number) => {
      const client = proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('the stream', () => server.calls.length === count)
      server.last?.send(response(false, clusterType, Buffer.alloc(0)))
      await until('the clusters', () => client.messages.length === 1)
      client.close()
      return server.last
    }
    beforeEach(() => {
      for (const name of ['token', 'pair.pem', 'pair-key.pem', 'learned.pem', 'roots.pem']) rmSync(join(dir, name), { force: true })
    })

    it('reads token, certificate and roots for each stream', async () => {
      write('roots.pem', certificates.text('root.pem'))
      write('token', ' a.good.token\n')
      const server = await discovery('server-root')
      await relayTo(server.port, settings)
      const first = await ask(server, 1)
      expect([first?.headers.authorization, first?.presented]).to.deep.equal(['Bearer a.good.token', undefined])
      write('token', 'another\n')
      write('pair.pem', certificates.text('client.pem'))
      write('pair-key.pem', certificates.text('client-key.pem'))
      const second = await ask(server, 2)
      expect([second?.headers.authorization, second?.presented]).to.deep.equal(['Bearer another', 'client'])
      write('token', 'broken\ntoken')
      write('pair-key.pem', 'no key')
      const third = await ask(server, 3)
      expect([third?.headers.authorization, third?.presented]).to.deep.equal([undefined, undefined])
      expect(warnings()).to.have.length(2)
      expect(warnings().join()).to.include('no token is sent').and.to.include('no client certificate is presented')
      expect(JSON.stringify(logged)).not.to.include('broken')
    })

    it('does not connect to discovery that it cannot verify, until the roots change', async () => {
      write('roots.pem', certificates.text('root.pem'))
      const server = await discovery('server-other')
      const { state } = await relayTo(server.port, settings)
      const client = proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('a refusal', () => state().fault !== undefined)
      expect(state()).to.deep.include({ stream: 'waiting' })
      expect(warnings().join()).to.match(/no configuration from 127\.0\.0\.1:\d+: .*certificate.*; retry in \d\.\d s/)
      expect(client.ended).to.equal(undefined)
      write('learned.pem', certificates.text('other.pem'))
      await until('the stream', () => server.last?.messages.length === 1)
      server.last?.send(response(false, clusterType, Buffer.alloc(0)))
      await until('the clusters', () => client.messages.length === 1)
      expect(counted('meshd_connection_failures')['']).to.be.at.least(1)
      expect(state().fault).to.equal(undefined)
    })

    it('sends the exchanged token, and nothing while the exchange fails', async () => {
      write('roots.pem', certificates.text('root.pem'))
      write('token', 'a.good.token')
      const server = await discovery('server-root')
      answer = () => Promise.reject(new Error('no such project'))
      const { state } = await relayTo(server.port, { ...settings, exchangesToken: true })
      const asked = ask(server, 1)
      await until('the refusal', () => state().fault === 'the token could not be exchanged: no such project')
      expect(server.calls).to.have.length(0)
      answer = (question) => ({ token: question.replace('exchange a.good.token', 'a.cloud.token'), expiresInSeconds: 60 })
      expect((await asked)?.headers.authorization).to.equal('Bearer a.cloud.token')
    })

    it('sends no token in plaintext', async () => {
      write('token', 'a.good.token')
      const server = await discovery()
      const address = { host: 'localhost', port: server.port, isPlain: true, serverName: 'localhost' }
      const relay = await startActor(actor, {
        socket,
        headers: {},
        exchangesToken: false,
        keeps: undefined,
        asksNameTable: false,
        discovery: { address, credentials },
      })
      relays.push(relay)
      expect((await ask(server, 1))?.headers.authorization).to.equal(undefined)
    })
  })

  describe('while discovery is unreachable', () => {
    it("keeps the proxy's stream and requests, and replays them when it connects", async () => {
      const server = await discovery()
      const { port } = server
      await server.stop()
      const { state } = await relayTo(port, { asksNameTable: true })
      const client = proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('two failures', () => state().failures >= 2)
      client.send(sotw({ typeUrl: listenerType }))
      await server.start()
      await until('the requests', () => server.last?.messages.length === 3)
      const types = () => server.last?.messages.map((each) => fromBinary(DiscoveryRequestSchema, each).typeUrl)
      expect(types()).to.deep.equal([clusterType, listenerType, nameTable])
      server.last?.end(16, 'no such token')
      await until('another attempt', () => server.calls.length === 2 && server.last?.messages.length === 3)
      expect(types()).to.deep.equal([clusterType, listenerType, nameTable])
      expect(state().fault).to.equal('no such token')
      server.cut()
      await until('another', () => server.calls.length === 3 && server.last?.messages.length === 3)
      server.last?.send(response(false, clusterType, Buffer.alloc(0)))
      await until('the clusters', () => client.messages.length === 1)
      expect([client.ended, state().stream]).to.deep.equal([undefined, 'served'])
      expect(counted('meshd_connection_failures')['']).to.be.at.least(4)
    })

    it('buffers at most four megabytes of requests, and reads on when it connects', async () => {
      const server = await discovery()
      const { port } = server
      await server.stop()
      const { state } = await relayTo(port)
      const client = proxy()
      const large = Buffer.alloc(1_000_000, 1)
      for (let i = 0; i < 12; i++) client.send(large)
      await until('a failure', () => state().failures > 0)
      await server.start()
      await until('everything', () => server.last?.messages.length === 12)
      server.last?.end(14, 'later')
      await until('the end: what was said then is not kept any more', () => client.ended !== undefined)
      expect(client.ended).to.equal('14 later')
    })

    it('backs off after short-lived streams, whichever side ends them', async () => {
      const server = await discovery()
      const { state } = await relayTo(server.port)
      for (let count = 1; count <= 4; count++) {
        const client = proxy()
        client.send(sotw({ node, typeUrl: clusterType }))
        await until('the stream', () => server.calls.length === count)
        client.close()
        await until('the end', () => server.last?.isClosed === true && state().stream === 'none')
        expect(state().failures).to.equal(count)
      }
      const silent = proxy()
      silent.close()
      await until('the end', () => state().stream === 'none')
      expect([server.calls.length, state().failures], 'one that says nothing costs discovery nothing').to.deep.equal([4, 4])
    })
  })

  describe('keeps the configuration of the proxy', () => {
    const kept = join(dir, 'kept/last')
    const padding = Buffer.concat([fieldHead(9, 4_000_000), Buffer.alloc(4_000_000)])
    const keeps = { file: kept, everyMs: 20, fallbackAfterMs: 200 }
    /** Lets the relay save a configuration for the node, then stops discovery. */
    async function keep() {
      const server = await discovery()
      const { relay } = await relayTo(server.port, { keeps })
      const client = proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('the request', () => server.last?.messages.length === 1)
      server.last?.send(response(false, clusterType, Buffer.concat([textField(1, 'a-cluster'), padding])))
      server.last?.send(response(false, secretType, textField(1, 'a-secret')))
      await until('both', () => client.messages.length === 2)
      await relay.drain?.()
      await server.stop()
      metrics = new Registry()
      return server
    }
    afterEach(() => rmSync(join(dir, 'kept'), { recursive: true, force: true }))

    it('for its own user, without secrets, and serves it to the same proxy after a restart', async () => {
      const server = await keep()
      expect([statSync(kept).mode & 0o777, statSync(join(dir, 'kept')).mode & 0o777]).to.deep.equal([0o600, 0o700])
      expect([readFileSync(kept).includes('a-cluster'), readFileSync(kept).includes('a-secret')]).to.deep.equal([true, false])
      const { state } = await relayTo(server.port, { keeps })
      const client = proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('what was kept', () => client.messages.length === 1)
      expect([client.messages[0]?.includes('a-cluster'), (client.messages[0]?.length ?? 0) > padding.length]).to.deep.equal([true, true])
      client.send(sotw({ typeUrl: clusterType, versionInfo: 'kept', responseNonce: 'kept-1' }))
      expect(state().stream).to.equal('kept')
      expect(warnings().join()).to.match(/starts with the configuration saved at \d{4}-/)
      await server.start()
      await until('an attempt', () => server.calls.length === 2 && server.last?.messages.length === 2)
      server.last?.send(response(false, clusterType, textField(1, 'another')))
      await until('the end', () => client.ended !== undefined)
      expect([client.ended, client.messages.length, state().failures]).to.deep.equal(['0', 1, 0])
    })

    it('and serves it to no other proxy, no proxy with a configuration, and not if it is damaged', async () => {
      const server = await keep()
      const noted = () => logged.filter(({ message }) => /retry in/.test(message)).length
      const others = [
        sotw({ node: { id: 'sidecar~10.0.0.2~other.shop~shop.svc.cluster.local' }, typeUrl: clusterType }),
        sotw({ node, typeUrl: clusterType, versionInfo: 'v1' }),
      ]
      for (const request of others) {
        const { relay } = await relayTo(server.port, { keeps })
        const client = proxy()
        client.send(request)
        const [began, before] = [performance.now(), noted()]
        await until('attempts after the timeout', () => performance.now() - began > 300 && noted() > before + 2)
        expect([client.messages.length, client.ended]).to.deep.equal([0, undefined])
        await relay.drain?.()
        metrics = new Registry()
      }
      writeFileSync(kept, 'something else')
      await relayTo(server.port, { keeps })
      const client = proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('the warning', () => warnings().some((text) => text.startsWith(`${kept}: `)))
      expect(client.messages.length).to.equal(0)
    })

    it('if possible: an unwritable directory causes one warning', async () => {
      writeFileSync(join(dir, 'kept'), '')
      await keep()
      expect(warnings().filter((text) => text.startsWith('the configuration of the proxy cannot be saved: '))).to.have.length(1)
    })
  })

  describe('ends the stream of the proxy', () => {
    const served = async () => {
      const server = await discovery()
      const { relay, state } = await relayTo(server.port)
      const client = proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('the request', () => server.last?.messages.length === 1)
      server.last?.send(response(false, clusterType, Buffer.alloc(0)))
      await until('the clusters', () => client.messages.length === 1)
      return { server, client, relay, state }
    }

    it('with the status of discovery', async () => {
      const { server, client } = await served()
      server.last?.end(8, 'too%20many')
      await until('the end', () => client.ended !== undefined)
      expect(client.ended).to.equal('8 too many')
      expect(counted('meshd_connection_terminations')).to.deep.equal({ 'type="error"': 1 })
      expect(warnings().join()).to.include('ended: too many')
    })

    it('when the connection to discovery is lost', async () => {
      const { server, client } = await served()
      server.cut()
      await until('the end', () => client.ended !== undefined)
      expect(client.ended).to.match(/^14 /)
      expect(counted('meshd_connection_terminations')).to.deep.equal({ 'type="cancelled"': 1 })
      expect(warnings()).to.deep.equal([])
    })

    it('in the middle of a response if discovery ends there', async () => {
      const { server, client } = await served()
      server.last?.stream.write(messageFrame(response(false, clusterType, Buffer.alloc(50_000))).subarray(0, 40_000))
      await until('a part', () => client.chunks.reduce((sum, { length }) => sum + length, 0) > 40_000)
      server.last?.end(0)
      await until('the end', () => client.ended !== undefined)
      expect(client.ended).to.equal('14 discovery ended the stream in the middle of a response')
    })

    it('after the current response if discovery sends GOAWAY', async () => {
      const { server, client } = await served()
      const large = messageFrame(response(false, clusterType, Buffer.alloc(50_000)))
      server.last?.stream.write(large.subarray(0, 40_000))
      await until('a part', () => client.chunks.reduce((sum, { length }) => sum + length, 0) > 40_000)
      server.goaway()
      server.last?.stream.write(large.subarray(40_000))
      await until('the end', () => client.ended !== undefined)
      expect([client.ended, client.messages.length]).to.deep.equal(['0', 2])
    })

    it('when the proxy opens another one, with a warning', async () => {
      const { server, client, state } = await served()
      const next = proxy({ isDelta: true })
      next.send(delta({ node, typeUrl: clusterType }))
      await until('the end of the first', () => client.ended !== undefined)
      expect([client.ended, server.calls[0]?.isClosed]).to.deep.equal(['0', true])
      await until('the other', () => server.calls.length === 2 && state().stream === 'open')
      expect(warnings()).to.deep.equal(['the proxy has opened another stream; the one before is ended'])
    })

    it('when the relay stops', async () => {
      const { client, relay } = await served()
      await relay.drain?.()
      expect(client.ended).to.equal('0')
      expect(() => statSync(socket)).to.throw('ENOENT')
    })

    it('at once for errors that would recur', async () => {
      for (const [code, text] of [
        [3, 'no node'],
        [12, 'unknown method'],
      ] as const) {
        const server = await discovery()
        server.onCall = (call) => call.end(code, text)
        const { relay } = await relayTo(server.port)
        const client = proxy()
        client.send(sotw({ typeUrl: clusterType }))
        await until('the end', () => client.ended !== undefined)
        expect([client.ended, server.calls.length]).to.deep.equal([`${code} ${text}`, 1])
        await relay.drain?.()
        metrics = new Registry()
      }
    })
  })

  describe('survives from discovery', () => {
    const hostile: readonly (readonly [string, Buffer, RegExp])[] = [
      ['a compressed response', Buffer.from([1, 0, 0, 0, 1, 0]), /compressed messages are not supported/],
      ['a response that is no protobuf', messageFrame(Buffer.from([0x12, 0x7f, 1])), /cannot be read/],
    ]
    for (const [what, bytes, expected] of hostile)
      it(`${what}: only this stream ends, with a status`, async () => {
        const server = await discovery()
        const { state } = await relayTo(server.port)
        const client = proxy()
        client.send(sotw({ node, typeUrl: clusterType }))
        await until('the request', () => server.last?.messages.length === 1)
        server.last?.stream.write(bytes)
        await until('the end', () => client.ended !== undefined)
        expect(client.ended).to.match(/^13 discovery sent a response that cannot be read/)
        expect(decodeURIComponent(client.ended as string)).to.match(expected)
        await until('discovery to be left', () => server.last?.isClosed === true && state().stream === 'none')
      })

    it('frames of one byte and a thousand GOAWAY: the current response is finished, then the stream', async () => {
      const server = await discovery()
      const { state } = await relayTo(server.port)
      const client = proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('the request', () => server.last?.messages.length === 1)
      const answer = messageFrame(response(false, clusterType, Buffer.alloc(500)))
      for (const byte of answer) {
        server.last?.stream.write(Buffer.of(byte))
        await new Promise((resolve) => setImmediate(resolve))
      }
      await until('the clusters', () => client.messages.length === 1)
      server.last?.stream.write(answer.subarray(0, 100))
      for (let i = 0; i < 1000; i++) server.goaway()
      server.last?.stream.write(answer.subarray(100))
      await until('the end', () => client.ended !== undefined && state().stream === 'none')
      expect([client.ended, client.messages.length]).to.deep.equal(['0', 2])
    })

    it('answers that are not gRPC, and resets: it retries', async () => {
      const server = await discovery()
      await relayTo(server.port)
      const answers = [
        (call: (typeof server.calls)[number]) => call.stream.respond({ ':status': 503 }, { endStream: true }),
        (call: (typeof server.calls)[number]) => void call.stream.end('<html>'),
        (call: (typeof server.calls)[number]) => call.stream.close(2),
        (call: (typeof server.calls)[number]) => call.end(0),
      ]
      server.onCall = (call) => answers[server.calls.length - 1]?.(call)
      const client = proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      const faults = () => warnings().map((line) => /: (.*); retry in/.exec(line)?.[1])
      await until('all of them', () => faults().length === answers.length)
      expect(faults().join('; ')).to.match(/^answered with HTTP status 503; .*the answer is not gRPC; .*INTERNAL_ERROR; status 0$/)
      expect(client.ended).to.equal(undefined)
    })

    it('any number of name tables while discovery reads no answers: only the newest answer waits', async () => {
      const server = await discovery()
      const { relay } = await relayTo(server.port, { asksNameTable: true })
      const dns = new RecordingPeer('dns')
      relay.linked?.(dns)
      proxy().send(sotw({ node, typeUrl: listenerType }))
      await until('the requests', () => server.last?.messages.length === 2)
      const { last } = server
      last?.stream.pause()
      const before = last?.messages.length ?? 0
      const rounds = 30_000
      for (let round = 1; round <= rounds; round++) last?.send(response(false, nameTable, Buffer.from('a table'), { nonce: `n${round}` }))
      await until('all to be taken', () => dns.received.length === rounds)
      last?.stream.resume()
      const nonce = () => fromBinary(DiscoveryRequestSchema, last?.messages.at(-1) as Buffer).responseNonce
      await until('the last answer', () => nonce() === `n${rounds}`)
      expect((last?.messages.length ?? 0) - before).to.be.below(rounds / 3)
    })

    it('100 MB for a proxy that reads nothing: the relay buffers no more than its window', async () => {
      const server = await discovery()
      await relayTo(server.port)
      const client = proxy({ reads: false })
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('the request', () => server.last?.messages.length === 1)
      const stream = server.last?.stream
      const block = Buffer.alloc(1_000_000)
      const head = Buffer.concat([textField(4, clusterType), fieldHead(2, 100 * block.length)])
      const prefix = Buffer.alloc(5)
      prefix.writeUInt32BE(head.length + 100 * block.length, 1)
      stream?.write(Buffer.concat([prefix, head]))
      for (let i = 0; i < 100; i++) stream?.write(block)
      const sent = () => stream?.session?.socket.bytesWritten ?? 0
      await until('a window to be sent', () => sent() > 1_000_000)
      const { arrayBuffers } = process.memoryUsage()
      let [before, rounds] = [sent(), 0]
      await until('it to stand still', () => {
        rounds = before === sent() ? rounds + 1 : 0
        before = sent()
        return rounds > 10
      })
      expect(sent()).to.be.below(1_200_000)
      expect(process.memoryUsage().arrayBuffers - arrayBuffers).to.be.below(10_000_000)
    })
  })

  it('rejects other methods and requests that are not gRPC', async () => {
    await relayTo(1)
    const client = proxy({ method: 'Other' })
    await until('the end', () => client.ended !== undefined)
    expect(client.ended).to.match(/^12 unknown method/)
  })

  it('ends a stream whose request is compressed', async () => {
    const server = await discovery()
    const { state } = await relayTo(server.port)
    const client = proxy()
    client.send(sotw({ node, typeUrl: clusterType }))
    await until('the request', () => server.last?.messages.length === 1)
    client.stream.write(Buffer.from([1, 0, 0, 0, 0]))
    await until('the end', () => client.ended !== undefined)
    expect(client.ended).to.match(/^12 compressed/)
    await until('the end of the other side', () => state().stream === 'none')
  })

  it('survives a proxy that resets streams as fast as it can', async () => {
    const server = await discovery()
    const { state } = await relayTo(server.port)
    const client = proxy()
    client.stream.close(8)
    for (let i = 0; i < 300; i++) {
      if (client.session.destroyed) break
      const stream = client.session.request({
        ':method': 'POST',
        ':path': '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
        'content-type': 'application/grpc',
      })
      stream.on('error', () => undefined)
      stream.write(messageFrame(sotw({ node, typeUrl: clusterType })))
      stream.close(8)
    }
    await until('the end', () => state().stream === 'none')
    expect(server.calls.length).to.be.below(5)
    const next = proxy()
    next.send(sotw({ node, typeUrl: clusterType }))
    await until('a good stream', () => server.calls.some(({ messages }) => messages.length === 1))
  })
})
