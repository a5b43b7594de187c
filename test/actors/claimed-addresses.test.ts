import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { expect } from 'chai'
import { claimAddresses, sharing, splitAddress } from '../../actors/http/address.ts'

describe('a port that the kernel chose and that is reserved for several threads', () => {
  it('leads each connection that begins after its release to those threads', async () => {
    const claim = await claimAddresses([{ flag: 'grpcAddr', address: '127.0.0.1:0', listeners: 2 }])
    const [host, port] = splitAddress(claim.of('grpcAddr'))
    const server = createServer((socket) => socket.end('served'))
    server.listen({ host, port, ...sharing(2) })
    await once(server, 'listening')
    try {
      claim.release()
      const answers = Array.from(
        { length: 24 },
        () =>
          new Promise<string>((resolve) => {
            const socket = connect({ host, port })
            socket.on('error', (error) => resolve(error.message))
            socket.on('data', (bytes) => resolve(bytes.toString()))
          }),
      )
      expect(await Promise.all(answers)).to.deep.equal(Array(answers.length).fill('served'))
    } finally {
      server.close()
    }
  })
})
