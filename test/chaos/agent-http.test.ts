/** Hostile bytes at the agent's HTTP servers, which must answer the next request. */
import { connect } from 'node:net'
import { expect } from 'chai'
import fc from 'fast-check'
import { actor as status } from '../../actors/agent/status/status-server.ts'
import { actor as tokens } from '../../actors/agent/sts/token-service.ts'
import { startActor } from '../harness/actor.ts'

/** Sends bytes, and resolves with the answer when the connection closes. The client ends its side first unless `isClosedThere`. */
function send(port: number, pieces: readonly (string | Uint8Array)[], isClosedThere = false): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let answer = ''
    socket.on('data', (bytes) => {
      answer += bytes.toString('latin1')
    })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(answer))
    for (const piece of pieces) socket.write(piece)
    if (!isClosedThere) socket.end()
  })
}

describe('the HTTP servers of the agent', () => {
  const stops: (() => unknown)[] = []
  let ports: { status: number; tokens: number }

  before(async () => {
    const probes = { '/app-health/a/readyz': { httpGet: { port: 1 } } }
    const common = { isIpv6Only: false }
    const one = await startActor(status, {
      ...common,
      port: 0,
      adminPort: 1,
      prometheusPort: 1,
      application: undefined,
      probes,
      workloadProbe: undefined,
    })
    const other = await startActor(tokens, { ...common, port: 0, plugin: { fault: 'none' } })
    stops.push(
      () => one.drain?.(),
      () => other.drain?.(),
    )
    const portOf = (asks: unknown) => (asks as { state(): { port: number } }).state().port
    ports = { status: portOf(one.asks), tokens: portOf(other.asks) }
  })
  after(() => Promise.all(stops.map((stop) => stop())))

  async function stillAnswers(): Promise<void> {
    const request = 'Host: localhost\r\nConnection: close\r\n\r\n'
    expect(await send(ports.status, [`GET /healthz/ready HTTP/1.1\r\n${request}`], true)).to.match(/^HTTP\/1\.1 503 /)
    expect(await send(ports.tokens, [`GET /stsStatus HTTP/1.1\r\n${request}`], true)).to.match(/^HTTP\/1\.1 200 /)
  }

  it('answer the next request after arbitrary bytes', async () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.string({ maxLength: 300, unit: fc.constantFrom('\r\n', ':', ' ', 'GET', '/', 'HTTP/1.1', 'a', '\0') }),
    )
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('status' as const, 'tokens' as const), fc.array(bytes, { maxLength: 4 }), async (which, pieces) => {
        await send(ports[which], pieces)
      }),
    )
    await stillAnswers()
  })

  it('answer the next request after arbitrary methods, paths and headers', async () => {
    const part = fc.string({ maxLength: 60, unit: fc.constantFrom('a', '/', '%', '.', '?', '#', '@', ':', '[', ']', '\\', ';', '\u00e4', '"') })
    const paths = fc.oneof(
      part.map((text) => `/${text}`),
      fc.constantFrom(
        '*',
        '//',
        'http://[',
        '/healthz/ready/../x',
        '/app-health/a/readyz',
        '/app-health/__proto__/readyz',
        '/stats/prometheus?%',
        '/token',
        '/quitquitquit',
      ),
    )
    const methods = fc.constantFrom('GET', 'POST', 'PUT', 'HEAD', 'OPTIONS', 'CONNECT', 'TRACE', 'PRI')
    const headers = fc.constantFrom(
      'Upgrade: h2c',
      'Expect: 100-continue',
      'Transfer-Encoding: chunked',
      'Content-Length: 99999999999999',
      'X-Prometheus-Scrape-Timeout-Seconds: -1e9',
      'X: y',
    )
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('status' as const, 'tokens' as const), methods, paths, headers, async (which, method, path, header) => {
        await send(ports[which], [`${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${header}\r\n\r\n`])
      }),
    )
    await stillAnswers()
  })

  it('answer 400 and 431 to requests that are too large, and go on after requests without an end', async () => {
    const form = 'POST /token HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n'
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
    const tooLarge = await send(ports.tokens, [`${form}Transfer-Encoding: chunked\r\n\r\n`, chunk, chunk, chunk], true)
    expect(tooLarge)
      .to.match(/^HTTP\/1\.1 400 /)
      .and.to.include('more than 65536 bytes')
    expect(await send(ports.status, [`GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'y'.repeat(100_000)}`], true)).to.match(/^HTTP\/1\.1 431 /)
    expect(
      await send(
        ports.status,
        Array.from({ length: 200 }, () => 'GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n'),
      ),
    ).to.match(/^HTTP\/1\.1 404 /)
    await stillAnswers()
  })
})
