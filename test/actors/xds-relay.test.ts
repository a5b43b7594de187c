import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { DeltaDiscoveryRequestSchema, DiscoveryRequestSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { TrustBundleSchema } from '../../protocols/gen/mesh/security/v1/trust_bundle_pb.js'
import { fieldHead, textField } from '../../src/xds/slab/wire.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { clusterType, listenerType, secretType, trustBundleType } from '../../src/xds/type-urls.ts'
import { RecordingPeer } from '../harness/actor.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { delta, type FakeDiscovery, sotw } from '../harness/relay.ts'
import { nameTable, node, RelayFixture, response } from '../harness/relay-fixture.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'

const aliasNameTable = 'type.googleapis.com/istio.networking.nds.v1.NameTable'
const health = 'type.googleapis.com/mesh.v1.HealthInformation'

describe('the XDS relay', () => {
  const at = new RelayFixture()
  after(() => at.dispose())
  afterEach(() => at.end())

  for (const isDelta of [false, true])
    it(`passes ${isDelta ? 'delta' : 'SotW'} messages unchanged in both directions, with its own headers`, async () => {
      const server = await at.discovery()
      const { state } = await at.relayTo(server.port, { headers: { clusterid: 'east', 'x-more': 'yes' } })
      const client = at.proxy({ isDelta })
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
      expect([at.counted('xds_proxy_requests'), at.counted('xds_proxy_responses')]).to.deep.equal([{ '': 2 }, { '': 3 }])
      client.stream.close(8)
      await until('the end', () => call?.isClosed === true && state().stream === 'none')
      expect(at.counted('proxy_connection_terminations')).to.deep.equal({ 'type="cancelled"': 1 })
      expect(at.warnings()).to.deep.equal([])
      expect(server.calls).to.have.length(1)
    })

  it('says in the log which replica of discovery serves the proxy, where that tells its name', async () => {
    for (const [name, said] of [
      ['meshd-7', ' (replica meshd-7)'],
      ['no name\n', ''],
    ] as const) {
      const discovery = new LocalDiscovery({ mode: 'in-thread' }, { POD_NAME: name })
      try {
        const { ready } = await discovery.start()
        await ready()
        await at.relayTo(discovery.grpcPort)
        at.proxy().send(sotw({ node, typeUrl: clusterType }))
        const line = `the proxy is served by 127.0.0.1:${discovery.grpcPort}${said}`
        await until('the line', () => at.logged.some(({ message }) => message === line))
      } finally {
        await at.end()
        await discovery.dispose()
      }
    }
  })

  it('has a socket for its own user, and does not replace that of another agent', async () => {
    await at.relayTo(1)
    expect([statSync(join(at.dir, 'run')).mode & 0o777, statSync(at.socket).mode & 0o777]).to.deep.equal([0o700, 0o600])
    let fault = ''
    await at.relayTo(1).catch((error: Error) => (fault = error.message))
    expect(fault).to.include(`${at.socket}: another server already listens on it`)
    await at.relayTo(1, { socket: join(at.dir, 'x'.repeat(200)) }).catch((error: Error) => (fault = error.message))
    expect(fault).to.include('the path of a unix socket has at most')
  })

  it('has its socket again after that was removed, with its directory, and serves a proxy that connects anew', async () => {
    const server = await at.discovery()
    await at.relayTo(server.port)
    rmSync(join(at.dir, 'run'), { recursive: true })
    await until('the warning', () => at.warnings().length > 0)
    expect(at.warnings()).to.deep.equal([`socket of the proxy: ${at.socket}: the socket was removed or replaced; the server listens on it again`])
    at.proxy().send(sotw({ node, typeUrl: clusterType }))
    await until('the request', () => server.last?.messages.length === 1)
  })

  for (const isDelta of [false, true])
    for (const typeUrl of [nameTable, aliasNameTable])
      it(`subscribes to name tables after the first listener request, and acknowledges them: ${isDelta ? 'delta' : 'SotW'}, ${typeUrl}`, async () => {
        const server = await at.discovery()
        const { relay } = await at.relayTo(server.port, { asksNameTable: true })
        const dns = new RecordingPeer('dns')
        relay.linked?.(dns)
        const client = at.proxy({ isDelta })
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

  for (const isDelta of [false, true])
    it(`subscribes to the roots of the mesh for the secret agent alone: ${isDelta ? 'delta' : 'SotW'}`, async () => {
      const server = await at.discovery()
      const { relay } = await at.relayTo(server.port, { asksTrust: true })
      const [secrets, dns] = [new RecordingPeer('secret-agent'), new RecordingPeer('dns')]
      for (const peer of [secrets, dns]) relay.linked?.(peer)
      const client = at.proxy({ isDelta })
      client.send(isDelta ? delta({ node, typeUrl: listenerType }) : sotw({ node, typeUrl: listenerType }))
      const read = (bytes: Buffer | undefined) => fromBinary(isDelta ? DeltaDiscoveryRequestSchema : DiscoveryRequestSchema, bytes as Buffer)
      await until('the request', () => server.last?.messages.length === 2)
      expect(read(server.last?.messages[1]).typeUrl).to.equal(trustBundleType)
      const bundle = toBinary(TrustBundleSchema, create(TrustBundleSchema, { roots: 'some roots' }))
      server.last?.send(response(isDelta, trustBundleType, Buffer.from(bundle), { nonce: 'n7' }))
      server.last?.send(response(isDelta, clusterType, Buffer.alloc(0)))
      await until('the ACK', () => server.last?.messages.length === 3)
      const { typeUrl, responseNonce, errorDetail } = read(server.last?.messages[2])
      expect([typeUrl, responseNonce, errorDetail]).to.deep.equal([trustBundleType, 'n7', undefined])
      await until('the clusters', () => client.messages.length === 1)
      const sent = [{ type: 'TrustBundleChanged', roots: 'some roots' }]
      const later = new RecordingPeer('secret-agent')
      relay.linked?.(later)
      expect([secrets.received, dns.received, later.received]).to.deep.equal([sent, [], sent])
    })

  it('sends workload health after the first listener request, on each change and each stream', async () => {
    const server = await at.discovery()
    const { relay } = await at.relayTo(server.port)
    const from = new RecordingPeer('status')
    const client = at.proxy()
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
    const next = at.proxy({ isDelta: true })
    next.send(delta({ node, typeUrl: listenerType }))
    await until('the last event', () => server.calls[1]?.messages.length === 2)
    const request = fromBinary(DeltaDiscoveryRequestSchema, server.last?.messages[1] as Buffer)
    expect([request.typeUrl, request.errorDetail?.message, server.calls[0]?.messages.length]).to.deep.equal([health, 'it is down', 4])
  })

  it('inserts its own requests between those of the proxy, never into one', async () => {
    const server = await at.discovery()
    const { relay } = await at.relayTo(server.port)
    const client = at.proxy()
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
    const certificates = new ServingCertificates(at.dir)
    before(() => {
      for (const root of ['root', 'other']) certificates.authority(root)
      for (const root of ['root', 'other']) certificates.issue(`server-${root}`, root, 1, 'subjectAltName=DNS:localhost\n')
      certificates.workload('client', 'root', ['spiffe://cluster.local/ns/shop/sa/web'])
    })
    const discoveryWith = (name: string) => at.discovery({ cert: certificates.file(`${name}.pem`), key: certificates.file(`${name}-key.pem`) })
    const write = (name: string, content: string) => {
      writeFileSync(join(at.dir, `${name}.new`), content)
      renameSync(join(at.dir, `${name}.new`), join(at.dir, name))
    }
    const credentials = {
      roots: { files: [join(at.dir, 'absent.pem'), join(at.dir, 'roots.pem')], learned: join(at.dir, 'learned.pem'), isPinned: false },
      tokenFile: join(at.dir, 'token'),
      pair: { chain: join(at.dir, 'pair.pem'), key: join(at.dir, 'pair-key.pem') },
    }
    const settings = { discovery: { address: { host: '', port: 0, isPlain: false, serverName: '' }, credentials } }
    const ask = async (server: FakeDiscovery, count: number) => {
      const client = at.proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('the stream', () => server.calls.length === count)
      server.last?.send(response(false, clusterType, Buffer.alloc(0)))
      await until('the clusters', () => client.messages.length === 1)
      client.close()
      return server.last
    }
    beforeEach(() => {
      for (const name of ['token', 'pair.pem', 'pair-key.pem', 'learned.pem', 'roots.pem']) rmSync(join(at.dir, name), { force: true })
    })

    it('reads token, certificate and roots for each stream', async () => {
      write('roots.pem', certificates.text('root.pem'))
      write('token', ' a.good.token\n')
      const server = await discoveryWith('server-root')
      await at.relayTo(server.port, settings)
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
      expect(at.warnings()).to.have.length(2)
      expect(at.warnings().join()).to.include('no token is sent').and.to.include('no client certificate is presented')
      expect(JSON.stringify(at.logged)).not.to.include('broken')
    })

    it('does not connect to discovery that it cannot verify, until the roots change', async () => {
      write('roots.pem', certificates.text('root.pem'))
      const server = await discoveryWith('server-other')
      const { state } = await at.relayTo(server.port, settings)
      const client = at.proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('a refusal', () => state().fault !== undefined)
      expect(state()).to.deep.include({ stream: 'waiting' })
      expect(at.warnings().join()).to.match(/no configuration from 127\.0\.0\.1:\d+: .*certificate.*; retry in \d\.\d s/)
      expect(client.ended).to.equal(undefined)
      write('learned.pem', certificates.text('other.pem'))
      await until('the stream', () => server.last?.messages.length === 1)
      server.last?.send(response(false, clusterType, Buffer.alloc(0)))
      await until('the clusters', () => client.messages.length === 1)
      expect(at.counted('meshd_connection_failures')['']).to.be.at.least(1)
      expect(state().fault).to.equal(undefined)
    })

    it('sends the exchanged token, and nothing while the exchange fails', async () => {
      write('roots.pem', certificates.text('root.pem'))
      write('token', 'a.good.token')
      const server = await discoveryWith('server-root')
      at.answer = () => Promise.reject(new Error('no such project'))
      const { state } = await at.relayTo(server.port, { ...settings, exchangesToken: true })
      const asked = ask(server, 1)
      await until('the refusal', () => state().fault === 'the token could not be exchanged: no such project')
      expect(server.calls).to.have.length(0)
      at.answer = (question) => ({ token: question.replace('exchange a.good.token', 'a.cloud.token'), expiresInSeconds: 60 })
      expect((await asked)?.headers.authorization).to.equal('Bearer a.cloud.token')
    })

    it('sends no token in plaintext', async () => {
      write('token', 'a.good.token')
      const server = await at.discovery()
      const address = { host: 'localhost', port: server.port, isPlain: true, serverName: 'localhost' }
      await at.relay({ discovery: { address, credentials } })
      expect((await ask(server, 1))?.headers.authorization).to.equal(undefined)
    })
  })

  describe('while discovery is unreachable', () => {
    it("keeps the proxy's stream and requests, and replays them when it connects", async () => {
      const server = await at.discovery()
      const { port } = server
      await server.stop()
      const { state } = await at.relayTo(port, { asksNameTable: true })
      const client = at.proxy()
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
      expect(at.counted('meshd_connection_failures')['']).to.be.at.least(4)
    })

    it('buffers at most four megabytes of requests, and reads on when it connects', async () => {
      const server = await at.discovery()
      const { port } = server
      await server.stop()
      const { state } = await at.relayTo(port)
      const client = at.proxy()
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
      const server = await at.discovery()
      const { state } = await at.relayTo(server.port)
      for (let count = 1; count <= 4; count++) {
        const client = at.proxy()
        client.send(sotw({ node, typeUrl: clusterType }))
        await until('the stream', () => server.calls.length === count)
        client.close()
        await until('the end', () => server.last?.isClosed === true && state().stream === 'none')
        expect(state().failures).to.equal(count)
      }
      const silent = at.proxy()
      silent.close()
      await until('the end', () => state().stream === 'none')
      expect([server.calls.length, state().failures], 'one that says nothing costs discovery nothing').to.deep.equal([4, 4])
    })
  })

  describe('keeps the configuration of the proxy', () => {
    const kept = join(at.dir, 'kept/last')
    const padding = Buffer.concat([fieldHead(9, 4_000_000), Buffer.alloc(4_000_000)])
    const keeps = { file: kept, everyMs: 20, fallbackAfterMs: 200 }
    /** Lets the relay save a configuration for the node, then stops discovery. */
    async function keep() {
      const server = await at.discovery()
      const { relay } = await at.relayTo(server.port, { keeps })
      const client = at.proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('the request', () => server.last?.messages.length === 1)
      server.last?.send(response(false, clusterType, Buffer.concat([textField(1, 'a-cluster'), padding])))
      server.last?.send(response(false, secretType, textField(1, 'a-secret')))
      await until('both', () => client.messages.length === 2)
      await relay.drain?.()
      await server.stop()
      return server
    }
    afterEach(() => rmSync(join(at.dir, 'kept'), { recursive: true, force: true }))

    it('for its own user, without secrets, and serves it to the same proxy after a restart', async () => {
      const server = await keep()
      expect([statSync(kept).mode & 0o777, statSync(join(at.dir, 'kept')).mode & 0o777]).to.deep.equal([0o600, 0o700])
      expect([readFileSync(kept).includes('a-cluster'), readFileSync(kept).includes('a-secret')]).to.deep.equal([true, false])
      const { state } = await at.relayTo(server.port, { keeps })
      const client = at.proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('what was kept', () => client.messages.length === 1)
      expect([client.messages[0]?.includes('a-cluster'), (client.messages[0]?.length ?? 0) > padding.length]).to.deep.equal([true, true])
      client.send(sotw({ typeUrl: clusterType, versionInfo: 'kept', responseNonce: 'kept-1' }))
      expect(state().stream).to.equal('kept')
      expect(at.warnings().join()).to.match(/starts with the configuration saved at \d{4}-/)
      await server.start()
      await until('an attempt', () => server.calls.length === 2 && server.last?.messages.length === 2)
      server.last?.send(response(false, clusterType, textField(1, 'another')))
      await until('the end', () => client.ended !== undefined)
      expect([client.ended, client.messages.length, state().failures]).to.deep.equal(['0', 1, 0])
    })

    it('and ends a stream that it serves if a request cannot be decoded, with a status that says so', async () => {
      const server = await keep()
      await at.relayTo(server.port, { keeps })
      const client = at.proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('what was kept', () => client.messages.length === 1)
      client.send(Buffer.from([0x0c]))
      await until('the end', () => client.ended !== undefined)
      expect(client.ended).to.equal('3 the discovery request cannot be decoded: wire type 4 is not supported')
    })

    it('and serves it to no other proxy, no proxy with a configuration, and not if it is damaged', async () => {
      const server = await keep()
      const noted = () => at.logged.filter(({ message }) => /retry in/.test(message)).length
      const others = [
        sotw({ node: { id: 'sidecar~10.0.0.2~other.shop~shop.svc.cluster.local' }, typeUrl: clusterType }),
        sotw({ node, typeUrl: clusterType, versionInfo: 'v1' }),
      ]
      for (const request of others) {
        const { relay } = await at.relayTo(server.port, { keeps })
        const client = at.proxy()
        client.send(request)
        const [began, before] = [performance.now(), noted()]
        await until('attempts after the timeout', () => performance.now() - began > 300 && noted() > before + 2)
        expect([client.messages.length, client.ended]).to.deep.equal([0, undefined])
        await relay.drain?.()
      }
      writeFileSync(kept, 'something else')
      await at.relayTo(server.port, { keeps })
      const client = at.proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      await until('the warning', () => at.warnings().some((text) => text.startsWith(`${kept}: `)))
      expect(client.messages.length).to.equal(0)
    })

    it('if possible: an unwritable directory causes one warning', async () => {
      writeFileSync(join(at.dir, 'kept'), '')
      await keep()
      expect(at.warnings().filter((text) => text.startsWith('the configuration of the proxy cannot be saved: '))).to.have.length(1)
    })
  })

  describe('ends the stream of the proxy', () => {
    const served = async () => {
      const server = await at.discovery()
      const { relay, state } = await at.relayTo(server.port)
      const client = at.proxy()
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
      expect(at.counted('meshd_connection_terminations')).to.deep.equal({ 'type="error"': 1 })
      expect(at.warnings().join()).to.include('ended: too many')
    })

    it('when the connection to discovery is lost', async () => {
      const { server, client } = await served()
      server.cut()
      await until('the end', () => client.ended !== undefined)
      expect(client.ended).to.match(/^14 /)
      expect(at.counted('meshd_connection_terminations')).to.deep.equal({ 'type="cancelled"': 1 })
      expect(at.warnings()).to.deep.equal([])
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
      const next = at.proxy({ isDelta: true })
      next.send(delta({ node, typeUrl: clusterType }))
      await until('the end of the first', () => client.ended !== undefined)
      expect([client.ended, server.calls[0]?.isClosed]).to.deep.equal(['0', true])
      await until('the other', () => server.calls.length === 2 && state().stream === 'open')
      expect(at.warnings()).to.deep.equal(['the proxy has opened another stream; the one before is ended'])
    })

    it('when the relay stops', async () => {
      const { client, relay } = await served()
      await relay.drain?.()
      expect(client.ended).to.equal('0')
      expect(() => statSync(at.socket)).to.throw('ENOENT')
    })

    it('at once for errors that would recur', async () => {
      for (const [code, text] of [
        [3, 'no node'],
        [12, 'unknown method'],
      ] as const) {
        const server = await at.discovery()
        server.onCall = (call) => call.end(code, text)
        const { relay } = await at.relayTo(server.port)
        const client = at.proxy()
        client.send(sotw({ typeUrl: clusterType }))
        await until('the end', () => client.ended !== undefined)
        expect([client.ended, server.calls.length]).to.deep.equal([`${code} ${text}`, 1])
        await relay.drain?.()
      }
    })
  })
})
