import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, request, type Server } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, connect, createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { actor } from '../../actors/agent/status/status-server.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { Registry } from '../../actors/runtime/metrics.ts'
import { Supervisor } from '../../actors/runtime/supervisor.ts'
import { freePort } from '../../bench/ports.ts'
import type { HealthChanged } from '../../protocols/messages/health.ts'
import type { LogRecord } from '../../protocols/messages/log.ts'
import type { ApplicationProbe, StatusConfig, StatusState } from '../../protocols/messages/status.ts'
import { RecordingPeer, startActor } from '../harness/actor.ts'
import { Authority } from '../harness/certificates.ts'
import { until } from '../harness/until.ts'

/** Answers of the proxy's admin interface to the two queries. */
const configured = 'cluster_manager.cds.update_success: 1\nlistener_manager.lds.update_success: 1\n'
const running = 'listener_manager.workers_started: 1\nserver.state: 0\n'

/** An answer that changes the protocol without a request. */
const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n'

/** Returns the command line of a process, empty if the process is gone. */
function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

interface Answer {
  readonly status: number
  readonly body: string
  readonly headers: IncomingMessage['headers']
}

describe('the status server', () => {
  const servers: { close(): unknown; closeAllConnections?(): void }[] = []
  const actors: Behaviour<never, HealthChanged>[] = []
  let logged: LogRecord[] = []
  let asked: string[] = []
  let registry = new Registry()
  let agentMetrics: () => Promise<unknown> = async () => ({ text: 'agent 1\n', silent: 0 })

  beforeEach(() => {
    logged = []
    asked = []
    agentMetrics = async () => ({ text: 'agent 1\n', silent: 0 })
  })
  afterEach(async () => {
    await Promise.all(actors.splice(0).map((started) => started.drain?.()))
    for (const server of servers.splice(0)) {
      server.close()
      server.closeAllConnections?.()
    }
  })

  async function listening<S extends Server | TcpServer>(server: S, host = '127.0.0.1'): Promise<number> {
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, host, resolve))
    return (server.address() as AddressInfo).port
  }
  const serve = (listener: RequestListener, host?: string) => listening(createServer(listener), host)
  async function start(changes: Partial<StatusConfig> = {}) {
    const config: StatusConfig = {
      port: 0,
      adminPort: 1,
      prometheusPort: 1,
      isIpv6Only: false,
      application: undefined,
      probes: {},
      workloadProbe: undefined,
      ...changes,
    }
    const ask = async (question: string) => {
      asked.push(question)
      return question === 'metrics' ? agentMetrics() : undefined
    }
    registry = new Registry()
    const started = await startActor(actor, config, { logged: (record) => logged.push(record), metrics: registry, ask })
    actors.push(started)
    const state = started.asks?.state as () => StatusState
    return { started, state, port: state().port ?? 0 }
  }
  function send(port: number, path: string, options: { method?: string; headers?: Record<string, string | string[]>; host?: string } = {}) {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const outgoing = request({ host: '127.0.0.1', port, path, agent: false, ...options }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }), reject)
    })
    outgoing.on('error', reject)
    outgoing.end()
    return promise
  }
  const lines = (level: string) => logged.flatMap((record) => (record.level === level ? record.message : []))
  const counted = (name: string) =>
    Object.fromEntries(
      registry
        .collect()
        .filter((family) => family.name === `mesh_agent_${name}`)
        .flatMap(({ series }) => series.map(({ labels, values }) => [labels, values[0]])),
    )

  describe('readiness', () => {
    it('is determined from the admin interface step by step, and remembered', async () => {
      const questions: string[] = []
      let stats = ''
      const adminPort = await serve((incoming, response) => {
        questions.push(URL.parse(incoming.url ?? '', 'http://x')?.searchParams.get('filter') ?? '')
        response.end(stats)
      })
      const { port, state } = await start({ adminPort })
      const ready = () => send(port, '/healthz/ready').then(({ status, body }) => ({ status, body }))
      expect(await ready()).to.deep.equal({ status: 503, body: '' })
      expect(state()).to.include({ ready: false }).and.property('reason').to.include('configuration')
      stats = configured
      expect((await ready()).status).to.equal(503)
      expect(state().reason).to.include('live')
      stats = running
      expect(await ready()).to.deep.equal({ status: 200, body: '' })
      expect(state()).to.include({ ready: true, reason: '' })
      expect(counted('startup_duration_seconds')['']).to.be.greaterThan(0)
      const before = questions.length
      expect((await send(port, '/healthz/ready', { method: 'POST' })).status).to.equal(200)
      expect((await send(port, '/healthz/ready', { method: 'HEAD' })).status).to.equal(200)
      expect(questions).to.have.lengthOf(before)
      expect(questions[0]).to.match(/update_success/)
      expect(questions.at(-1)).to.match(/server/)
      expect(lines('warn')).to.have.lengthOf(2)
      expect(lines('info').filter((line) => line.includes('is ready'))).to.have.lengthOf(1)
    })

    it('is queried once for concurrent probes, and is false while the admin interface fails', async () => {
      let requests = 0
      let answer: RequestListener = (_, response) => response.writeHead(500).end()
      const adminPort = await serve((incoming, response) => {
        requests++
        answer(incoming, response)
      })
      const { port, state } = await start({ adminPort })
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
      const { port: other, state: otherState } = await start({ adminPort: await freePort() })
      expect((await send(other, '/healthz/ready')).status).to.equal(503)
      expect(otherState().reason).to.include('ECONNREFUSED')
    })
  })

  describe('merged metrics', () => {
    const proxyPart = 'envoy_a 1\nenvoy_b 2\n'

    it('are those of the proxy, the application and the agent, in this order', async () => {
      const seen: IncomingMessage[] = []
      const part = (body: string) =>
        serve((incoming, response) => {
          seen.push(incoming)
          response.writeHead(200, { 'content-type': 'text/plain' }).end(body)
        })
      const [prometheusPort, application] = [await part(proxyPart), await part('app 1')]
      const { port } = await start({ prometheusPort, application: { port: application, path: '/m?deep=1' } })
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
      expect(counted('scrapes_total')['']).to.equal(1)
      expect(counted('scrape_failures_total')).to.deep.equal({})
      expect((await send(port, '/stats/prometheus', { method: 'HEAD' })).body).to.equal('')
    })

    const html: RequestListener = (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>')
    const breakOff: RequestListener = (_, response) => response.write('app_a 1\napp_b', () => response.destroy())
    const failures: readonly [what: string, application: RequestListener, expected: string][] = [
      ['an error of the application', (_, response) => response.writeHead(500).end('no\n'), ''],
      ['an application whose answer is no metrics', html, ''],
      ['a compressed answer', (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'), ''],
      ['an answer that breaks off', breakOff, 'app_a 1\n'],
      ['an answer that does not end', (_, response) => void response.write('app_a 1\napp_b'), 'app_a 1\n'],
      ['a line without end', (_, response) => response.end(`app_a 1\n${'x'.repeat(1_200_000)}`), 'app_a 1\n'],
    ]
    for (const [what, application, expected] of failures)
      it(`keep the whole lines of a part that fails: ${what}`, async () => {
        const prometheusPort = await serve((_, response) => response.end(proxyPart))
        const { port } = await start({ prometheusPort, application: { port: await serve(application), path: '/metrics' } })
        const answer = await send(port, '/stats/prometheus', { headers: { 'x-prometheus-scrape-timeout-seconds': '2' } })
        expect(answer).to.include({ status: 200, body: `${proxyPart}${expected}agent 1\n` })
        expect(counted('scrape_failures_total')).to.deep.equal({ 'type="application"': 1 })
        expect(lines('warn')).to.have.lengthOf(1)
      })

    it('are served with the remaining parts if others fail', async () => {
      const { port } = await start({ prometheusPort: await freePort() })
      expect(await send(port, '/stats/prometheus')).to.include({ status: 200, body: 'agent 1\n' })
      agentMetrics = () => Promise.reject(new Error('gone'))
      expect(await send(port, '/stats/prometheus')).to.include({ status: 200, body: '' })
      expect(counted('scrape_failures_total')).to.deep.equal({ 'type="proxy"': 2, 'type="agent"': 1 })
    })

    it('of any size are streamed with back-pressure', async () => {
      const chunk = Buffer.from(`${'envoy_x{a="b"} 1\n'.repeat(4096)}`)
      let taken = 0
      const prometheusPort = await serve((_, response) => {
        const more = (): void => {
          while (taken < 500) {
            taken++
            if (!response.write(chunk)) return void response.once('drain', more)
          }
          response.end()
        }
        more()
      })
      const { port } = await start({ prometheusPort })
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

    it('are abandoned when the scraper disconnects', async () => {
      let isGone = false
      const prometheusPort = await serve((_, response) => {
        response.write('envoy_a 1\n')
        response.once('close', () => (isGone = true))
      })
      const { port } = await start({ prometheusPort })
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
      const { port } = await start()
      const quit = (options: Parameters<typeof send>[2]) => send(port, '/quitquitquit', options)
      expect((await quit({ method: 'GET' })).status).to.equal(405)
      expect((await quit({ method: 'POST', headers: { host: 'evil.test' } })).status).to.equal(403)
      expect((await quit({ method: 'POST', headers: { origin: 'https://evil.test' } })).status).to.equal(403)
      expect((await quit({ method: 'POST', headers: { origin: 'null' } })).status).to.equal(403)
      expect((await quit({ method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } })).status).to.equal(403)
      expect(asked).to.deep.equal([])
      expect(await quit({ method: 'POST', headers: { host: 'localhost' } })).to.include({ status: 200, body: 'OK' })
      expect(asked).to.deep.equal(['quit'])
    })

    it('is refused for connections that the sidecar forwards', async () => {
      const { port } = await start()
      const socket = connect({ host: '127.0.0.1', port, localAddress: '127.0.0.6' })
      socket.write('POST /quitquitquit HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
      expect(await text(socket)).to.match(/^HTTP\/1\.1 403 /)
      expect(asked).to.deep.equal([])
    })
  })

  describe('application probes', () => {
    const path = '/app-health/api/readyz'
    const probing = (probe: ApplicationProbe, changes: Partial<StatusConfig> = {}) => start({ probes: { [path]: probe }, ...changes })

    it("send the request of the container's probe, and answer with the status only", async () => {
      const seen: IncomingMessage[] = []
      let status = 200
      const application = await serve((incoming, response) => {
        seen.push(incoming)
        response.writeHead(status, { 'set-cookie': 'a=b' }).end('private')
      })
      const { port } = await probing({ httpGet: { port: application, path: 'ok?deep=1', httpHeaders: [{ name: 'X-Own', value: 'mine' }] } })
      const answer = await send(port, path, {
        headers: { 'user-agent': 'kube-probe/1.30', 'x-own': 'theirs', connection: 'close, x-hop', 'x-hop': '1' },
      })
      expect(answer).to.include({ status: 200, body: '' })
      expect(answer.headers).not.to.have.property('set-cookie')
      expect(seen[0]).to.include({ url: '/ok?deep=1', method: 'GET' })
      expect(seen[0]?.headers).to.include({ host: `localhost:${application}`, 'user-agent': 'kube-probe/1.30', 'x-own': 'mine' })
      expect(seen[0]?.headers).not.to.have.property('x-hop')
      for (status of [404, 503, 204]) expect((await send(port, path)).status).to.equal(status)
    })

    it('accept any TLS certificate, and follow a redirect to TLS', async () => {
      const authority = new Authority()
      try {
        const { chain, key } = authority.issue('app', 'spiffe://td/ns/a/sa/b')
        const secure = createSecureServer({ cert: readFileSync(chain), key: readFileSync(key) }, (incoming, response) =>
          response.writeHead(incoming.url === '/ok' ? 204 : 404).end(),
        )
        const httpsPort = await listening(secure)
        const plain = await serve((_, response) => response.writeHead(301, { location: `https://localhost:${httpsPort}/ok` }).end())
        const direct = await probing({ httpGet: { port: httpsPort, path: '/ok', scheme: 'HTTPS' } })
        expect((await send(direct.port, path)).status).to.equal(204)
        const redirected = await probing({ httpGet: { port: plain } })
        expect((await send(redirected.port, path)).status).to.equal(204)
        const wrong = await probing({ httpGet: { port: httpsPort, path: '/ok' } })
        expect((await send(wrong.port, path)).status).not.to.equal(204)
      } finally {
        authority.dispose()
      }
    })

    it('reach an application that listens on IPv6 only', async () => {
      const application = await serve((_, response) => response.end(), '::1')
      for (const isIpv6Only of [false, true]) {
        const { port } = await probing({ httpGet: { port: application } }, { isIpv6Only })
        expect((await send(port, path)).status).to.equal(200)
        expect((await send(port, path, { host: '::1' })).status).to.equal(200)
      }
    })

    it('end after their timeout, or when the client disconnects', async () => {
      let open = 0
      const application = await serve((_, response) => {
        open++
        response.once('close', () => open--)
      })
      const limited = await probing({ httpGet: { port: application }, timeoutSeconds: 1 })
      expect((await send(limited.port, path)).status).to.equal(500)
      expect(lines('warn')[0]).to.include(path).and.include('no answer within 1000 ms')
      await until('the application to be let go', () => open === 0)
      const { port } = await probing({ httpGet: { port: application }, timeoutSeconds: 60 })
      const outgoing = request({ host: '127.0.0.1', port, path, agent: false })
      outgoing.on('error', () => undefined)
      outgoing.end()
      await until('the application to be asked', () => open === 1)
      outgoing.destroy()
      await until('the application to be let go', () => open === 0)
    })

    it('follow a limited number of redirects on this machine', async () => {
      let location = '/next'
      const application = await serve((incoming, response) => {
        if (incoming.url === '/next') response.writeHead(204).end()
        else response.writeHead(302, { location }).end()
      })
      const { port } = await probing({ httpGet: { port: application, path: '/' } })
      const status = async (to: string) => {
        location = to
        return (await send(port, path)).status
      }
      expect(await status('/next')).to.equal(204)
      expect(await status(`http://localhost:${application}/next`)).to.equal(204)
      expect(await status('http://app.example/next')).to.equal(200)
      expect(await status('ftp://localhost/next')).to.equal(200)
      expect(await status('http://[')).to.equal(200)
      expect(await status('/again')).to.equal(500)
    })

    it('answer 500 if the application changes the protocol', async () => {
      const application = await listening(createTcpServer((socket) => socket.on('error', () => undefined).end(switching)))
      const { port } = await probing({ httpGet: { port: application } })
      expect((await send(port, path)).status).to.equal(500)
      expect(lines('warn')[0]).to.include('HTTP status 101')
    })

    it('do not read an endless answer', async () => {
      let isClosed = false
      const application = await serve((_, response) => {
        response.once('close', () => (isClosed = true))
        const more = (): void => {
          while (!response.destroyed && response.write('x'.repeat(65_536)));
          if (!response.destroyed) response.once('drain', more)
        }
        more()
      })
      const { port } = await probing({ httpGet: { port: application } })
      expect((await send(port, path)).status).to.equal(200)
      await until('the application to be let go', () => isClosed)
    })

    it('answer 500 without a listener, logged once, and 400 for an unknown probe', async () => {
      const { port } = await probing({ httpGet: { port: await freePort() } })
      for (let times = 0; times < 3; times++) expect((await send(port, path)).status).to.equal(500)
      expect(lines('warn')).to.have.lengthOf(1)
      expect(lines('warn')[0]).to.include('ECONNREFUSED')
      const unknown = await send(port, '/app-health/api/livez')
      expect(unknown.status).to.equal(400)
      expect(unknown.body).to.include('no probe')
      expect((await send(port, '/app-health/__proto__/readyz')).status).to.equal(400)
    })

    it('of TCP connect to the port', async () => {
      const { port } = await probing({ tcpSocket: { port: await listening(createTcpServer((socket) => socket.destroy())) } })
      expect((await send(port, path)).status).to.equal(200)
      const { port: other } = await probing({ tcpSocket: { port: await freePort() } })
      expect((await send(other, path)).status).to.equal(500)
    })

    it('of gRPC call the health service', async () => {
      const bodies: Buffer[] = []
      let answer = { bytes: Buffer.from([0, 0, 0, 0, 2, 8, 1]), status: '0' }
      const server = createHttp2Server()
      server.on('stream', (stream, headers) => {
        expect(headers[':path']).to.equal('/grpc.health.v1.Health/Check')
        stream.on('data', (bytes: Buffer) => bodies.push(bytes))
        stream.on('end', () => {
          stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
          stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': answer.status }))
          stream.end(answer.bytes)
        })
      })
      const grpcPort = await listening(server as unknown as Server)
      const { port } = await probing({ grpc: { port: grpcPort, service: 'shop' }, timeoutSeconds: 5 })
      const status = async (bytes: number[], code = '0') => {
        answer = { bytes: Buffer.from(bytes), status: code }
        return (await send(port, path)).status
      }
      expect(await status([0, 0, 0, 0, 2, 8, 1])).to.equal(200)
      expect(Buffer.concat(bodies).toString('latin1')).to.equal('\0\0\0\0\x06\x0a\x04shop')
      expect(await status([0, 0, 0, 0, 2, 8, 2])).to.equal(500)
      expect(await status([0, 0, 0, 0, 0])).to.equal(500)
      expect(await status([], '12')).to.equal(500)
      expect(await status([0, 0, 0, 0, 2, 255, 255])).to.equal(500)
      expect(await status([0, 255, 255, 255, 255, 1])).to.equal(500)
    })
  })

  describe('workload health', () => {
    it('is sent to the relay when it changes, and to a relay that is linked later', async () => {
      let status = 500
      const application = await serve((_, response) => response.writeHead(status).end())
      let stats = configured
      const adminPort = await serve((_, response) => {
        response.end(stats)
        stats = running
      })
      const httpGet = { port: application, path: '/healthy', httpHeaders: [{ name: 'Host', value: 'shop.test' }] }
      const { started, state } = await start({ adminPort, workloadProbe: { httpGet, periodSeconds: 0.01, timeoutSeconds: 60 } })
      const relay = new RecordingPeer<HealthChanged>('xds-relay')
      started.linked?.(relay)
      await until('a probe to fail', () => lines('debug').some((line) => line.includes('HTTP status 500')))
      expect(state().healthy).to.equal(undefined)
      expect(relay.received).to.deep.equal([])
      status = 399
      await until('the workload to be healthy', () => relay.received.length === 1)
      expect(relay.received[0]).to.deep.equal({ type: 'HealthChanged', healthy: true, message: '' })
      status = 400
      await until('the workload to be unhealthy', () => relay.received.length === 2)
      expect(relay.received[1]).to.deep.equal({ type: 'HealthChanged', healthy: false, message: 'HTTP status 400' })
      const later = new RecordingPeer<HealthChanged>('xds-relay')
      started.linked?.(later)
      expect(later.received).to.deep.equal([relay.received[1]])
      expect(state().healthy).to.equal(false)
    })

    const ways: readonly [what: string, good: StatusConfig['workloadProbe'], bad: StatusConfig['workloadProbe'], reason: RegExp][] = [
      [
        'a command',
        { exec: { command: ['sh', '-c', 'exit 0'] } },
        { exec: { command: ['sh', '-c', 'echo full; exit 3'] } },
        /sh ended with status 3: full/,
      ],
      ['a command that is not there', { exec: { command: ['true'] } }, { exec: { command: ['/no/such'] } }, /\/no\/such cannot be run/],
      ['a command with a name that none has', { exec: { command: ['true'] } }, { exec: { command: ['a\0b'] } }, /null bytes/],
      [
        'a command that takes too long',
        { exec: { command: ['true'] } },
        { exec: { command: ['sh', '-c', 'sleep 60 & sleep 60'] }, timeoutSeconds: 0.2 },
        /no answer within 200 ms/,
      ],
    ]
    for (const [what, good, bad, reason] of ways)
      it(`is probed by ${what}`, async () => {
        const adminPort = await serve((incoming, response) => response.end(incoming.url?.includes('server') ? running : configured))
        const well = await start({ adminPort, workloadProbe: { timeoutSeconds: 60, ...good, periodSeconds: 0.01 } })
        await until('the workload to be healthy', () => well.state().healthy === true)
        await start({ adminPort, workloadProbe: { timeoutSeconds: 60, ...bad, periodSeconds: 0.01 } })
        await until('a probe to fail', () => lines('debug').some((line) => reason.test(line)))
      })

    it('leaves no process of a command that exceeds its timeout', async () => {
      const adminPort = await serve((incoming, response) => response.end(incoming.url?.includes('server') ? running : configured))
      const mark = `${process.pid}.${process.hrtime.bigint()}`
      const exec = { command: ['sh', '-c', `sleep ${mark} & sleep ${mark}`] }
      const sleepers = () => readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandLine(pid) === `sleep ${mark} `)
      const { started } = await start({ adminPort, workloadProbe: { exec, timeoutSeconds: 3, periodSeconds: 3600 } })
      await until('both to run', () => sleepers().length === 2)
      await until('both to be gone', () => sleepers().length === 0)
      await started.drain?.()
    })

    it('is probed by a TCP connection', async () => {
      const adminPort = await serve((incoming, response) => response.end(incoming.url?.includes('server') ? running : configured))
      const server = createTcpServer((socket) => socket.destroy())
      const tcpSocket = { port: await listening(server) }
      const { state } = await start({ adminPort, workloadProbe: { tcpSocket, periodSeconds: 0.01 } })
      await until('the workload to be healthy', () => state().healthy === true)
      server.close()
      await until('the workload to be unhealthy', () => state().healthy === false)
    })

    it('is not probed before the proxy is ready', async () => {
      const { state } = await start({
        adminPort: await freePort(),
        workloadProbe: { exec: { command: ['true'] }, periodSeconds: 0.01 },
        port: undefined,
      })
      await until('a probe to fail', () => lines('debug').some((line) => line.includes('admin interface')))
      expect(state()).to.include({ healthy: undefined, port: undefined })
    })
  })

  it('answers 404 for profiles and other paths', async () => {
    const { port } = await start()
    expect((await send(port, '/debug/pprof/heap')).status).to.equal(404)
    expect((await send(port, '/')).status).to.equal(404)
    expect((await send(port, '//')).status).to.equal(404)
    const socket = connect(port, '127.0.0.1')
    socket.write('no http\r\n\r\n')
    expect(await text(socket)).to.match(/^HTTP\/1\.1 400 /)
  })

  it('answers on open connections after it stopped listening', async () => {
    const adminPort = await serve((incoming, response) => response.end(incoming.url?.includes('server') ? running : configured))
    const { started, port } = await start({ adminPort })
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

  it('answers probes while other clients hold the maximum of connections', async () => {
    const adminPort = await serve((incoming, response) => response.end(incoming.url?.includes('server') ? running : configured))
    const { port } = await start({ adminPort })
    const held = Array.from({ length: 700 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
    try {
      await until('all of them to be there', () => held.every(({ connecting }) => !connecting))
      for (const socket of held) socket.write('GET /healthz/ready HTTP/1.1\r\nX-Slow: ')
      expect((await send(port, '/healthz/ready')).status).to.equal(200)
      await until('the oldest to be closed', () => held.filter(({ closed }) => closed).length >= 188)
      expect(held.filter(({ closed }) => closed)).to.have.lengthOf.below(200)
      expect(held.at(-1)?.closed).to.equal(false)
    } finally {
      for (const socket of held) socket.destroy()
    }
  })

  it('restarts after a failure, and determines readiness and workload health again', async () => {
    let questions = 0
    const adminPort = await serve((incoming, response) => {
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
    const taken = await serve((_, response) => response.end(), '::')
    const { state } = await start({ port: taken })
    expect(state().port).to.equal(undefined)
    expect(lines('error')[0]).to.include(`port ${taken}`).and.include('EADDRINUSE')
  })
})
