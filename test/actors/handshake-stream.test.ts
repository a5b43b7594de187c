import { once } from 'node:events'
import { connect as connectTcp, createServer, type Server, type Socket } from 'node:net'
import { type ConnectionOptions, createServer as createTlsServer, type TLSSocket, connect as tlsConnect } from 'node:tls'
import { expect } from 'chai'
import { HandshakeStream } from '../../actors/http/handshake-stream.ts'
import { type ChainShape, costlyChain, costlyShapes } from '../../bench/costly-chain.ts'

const ordinary = costlyChain({ names: 1, authorities: 0, constraints: 0 }, Date.now())
/** As long as a chain of four RSA certificates of 4096 bits. */
const long: ChainShape = { names: 20, authorities: 4, constraints: 0, rsaBits: 4096 }

describe('the bytes of a handshake', () => {
  const servers: Server[] = []
  const sockets: Socket[] = []
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
    for (const server of servers.splice(0)) server.close()
  })
  const keep = <Kept extends Socket>(socket: Kept): Kept => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    return socket
  }
  const listening = async (server: Server): Promise<number> => {
    servers.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as { port: number }).port
  }

  /** A TLS server whose connections pass through the stream. Resolves with its port. Echoes what it gets. */
  const boundedServer = async (failed: (error: Error) => void, secured: () => void): Promise<number> => {
    const tls = createTlsServer({ ...ordinary, ca: [], requestCert: true, rejectUnauthorized: false })
    const streams = new Map<number, HandshakeStream>()
    tls.on('tlsClientError', failed)
    tls.on('secureConnection', (socket: TLSSocket) => {
      for (const stream of streams.values()) stream.settle()
      secured()
      keep(socket).pipe(socket)
    })
    return listening(
      createServer((socket) => {
        const stream = new HandshakeStream(keep(socket))
        streams.set(socket.remotePort ?? 0, stream)
        tls.emit('connection', stream)
      }),
    )
  }
  const dial = async (port: number, presented: ConnectionOptions, bounds = false) => {
    const socket = keep(connectTcp(port, '127.0.0.1'))
    const bounded = bounds ? new HandshakeStream(socket) : undefined
    const client = keep(tlsConnect({ socket: bounded ?? socket, rejectUnauthorized: false, ...presented }))
    client.once('secureConnect', () => bounded?.settle())
    return client
  }
  const echoes = async (client: TLSSocket) => {
    const sent = Buffer.alloc(1_000_000, 'b')
    let received = 0
    client.on('data', (chunk: Buffer) => {
      received += chunk.length
      if (received === sent.length) client.emit('echoed')
    })
    client.write(sent)
    await once(client, 'echoed')
  }

  it('pass in both directions, and all bytes after them', async () => {
    const port = await boundedServer(
      () => undefined,
      () => undefined,
    )
    const client = await dial(port, ordinary, true)
    await once(client, 'secureConnect')
    await echoes(client)
  })

  it('that have arrived are given back with the socket, which can be used natively', async () => {
    const tls = createTlsServer({ ...ordinary })
    tls.on('secureConnection', (socket: TLSSocket) => keep(socket).pipe(socket))
    const port = await listening(
      createServer({ pauseOnConnect: true }, (socket) => {
        const stream = new HandshakeStream(keep(socket), {
          arrived: () => {
            stream.release()
            tls.emit('connection', socket)
          },
        })
        stream.listen()
      }),
    )
    const client = await dial(port, {})
    await once(client, 'secureConnect')
    await echoes(client)
  })

  it('that arrived before there was a TLS socket are answered when the stream is started', async () => {
    const tls = createTlsServer({ ...ordinary })
    const { promise, resolve } = Promise.withResolvers<readonly number[]>()
    const port = await listening(
      createServer({ pauseOnConnect: true }, (socket) => {
        let isBegun = false
        const stream = new HandshakeStream(keep(socket), {
          arrived: () => {
            if (isBegun) return stream.deliver()
            isBegun = true
            tls.emit('connection', stream)
            const before = stream.unanswered
            stream.start()
            resolve([before, stream.unanswered])
          },
        })
        tls.on('secureConnection', (secured: TLSSocket) => {
          stream.settle()
          keep(secured).pipe(secured)
        })
        stream.listen()
      }),
    )
    const client = await dial(port, {})
    const [before, after] = await promise
    expect(before).to.be.above(100)
    expect(after).to.equal(0)
    await once(client, 'secureConnect')
    await echoes(client)
  })

  it('of a long chain pass', async () => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const port = await boundedServer(reject, resolve)
    await dial(port, costlyChain(long, Date.now()))
    await promise
  })

  for (const [name, shape] of Object.entries(costlyShapes)) {
    it(`of a client with costly ${name} are too many for a server, which verifies nothing`, async () => {
      const presented = costlyChain(shape, Date.now())
      const { promise, resolve } = Promise.withResolvers<string>()
      const port = await boundedServer(
        (error) => resolve(error.message),
        () => resolve('served'),
      )
      const before = process.cpuUsage()
      await dial(port, presented)
      expect(await promise).to.equal('the peer sent more than 16384 bytes before the handshake was done')
      const { user, system } = process.cpuUsage(before)
      expect((user + system) / 1000).to.be.below(100)
    })

    it(`of a server with costly ${name} are too many for a client`, async () => {
      const port = await listening(createTlsServer({ ...costlyChain(shape, Date.now()) }).on('tlsClientError', () => undefined))
      const client = await dial(port, {}, true)
      const reason = await new Promise<string>((resolve) => {
        client.on('error', (error) => resolve(error.message))
        client.on('secureConnect', () => resolve('served'))
      })
      expect(reason).to.equal('the peer sent more than 16384 bytes before the handshake was done')
    })
  }
})
