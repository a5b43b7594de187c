import { once } from 'node:events'
import { duplexPair } from 'node:stream'
import { createSecureContext, TLSSocket, connect as tlsConnect } from 'node:tls'
import { expect } from 'chai'
import { type ChainShape, costlyChain, costlyShapes } from '../../../bench/costly-chain.ts'

const ordinary = costlyChain({ names: 1, authorities: 0, constraints: 0 }, Date.now())

describe('costly chains', () => {
  const least = { names: 300, exponents: 200, keys: 60 }
  for (const [name, shape] of Object.entries(costlyShapes))
    it(`take a client's ${name} through a handshake of ${least[name as keyof typeof least]} ms of CPU or more, within what OpenSSL accepts`, async () => {
      expect(await handshakeMs(shape)).to.be.greaterThan(least[name as keyof typeof least])
    })

  it('cost nothing when they are ordinary', async () => {
    expect(await handshakeMs({ names: 1, authorities: 0, constraints: 0 })).to.be.below(50)
  })
})

/** The CPU milliseconds of this thread for a handshake in which a client presents a chain, which the server does not trust. */
async function handshakeMs(shape: ChainShape): Promise<number> {
  const presented = costlyChain(shape, Date.now())
  const [near, far] = duplexPair()
  const before = process.threadCpuUsage()
  const server = new TLSSocket(far, {
    isServer: true,
    requestCert: true,
    rejectUnauthorized: false,
    secureContext: createSecureContext({ ...ordinary, ca: [] }),
  })
  const client = tlsConnect({ socket: near, rejectUnauthorized: false, ...presented })
  await once(server, 'secure')
  const { user, system } = process.threadCpuUsage(before)
  expect(server.getPeerX509Certificate()?.subject).to.equal('CN=0')
  client.destroy()
  server.destroy()
  return (user + system) / 1000
}
