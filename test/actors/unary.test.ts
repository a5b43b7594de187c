import { type ClientHttp2Session, connect } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import { expect } from 'chai'
import { GrpcServer } from '../../actors/grpc/grpc-server.ts'
import { StandstillTimer } from '../../actors/grpc/standstill-timer.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import { freePort } from '../../bench/ports.ts'
import { ClientTrust } from '../../src/identity/client-trust.ts'
import { status } from '../../src/model/status-codes.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { type AnswerText, type TextMethod, textMessage, textService } from '../harness/text-service.ts'
import { until } from '../harness/until.ts'

/** Answers that the test holds back. */
class Held {
  readonly signals: AbortSignal[] = []
  readonly #waiting: ((answer: string) => void)[] = []

  hold(signal: AbortSignal): Promise<string> {
    this.signals.push(signal)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  get count(): number {
    return this.#waiting.length
  }

  release(answer: string): void {
    for (const resolve of this.#waiting.splice(0)) resolve(answer)
    this.signals.length = 0
  }
}

describe('a unary gRPC method', () => {
  const registry = new MetricRegistry()
  const logged: string[] = []
  const held = new Held()
  let server: GrpcServer
  let client: Client
  let port = 0

  before(async () => {
    port = await freePort()
    const unary = (answer: AnswerText, concurrent = 100, timeLimit = 10_000): TextMethod => ({
      bounds: { timeLimit, requestBytes: 100, concurrent },
      answer,
    })
    const connections = { keepaliveInterval: 1e4, keepaliveTimeout: 1e4, maxConnectionAge: 1e9, credentialGrace: 0 }
    const limits = { sharers: 1, maxConnections: 100, maxStreams: 100, messageBytes: 1000, sendTimeout: 5000, connections }
    server = new GrpcServer(
      { plain: { host: '127.0.0.1', port }, secure: undefined, ...limits },
      {
        log: { error: (line: string) => logged.push(line), debug: () => {}, warn: () => {} } as never,
        metrics: registry,
        trust: new ClientTrust(),
        standstillTimer: new StandstillTimer(),
        methods: textService(
          {
            Echo: unary((text, { headers }) => `${text} ${headers['x-who']}`),
            Refuse: unary(() => ({ code: 7, message: 'not you' })),
            Later: unary(() => ({ code: 8, message: 'full', retryAfterMs: 1500 })),
            Break: unary(() => Promise.reject(new Error('the reason is ours'))),
            Wait: unary((_, { signal }) => held.hold(signal), 2),
            Late: unary((_, { signal }) => held.hold(signal), 2, 500),
          },
          (path, error) => logged.push(`${path} failed: ${(error as Error).message}`),
        ),
        refused: () => {},
      },
    )
    await server.open()
    client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
  })
  after(async () => {
    client.close()
    await server.close()
  })

  /** Resolves to the outcome of a call: the answer, or code and message. */
  const retries: string[] = []
  const start = (name: string, request = '', options: { deadline?: number } = {}) => {
    const metadata = new Metadata()
    metadata.set('x-who', 'me')
    let cancel = () => {}
    const ended = new Promise<string | [number, string]>((resolve) => {
      const call = client.makeUnaryRequest(
        `/t.T/${name}`,
        textMessage.encode,
        textMessage.decode,
        request,
        metadata,
        options,
        (error: ServiceError | null, value) => {
          retries.push(String(error?.metadata.get('grpc-retry-pushback-ms')[0] ?? ''))
          resolve(error ? [error.code, error.details] : String(value))
        },
      )
      cancel = () => call.cancel()
    })
    return { ended, cancel }
  }
  const call = (name: string, request?: string) => start(name, request).ended

  it('is answered with bytes or a status, and internal errors are only logged', async () => {
    expect(await call('Echo', 'hello')).to.equal('hello me')
    expect(await call('Refuse')).to.deep.equal([7, 'not you'])
    expect(await call('Break')).to.deep.equal([status.internal, 'internal error'])
    expect(logged).to.deep.equal(['/t.T/Break failed: the reason is ours'])
    expect(await call('Echo', 'x'.repeat(99))).to.deep.equal([status.resourceExhausted, 'received message larger than max (101 vs. 100)'])
  })

  it('sends a retry delay to clients', async () => {
    expect(await call('Later')).to.deep.equal([8, 'full'])
    expect(retries.at(-1)).to.equal('1500')
    expect(await call('Refuse')).to.deep.equal([7, 'not you'])
    expect(retries.at(-1)).to.equal('')
  })

  it('limits concurrent calls, which count until they are answered', async () => {
    const [one, other] = [start('Wait'), start('Wait')]
    await until('both to be answered', () => held.count === 2)
    expect(await call('Wait')).to.deep.equal([status.resourceExhausted, 'more than 2 concurrent calls of this method'])
    expect(Number(retries.at(-1))).to.be.within(500, 1500)
    one.cancel()
    expect((await one.ended)[0]).to.equal(status.canceled)
    await until('it to hear that nobody waits', () => held.signals[0]?.aborted === true)
    expect((await call('Wait'))[0], 'while the work goes on').to.equal(status.resourceExhausted)
    held.release('done')
    expect(await other.ended).to.equal('done')
    const third = start('Wait')
    await until('the next to be answered', () => held.count === 1)
    held.release('third')
    expect(await third.ended).to.equal('third')
  })

  it('is not blocked by calls whose messages do not arrive', async () => {
    const session = connect(`http://127.0.0.1:${port}`)
    session.on('error', () => {})
    const silent = ['first', 'second'].map((name) => {
      const stream = session.request({ ':method': 'POST', ':path': '/t.T/Wait', 'content-type': 'application/grpc' })
      const ended = new Promise((resolve) => stream.on('trailers', (trailers) => resolve([name, trailers['grpc-status']])))
      stream.on('error', () => {})
      const opened = new Promise((resolve) => stream.once('response', resolve))
      return { opened, ended }
    })
    await Promise.all(silent.map(({ opened }) => opened))
    const served = start('Wait')
    await until('it to be answered', () => held.count === 1)
    expect(await silent[0]?.ended).to.deep.equal(['first', String(status.resourceExhausted)])
    held.release('done')
    expect(await served.ended).to.equal('done')
    session.destroy()
    const both = [start('Wait'), start('Wait')]
    await until('all places to be free again', () => held.count === 2)
    held.release('done')
    expect(await Promise.all(both.map(({ ended }) => ended))).to.deep.equal(['done', 'done'])
  })

  it('is shared out among clients: the one with the most calls gives way', async () => {
    const sessions = new Set<ClientHttp2Session>()
    /** Resolves with the status of a call from an address. */
    const from = (localAddress: string) => {
      const session = connect(`http://127.0.0.1:${port}`, { createConnection: () => connectSocket({ host: '127.0.0.1', port, localAddress }) })
      sessions.add(session.on('error', () => undefined))
      const stream = session.request({ ':method': 'POST', ':path': '/t.T/Wait', 'content-type': 'application/grpc' })
      stream.on('error', () => undefined).resume()
      stream.end(messageFrame(Buffer.from('')))
      return new Promise((resolve) => stream.on('trailers', (trailers) => resolve(trailers['grpc-status'])))
    }
    const greedy = [from('127.0.0.2')]
    await until('the first call', () => held.count === 1)
    greedy.push(from('127.0.0.2'))
    await until('both calls', () => held.count === 2)
    const other = from('127.0.0.3')
    expect(await greedy[0], 'the oldest of the greedy one').to.equal(String(status.resourceExhausted))
    await until('the other call', () => held.count === 3)
    expect(await from('127.0.0.4'), 'when all have one').to.equal(String(status.resourceExhausted))
    expect(await from('127.0.0.2'), 'the greedy one').to.equal(String(status.resourceExhausted))
    held.release('done')
    expect(await Promise.all([greedy[1], other])).to.deep.equal(['0', '0'])
    for (const session of sessions) session.destroy()
  })

  it('ends at the deadline of server or client', async () => {
    const late = start('Late')
    expect(await late.ended).to.deep.equal([status.deadlineExceeded, 'the deadline of the call was exceeded'])
    expect(held.signals.map(({ aborted }) => aborted)).to.deep.equal([true])
    held.release('too late')
    expect((await start('Wait', '', { deadline: Date.now() + 50 }).ended)[0]).to.equal(status.deadlineExceeded)
    await until('the server to know', () => held.signals.every(({ aborted }) => aborted))
    held.release('too late')
  })

  it('requires exactly one message, and a valid grpc-timeout', async () => {
    const ask = (frames: Buffer[], headers: Record<string, string> = {}) =>
      new Promise<unknown[]>((resolve, reject) => {
        const session = connect(`http://127.0.0.1:${port}`)
        const stream = session.request({ ':method': 'POST', ':path': '/t.T/Echo', 'content-type': 'application/grpc', ...headers })
        stream.on('trailers', (trailers) => resolve([trailers['grpc-status'], decodeURIComponent(String(trailers['grpc-message'] ?? ''))]))
        stream.on('close', () => session.destroy())
        for (const each of [stream, session]) each.on('error', reject)
        stream.resume()
        for (const frame of frames) stream.write(frame)
        stream.end()
      })
    const frame = messageFrame(textMessage.encode('a'))
    expect(await ask([frame])).to.deep.equal(['0', ''])
    expect(await ask([])).to.deep.equal(['12', 'the method is unary: no request message was received'])
    expect(await ask([frame, frame])).to.deep.equal(['12', 'the method is unary: it takes exactly one request message'])
    for (const timeout of ['1', 'S', '123456789m', '1x', '-1S'])
      expect(await ask([frame], { 'grpc-timeout': timeout }), timeout).to.deep.equal(['3', 'the header grpc-timeout is invalid'])
    for (const timeout of ['99999999H', '10S', '5000m']) expect(await ask([frame], { 'grpc-timeout': timeout }), timeout).to.deep.equal(['0', ''])
  })

  it('keeps 1,000 connections waiting that arrive while its thread is busy', () => {
    const connected = new Int32Array(new SharedArrayBuffer(4))
    const code = `const { workerData: { port, connected } } = require('node:worker_threads')
      for (let index = 0; index < 1000; index++)
        require('node:net').connect(port, '127.0.0.1').on('error', () => {}).on('connect', () => {
          if (Atomics.add(connected, 0, 1) === 999) Atomics.notify(connected, 0)
        })`
    const worker = new Worker(code, { eval: true, workerData: { port, connected } })
    for (const end = performance.now() + 20_000; connected[0] !== 1000 && performance.now() < end; )
      Atomics.wait(connected, 0, Atomics.load(connected, 0), 100)
    expect(connected[0]).to.equal(1000)
    return worker.terminate()
  })

  it('is counted as unary', () => {
    const family = registry.collect().find(({ name }) => name === 'grpc_server_started_total')
    const echo = family?.series.find(({ labels }) => labels.grpc_method === 'Echo')
    expect(echo?.labels).to.deep.equal({ grpc_type: 'unary', grpc_service: 't.T', grpc_method: 'Echo' })
    expect(echo?.values[0]).to.be.above(5)
  })
})
