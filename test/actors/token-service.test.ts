import { createServer, type IncomingMessage, type RequestListener, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { actor } from '../../actors/agent/sts/token-service.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { LogRecord } from '../../protocols/messages/log.ts'
import type { ExchangedToken, TokenServiceConfig, TokenServiceState } from '../../protocols/messages/sts.ts'
import { formType } from '../../src/sts/token-request.ts'
import { startActor } from '../harness/actor.ts'
import { until } from '../harness/until.ts'

const form = (changes: Record<string, string> = {}) =>
  new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: 'subject.token.secret',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    ...changes,
  }).toString()

describe('the token service', () => {
  const actors: Behaviour<never>[] = []
  const servers: { close(): unknown; closeAllConnections(): void }[] = []
  let logged: LogRecord[] = []
  let registry = new MetricRegistry()
  /** Requests to the cloud: path, authorization, body. */
  let came: { path: string; authorization: string | undefined; body: Record<string, unknown> }[] = []

  beforeEach(() => {
    logged = []
    came = []
    registry = new MetricRegistry()
  })
  afterEach(async () => {
    // No token is in a log, in any test.
    expect(JSON.stringify(logged)).not.to.include('secret')
    await Promise.all(actors.splice(0).map((started) => started.drain?.()))
    for (const server of servers.splice(0)) {
      server.close()
      server.closeAllConnections()
    }
  })

  const federated = '{"access_token":"federated-secret","expires_in":3600}'
  const access = '{"accessToken":"access-secret"}'
  /** A cloud whose endpoints both issue tokens, unless there is a `listener`. */
  async function cloud(listener?: RequestListener): Promise<string> {
    const server = createServer(async (incoming, response) => {
      const body = JSON.parse(await text(incoming)) as Record<string, unknown>
      came.push({ path: incoming.url ?? '', authorization: incoming.headers.authorization, body })
      if (listener) listener(incoming, response)
      else response.end(incoming.url === '/federated' ? federated : access)
    })
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  async function start(plugin: TokenServiceConfig['plugin'] | string, changes: Partial<TokenServiceConfig> = {}) {
    const given = typeof plugin === 'string' ? { federatedUrl: `${plugin}/federated`, accessUrl: `${plugin}/access`, audience: 'aud' } : plugin
    const config: TokenServiceConfig = { port: 0, isIpv6Only: false, plugin: given, ...changes }
    const started = await startActor(actor, config, { logged: (record) => logged.push(record), metrics: registry })
    actors.push(started)
    const asks = started.asks as { state(): TokenServiceState; exchange(token: string): Promise<ExchangedToken> }
    return { port: asks.state().port ?? 0, asks }
  }
  interface Sent {
    readonly method?: string
    readonly type?: string
    readonly headers?: Record<string, string>
    readonly host?: string
  }
  function send(
    port: number,
    body: string,
    { method = 'POST', type = 'application/x-www-form-urlencoded', headers = {}, host = '127.0.0.1' }: Sent = {},
    path = '/token',
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string; headers: IncomingMessage['headers'] }>()
    const outgoing = request({ host, port, path, method, agent: false, headers: { 'content-type': type, ...headers } }, (response) => {
      text(response).then((answer) => resolve({ status: response.statusCode ?? 0, body: answer, headers: response.headers }), reject)
    })
    outgoing.on('error', reject)
    outgoing.end(body)
    return promise
  }
  const counted = (name: string) => registry.collect().find((family) => family.name === name)?.series[0]?.values[0]

  it("exchanges the workload's token in two steps, and caches the result for the same token", async () => {
    const { port, asks } = await start(await cloud())
    const answer = await send(port, form({ scope: 'cloud' }))
    expect(answer.status).to.equal(200)
    expect(answer.headers).to.include({ 'content-type': 'application/json', 'cache-control': 'no-store' })
    const { expires_in: seconds, ...rest } = JSON.parse(answer.body) as Record<string, unknown>
    expect(seconds).to.be.within(3590, 3600)
    const type = 'urn:ietf:params:oauth:token-type:access_token'
    expect(rest).to.deep.equal({ access_token: 'access-secret', issued_token_type: type, token_type: 'Bearer', scope: '', refresh_token: '' })
    expect(came).to.have.lengthOf(2)
    expect(came[0]).to.include({ path: '/federated', authorization: undefined })
    expect(came[0]?.body).to.include({ audience: 'aud', subjectToken: 'subject.token.secret', scope: 'cloud' })
    expect(came[1]).to.include({ path: '/access', authorization: 'Bearer federated-secret' })
    expect((await send(port, form({ scope: 'cloud' }))).body).to.include('access-secret')
    expect(came).to.have.lengthOf(2)
    await send(port, form({ scope: 'cloud', subject_token: 'other.secret' }))
    expect(came).to.have.lengthOf(4)
    expect(await asks.exchange('subject.token.secret')).to.include({ token: 'access-secret' })
    expect(came).to.have.lengthOf(6)
    const { tokens } = JSON.parse((await send(port, '', {}, '/stsStatus')).body) as { tokens: { token_type: string; token: string }[] }
    expect(tokens.map(({ token_type }) => token_type)).to.include.members(['federated token', 'access token'])
    expect(new Set(tokens.map(({ token }) => token))).to.deep.equal(new Set(['']))
    expect([counted('num_outgoing_requests'), counted('num_outgoing_retries'), counted('num_failed_outgoing_requests')]).to.deep.equal([6, 0, 0])
  })

  it('exchanges once for concurrent requests', async () => {
    const { port } = await start(await cloud())
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(port, form())))
    expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]))
    expect(came).to.have.lengthOf(2)
  })

  it('ends an exchange when nobody waits for it any more, and makes another one for the next request', async () => {
    let isSilent = true
    let ended = 0
    const base = await cloud((incoming, response) => {
      if (!isSilent) return void response.end(incoming.url === '/federated' ? federated : access)
      response.on('close', () => ended++)
    })
    const { port } = await start(base)
    const leave = [new AbortController(), new AbortController()]
    const asked = leave.map(({ signal }) =>
      fetch(`http://127.0.0.1:${port}/token`, { method: 'POST', body: form(), headers: { 'content-type': formType }, signal }).catch(() => 'left'),
    )
    await until('the exchange to begin', () => came.length === 1)
    leave[0]?.abort()
    expect(await asked[0]).to.equal('left')
    expect(ended).to.equal(0)
    leave[1]?.abort()
    await until('the exchange to end', () => ended === 1)
    isSilent = false
    expect((await send(port, form())).body).to.include('access-secret')
    expect(came.map(({ path }) => path)).to.deep.equal(['/federated', '/federated', '/access'])
    expect(counted('num_outgoing_retries')).to.equal(0)
  })

  it('ends its exchanges when it ends', async () => {
    let ended = 0
    const base = await cloud((_, response) => void response.on('close', () => ended++))
    const { asks } = await start(base)
    const asked = asks.exchange('subject.token.secret').catch((error: Error) => error.message)
    await until('the exchange to begin', () => came.length === 1)
    await actors.pop()?.drain?.()
    expect(await asked).to.match(/the caller no longer waits/)
    await until('the call to end', () => ended === 1)
    expect(came).to.have.lengthOf(1)
  })

  it('retries temporary failures, and not refusals', async () => {
    let status = 503
    const base = await cloud((_, response) => void response.writeHead(status).end('subject.token.secret'))
    const { port } = await start(base)
    const failed = await send(port, form())
    expect(failed.status).to.equal(500)
    const { error, error_description: description } = JSON.parse(failed.body) as Record<string, string>
    expect(error).to.equal('invalid_target')
    expect(description).to.match(/^127\.0\.0\.1:\d+: HTTP status 503$/)
    expect(came).to.have.lengthOf(5)
    expect([counted('num_outgoing_requests'), counted('num_outgoing_retries'), counted('num_failed_outgoing_requests')]).to.deep.equal([5, 4, 5])
    status = 403
    expect((await send(port, form())).body).to.include('HTTP status 403')
    expect(came).to.have.lengthOf(6)
    const requests = logged.filter(({ scope }) => scope === 'stsclient').map(({ message }) => message.replace(/:\d+/, ''))
    expect([requests.length, requests[4], requests[5]]).to.deep.equal([
      6,
      'attempt 5 of 5 at 127.0.0.1 failed: HTTP status 503',
      'attempt 1 of 5 at 127.0.0.1 failed: HTTP status 403',
    ])
  })

  const answers: readonly [what: string, body: string | undefined, expected: RegExp][] = [
    ['no JSON', 'access-secret', /the answer is not JSON/],
    ['no token', '{"other":"access-secret"}', /the answer has no access_token/],
    ['too much', ' '.repeat(70_000), /more than 65536 bytes/],
    ['a broken connection', undefined, /socket hang up|ECONNRESET/],
  ]
  for (const [what, body, expected] of answers)
    it(`reports that the cloud answered ${what}`, async () => {
      const base = await cloud((incoming, response) => void (body === undefined ? incoming.socket.destroy() : response.end(body)))
      const { port } = await start(base)
      const answer = await send(port, form())
      expect(answer.status).to.equal(500)
      expect(answer.body).to.match(expected).and.not.include('secret')
    })

  it('rejects invalid requests with the reason', async () => {
    const { port } = await start(await cloud())
    const refused = async (sent: Promise<{ status: number; body: string }>) => {
      const { status, body } = await sent
      const { error, error_description: description, error_uri: uri } = JSON.parse(body) as Record<string, string>
      expect({ status, error, uri }).to.deep.equal({ status: 400, error: 'invalid_request', uri: '' })
      return description
    }
    expect(await refused(send(port, '', { method: 'GET' }))).to.include('POST, not GET')
    expect(await refused(send(port, form(), { type: 'application/json' }))).to.include('content type')
    expect(await refused(send(port, form(), { type: 'application/x-www-form-urlencoded; charset=utf-8' }))).to.include('content type')
    expect(await refused(send(port, form({ subject_token: '' })))).to.include('subject_token is empty')
    expect(await refused(send(port, form({ grant_type: 'x' })))).to.include('grant_type')
    expect((await send(port, form({ scope: 'x'.repeat(100_000) })).catch(() => ({ status: 400 }))).status).to.equal(400)
    expect((await send(port, '', {}, '/other')).status).to.equal(404)
    expect(came).to.deep.equal([])
  })

  it('refuses cross-site requests and connections that the sidecar forwards', async () => {
    const { port } = await start(await cloud())
    const strange: Record<string, string>[] = [{ host: 'evil.test' }, { origin: 'http://evil.test' }, { 'sec-fetch-site': 'cross-site' }]
    for (const headers of strange)
      for (const path of ['/token', '/stsStatus']) expect((await send(port, form(), { headers }, path)).status).to.equal(403)
    const socket = connect({ host: '127.0.0.1', port, localAddress: '127.0.0.6' })
    socket.write('GET /stsStatus HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    expect(await text(socket)).to.match(/^HTTP\/1\.1 403 /)
    expect(came).to.deep.equal([])
  })

  it('reports why tokens cannot be exchanged, at its start and to each request', async () => {
    const { port, asks } = await start({ fault: 'no plugin of this name' })
    expect(logged.filter(({ level }) => level === 'warn').map(({ message }) => message)).to.deep.equal([
      'tokens cannot be exchanged: no plugin of this name',
    ])
    const answer = await send(port, form())
    expect(answer.status).to.equal(500)
    expect(JSON.parse(answer.body)).to.deep.equal({ error: 'invalid_target', error_description: 'no plugin of this name', error_uri: '' })
    expect(await asks.exchange('x').catch((error: Error) => error.message)).to.equal('no plugin of this name')
  })

  it('listens on the loopback address of the available family, or not at all', async () => {
    const base = await cloud()
    expect((await send((await start(base, { isIpv6Only: true })).port, form(), { host: '::1' })).status).to.equal(200)
    registry = new MetricRegistry()
    const { port, asks } = await start(base, { port: undefined })
    expect(port).to.equal(0)
    expect(await asks.exchange('subject.token.secret')).to.include({ token: 'access-secret' })
    registry = new MetricRegistry()
    const taken = (await start(base)).port
    registry = new MetricRegistry()
    const fault = await start(base, { port: taken }).catch((error: Error) => error.message)
    expect(fault).to.match(new RegExp(`^--stsPort ${taken}: .*EADDRINUSE`))
  })
})
