/** Certificates from the certificate service of a cloud: the token is exchanged, and the service is called in its own form. */

import { createServer as createExchange, type Server } from 'node:http'
import { createServer as createCloud, type Http2Server, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { scanFields, textField } from '../../src/xds/slab/wire.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { AgentSecrets, workload } from '../harness/agent-secrets.ts'
import { SigningService } from '../harness/signing-service.ts'
import { until } from '../harness/until.ts'

const path = '/google.security.meshca.v1.MeshCertificateService/CreateCertificate'

interface Call {
  readonly headers: Readonly<Record<string, unknown>>
  readonly id: string
  readonly csr: string
  readonly seconds: number
}

describe('the certificate service of a cloud', () => {
  let at: AgentSecrets
  beforeEach(() => {
    at = new AgentSecrets()
  })
  afterEach(() => at.dispose())
  const signer = new SigningService(workload)
  const calls: Call[] = []
  const exchanged: Record<string, unknown>[] = []
  let [cloud, exchange]: [Http2Server, Server] = [createCloud(), createExchange()]
  let exchangeStatus = 200
  const portOf = (server: Http2Server | Server) => (server.address() as AddressInfo).port

  before(async () => {
    cloud = createCloud().on('stream', (stream, headers) => void serve(stream, headers))
    exchange = createExchange(async (request, response) => {
      exchanged.push(JSON.parse((await request.toArray()).join('')) as Record<string, unknown>)
      response.writeHead(exchangeStatus).end(JSON.stringify({ access_token: 'federated.secret', expires_in: 3600 }))
    })
    for (const server of [cloud, exchange]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  after(() => {
    cloud.close()
    exchange.close()
  })

  async function serve(stream: ServerHttp2Stream, headers: Readonly<Record<string, unknown>>): Promise<void> {
    const message = Buffer.concat(await stream.toArray()).subarray(5)
    const fields = new Map([...scanFields(message)].map(({ field, bytes }) => [field, bytes ?? Buffer.alloc(0)]))
    const [duration] = [...scanFields(fields.get(3) ?? Buffer.alloc(0))]
    const text = (field: number) => fields.get(field)?.toString() ?? ''
    const call = { headers, id: text(1), csr: text(2), seconds: Number(duration?.value) }
    calls.push(call)
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': headers[':path'] === path ? '0' : '12' }))
    stream.end(messageFrame(Buffer.concat(signer.chain(call.csr).map((pem) => textField(1, pem)))))
  }

  const start = (zone: string | undefined) =>
    at.agent(signer, {
      authority: {
        address: { host: '127.0.0.1', port: portOf(cloud), isPlain: true, serverName: '127.0.0.1' },
        credentials: { roots: { files: undefined, isPinned: true, learned: undefined }, tokenFile: at.path('token'), pair: undefined },
      },
      cloud: { federatedUrl: `http://127.0.0.1:${portOf(exchange)}/v1/token`, audience: 'identitynamespace:td:cluster', zone },
    })

  it('gets the exchanged token, an id of the request, the lifetime as a duration, and the zone', async () => {
    const state = await start('us-east1-b')
    await until('a certificate', () => state().identity === workload)
    expect(exchanged).to.deep.equal([
      {
        audience: 'identitynamespace:td:cluster',
        grantType: 'urn:ietf:params:oauth:grant-type:token-exchange',
        requestedTokenType: 'urn:ietf:params:oauth:token-type:access_token',
        subjectTokenType: 'urn:ietf:params:oauth:token-type:jwt',
        subjectToken: 'a.good.token',
        scope: 'https://www.googleapis.com/auth/cloud-platform',
      },
    ])
    const [call] = calls
    expect(call).to.deep.include({ seconds: 600 })
    expect(call?.id).to.match(/^[0-9a-f-]{36}$/)
    expect(call?.headers).to.deep.include({
      ':path': path,
      authorization: 'Bearer federated.secret',
      'x-goog-request-params': 'location=locations/us-east1-b',
    })
    expect(call?.headers).to.not.have.property('clusterid')
  })

  it('is not called when the token cannot be exchanged, and no token appears in the log', async () => {
    const before = calls.length
    exchangeStatus = 403
    const state = await start(undefined)
    await until('the failure', () => state().fault !== undefined)
    expect(state().fault).to.equal(`the token could not be exchanged: 127.0.0.1:${portOf(exchange)}: HTTP status 403`)
    expect(calls.length).to.equal(before)
    exchangeStatus = 200
    await until('a certificate', () => state().identity === workload)
    expect(calls.at(-1)?.headers).to.not.have.property('x-goog-request-params')
    expect(at.lines.join('\n')).to.not.match(/good\.token|federated\.secret/)
  })
})
