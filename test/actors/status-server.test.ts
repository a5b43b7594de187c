import { spawn } from 'node:child_process'
import { type IncomingMessage, type RequestListener, request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { ProxyReadiness } from '../../actors/agent/status/proxy-readiness.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import { mediaTypes } from '../../actors/runtime/metrics-format.ts'
import { Supervisor } from '../../actors/runtime/supervisor.ts'
import { freePort } from '../../bench/ports.ts'
import type { StatusConfig, StatusState } from '../../protocols/messages/status.ts'
import { configured, running, StatusFixture, send } from '../harness/status-fixture.ts'
import { until } from '../harness/until.ts'

describe('the status server', () => {
  let at = new StatusFixture()
  beforeEach(() => {
    at = new StatusFixture()
  })
  afterEach(() => at.dispose())

  describe('readiness', () => {
    it('is determined from the admin interface step by step, and remembered', async () => {
      const questions: string[] = []
      let stats = ''
      const adminPort = await at.serve((incoming, response) => {
        questions.push(URL.parse(incoming.url ?? '', 'http://x')?.searchParams.get('filter') ?? '')
        response.end(stats)
      })
      const { port, state } = await at.start({ adminPort })
      const ready = () => send(port, '/healthz/ready').then(({ status, body }) => ({ status, body }))
      expect(await ready()).to.deep.equal({ status: 503, body: '' })
      expect(state()).to.include({ ready: false }).and.property('reason').to.include('configuration')
      stats = configured
      expect((await ready()).status).to.equal(503)
      expect(state().reason).to.include('live')
      stats = running
      expect(await ready()).to.deep.equal({ status: 200, body: '' })
      expect(state()).to.include({ ready: true, reason: '' })
      expect(at.counted('startup_duration_seconds')['']).to.be.greaterThan(0)
      const before = questions.length
      expect((await send(port, '/healthz/ready', { method: 'POST' })).status).to.equal(200)
      expect((await send(port, '/healthz/ready', { method: 'HEAD' })).status).to.equal(200)
      expect(questions).to.have.lengthOf(before)
      expect(questions[0]).to.match(/update_success/)
      expect(questions.at(-1)).to.match(/server/)
      expect(at.lines('warn')).to.deep.equal([])
      expect(at.lines('info').filter((line) => line.includes('NOT ready'))).to.have.lengthOf(2)
      expect(at.lines('info').filter((line) => line.includes('is ready'))).to.have.lengthOf(1)
    })

    it('is said to be missing as information during the first 30 seconds, and as a warning afterwards', async () => {
      const levels: string[] = []
      let now = 1000
      const all = { fallback: 'debug', scopes: {} } as const
      const log = createLogger({ output: all, stackTrace: { ...all, fallback: 'none' }, callers: [] }, ({ level }) => levels.push(level))('default')
      const readiness = new ProxyReadiness({ adminPort: 1, isIpv6Only: false }, { log, metrics: new MetricRegistry(), now: () => now })
      for (const passed of [0, 29_000, 30_000]) {
        now = 1000 + passed
        await readiness.check()
      }
      expect(levels).to.deep.equal(['info', 'info', 'warn'])
    })

    it('is queried once for concurrent probes, and is false while the admin interface fails', async () => {
      let requests = 0
      let answer: RequestListener = (_, response) => response.writeHead(500).end()
      const adminPort = await at.serve((incoming, response) => {
        requests++
        answer(incoming, response)
      })
      const { port, state } = await at.start({ adminPort })
      const all = await Promise.all(Array.from({ length: 20 }, () => send(port, '/healthz/ready')))
      expect(new Set(all.map(({ status }) => status))).to.deep.equal(new Set([503]))
      expect(requests).to.be.lessThan(20)
      expect(state().reason).to.include('HTTP status 500')
      answer = (_, response) => response.end('x: 1\n'.repeat(20_000))
      expect((await send(port, '/healthz/ready')).status).to.equal(503)
      expect(state().reason).to.include('more than 65536 bytes')
      answer = (_, response) => response.writeHead(200).write('half')
      expect((await send(port, '/healthz/ready')).status).to.equal(503)
      expect(state().reason).to.include('no answer within 1000 ms')
      const { port: other, state: otherState } = await at.start({ adminPort: await freePort() })
      expect((await send(other, '/healthz/ready')).status).to.equal(503)
      expect(otherState().reason).to.include('ECONNREFUSED')
    })
  })

  describe('merged metrics', () => {
    const proxyPart = 'envoy_a 1\nenvoy_b 2\n'

    it('are those of the proxy, the application and the agent, in this order', async () => {
      const seen: IncomingMessage[] = []
      const part = (body: string) =>
        at.serve((incoming, response) => {
          seen.push(incoming)
          response.writeHead(200, { 'content-type': 'text/plain' }).end(body)
        })
      const [prometheusPort, application] = [await part(proxyPart), await part('app 1')]
      const { port } = await at.start({ prometheusPort, application: { port: application, path: '/m?deep=1' } })
      const headers = {
        accept: 'application/openmetrics-text,text/plain;q=0.5',
        'user-agent': 'Prometheus/3',
        cookie: 'secret',
        'x-prometheus-scrape-timeout-seconds': '9.5',
      }
      const answer = await send(port, '/stats/prometheus?usedonly', { headers })
      expect(answer.status).to.equal(200)
      expect(answer.body).to.equal(`${proxyPart}app 1\nagent 1\n`)
      expect(answer.headers['content-type']).to.equal('text/plain; version=0.0.4; charset=utf-8')
      expect(seen.map(({ url }) => url).sort()).to.deep.equal(['/m?deep=1', '/stats/prometheus?usedonly'])
      for (const { headers: forwarded } of seen) {
        expect(forwarded).to.include({ accept: 'text/plain;q=0.5', 'user-agent': 'Prometheus/3', 'x-prometheus-scrape-timeout-seconds': '9.5' })
        expect(forwarded).not.to.have.property('cookie')
      }
      expect(at.counted('scrapes_total')['']).to.equal(1)
      expect(at.counted('scrape_failures_total')).to.deep.equal({})
      expect((await send(port, '/stats/prometheus', { method: 'HEAD' })).body).to.equal('')
    })

    const html: RequestListener = (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>')
    const breakOff: RequestListener = (_, response) => response.write('app_a 1\napp_b', () => response.destroy())
    const inPieces: RequestListener = (_, response) => {
      for (let pieces = 0; pieces < 30_000; pieces++) response.write('a')
      response.end('\n')
    }
    const failures: readonly [what: string, application: RequestListener, expected: string][] = [
      ['an error of the application', (_, response) => response.writeHead(500).end('no\n'), ''],
      ['an application whose answer is no metrics', html, ''],
      ['a compressed answer', (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'), ''],
      ['an answer that breaks off', breakOff, 'app_a 1\n'],
      ['an answer that does not end', (_, response) => void response.write('app_a 1\napp_b'), 'app_a 1\n'],
      ['an answer in a great many pieces', inPieces, ''],
      ['a line without end', (_, response) => response.end(`app_a 1\n${'x'.repeat(1_200_000)}`), 'app_a 1\n'],
    ]
    for (const [what, application, expected] of failures)
      it(`keep the whole lines of a part that fails: ${what}`, async () => {
        const prometheusPort = await at.serve((_, response) => response.end(proxyPart))
        const { port } = await at.start({ prometheusPort, application: { port: await at.serve(application), path: '/metrics' } })
        const answer = await send(port, '/stats/prometheus', { headers: { 'x-prometheus-scrape-timeout-seconds': '2' } })
        expect(answer).to.include({ status: 200, body: `${proxyPart}${expected}agent 1\n` })
        expect(at.counted('scrape_failures_total')).to.deep.equal({ 'type="application"': 1 })
        expect(at.lines('warn')).to.have.lengthOf(1)
      })

    it('are served with the remaining parts if others fail', async () => {
      const { port } = await at.start({ prometheusPort: await freePort() })
      expect(await send(port, '/stats/prometheus')).to.include({ status: 200, body: 'agent 1\n' })
      at.agentMetrics = () => Promise.reject(new Error('gone'))
      expect(await send(port, '/stats/prometheus')).to.include({ status: 200, body: '' })
      expect(at.counted('scrape_failures_total')).to.deep.equal({ 'type="proxy"': 2, 'type="agent"': 1 })
    })

    it('of the agent alone are in the format that the client prefers, and no page without them', async () => {
      const { port } = await at.start({ prometheusPort: await freePort() })
      at.agentMetrics = async (page) => ({ text: `${page} 1\n`, silent: 0 })
      const accept = 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5'
      const open = await send(port, '/metrics', { headers: { accept } })
      expect([open.status, open.body, open.headers['content-type']]).to.deep.equal([200, 'openmetrics 1\n', mediaTypes.openmetrics])
      const text = await send(port, '/metrics')
      expect([text.status, text.body, text.headers['content-type']]).to.deep.equal([200, 'text 1\n', mediaTypes.text])
      expect((await send(port, '/metrics', { method: 'HEAD' })).body).to.equal('')
      expect((await send(port, '/stats/prometheus')).body).to.equal('shared 1\n')
      at.agentMetrics = () => Promise.reject(new Error('gone'))
      expect((await send(port, '/metrics')).status).to.equal(500)
      expect(at.counted('scrape_failures_total')).to.deep.equal({ 'type="proxy"': 1, 'type="agent"': 1 })
    })

    it('of any size are streamed with back-pressure', async () => {
      const chunk = Buffer.from(`${'envoy_x{a="b"} 1\n'.repeat(4096)}`)
      let taken = 0
      const prometheusPort = await at.serve((_, response) => {
        const more = (): void => {
          while (taken < 500) {
            taken++
            if (!response.write(chunk)) return void response.once('drain', more)
          }
          response.end()
        }
        more()
      })
      const { port } = await at.start({ prometheusPort })
      const outgoing = request({ host: '127.0.0.1', port, path: '/stats/prometheus', agent: false })
      outgoing.end()
      const response = await new Promise<IncomingMessage>((resolve) => outgoing.once('response', resolve))
      let [before, times] = [0, 0]
      await until('the proxy to be held up', () => {
        times = taken > 0 && taken === before ? times + 1 : 0
        before = taken
        return times > 10
      })
      expect(taken * chunk.length).to.be.lessThan(25_000_000)
      let length = 0
      for await (const bytes of response) length += bytes.length
      expect(length).to.equal(500 * chunk.length + 'agent 1\n'.length)
    })

    it('are ended when one client has more than two, the oldest first', async () => {
      const ended: boolean[] = []
      const prometheusPort = await at.serve((_, response) => void response.write('envoy_a 1\n'))
      const { port } = await at.start({ prometheusPort })
      for (let index = 0; index < 3; index++) {
        const outgoing = request({ host: '127.0.0.1', port, path: '/stats/prometheus', agent: false })
        const response = Promise.withResolvers<void>()
        outgoing
          .on('error', () => undefined)
          .on('response', (incoming) => {
            incoming.on('error', () => (ended[index] = true)).resume()
            response.resolve()
          })
        outgoing.end()
        await response.promise
      }
      await until('the oldest to be ended', () => ended[0] === true)
      expect(ended).to.have.lengthOf(1)
    })

    it('are abandoned when the scraper disconnects', async () => {
      let isGone = false
      const prometheusPort = await at.serve((_, response) => {
        response.write('envoy_a 1\n')
        response.once('close', () => (isGone = true))
      })
      const { port } = await at.start({ prometheusPort })
      const outgoing = request({ host: '127.0.0.1', port, path: '/stats/prometheus', agent: false }, (response) =>
        response.once('data', () => outgoing.destroy()),
      )
      outgoing.on('error', () => undefined)
      outgoing.end()
      await until('the proxy to be let go', () => isGone)
    })
  })

  describe('POST /quitquitquit', () => {
    it('is accepted from local clients only, not from cross-site requests', async () => {
      const { port } = await at.start()
      const quit = (options: Parameters<typeof send>[2]) => send(port, '/quitquitquit', options)
      expect((await quit({ method: 'GET' })).status).to.equal(405)
      expect((await quit({ method: 'POST', headers: { host: 'evil.test' } })).status).to.equal(403)
      expect((await quit({ method: 'POST', headers: { origin: 'https://evil.test' } })).status).to.equal(403)
      expect((await quit({ method: 'POST', headers: { origin: 'null' } })).status).to.equal(403)
      expect((await quit({ method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } })).status).to.equal(403)
      expect(at.asked).to.deep.equal([])
      expect(await quit({ method: 'POST', headers: { host: 'localhost' } })).to.include({ status: 200, body: 'OK' })
      expect(at.asked).to.deep.equal(['proxy', 'quit'])
    })

    it('is refused to the proxy that the agent started and to what that started, and accepted from other programs', async () => {
      const { port } = await at.start()
      const quitting = `fetch('http://localhost:${port}/quitquitquit', {method: 'POST'}).then(({status}) => console.log(status))`
      const child = `require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(quitting)}], {stdio: 'inherit', detached: true})`
      const idle = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'inherit'] })
      const statusOf = async (script: string, isProxy: boolean) => {
        const program = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
        at.proxyPid = isProxy ? program.pid : idle.pid
        return text(program.stdout)
      }
      expect(await statusOf(quitting, true)).to.equal('403\n')
      expect(await statusOf(child, true), 'a program that the proxy started').to.equal('403\n')
      expect(at.asked).not.to.include('quit')
      expect(at.lines('warn')).to.include('/quitquitquit refused to the proxy, which passes requests of others on')
      expect(await statusOf(quitting, false), 'another program').to.equal('200\n')
      idle.stdin.end()
      expect(at.asked).to.include('quit')
    })

    it('is refused for connections that the sidecar forwards', async () => {
      const { port } = await at.start()
      const socket = connect({ host: '127.0.0.1', port, localAddress: '127.0.0.6' })
      socket.write('POST /quitquitquit HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
      expect(await text(socket)).to.match(/^HTTP\/1\.1 403 /)
      expect(at.asked).to.deep.equal([])
    })
  })

  it('answers 404 for profiles and other paths', async () => {
    const { port } = await at.start()
    expect((await send(port, '/debug/pprof/heap')).status).to.equal(404)
    expect((await send(port, '/')).status).to.equal(404)
    expect((await send(port, '//')).status).to.equal(404)
    const socket = connect(port, '127.0.0.1')
    socket.write('no http\r\n\r\n')
    expect(await text(socket)).to.match(/^HTTP\/1\.1 400 /)
  })

  it('answers on open connections after it stopped listening', async () => {
    const adminPort = await at.serveReadyProxy()
    const { started, port } = await at.start({ adminPort })
    const stop = started.asks?.stopListening as () => void
    const socket = connect(port, '127.0.0.1')
    let came = ''
    socket.on('data', (bytes) => (came += bytes.toString()))
    socket.write('GET /healthz/ready HTTP/1.1\r\nHost: localhost\r\nX-More: ')
    await until('the connection to be there', () => !socket.connecting)
    stop()
    socket.write('1\r\n\r\n')
    await until('the answer', () => came.startsWith('HTTP/1.1 200'))
    socket.destroy()
    expect(await send(port, '/healthz/ready').catch((error: NodeJS.ErrnoException) => error.code)).to.equal('ECONNREFUSED')
  })

  it('answers probes while a client holds the maximum of connections', async () => {
    const adminPort = await at.serveReadyProxy()
    const { port } = await at.start({ adminPort })
    const held = Array.from({ length: 700 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
    try {
      await until('all of them to be there', () => held.every(({ connecting }) => !connecting))
      for (const socket of held) socket.write('GET /healthz/ready HTTP/1.1\r\nX-Slow: ')
      expect((await send(port, '/healthz/ready')).status).to.equal(200)
      // One client has at most half of 512 connections.
      await until('the oldest to be closed', () => held.filter(({ closed }) => closed).length >= 444)
      expect(held.filter(({ closed }) => closed)).to.have.lengthOf.below(456)
      expect(held.at(-1)?.closed).to.equal(false)
    } finally {
      for (const socket of held) socket.destroy()
    }
  })

  it('restarts after a failure, and determines readiness and workload health again', async () => {
    let questions = 0
    const adminPort = await at.serve((incoming, response) => {
      questions++
      response.end(incoming.url?.includes('server') ? running : configured)
    })
    const port = await freePort()
    const config: StatusConfig = {
      port,
      adminPort,
      prometheusPort: 1,
      isIpv6Only: false,
      application: undefined,
      probes: {},
      workloadProbe: { exec: { command: ['true'] }, periodSeconds: 0.05 },
    }
    const off = { fallback: 'none', scopes: {} } as const
    const logOptions = { output: off, stackTrace: off, callers: [], asJson: false, targets: [], rotate: undefined }
    const supervisor = new Supervisor({ mode: 'in-thread', log: createLogger(logOptions, () => {}), logOptions, logged: () => {}, answers: {} })
    supervisor.start({ name: 'status', module: new URL('../../actors/agent/status/status-server.ts', import.meta.url), config })
    await supervisor.started()
    expect((await send(port, '/healthz/ready')).status).to.equal(200)
    const before = questions
    supervisor.kill('status')
    await until('it to be there again', async () => (await send(port, '/healthz/ready')).status === 200 && questions > before)
    await until('the health to be known', async () => (await supervisor.ask<StatusState>('status', 'state')).healthy === true)
    await supervisor.drain([], 1000)
    expect(await send(port, '/healthz/ready').catch((error: NodeJS.ErrnoException) => error.code)).to.equal('ECONNREFUSED')
  })

  it('starts although its port is taken, and logs it', async () => {
    const taken = await at.serve((_, response) => response.end(), '::')
    const { state } = await at.start({ port: taken })
    expect(state().port).to.equal(undefined)
    expect(at.lines('error')[0]).to.include(`port ${taken}`).and.include('EADDRINUSE')
  })
})
