/** What one client can cost on the Unix sockets and loopback ports of the agent, and with look-ups of its program (docs/limits.md). */
import { readFileSync } from 'node:fs'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { Agent } from '../harness/agent.ts'
import { type CostBounds, expectBounded } from '../harness/bounded-cost.ts'
import { send } from '../harness/raw-http.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

/** CPU time of the main thread of a process, in milliseconds; the kernel counts hundredths of a second. */
const mainCpuMs = (pid: number): number => {
  const [user = 0, system = 0] = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8').split(' ').slice(13, 15).map(Number)
  return (user + system) * 10
}

describe('one client of', () => {
  const service = new Service()
  const sockets: Socket[] = []
  const sessions: ClientHttp2Session[] = []
  /** A cloud that takes connections and never answers. */
  let exchanges = 0
  const silent = createServer((socket) => {
    exchanges++
    socket.on('error', () => undefined).on('close', () => exchanges--)
  })
  const proxy = createServer((socket) => void socket.on('error', () => undefined))
  const idle: Socket[] = []
  let stsPort = 0
  let ctrlzPort = 0
  let agent: Agent

  before(async () => {
    await new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve))
    const cloud = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
    stsPort = await freePort()
    // Somebody listens on a port of proxies, and has many sockets: a look-up of a program has to find it among them.
    await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve))
    const { port } = proxy.address() as AddressInfo
    service.write('mesh-config', `proxyListenPort: ${port}\n`)
    let connected = 0
    for (let count = 0; count < 3000; count++) idle.push(connect(port, '127.0.0.1', () => connected++).on('error', () => undefined))
    await until('the sockets', () => connected === idle.length)
    ctrlzPort = await freePort()
    service.flags.push('--ctrlz_port', String(ctrlzPort))
    await service.start()
    agent = new Agent({
      flags: [`--stsPort=${stsPort}`],
      env: {
        CLOUD_METADATA: 'shop|42|east|us-east1-b',
        CLOUD_FEDERATED_TOKEN_URL: `${cloud}/federated`,
        CLOUD_ACCESS_TOKEN_URL: `${cloud}/access`,
      },
    })
    await agent.start()
  })
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
    for (const session of sessions.splice(0)) session.destroy()
  })
  after(async () => {
    await agent?.dispose()
    await service.dispose()
    for (const socket of idle) socket.destroy()
    for (const server of [silent, proxy]) server.close()
  })

  /** Asserts what an attack costs the agent, and that its status port answers within a second. */
  const bounded = (bounds: CostBounds, begin: () => unknown): Promise<void> =>
    expectBounded(agent.pid, { port: agent.statusPort, path: '/healthz/ready', status: 503 }, bounds, begin)
  const ready = () => ({ port: service.httpPort, path: '/ready', status: 200 })

  for (const { name, path, most } of [
    { name: 'SDS', path: '/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets', most: 64 },
    { name: 'XDS', path: '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources', most: 16 },
  ]) {
    const socketPath = () => join(agent.dir, 'etc/mesh/proxy', name)
    const session = () => {
      const opened = connectHttp2('http://agent', { createConnection: () => connect(socketPath()), maxSessionMemory: 1000 })
      sessions.push(opened.on('error', () => undefined))
      return opened
    }
    const open = (on: ClientHttp2Session, to = path) =>
      on.request({ ':method': 'POST', ':path': to, 'content-type': 'application/grpc', te: 'trailers' }).on('error', () => undefined)

    it(`the ${name} socket has at most ${most} connections`, () =>
      bounded({ mib: 60, descriptors: most + 10 }, async () => {
        let closed = 0
        for (let count = 0; count < 300; count++) {
          const socket = connect(socketPath())
          sockets.push(socket.on('error', () => undefined).on('close', () => closed++))
        }
        await until('connections to be refused', () => closed >= 300 - most)
      }))

    it(`the ${name} socket that sends large messages, and reads nothing, is not read without an end`, () =>
      bounded({ mib: 100, descriptors: 30 }, () => {
        const message = messageFrame(Buffer.alloc(900_000, 'x'))
        for (let count = 0; count < 8; count++) {
          const stream = open(session())
          for (let times = 0; times < 40; times++) stream.write(message)
        }
      }))

    it(`the ${name} socket that opens streams of unknown methods all the time does not keep the agent from others`, () =>
      bounded({ mib: 100, descriptors: 40 }, async () => {
        let ended = 0
        for (let count = 0; count < 4; count++) {
          const greedy = session()
          for (let times = 0; times < 3000; times++)
            open(greedy, '/no.such.Service/Method')
              .on('close', () => ended++)
              .resume()
              .end()
        }
        await until('streams to end', () => ended > 1000)
      }))
  }

  it('the token service has at most 16 exchanges at a time, on at most 128 connections', () =>
    bounded({ mib: 60, descriptors: 128 + 16 + 10 }, async () => {
      let answered = 0
      for (let count = 0; count < 400; count++) {
        const body = new URLSearchParams({
          grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
          subject_token: `token-${count}`,
          subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        }).toString()
        const head = `POST /token HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n`
        const socket = connect(stsPort, '127.0.0.1', () => socket.write(head + body))
        sockets.push(
          socket
            .on('error', () => undefined)
            .once('close', () => answered++)
            .once('data', () => answered++),
        )
      }
      await until('the others to be refused', () => answered >= 400 - 128)
      await until('exchanges', () => exchanges > 0)
      expect(exchanges).to.be.at.most(16)
    }))

  it('ControlZ or the admin socket that sends very many requests does not keep others from pages', async () => {
    for (const open of [() => connect(ctrlzPort, '127.0.0.1'), () => connect(service.env.MESHD_ADMIN_SOCKET as string)]) {
      let connected = 0
      await expectBounded(service.pid, ready(), { descriptors: 110 }, async () => {
        for (let count = 0; count < 50; count++) {
          const socket = open().on('connect', () => connected++)
          sockets.push(socket.on('error', () => undefined).pause())
          socket.write('GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(20_000))
        }
        await until('the connections', () => connected === 50)
      })
    }
  })

  it('the pages on loopback, of which each connection needs a look-up, takes a share of the main thread', async () => {
    const [begin, before] = [performance.now(), mainCpuMs(service.pid)]
    let answered = 0
    let isOver = false
    /** Asks on a new connection each time, because what was found out is kept with the connection. */
    const ask = async () => {
      while (!isOver) {
        const status = await send('127.0.0.1', service.httpPort, { path: '/debug/syncz', host: 'localhost' }).catch(() => undefined)
        // This process listens on a port of proxies. There is no status when the connection gave way to others.
        if (status) expect(status).to.be.oneOf([403, 503])
        answered++
      }
    }
    let greedy: Promise<void>[] = []
    await expectBounded(service.pid, ready(), { descriptors: 60 }, async () => {
      greedy = Array.from({ length: 10 }, ask)
      await until('answers', () => answered > 100)
    })
    const share = (mainCpuMs(service.pid) - before) / (performance.now() - begin)
    isOver = true
    await Promise.all(greedy)
    expect(share, 'share of the main thread').to.be.below(0.8)
  })
})
