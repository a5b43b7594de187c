/** The agent's DNS server on real sockets: its answers, its upstream queries, and attacks. */
import { Resolver } from 'node:dns/promises'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { actor } from '../../actors/agent/dns/dns-server.ts'
import { type Incoming, Listeners } from '../../actors/agent/dns/listeners.ts'
import { MessageReader } from '../../actors/agent/dns/stream-messages.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import { freePort } from '../../bench/ports.ts'
import type { DnsConfig, DnsState } from '../../protocols/messages/dns.ts'
import { withId } from '../../src/dns/message.ts'
import { RecordingPeer, startActor } from '../harness/actor.ts'
import { DnsClient } from '../harness/dns-client.ts'
import { dnsQuery, readDnsResponse } from '../harness/dns-messages.ts'
import { DnsUpstream, emptyResponse } from '../harness/dns-upstream.ts'
import { metricsText } from '../harness/metric-text.ts'
import { nameTableOf, orchestrated, type TestHost } from '../harness/name-tables.ts'
import { until } from '../harness/until.ts'

const table = {
  'reviews.shop.svc.cluster.local': orchestrated('reviews', 'shop', '10.96.0.1', '10.96.0.2', 'fd00::1'),
  'api.example.com': { ips: ['192.0.2.1'] },
}

/** A client over TCP. */
class TcpClient {
  readonly socket: Socket
  readonly received: Buffer[] = []
  isClosed = false

  constructor(port: number) {
    const reader = new MessageReader()
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    this.socket.on('data', (bytes: Buffer) => reader.take(bytes, (message) => this.received.push(message)))
    this.socket.on('error', () => undefined)
    for (const event of ['end', 'close']) this.socket.on(event, () => (this.isClosed = true))
  }

  send(...messages: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(messages.flatMap((message) => [Buffer.of(message.length >> 8, message.length & 255), message])))
  }
}

describe("the agent's DNS server", () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-test-dns-'))
  const resolvConf = join(dir, 'resolv.conf')
  const closing: (() => unknown)[] = []
  const lines: string[] = []
  let upstream: DnsUpstream

  before(async () => {
    upstream = await DnsUpstream.open()
    writeFileSync(resolvConf, 'nameserver 127.0.0.1\nsearch shop.svc.cluster.local svc.cluster.local\n')
  })
  beforeEach(() => {
    upstream.queries.length = 0
    upstream.onQuery = ({ message, reply }) => reply(emptyResponse(message, 3))
    lines.length = 0
  })
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
  })
  after(() => {
    upstream.close()
    rmSync(dir, { recursive: true })
  })

  const start = async (hosts: Readonly<Record<string, TestHost>> | null = table, given: Partial<DnsConfig> = {}) => {
    const config: DnsConfig = {
      address: `localhost:${await freePort()}`,
      resolvConf,
      serverPort: upstream.port,
      domain: 'shop.svc.cluster.local',
      namespace: 'shop',
      keptIn: undefined,
      ...given,
    }
    const metrics = new MetricRegistry()
    const server = await startActor(actor, config, { metrics, logged: ({ message }) => lines.push(message) })
    closing.push(() => server.drain?.())
    const state = () => (server.asks as { state: () => DnsState }).state()
    const relay = new RecordingPeer<never>('xds-relay')
    const change = (hosts: Readonly<Record<string, TestHost>>) => server.receive({ type: 'NameTableChanged', table: nameTableOf(hosts) }, relay)
    if (hosts) change(hosts)
    const port = Number(state().addresses[0]?.split(':').at(-1))
    const client = new DnsClient(port)
    closing.push(() => client.close())
    const stream = () => {
      const opened = new TcpClient(port)
      closing.push(() => opened.socket.destroy())
      return opened
    }
    return { server, state, change, port, client, stream, relay, metrics: () => metricsText(metrics.collect()) }
  }

  it('answers names of the table over UDP and TCP to an independent resolver', async () => {
    const { port, state } = await start()
    expect(state()).to.deep.include({ hosts: 2, isKept: false, servers: ['127.0.0.1'] })
    const resolver = new Resolver({ timeout: 20_000, tries: 1 })
    resolver.setServers([`127.0.0.1:${port}`])
    expect((await resolver.resolve4('reviews')).sort()).to.deep.equal(['10.96.0.1', '10.96.0.2'])
    expect(await resolver.resolve6('reviews.shop.svc')).to.deep.equal(['fd00::1'])
    expect(await resolver.resolve4('api.example.com.shop.svc.cluster.local')).to.deep.equal(['192.0.2.1'])
    expect(upstream.queries).to.have.length(0)
  })

  it('answers authoritatively that a known name has no addresses of a family', async () => {
    const { client } = await start()
    const read = await client.ask(dnsQuery({ name: 'API.example.com', type: 28 }))
    expect(read).to.deep.include({ rcode: 0, isAuthoritative: true, answers: [], question: { name: 'API.example.com', type: 28 } })
  })

  it('shuffles the addresses of an answer', async () => {
    const { client } = await start({ 'a.com': { ips: Array.from({ length: 20 }, (_, index) => `10.0.0.${index}`) } })
    const orders = new Set<string>()
    for (let time = 0; time < 5; time++) orders.add((await client.ask(dnsQuery({ name: 'a.com' }))).answers.map(({ data }) => data).join())
    expect(orders.size).to.be.above(1)
  })

  it("forwards all other queries unchanged to the system's nameservers over the same transport", async () => {
    const { client, stream } = await start()
    const asked = [
      dnsQuery({ name: 'WWW.Example.com', size: 1400 }),
      dnsQuery({ name: 'apo.example.com', type: 16 }),
      dnsQuery({ name: 'api.example.com', class: 3 }),
      dnsQuery({ name: 'api.example.com', flags: 0x2800 }),
    ]
    upstream.onQuery = ({ message, reply }) => {
      const response = emptyResponse(message, 3)
      response.writeUInt16BE((message.readUInt16BE(2) & 0x7800) | 0x8183, 2)
      reply(response)
    }
    for (const [index, message] of asked.entries()) {
      expect(await client.ask(message)).to.include({ rcode: 3, id: 0x1234 })
      expect(upstream.queries[index]?.message.subarray(2)).to.deep.equal(message.subarray(2))
      expect(upstream.queries[index]?.isStream).to.equal(false)
    }
    const tcp = stream()
    tcp.send(asked[0] as Buffer)
    await until('an answer', () => tcp.received.length === 1)
    expect(upstream.queries.at(-1)?.isStream).to.equal(true)
    expect(readDnsResponse(tcp.received[0] as Buffer)).to.include({ rcode: 3, id: 0x1234 })
  })

  it("uses source ports outside of the kernel's ephemeral range, a different one for each query", async () => {
    const { client } = await start()
    const [least = 0, most = 0] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split('\t').map(Number)
    for (let time = 0; time < 10; time++) await client.ask(dnsQuery({ name: 'www.example.com' }))
    const ports = upstream.queries.map(({ from }) => from)
    expect(ports.filter((port) => port >= least && port <= most)).to.deep.equal([])
    expect(new Set(ports).size).to.be.above(7)
  })

  it('gives an authoritative answer for a known name even if upstream says that it does not exist', async () => {
    const { client } = await start()
    const nothing = await client.ask(dnsQuery({ name: 'api.example.com', type: 65 }))
    expect(nothing).to.deep.include({ rcode: 0, isAuthoritative: true, answers: [] })
    upstream.onQuery = ({ message, reply }) => reply(emptyResponse(message, 2))
    expect((await client.ask(dnsQuery({ name: 'api.example.com', type: 65 }))).rcode).to.equal(2)
    expect(upstream.queries).to.have.length(2)
  })

  it('resolves external names before it has a table', async () => {
    const { client, state } = await start(null)
    expect(state().hosts).to.equal(undefined)
    expect((await client.ask(dnsQuery({ name: 'www.example.com' }))).rcode).to.equal(3)
  })

  it('ignores responses with another id, question or source', async () => {
    const { client } = await start()
    upstream.onQuery = ({ message, reply }) => {
      const good = emptyResponse(message, 3)
      const forged = (change: (response: Buffer) => void) => {
        const copy = emptyResponse(message, 0)
        change(copy)
        return copy
      }
      reply(forged((copy) => copy.writeUInt16BE(copy.readUInt16BE(0) ^ 1, 0)))
      reply(forged((copy) => (copy[13] = 120)))
      reply(forged((copy) => copy.writeUInt16BE(0x0100, 2)))
      reply(forged(() => undefined).subarray(0, 11))
      reply(
        forged(() => undefined),
        true,
      )
      reply(good)
    }
    expect((await client.ask(dnsQuery({ name: 'www.example.com' }))).rcode).to.equal(3)
  })

  it('uses a random id for each upstream query', async () => {
    const { client } = await start()
    for (let time = 0; time < 8; time++) await client.ask(dnsQuery({ name: 'www.example.com' }))
    expect(new Set(upstream.queries.map(({ message }) => message.readUInt16BE(0))).size).to.be.above(6)
  })

  it('tries the next nameserver if one is down, and fails the query if all are', async () => {
    const several = join(dir, 'several.conf')
    writeFileSync(several, 'nameserver 127.0.0.2\nnameserver 127.0.0.1\n')
    const { client, stream, metrics } = await start(table, { resolvConf: several })
    expect((await client.ask(dnsQuery({ name: 'www.example.com' }))).rcode).to.equal(3)
    const tcp = stream()
    tcp.send(dnsQuery({ name: 'www.example.com' }))
    await until('an answer', () => tcp.received.length === 1)
    const none = await start(table, { resolvConf: several, serverPort: 1 })
    expect((await none.client.ask(dnsQuery({ name: 'www.example.com' }))).rcode).to.equal(2)
    expect(await metrics()).to.match(/dns_upstream_requests_total 2\n/)
    expect(await none.metrics()).to.match(/dns_requests_total 1\n/)
    expect(await none.metrics()).to.match(/dns_upstream_failures_total 1\n/)
    expect(await metrics()).to.match(/dns_upstream_request_duration_seconds_count 2\n/)
  })

  it('answers the queries of one TCP connection as they complete, in any order', async () => {
    const { stream } = await start()
    const held: (() => void)[] = []
    upstream.onQuery = ({ message, reply }) => held.push(() => reply(emptyResponse(message, 3)))
    const tcp = stream()
    tcp.send(dnsQuery({ name: 'slow.example.com', id: 1 }), dnsQuery({ name: 'api.example.com', id: 2 }))
    await until('the quick one', () => tcp.received.length === 1)
    expect(tcp.received[0]?.readUInt16BE(0)).to.equal(2)
    await until('the slow one to be asked', () => held.length === 1)
    tcp.socket.end()
    held[0]?.()
    await until('the slow one', () => tcp.received.length === 2)
    await until('the end', () => tcp.isClosed)
  })

  it('stops reading a connection at its limit of pending queries', async () => {
    const { stream } = await start()
    upstream.onQuery = () => undefined
    const tcp = stream()
    tcp.send(...Array.from({ length: 100 }, (_, id) => dnsQuery({ name: `a${id}.example.com`, id })))
    await until('as many queries as one connection may have', () => upstream.queries.length === 32)
    tcp.socket.destroy()
  })

  it('limits pending upstream queries of a client, and refuses one above the limit; another client takes one over', async () => {
    const { client, port } = await start()
    const clients = [client, ...Array.from({ length: 4 }, () => new DnsClient(port))]
    closing.push(() => clients.slice(1).map((one) => one.close()))
    upstream.onQuery = () => undefined
    const fill = async (one: DnsClient, before: number) => {
      // In portions that fit into the socket buffers.
      for (let sent = 0; sent < 128; ) {
        for (const end = sent + 64; sent < end; sent++) one.send(dnsQuery({ name: `a${sent}.example.com`, id: sent }))
        await until('these to be asked', () => upstream.queries.length === before + sent)
      }
    }
    for (const [index, one] of clients.slice(0, 4).entries()) await fill(one, 128 * index)
    expect((await client.ask(dnsQuery({ name: 'one-more.example.com' }))).rcode).to.equal(2)
    expect((await client.ask(dnsQuery({ name: 'api.example.com' }))).answers).to.have.length(1)
    const counts = clients.map(({ received }) => received.length)
    clients[4]?.send(dnsQuery({ name: 'another.example.com' }))
    await until('the query of another client', () => upstream.queries.length === 513)
    await until('one query to give way', () => clients.filter(({ received }, index) => received.length > (counts[index] ?? 0)).length === 1)
    expect(clients[4]?.received).to.have.length(0)
  })

  it('gives up a server that sends too many other messages, and reads no more of it', async () => {
    const { client, stream } = await start()
    const stray = (message: Buffer) => withId(emptyResponse(message), message.readUInt16BE(0) ^ 1)
    /** Response codes of a query after so many other messages. */
    const codesAfter = async (strays: number) => {
      upstream.onQuery = ({ message, reply }) => {
        for (let count = 0; count < strays; count++) reply(stray(message))
        reply(emptyResponse(message, 3))
      }
      const tcp = stream()
      tcp.send(dnsQuery({ name: 'www.example.com' }))
      await until('an answer', () => tcp.received.length === 1)
      const udp = await client.ask(dnsQuery({ name: 'www.example.com' }))
      return [udp.rcode, readDnsResponse(tcp.received[0] as Buffer).rcode]
    }
    expect([await codesAfter(0), await codesAfter(1), await codesAfter(100), await codesAfter(101)]).to.deep.equal([
      [3, 3],
      [3, 2],
      [3, 2],
      [2, 2],
    ])
  })

  it('gives up a server that sends an answer byte by byte after two seconds', async () => {
    const { stream } = await start()
    let closed = false
    upstream.onQuery = ({ socket }) => {
      socket?.write(Buffer.of(255, 255))
      const timer = setInterval(() => socket?.write('a'), 20)
      socket?.on('close', () => {
        clearInterval(timer)
        closed = true
      })
    }
    const tcp = stream()
    tcp.send(dnsQuery({ name: 'www.example.com' }))
    await until('an answer', () => tcp.received.length === 1)
    expect(readDnsResponse(tcp.received[0] as Buffer).rcode).to.equal(2)
    await until('the connection to be closed', () => closed)
  })

  it('follows no aliases: a chain without an end costs one query, and is cut to what the client accepts', async () => {
    const { client, stream } = await start()
    /** `alias IN CNAME www.example.com`, whose name is a pointer to the name of the question, and so is its target. */
    const alias = Buffer.from([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 30, 0, 2, 0xc0, 12])
    upstream.onQuery = ({ message, reply }) => {
      const response = emptyResponse(message)
      response.writeUInt16BE(4000, 6)
      reply(Buffer.concat([response, ...Array.from({ length: 4000 }, () => alias)]))
    }
    const asked = dnsQuery({ name: 'www.example.com' })
    client.send(asked)
    const tcp = stream()
    tcp.send(asked)
    await until('the answers', () => client.received.length + tcp.received.length === 2)
    expect([client.received[0]?.length, ((client.received[0]?.readUInt16BE(2) ?? 0) & 0x0200) !== 0]).to.deep.equal([asked.length, true])
    expect(tcp.received[0]?.length).to.equal(asked.length + 4000 * alias.length)
    expect(upstream.queries).to.have.length(2)
  })

  it('answers clients in turn, whatever one of them has sent', async () => {
    const order: string[] = []
    const listeners = new Listeners(({ message }) => order.push(message.toString()))
    closing.push(() => listeners.close())
    await listeners.open('127.0.0.1', await freePort())
    const port = Number(listeners.addresses[0]?.split(':')[1])
    const [greedy, other] = [new DnsClient(port), new DnsClient(port)]
    closing.push(() => [greedy, other].map((client) => client.close()))
    for (let index = 0; index < 100; index++) greedy.send(Buffer.from('greedy'))
    other.send(Buffer.from('other'))
    await until('all messages', () => order.length === 101)
    expect(order.indexOf('other')).to.be.below(100)
  })

  it('has room for a new connection when others keep theirs open', async () => {
    const { stream } = await start()
    const held = Array.from({ length: 140 }, () => stream())
    await until('the oldest to be closed', () => held.filter(({ isClosed }) => isClosed).length === 12)
    const late = stream()
    late.send(dnsQuery({ name: 'api.example.com' }))
    await until('the answer', () => late.received.length === 1)
  })

  it('closes connections that do not read their answers or send nothing', async () => {
    const { stream } = await start({ 'many.com': { ips: Array.from({ length: 4096 }, (_, index) => `10.0.${index >> 8}.${index & 255}`) } })
    const tcp = stream()
    tcp.socket.pause()
    for (let sent = 0; sent < 400 && !tcp.isClosed; sent++) tcp.send(dnsQuery({ name: 'many.com' }))
    await until('the end', () => {
      tcp.send(dnsQuery({ name: 'many.com' }))
      return tcp.socket.errored !== null || tcp.isClosed
    })
    const taken: Incoming[] = []
    const listeners = new Listeners((incoming) => taken.push(incoming), 50)
    closing.push(() => listeners.close())
    await listeners.open('127.0.0.1', await freePort())
    const silent = new TcpClient(Number(listeners.addresses[0]?.split(':')[1]))
    await until('the end of the silent one', () => silent.isClosed)
    expect(taken).to.have.length(0)
  })

  it('survives malformed messages and continues to answer', async () => {
    const { client, stream } = await start()
    const message = dnsQuery({ name: 'api.example.com' })
    const broken = Buffer.from(message)
    broken[12] = 0xff
    for (const bytes of [Buffer.alloc(0), Buffer.alloc(5, 255), emptyResponse(message), Buffer.alloc(3000, 0x41)]) client.send(bytes)
    expect((await client.ask(broken)).rcode).to.be.oneOf([1])
    const bare = Buffer.from([0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    expect((await client.ask(bare)).rcode).to.equal(2)
    const tcp = stream()
    tcp.socket.write(Buffer.from([0, 0, 0, 3, 1, 2, 3]))
    tcp.send(message)
    await until('an answer', () => tcp.received.length === 1)
    expect((await client.ask(message)).answers).to.have.length(1)
    expect((await client.ask(dnsQuery({ name: 'api.example.com', size: 1400, version: 1 }))).additional[0]?.ttl).to.equal(0x0100_0000)
  })

  it('reloads the resolver configuration, and keeps the last one if it cannot be read', async () => {
    const changing = join(dir, 'changing.conf')
    writeFileSync(changing, 'nameserver 127.0.0.2\n')
    const { client, state } = await start(table, { resolvConf: changing })
    writeFileSync(changing, 'nameserver 127.0.0.1\nsearch other\n')
    await until('the other server', () => state().servers[0] === '127.0.0.1')
    expect((await client.ask(dnsQuery({ name: 'www.example.com' }))).rcode).to.equal(3)
    rmSync(changing)
    await until('the reason', () => state() && lines.some((line) => line.includes('the DNS servers read from it before stay in use')))
    expect(state().servers).to.deep.equal(['127.0.0.1'])
  })

  it('does not start without a resolver configuration, or if its port is taken', async () => {
    const failed = async (given: Partial<DnsConfig>) =>
      start(table, given).then(
        () => 'started',
        (error: Error) => error.message,
      )
    expect(await failed({ resolvConf: join(dir, 'nowhere') })).to.include('nowhere')
    const { port } = await start()
    expect(await failed({ address: `localhost:${port}` })).to.match(new RegExp(`DNS on localhost:${port}: .*EADDRINUSE`))
    expect(await failed({ address: 'example.com:0' })).to.include('neither localhost nor an IP address')
  })

  it('detects that its own queries are redirected back to it', async () => {
    const port = await freePort()
    const { client, stream } = await start(table, { address: `:${port}`, serverPort: port })
    expect((await client.ask(dnsQuery({ name: 'www.example.com' }))).rcode).to.equal(2)
    const tcp = stream()
    tcp.send(dnsQuery({ name: 'www.example.com' }))
    await until('an answer', () => tcp.received.length === 1)
    expect(readDnsResponse(tcp.received[0] as Buffer).rcode).to.equal(2)
    expect(lines.filter((line) => line.includes('are redirected back to it'))).to.have.length(1)
    const own = await start(table, { address: `127.0.0.1:${await freePort()}` })
    expect((await own.client.ask(dnsQuery({ name: 'api.example.com' }))).rcode).to.equal(0)
  })

  it('keeps the last table if a new one is invalid', async () => {
    const { server, state, relay } = await start()
    server.receive({ type: 'NameTableChanged', table: Uint8Array.of(10, 200) }, relay)
    expect(state().hosts).to.equal(2)
    expect(lines.some((line) => line.includes('a name table cannot be used'))).to.equal(true)
  })

  it('answers from the table of the last run until it gets a new one', async () => {
    const keptIn = join(dir, 'kept')
    const first = await start(table, { keptIn })
    await first.server.drain?.()
    for (const file of readdirSync(keptIn)) expect(statSync(join(keptIn, file)).mode & 0o777).to.equal(0o600)
    const second = await start(null, { keptIn })
    expect(second.state()).to.include({ hosts: 2, isKept: true })
    expect((await second.client.ask(dnsQuery({ name: 'reviews' }))).answers).to.have.length(2)
    second.change({ 'api.example.com': { ips: ['192.0.2.9'] } })
    expect(second.state()).to.include({ hosts: 1, isKept: false })
    const stranger = await start(null, { keptIn, domain: 'bank.svc.cluster.local', namespace: 'bank' })
    expect(stranger.state().hosts).to.equal(undefined)
    const [file = ''] = readdirSync(keptIn)
    writeFileSync(join(keptIn, file), 'garbage')
    const third = await start(null, { keptIn })
    expect(third.state().hosts).to.equal(undefined)
    expect(lines.some((line) => line.includes('the names of the last run are not used'))).to.equal(true)
  })

  it('logs once that the table cannot be saved', async () => {
    const file = join(dir, 'a-file')
    writeFileSync(file, '')
    const { server } = await start(table, { keptIn: join(file, 'kept') })
    await server.drain?.()
    expect(lines.filter((line) => line.includes('the name table could not be saved'))).to.have.length(1)
  })
})
