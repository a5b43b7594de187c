import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { fileTimeouts } from '../../actors/runtime/file-timeouts.ts'
import { DiscoveryRequestSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { KeptConfiguration } from '../../src/relay/kept-configuration.ts'
import { fieldHead, textField } from '../../src/xds/slab/wire.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { clusterType, listenerType } from '../../src/xds/type-urls.ts'
import { RecordingPeer } from '../harness/actor.ts'
import { type DiscoveryCall, sotw } from '../harness/relay.ts'
import { nameTable, node, RelayFixture, response } from '../harness/relay-fixture.ts'
import { until } from '../harness/until.ts'

/** Makes all file operations of this thread wait until `answer` is called. `asked` resolves when there is one. */
function silentFiles() {
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  const { run } = fileTimeouts
  const left = new Set<Promise<unknown>>()
  fileTimeouts.run = (operation) => {
    ask()
    const done = answered.then(() => run.call(fileTimeouts, operation))
    left.add(done)
    return done as ReturnType<typeof operation>
  }
  return {
    asked,
    async answer() {
      fileTimeouts.run = run
      answer()
      await Promise.allSettled(left)
    },
  }
}

describe('the XDS relay', () => {
  const at = new RelayFixture()
  after(() => at.dispose())
  afterEach(() => at.end())

  it('never mixes the stored configuration into a stream that discovery has begun to serve while the file was read', async () => {
    const server = await at.discovery()
    const file = join(at.dir, 'kept')
    const stored = new KeptConfiguration(node.id)
    stored.take(false, response(false, clusterType, textField(1, 'stored')))
    writeFileSync(file, Buffer.concat(stored.encode()))
    const files = silentFiles()
    let isBack = false
    let served: DiscoveryCall | undefined
    server.onCall = (call) => {
      if (!isBack) return call.end(14, 'starting')
      served = call
      call.stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    }
    const { state } = await at.relayTo(server.port, { keeps: { file, everyMs: 3_600_000, fallbackAfterMs: 0 } })
    const client = at.proxy()
    client.send(sotw({ node, typeUrl: clusterType }))
    await files.asked
    isBack = true
    await until('the next attempt', () => served?.messages.length === 1)
    served?.send(response(false, clusterType, textField(1, 'live')))
    await until('the response', () => client.messages.length === 1)
    await files.answer()
    client.send(sotw({ node, typeUrl: listenerType }))
    await until('the request to pass', () => served?.messages.length === 2)
    served?.send(response(false, listenerType, textField(1, 'live')))
    await until('the next response', () => client.messages.length >= 2)
    expect(client.messages.map((message) => message.includes('stored'))).to.deep.equal([false, false])
    expect([state().stream, client.ended]).to.deep.equal(['served', undefined])
    expect(at.warnings().filter((line) => line.includes('configuration saved at'))).to.deep.equal([])
  })

  describe('survives from discovery', () => {
    const hostile: readonly (readonly [string, Buffer, RegExp])[] = [
      ['a compressed response', Buffer.from([1, 0, 0, 0, 1, 0]), /compressed messages are not supported/],
      ['a response that is no protobuf', messageFrame(Buffer.from([0x12, 0x7f, 1])), /cannot be read/],
    ]
    for (const [what, bytes, expected] of hostile)
      it(`${what}: only this stream ends, with a status`, async () => {
        const server = await at.discovery()
        const { state } = await at.relayTo(server.port)
        const client = at.proxy()
        client.send(sotw({ node, typeUrl: clusterType }))
        await until('the request', () => server.last?.messages.length === 1)
        server.last?.stream.write(bytes)
        await until('the end', () => client.ended !== undefined)
        expect(client.ended).to.match(/^13 discovery sent a response that cannot be read/)
        expect(decodeURIComponent(client.ended as string)).to.match(expected)
        await until('discovery to be left', () => server.last?.isClosed === true && state().stream === 'none')
      })

    it('frames of one byte and a thousand GOAWAY: the current response is finished, then the stream', async () => {
      const server = await at.discovery()
      const { state } = await at.relayTo(server.port)
      const client = at.proxy()
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
      const server = await at.discovery()
      await at.relayTo(server.port)
      const answers = [
        (call: (typeof server.calls)[number]) => call.stream.respond({ ':status': 503 }, { endStream: true }),
        (call: (typeof server.calls)[number]) => void call.stream.end('<html>'),
        (call: (typeof server.calls)[number]) => call.stream.close(2),
        (call: (typeof server.calls)[number]) => call.end(0),
      ]
      server.onCall = (call) => answers[server.calls.length - 1]?.(call)
      const client = at.proxy()
      client.send(sotw({ node, typeUrl: clusterType }))
      const faults = () => at.warnings().map((line) => /: (.*); retry in/.exec(line)?.[1])
      await until('all of them', () => faults().length === answers.length)
      expect(faults().join('; ')).to.match(/^answered with HTTP status 503; .*the answer is not gRPC; .*INTERNAL_ERROR; status 0$/)
      expect(client.ended).to.equal(undefined)
    })

    it('any number of name tables while discovery reads no answers: only the newest answer waits', async () => {
      const server = await at.discovery()
      const { relay } = await at.relayTo(server.port, { asksNameTable: true })
      const dns = new RecordingPeer('dns')
      relay.linked?.(dns)
      at.proxy().send(sotw({ node, typeUrl: listenerType }))
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
      const server = await at.discovery()
      await at.relayTo(server.port)
      const client = at.proxy({ reads: false })
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
    await at.relayTo(1)
    const client = at.proxy({ method: 'Other' })
    await until('the end', () => client.ended !== undefined)
    expect(client.ended).to.match(/^12 unknown method/)
  })

  it('ends a stream whose request is compressed', async () => {
    const server = await at.discovery()
    const { state } = await at.relayTo(server.port)
    const client = at.proxy()
    client.send(sotw({ node, typeUrl: clusterType }))
    await until('the request', () => server.last?.messages.length === 1)
    client.stream.write(Buffer.from([1, 0, 0, 0, 0]))
    await until('the end', () => client.ended !== undefined)
    expect(client.ended).to.match(/^12 compressed/)
    await until('the end of the other side', () => state().stream === 'none')
  })

  it('survives a proxy that resets streams as fast as it can', async () => {
    const server = await at.discovery()
    const { state } = await at.relayTo(server.port)
    const client = at.proxy()
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
    const next = at.proxy()
    next.send(sotw({ node, typeUrl: clusterType }))
    await until('a good stream', () => server.calls.some(({ messages }) => messages.length === 1))
  })
})
