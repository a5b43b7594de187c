import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { connectBounded, httpsClient, publicHandshakeBytes } from '../../actors/http/tls-client.ts'
import { costlyChain, costlyShapes } from '../../bench/costly-chain.ts'

const usual = costlyChain({ names: 1, authorities: 0, constraints: 0 }, Date.now())

describe('a TLS client of servers that may be hostile', () => {
  const servers: Server[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) server.close()
  })
  const listening = async (server: Server) => {
    servers.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
  }
  const get = async (client: Awaited<ReturnType<typeof httpsClient>>): Promise<string> => {
    const { request, ...connection } = client
    const outgoing = request({ path: '/', ...connection }).end()
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    return String(Buffer.concat(await answer.toArray()))
  }
  const failure = (work: Promise<unknown>) =>
    work.then(
      () => 'none',
      (error: Error) => error.message,
    )

  it('reads no chain that is longer than the maximum', async () => {
    const address = await listening(createServer(costlyChain(costlyShapes.names, Date.now())).on('tlsClientError', () => undefined))
    let steps = 0
    const blocking = <Result>(work: () => Result): Result => {
      steps++
      return work()
    }
    const socket = connectBounded(address, {}, { bytes: publicHandshakeBytes, blocking })
    expect(await failure(once(socket, 'secureConnect'))).to.equal('the peer sent more than 32768 bytes before the handshake was done')
    expect(steps).to.be.above(0)
    expect(await failure(get(await httpsClient(address)))).to.equal('the peer sent more than 32768 bytes before the handshake was done')
  })

  it('verifies the server, and reads answers of any length', async () => {
    const content = 'x'.repeat(1_000_000)
    const address = await listening(createHttpsServer(usual, (_, response) => response.end(content)))
    expect(await failure(get(await httpsClient(address)))).to.match(/unable to verify|self-signed/)
    expect(await get(await httpsClient(address, { rejectUnauthorized: false }))).to.equal(content)
  })

  it('refuses another handshake on the connection', async () => {
    const server = createServer({ ...usual, maxVersion: 'TLSv1.2' })
    const address = await listening(server)
    const accepted = once(server, 'secureConnection') as Promise<[TLSSocket]>
    const socket = connectBounded(address, { rejectUnauthorized: false })
    const [peer] = await accepted
    const finished = String(peer.getFinished()?.toString('hex'))
    const failed = once(peer, 'error')
    peer.renegotiate({}, () => undefined)
    socket.resume().on('error', () => undefined)
    expect(String(await failed)).to.include('no renegotiation')
    expect(peer.getFinished()?.toString('hex')).to.equal(finished)
    socket.destroy()
    peer.destroy()
  })

  it('says why a server is not reached', async () => {
    const { port } = await listening(createServer(usual))
    servers.splice(0)[0]?.close()
    expect(await failure(once(connectBounded({ host: '127.0.0.1', port }, {}), 'secureConnect'))).to.include('ECONNREFUSED')
  })
})
