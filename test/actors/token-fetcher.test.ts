/** Tokens that the agent fetches itself. */
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { FetcherConfig } from '../../protocols/messages/agent.ts'
import { AgentSecrets } from '../harness/agent-secrets.ts'
import { until } from '../harness/until.ts'

/** Returns a token that is valid for the given number of seconds. */
const token = (name: string, seconds: number) =>
  `e30.${Buffer.from(JSON.stringify({ name, exp: Math.floor(Date.now() / 1000) + seconds })).toString('base64url')}.s`

describe('a token of a metadata server', () => {
  let at: AgentSecrets
  let server: Server
  let answer: (request: IncomingMessage, response: ServerResponse) => void
  const seen: { url: string | undefined; flavor: unknown }[] = []
  beforeEach(async () => {
    at = new AgentSecrets()
    seen.length = 0
    server = createServer((request, response) => {
      seen.push({ url: request.url, flavor: request.headers['metadata-flavor'] })
      answer(request, response)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  afterEach(async () => {
    await at.dispose()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const give = (text: string) => {
    answer = (_, response) => response.writeHead(200, { 'Metadata-Flavor': 'Google' }).end(text)
  }
  const fetcher = (): FetcherConfig => ({
    from: 'cloud',
    metadataHost: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    audience: 'cluster.local',
    tokenFile: at.path('tokens/fetched'),
  })

  it('is fetched before the first call, sent with it, and written readable for the group', async () => {
    const service = await at.authority()
    const fetched = token('first', 3600)
    give(`${fetched}\n`)
    const state = await at.agent(service, { authority: at.connection(service, { tokenFile: at.path('tokens/fetched') }) }, { fetcher: fetcher() })
    await until('a certificate', () => state().notAfter !== undefined)
    expect(service.calls.map(({ headers }) => headers.authorization)).to.deep.equal([`Bearer ${fetched}`])
    expect(seen).to.deep.equal([
      { url: '/computeMetadata/v1/instance/service-accounts/default/identity?audience=cluster.local&format=full', flavor: 'Google' },
    ])
    expect([at.read('tokens/fetched'), statSync(at.path('tokens/fetched')).mode & 0o777]).to.deep.equal([fetched, 0o640])
    expect(at.lines.join('\n')).not.to.include(fetched.slice(4, 30))
    expect(at.scopes).to.include('cloudcred')
  })

  it('is replaced before it expires', async () => {
    const next = token('second', 3600)
    answer = (_, response) => response.writeHead(200, { 'Metadata-Flavor': 'Google' }).end(seen.length === 1 ? token('first', 2) : next)
    await at.start({ fetcher: fetcher() })
    await until('the second', () => at.read('tokens/fetched') === next)
    expect(seen).to.have.length(2)
  })

  it('is fetched again after any failure, while an existing token is used', async () => {
    const service = await at.authority()
    const large = 'x'.repeat(1_100_000)
    const answers: [(response: ServerResponse) => void, RegExp][] = [
      [(response) => response.writeHead(404).end(), /HTTP status 404/],
      [(response) => response.writeHead(200).end('a.b.c'), /the answer is not that of a metadata server/],
      [(response) => response.writeHead(200, { 'metadata-flavor': 'Google' }).end('two words'), /the answer is not a token/],
      [(response) => response.writeHead(200, { 'metadata-flavor': 'Google' }).end(token('old', -5)), /has expired/],
      [(response) => response.writeHead(200, { 'metadata-flavor': 'Google' }).end(large), /longer than 1048576 bytes/],
      [(response) => response.destroy(), /socket hang up/],
    ]
    let turn = 0
    answer = (_, response) => answers[Math.min(turn++, answers.length - 1)]?.[0](response)
    const state = await at.agent(service, {}, { fetcher: fetcher() })
    await until('a certificate', () => state().notAfter !== undefined)
    await until('all answers', () => turn >= answers.length)
    give(token('good', 3600))
    await until('a token', () => existsSync(at.path('tokens/fetched')))
    for (const [, reason] of answers) expect(at.lines.join('\n')).to.match(reason)
    expect(service.calls[0]?.headers.authorization).to.equal('Bearer a.good.token')
  })

  it('is sent at once when it arrives late, whatever the retry delay', async () => {
    const service = await at.authority()
    service.answer = () =>
      service.calls.at(-1)?.headers.authorization === undefined ? { code: 16, message: 'no token', retryAfterMs: 600_000 } : undefined
    let isThere = false
    const fetched = token('first', 3600)
    answer = (_, response) => (isThere ? response.writeHead(200, { 'Metadata-Flavor': 'Google' }).end(fetched) : response.writeHead(503).end())
    const state = await at.agent(service, { authority: at.connection(service, { tokenFile: at.path('tokens/fetched') }) }, { fetcher: fetcher() })
    await until('the refusal', () => state().fault === 'no token')
    isThere = true
    await until('a certificate', () => state().notAfter !== undefined)
    expect(service.calls).to.have.length(2)
  })

  it('is sent although it cannot be written', async () => {
    const service = await at.authority()
    mkdirSync(at.path('tokens/fetched'), { recursive: true })
    give('an.opaque.token')
    const state = await at.agent(service, { authority: at.connection(service, { tokenFile: at.path('tokens/fetched') }) }, { fetcher: fetcher() })
    await until('a certificate', () => state().notAfter !== undefined)
    expect(service.calls[0]?.headers.authorization).to.equal('Bearer an.opaque.token')
    expect(at.lines.join('\n')).to.match(/the fetched token or roots could not be written: .*EISDIR/)
  })
})
