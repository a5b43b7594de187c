/** Clients of the HTTP address that also serves gRPC (`--grpcAddr` is empty) take more than their part of it. */
import { readdirSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { PassedConnections, passedServer } from '../../actors/http/passed-connection.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const settings = '\0\0\0\u0004\0\0\0\0\0'
const settingsFrame = 4
/** The limit of open files, and the connections that one client may have: half of a third of what is not reserved. */
const descriptors = 512
const ofClient = 42

describe('gRPC at the HTTP address withstands', () => {
  // These clients answer no pings.
  const service = new Service({ descriptors, flags: ['--grpcAddr', '', '--writers', '1', '--keepaliveInterval', '1h'] })
  const sockets: Socket[] = []
  before(() => service.start())
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
  })
  after(() => service.dispose())

  const opened = (bytes: string, localAddress = '127.0.0.1') => {
    const socket = connect({ host: '127.0.0.1', port: service.httpPort, localAddress })
    sockets.push(socket)
    const client = { isOpen: true, isServed: false }
    socket.on('data', (came: Buffer) => (client.isServed ||= came[3] === settingsFrame))
    socket.on('close', () => (client.isOpen = false))
    socket.on('error', () => undefined)
    socket.write(bytes, 'latin1')
    return client
  }
  const isReady = async () => (await fetch(`http://127.0.0.1:${service.httpPort}/ready`)).status === 200
  const open = () => readdirSync(`/proc/${service.pid}/fd`).length

  // How many of a flood are served depends on when their bytes come: until then each is an HTTP connection, of which a client may have fewer.
  for (const [when, pauseMs] of [
    ['at once', 0],
    ['late', 1000],
  ] as const)
    it(`more connections of one address than it may have, whose bytes come ${when}, within the limit of open files; its part stays usable`, async () => {
      const many = Array.from({ length: 400 }, () => opened(preface + settings))
      // They begin to connect with the next tick. Nothing is written while this thread waits.
      await new Promise<void>((resolve) => process.nextTick(resolve))
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs)
      await until('those beyond its part to be closed', () => many.filter(({ isOpen }) => isOpen).length <= ofClient)
      await until('those that are left to be served', () => many.every(({ isOpen, isServed }) => isServed || !isOpen))
      await until('a further connection to be beyond its part', async () => {
        const further = opened(preface + settings)
        many.push(further)
        await until('it to be served or closed', () => further.isServed || !further.isOpen)
        return !further.isOpen
      })
      expect(many.filter(({ isOpen, isServed }) => isOpen && isServed).length).to.be.within(ofClient / 2, ofClient)
      expect(open()).to.be.below(descriptors / 2 + 100)
      expect(await isReady()).to.equal(true)
      const other = opened(preface + settings, '127.0.0.2')
      await until('another address to be served', () => other.isServed)
    })

  it('connections that stop within their first bytes', async () => {
    for (let index = 0; index < 600; index++) opened(preface.slice(0, 1 + (index % 23)))
    await until('an answer beside them', isReady)
    const other = opened(preface + settings)
    await until('gRPC beside them', () => other.isServed)
    expect(open()).to.be.below(descriptors)
  })
})

describe('a connection that is passed on', () => {
  const service = new Service()
  const place = { passedAt: join(service.dir, '0.sock'), key: 'ab'.repeat(32) }
  const servers: Server[] = []
  const sockets: Socket[] = []
  let passed: PassedConnections
  let serve: (socket: Socket) => void = () => undefined
  let port = 0
  let accepted: Socket | undefined

  before(async () => {
    passed = new PassedConnections({ writers: [place], ofWriter: 4, standstillMs: 500, refused: () => undefined })
    const writer = passedServer(place, (socket) => serve(socket))
    const http = createServer({ allowHalfOpen: true }, (socket) => {
      accepted = socket
      socket.once('data', (first: Buffer) => passed.take(socket, first))
    })
    servers.push(writer, http)
    await new Promise<void>((resolve) => writer.listen(place.passedAt, resolve))
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
    port = (http.address() as { port: number }).port
  })
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
  })
  after(async () => {
    passed.close()
    for (const server of servers) server.close()
    await service.dispose()
  })
  beforeEach(() => until('connections of before to be over', () => passed.size === 0))

  const connected = () => {
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
    sockets.push(socket)
    socket.on('error', () => undefined)
    return socket
  }

  it('holds no more than a buffer of what a client does not read, and ends although its writer is gone', async () => {
    serve = (socket) => {
      sockets.push(socket)
      const more = () => {
        while (socket.write(Buffer.alloc(65_536)));
      }
      socket.on('drain', more).on('error', () => undefined)
      socket.resume()
      more()
    }
    const client = connected()
    client.write('x')
    client.pause()
    await until('what is not read', () => (accepted?.writableLength ?? 0) > 0)
    expect(accepted?.writableLength).to.be.at.most(131_072)
    for (const socket of sockets.slice(1)) socket.destroy()
    await until('the end', () => passed.size === 0)
    expect(accepted?.destroyed).to.equal(true)
  })

  it('reads no more from a client than the writer takes', async () => {
    let writer: Socket | undefined
    serve = (socket) => {
      writer = socket
      sockets.push(socket)
    }
    const client = connected()
    client.write('x')
    await until('the writer', () => writer !== undefined)
    const piece = Buffer.alloc(65_536)
    let isFull = false
    while (!isFull) {
      for (let index = 0; index < 500; index++) client.write(piece)
      await until('the client to stop or go on', () => accepted?.isPaused() === true || client.writableLength === 0)
      isFull = client.writableLength > 0
    }
    expect(accepted?.bytesRead).to.be.below(16_777_216)
    let came = 0
    writer?.on('data', (bytes: Buffer) => (came += bytes.length))
    client.end()
    await until('all of it', () => came === client.bytesWritten)
  })

  it('passes the end of one side on while the other goes on', async () => {
    let seen = ''
    serve = (socket) => {
      sockets.push(socket)
      socket.on('data', (bytes) => (seen += bytes))
      socket.end('all of it')
    }
    const client = connected()
    let came = ''
    client.on('data', (bytes) => (came += bytes)).on('end', () => client.end('last words'))
    client.write('x')
    await until('the last words', () => seen === 'xlast words')
    expect(came).to.equal('all of it')
    // The client has ended before it is passed on.
    connected().end('y')
    await until('its bytes', () => seen === 'xlast wordsy')
    await until('nothing to be left', () => passed.size === 0)
  })

  it('is one of so many: further ones are closed', async () => {
    serve = (socket) => void sockets.push(socket.resume())
    const clients = Array.from({ length: 40 }, () => {
      const client = { isOpen: true }
      connected()
        .on('end', () => (client.isOpen = false))
        .resume()
        .write('x')
      return client
    })
    await until('those beyond the maximum to end', () => clients.filter(({ isOpen }) => isOpen).length === 20)
    expect(passed.size).to.equal(20)
  })
})
