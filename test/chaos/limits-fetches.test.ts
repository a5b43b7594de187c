/** What servers can cost that discovery asks for the keys of issuers and trust domains, and the agent for tokens and probes (docs/limits.md). */
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { expect } from 'chai'
import { costlyChain, costlyShapes } from '../../bench/costly-chain.ts'
import { freePort } from '../../bench/ports.ts'
import { Agent } from '../harness/agent.ts'
import { expectBounded } from '../harness/bounded-cost.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const bounds = { descriptors: 60 }

describe('a server that is asked', () => {
  const servers: { close(): unknown; closeAllConnections?(): void }[] = []
  const sockets: Socket[] = []
  const counts = { costly: 0, endless: 0 }
  const service = new Service()
  let costlyPort = 0
  let stsPort = 0
  let agent: Agent

  before(async () => {
    const costly = createTlsServer(costlyChain(costlyShapes.names, Date.now()))
    costly.on('tlsClientError', () => undefined).on('connection', () => counts.costly++)
    /** Answers each request with a body that never ends, as fast as it is read. */
    const endless = createServer((_, response) => {
      counts.endless++
      const piece = Buffer.alloc(65_536, 'a')
      const more = () => {
        while (!response.destroyed && response.write(piece));
      }
      response.on('error', () => undefined).on('drain', more)
      response.writeHead(200, { 'metadata-flavor': 'Google' })
      more()
    })
    const [first, second] = await Promise.all([costly, endless].map(listening))
    costlyPort = first as number
    stsPort = await freePort()
    service.env.PILOT_JWKS_ALLOWED_ADDRESSES = '127.0.0.1'
    service.env.JWT_RULE = JSON.stringify({ issuer: 'https://issuer.test', jwks_uri: `https://127.0.0.1:${costlyPort}/keys`, audiences: ['mesh-ca'] })
    const cloud = `http://127.0.0.1:${second}`
    agent = new Agent({
      flags: [`--stsPort=${stsPort}`],
      env: {
        CLOUD_METADATA: 'shop|42|east|us-east1-b',
        CLOUD_FEDERATED_TOKEN_URL: `${cloud}/federated`,
        CLOUD_ACCESS_TOKEN_URL: `${cloud}/access`,
        CREDENTIAL_FETCHER_TYPE: 'CloudComputeEngine',
        GCE_METADATA_HOST: `127.0.0.1:${second}`,
        MESH_ORCH_APP_PROBERS: JSON.stringify({ '/app-health/app/readyz': { httpGet: { port: costlyPort, scheme: 'HTTPS' }, timeoutSeconds: 10 } }),
      },
    })
  })
  after(async () => {
    for (const socket of sockets) socket.destroy()
    await agent.dispose()
    await service.dispose()
    for (const server of servers) {
      server.close()
      server.closeAllConnections?.()
    }
  })

  async function listening(server: Server): Promise<number> {
    servers.push(server)
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    return (server.address() as AddressInfo).port
  }

  it('for the keys of JWT_RULE and for bundles presents a costly chain: discovery answers others', async () => {
    service.env.SPIFFE_BUNDLE_ENDPOINTS = `other.test|https://127.0.0.1:${costlyPort}/bundle`
    await service.start()
    await expectBounded(service.pid, { port: service.httpPort, path: '/ready', status: 200 }, bounds, () =>
      until('it to be asked', () => counts.costly > 0),
    )
    await service.output.says(/https:\/\/127\.0\.0\.1:\d+\/bundle.*(the peer sent more than 32768 bytes|certificate signature failure)/)
  })

  it('for tokens by the agent (metadata, exchange) answers without an end: the agent does not read it all', async () => {
    await agent.start()
    await until('the metadata server to be asked', () => counts.endless > 0)
    const body = new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: 'token',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    }).toString()
    await expectBounded(agent.pid, { port: agent.statusPort, path: '/healthz/ready', status: 503 }, bounds, async () => {
      for (let count = 0; count < 10; count++) {
        const headers = { 'content-type': 'application/x-www-form-urlencoded' }
        expect(
          (await fetch(`http://127.0.0.1:${stsPort}/token`, { method: 'POST', headers, body: body.replace('=token&', `=${count}&`) })).status,
        ).to.equal(500)
      }
    })
    expect(agent.output).to.include('the answer is longer than 1048576 bytes')
  })

  it('by probes of the agent presents a costly chain: the agent answers others', async () => {
    const before = counts.costly
    await expectBounded(agent.pid, { port: agent.statusPort, path: '/healthz/ready', status: 503 }, bounds, async () => {
      const request = 'GET /app-health/app/readyz HTTP/1.1\r\nHost: localhost\r\n\r\n'
      for (let count = 0; count < 20; count++) {
        const socket = connect(agent.statusPort, '127.0.0.1', () => socket.write(request.repeat(10)))
        sockets.push(socket.on('error', () => undefined).resume())
      }
      await until('several probes', () => counts.costly > before + 10)
    })
  })
})
