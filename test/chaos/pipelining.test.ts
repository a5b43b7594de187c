/** One client sends the HTTP servers of both commands more requests than they can answer. */
import { createServer } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import { expect } from 'chai'
import { Agent } from '../harness/agent.ts'
import { expectBounded } from '../harness/bounded-cost.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`

describe('the HTTP servers withstand one client with', () => {
  const sockets: Socket[] = []
  const service = new Service()
  const path = '/app-health/app/readyz'
  let open = 0
  const most = { open: 0 }
  /** An application that never answers. */
  const application = createServer((_request, response) => {
    most.open = Math.max(most.open, ++open)
    response.once('close', () => open--)
  })
  /** An application whose metrics come byte by byte, as fast as they are read. */
  const inBytes = createTcpServer((socket) => {
    const pieces = Buffer.from('2\r\na\n\r\n'.repeat(10_000))
    const more = () => {
      while (socket.write(pieces));
    }
    socket.on('error', () => undefined).on('drain', more)
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      more()
    })
  })
  let agent: Agent
  /** The agent of that application. */
  let bytewise: Agent

  before(async () => {
    const [probed, scraped] = await Promise.all(
      [application, inBytes].map(async (server) => {
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
        return (server.address() as AddressInfo).port
      }),
    )
    const probes = { [path]: { httpGet: { port: probed }, timeoutSeconds: 60 } }
    const metrics = { path: '/metrics', port: String(scraped) }
    agent = new Agent({ env: { MESH_ORCH_APP_PROBERS: JSON.stringify(probes) } })
    bytewise = new Agent({ env: { MESH_METRICS_ANNOTATIONS: JSON.stringify(metrics) } })
    await Promise.all([service.start(), agent.start(), bytewise.start()])
  })
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
    most.open = 0
  })
  after(async () => {
    await Promise.all([agent, bytewise].map((one) => one.dispose()))
    await service.dispose()
    application.closeAllConnections()
    application.close()
    inBytes.close()
  })

  /** Opens connections that send the same bytes, and reads nothing of the answers unless `reads`. */
  function attack(port: number, bytes: string, connections = 1, reads = false): void {
    for (let index = 0; index < connections; index++) {
      const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
      socket.on('error', () => undefined)
      if (reads) socket.resume()
      else socket.pause()
      sockets.push(socket)
    }
  }

  const status = (of = agent) => ({ port: of.statusPort, path: '/healthz/ready', status: 503 })
  const ready = () => ({ port: service.httpPort, path: '/ready', status: 200 })

  it('60,000 probes of a hanging application on one connection', async () => {
    await expectBounded(agent.pid, status(), { descriptors: 20 }, () => attack(agent.statusPort, get(path).repeat(60_000)))
    await until('the application to be asked', () => most.open > 0)
    expect(most.open).to.equal(1)
  })

  it('more connections than there are for probes of a hanging application', async () => {
    await expectBounded(agent.pid, status(), { descriptors: 300 }, () => attack(agent.statusPort, get(path), 600))
    expect(most.open).to.be.at.most(4)
  })

  it('100,000 requests for readiness before the proxy is ready', async () => {
    await expectBounded(agent.pid, status(), { descriptors: 20 }, () => attack(agent.statusPort, get('/healthz/ready').repeat(100_000)))
  })

  it('as many requests on 50 connections, with and without reading the answers', async () => {
    for (const reads of [false, true])
      await expectBounded(agent.pid, status(), { descriptors: 150 }, () => attack(agent.statusPort, get('/healthz/ready').repeat(20_000), 50, reads))
    for (const page of ['/ready', '/nothing', '/debug/syncz'])
      await expectBounded(service.pid, ready(), { descriptors: 150 }, () => attack(service.httpPort, get(page).repeat(20_000), 50, page === '/ready'))
  })

  it('requests for metrics that it does not read', async () => {
    await expectBounded(agent.pid, status(), { descriptors: 300 }, () => attack(agent.statusPort, get('/stats/prometheus').repeat(1000), 100))
    await expectBounded(service.pid, ready(), { descriptors: 300 }, () => attack(service.monitoringPort, get('/metrics').repeat(1000), 100))
  })

  it('requests for metrics of an application that sends them byte by byte', async () => {
    await expectBounded(bytewise.pid, status(bytewise), { descriptors: 150 }, () =>
      attack(bytewise.statusPort, get('/stats/prometheus').repeat(100), 32, true),
    )
  })

  it('bodies in chunks of one byte', async () => {
    const body = `POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(100_000)}`
    await expectBounded(agent.pid, status(), { descriptors: 600 }, () => attack(agent.statusPort, body, 250))
    await expectBounded(service.pid, ready(), { descriptors: 600 }, () => attack(service.httpPort, body, 250))
  })

  it('requests without an end', async () => {
    await expectBounded(agent.pid, status(), { descriptors: 600 }, () => attack(agent.statusPort, 'GET / HTTP/1.1\r\nX: ', 600))
    await expectBounded(service.pid, ready(), { descriptors: 600 }, () =>
      attack(service.httpPort, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n', 600),
    )
  })
})
