/** What the servers that an agent calls, or a man in the middle, can do to it before it knows them. */
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import { expect } from 'chai'
import { costlyChain, costlyShapes } from '../../bench/costly-chain.ts'
import { Agent } from '../harness/agent.ts'
import { until } from '../harness/until.ts'

/** CPU time of a process, in milliseconds; the kernel counts hundredths of a second. */
const cpuMs = (pid: number): number => {
  const [user = 0, system = 0] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ').slice(13, 15).map(Number)
  return (user + system) * 10
}

describe('an agent whose control plane presents a costly chain', () => {
  for (const [name, shape] of Object.entries({ names: costlyShapes.names, exponents: costlyShapes.exponents }))
    it(`(${name}) does not verify it, says why, and answers others`, async () => {
      const chain = costlyChain(shape, Date.now())
      const server = createServer(chain).on('tlsClientError', () => undefined)
      let connections = 0
      server.on('connection', () => connections++)
      await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      const agent = new Agent({ proxyConfig: { discoveryAddress: `127.0.0.1:${port}` } })
      try {
        agent.write('var/run/secrets/tokens/mesh-token', 'a.b.c')
        agent.write('var/run/secrets/mesh/root-cert.pem', costlyChain({ names: 1, authorities: 0, constraints: 0 }, Date.now()).cert)
        await agent.start()
        await until('the first call', () => connections >= 1)
        const [before, since] = [cpuMs(agent.pid), connections]
        await until('several calls', () => connections >= since + 4)
        expect((cpuMs(agent.pid) - before) / 4, 'milliseconds of CPU a call').to.be.below(150)
        await until('the reason', () => agent.output.includes('the peer sent more than 16384 bytes before the handshake was done'))
        expect((await fetch(`http://127.0.0.1:${agent.statusPort}/healthz/ready`)).status).to.be.oneOf([200, 503])
      } finally {
        await agent.dispose()
        server.close()
      }
    })
})
