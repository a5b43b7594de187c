import { EventEmitter, once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { expect } from 'chai'
import { limitConnections } from '../../actors/http/connection-limit.ts'
import { until } from '../harness/until.ts'

/** A socket as far as the limit knows it. */
class Arrived extends EventEmitter {
  readonly remoteAddress: string
  isClosed = false

  constructor(remoteAddress: string) {
    super()
    this.remoteAddress = remoteAddress
  }

  destroy(): void {
    this.isClosed = true
    this.emit('close')
  }
}

describe('the limit of connections', () => {
  const sockets: Socket[] = []
  let server: Server
  let port = 0
  let refused = 0
  const known = new Set<string>()

  beforeEach(async () => {
    refused = 0
    known.clear()
    server = createServer((socket) => socket.on('error', () => undefined))
    limitConnections([server], 8, { refused: () => refused++, say: () => undefined, isKept: (address) => known.has(address) })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as { port: number }).port
  })
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
    server.close()
  })

  const open = async (from: number, count: number): Promise<Socket[]> => {
    const opened = Array.from({ length: count }, () => {
      const socket = connect({ port, host: '127.0.0.1', localAddress: `127.9.0.${from}` })
      socket.on('error', () => undefined).resume()
      sockets.push(socket)
      return socket
    })
    await Promise.all(opened.map((socket) => once(socket, 'connect')))
    return opened
  }
  const areClosed = (some: readonly Socket[], count: number) =>
    until(`${count} to be closed`, () => some.filter((socket) => socket.closed).length === count)
  const stayOpen = (some: readonly Socket[]) => expect(some.filter((socket) => socket.closed)).to.deep.equal([])

  it('gives one address half of them', async () => {
    await areClosed(await open(1, 6), 2)
    expect(refused).to.equal(2)
  })

  it('lets the address with the most give way to one with fewer', async () => {
    const [many, others] = [await open(1, 4), await open(2, 4)]
    const agent = await open(3, 1)
    await areClosed([...many, ...others], 1)
    stayOpen(agent)
    expect(refused).to.equal(1)
  })

  it('refuses the new connection when nobody has more', async () => {
    const each: Socket[] = []
    for (let from = 1; from <= 8; from++) each.push(...(await open(from, 1)))
    await areClosed(await open(9, 1), 1)
    stayOpen(each)
  })

  it('counts the strangers of an IPv6 /64 as one client, and a known address there for itself, also once it became known', () => {
    const accepted = new EventEmitter()
    const limit = limitConnections([accepted as Server], 8, {
      refused: () => refused++,
      say: () => undefined,
      isKept: (address) => known.has(address),
    })
    const arrive = (remoteAddress: string) => {
      const socket = new Arrived(remoteAddress)
      accepted.emit('connection', socket)
      return socket
    }
    const [proxy, ...strangers] = [1, 2, 3, 4, 5].map((host) => arrive(`2001:db8:0:1::${host}`))
    expect(strangers.map(({ isClosed }) => isClosed)).to.deep.equal([false, false, false, true])
    known.add('2001:db8:0:1::1').add('2001:db8:0:1::4').add('2001:db8:0:1::9')
    const others = ['192.0.2.1', '192.0.2.2', '2001:db8:0:1::9', '192.0.2.4'].map(arrive)
    expect(refused).to.equal(1)
    others.push(arrive('192.0.2.5'))
    expect([proxy, ...strangers].map((socket) => socket?.isClosed)).to.deep.equal([false, false, true, false, true])
    expect(others.map(({ isClosed }) => isClosed)).to.deep.equal([false, false, false, false, false])
    limit.close()
  })

  it('leaves those of known addresses, and lets others give way to them', async () => {
    known.add('127.9.0.1').add('127.9.0.9')
    const proxies = await open(1, 4)
    const strangers: Socket[] = []
    for (let from = 2; from <= 5; from++) strangers.push(...(await open(from, 1)))
    const agent = await open(9, 1)
    await areClosed(strangers, 1)
    stayOpen([...proxies, ...agent])
  })
})
