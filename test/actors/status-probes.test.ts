import { readdirSync, readFileSync } from 'node:fs'
import { type IncomingMessage, request, type Server } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createServer as createSecureServer } from 'node:https'
import { createServer as createTcpServer } from 'node:net'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import type { HealthChanged } from '../../protocols/messages/health.ts'
import type { ApplicationProbe, StatusConfig } from '../../protocols/messages/status.ts'
import { RecordingPeer } from '../harness/actor.ts'
import { Authority } from '../harness/certificates.ts'
import { configured, running, StatusFixture, send, switching } from '../harness/status-fixture.ts'
import { until } from '../harness/until.ts'

/** Returns the command line of a process, empty if the process is gone. */
function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

describe('the status server', () => {
  let at = new StatusFixture()
  beforeEach(() => {
    at = new StatusFixture()
  })
  afterEach(() => at.dispose())

  describe('application probes', () => {
    const path = '/app-health/api/readyz'
    const probing = (probe: ApplicationProbe, changes: Partial<StatusConfig> = {}) => at.start({ probes: { [path]: probe }, ...changes })

    it("send the request of the container's probe, and answer with the status only", async () => {
      const seen: IncomingMessage[] = []
      let status = 200
      const application = await at.serve((incoming, response) => {
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
        const names: unknown[] = []
        secure.on('secureConnection', ({ servername }) => names.push(servername))
        const httpsPort = await at.listening(secure)
        const plain = await at.serve((_, response) => response.writeHead(301, { location: `https://localhost:${httpsPort}/ok` }).end())
        const direct = await probing({ httpGet: { port: httpsPort, path: '/ok', scheme: 'HTTPS' } })
        expect((await send(direct.port, path)).status).to.equal(204)
        const redirected = await probing({ httpGet: { port: plain } })
        expect((await send(redirected.port, path)).status).to.equal(204)
        const wrong = await probing({ httpGet: { port: httpsPort, path: '/ok' } })
        expect((await send(wrong.port, path)).status).not.to.equal(204)
        const named = { path: '/ok', scheme: 'HTTPS', httpHeaders: [{ name: 'Host', value: 'app.example:8443' }] }
        expect((await send((await probing({ httpGet: { port: httpsPort, ...named } })).port, path)).status).to.equal(204)
        expect(names).to.deep.equal(['localhost', 'localhost', 'app.example'])
      } finally {
        authority.dispose()
      }
    })

    it('reach an application that listens on IPv6 only', async () => {
      const application = await at.serve((_, response) => response.end(), '::1')
      for (const isIpv6Only of [false, true]) {
        const { port } = await probing({ httpGet: { port: application } }, { isIpv6Only })
        expect((await send(port, path)).status).to.equal(200)
        expect((await send(port, path, { host: '::1' })).status).to.equal(200)
      }
    })

    it('end after their timeout, or when the client disconnects', async () => {
      let open = 0
      const application = await at.serve((_, response) => {
        open++
        response.once('close', () => open--)
      })
      const limited = await probing({ httpGet: { port: application }, timeoutSeconds: 1 })
      expect((await send(limited.port, path)).status).to.equal(500)
      expect(at.lines('warn')[0]).to.include(path).and.include('no answer within 1000 ms')
      await until('the application to be let go', () => open === 0)
      const { port } = await probing({ httpGet: { port: application }, timeoutSeconds: 60 })
      const outgoing = request({ host: '127.0.0.1', port, path, agent: false })
      outgoing.on('error', () => undefined)
      outgoing.end()
      await until('the application to be asked', () => open === 1)
      outgoing.destroy()
      await until('the application to be let go', () => open === 0)
    })

    it('end after a second without a timeout of their own, as those of the orchestrator', async () => {
      const application = await at.serve(() => undefined)
      for (const timeout of [{}, { timeoutSeconds: 0 }]) {
        const { port } = await probing({ httpGet: { port: application }, ...timeout })
        expect((await send(port, path)).status).to.equal(500)
      }
      expect(at.lines('warn').every((line) => line.includes('no answer within 1000 ms'))).to.equal(true)
    })

    it('share a call that is under way with the same headers, and end it with the last client', async () => {
      let [calls, open] = [0, 0]
      const application = await at.serve((_, response) => {
        calls++
        open++
        response.once('close', () => open--)
      })
      const { port } = await probing({ httpGet: { port: application }, timeoutSeconds: 60 })
      const ask = (headers = {}) => request({ host: '127.0.0.1', port, path, agent: false, headers }).on('error', () => undefined)
      const same = Array.from({ length: 20 }, () => ask())
      for (const one of same) one.end()
      await until('the call', () => calls === 1)
      const others = Array.from({ length: 10 }, (_, index) => ask({ 'x-own': index }))
      // A call that gives way before it is connected never reaches the application, so each is begun when the one before it has.
      for (const [index, one] of others.entries()) {
        one.end()
        await until('the next call', () => calls === index + 2)
      }
      // One client has at most four calls of a probe.
      await until('four calls to be left', () => calls === 11 && open === 4)
      for (const one of [...same, ...others]) one.destroy()
      await until('the application to be let go', () => open === 0)
    })

    it('follow no redirect to a probe, and are none of their own', async () => {
      let [asked, statusPort] = [0, 0]
      const application = await at.serve((_, response) => {
        asked++
        response.writeHead(302, { location: `http://localhost:${statusPort}${path}` }).end()
      })
      const first = await probing({ httpGet: { port: application } })
      statusPort = first.port
      expect((await send(first.port, path)).status).to.equal(200)
      expect(asked).to.equal(1)
      const port = await freePort()
      await at.start({ port, probes: { [path]: { httpGet: { port, path } } } })
      expect((await send(port, path)).status).to.equal(500)
      expect(at.lines('warn').at(-1)).to.include('it leads to a probe of this server')
    })

    it('follow a limited number of redirects on this machine', async () => {
      let location = '/next'
      const application = await at.serve((incoming, response) => {
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
      const application = await at.listening(createTcpServer((socket) => socket.on('error', () => undefined).end(switching)))
      const { port } = await probing({ httpGet: { port: application } })
      expect((await send(port, path)).status).to.equal(500)
      expect(at.lines('warn')[0]).to.include('HTTP status 101')
    })

    it('do not read an endless answer', async () => {
      let isClosed = false
      const application = await at.serve((_, response) => {
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
      expect(at.lines('warn')).to.have.lengthOf(1)
      expect(at.lines('warn')[0]).to.include('ECONNREFUSED')
      const unknown = await send(port, '/app-health/api/livez')
      expect(unknown.status).to.equal(400)
      expect(unknown.body).to.include('no probe')
      expect((await send(port, '/app-health/__proto__/readyz')).status).to.equal(400)
    })

    it('of TCP connect to the port', async () => {
      const { port } = await probing({ tcpSocket: { port: await at.listening(createTcpServer((socket) => socket.destroy())) } })
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
      const grpcPort = await at.listening(server as unknown as Server)
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
      const application = await at.serve((_, response) => response.writeHead(status).end())
      let stats = configured
      const adminPort = await at.serve((_, response) => {
        response.end(stats)
        stats = running
      })
      const httpGet = { port: application, path: '/healthy', httpHeaders: [{ name: 'Host', value: 'shop.test' }] }
      const { started, state } = await at.start({ adminPort, workloadProbe: { httpGet, periodSeconds: 0.01, timeoutSeconds: 60 } })
      const relay = new RecordingPeer<HealthChanged>('xds-relay')
      started.linked?.(relay)
      await until('a probe to fail', () => at.lines('debug').some((line) => line.includes('HTTP status 500')))
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
        const adminPort = await at.serveReadyProxy()
        const well = await at.start({ adminPort, workloadProbe: { timeoutSeconds: 60, ...good, periodSeconds: 0.01 } })
        await until('the workload to be healthy', () => well.state().healthy === true)
        await at.start({ adminPort, workloadProbe: { timeoutSeconds: 60, ...bad, periodSeconds: 0.01 } })
        await until('a probe to fail', () => at.lines('debug').some((line) => reason.test(line)))
      })

    it('leaves no process of a command that exceeds its timeout', async () => {
      const adminPort = await at.serveReadyProxy()
      const mark = `${process.pid}.${process.hrtime.bigint()}`
      const exec = { command: ['sh', '-c', `sleep ${mark} & sleep ${mark}`] }
      const sleepers = () => readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandLine(pid) === `sleep ${mark} `)
      const { started } = await at.start({ adminPort, workloadProbe: { exec, timeoutSeconds: 3, periodSeconds: 3600 } })
      await until('both to run', () => sleepers().length === 2)
      await until('both to be gone', () => sleepers().length === 0)
      await started.drain?.()
    })

    it('is probed by a TCP connection', async () => {
      const adminPort = await at.serveReadyProxy()
      const server = createTcpServer((socket) => socket.destroy())
      const tcpSocket = { port: await at.listening(server) }
      const { state } = await at.start({ adminPort, workloadProbe: { tcpSocket, periodSeconds: 0.01 } })
      await until('the workload to be healthy', () => state().healthy === true)
      server.close()
      await until('the workload to be unhealthy', () => state().healthy === false)
    })

    it('is not probed before the proxy is ready', async () => {
      const { state } = await at.start({
        adminPort: await freePort(),
        workloadProbe: { exec: { command: ['true'] }, periodSeconds: 0.01 },
        port: undefined,
      })
      await until('a probe to fail', () => at.lines('debug').some((line) => line.includes('admin interface')))
      expect(state()).to.include({ healthy: undefined, port: undefined })
    })
  })
})
