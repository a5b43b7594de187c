import { connect } from 'node:net'
import { expect } from 'chai'
import { Page, type PageRequest, PageServer } from '../../actors/http/page-server.ts'
import { mediaTypes } from '../../actors/runtime/metrics-format.ts'
import { freePort } from '../../bench/ports.ts'
import { textOf } from '../harness/page-text.ts'
import { until } from '../harness/until.ts'

describe('the page server', () => {
  const server = new PageServer()
  let base = ''
  let port = 0
  before(async () => {
    server.add('/plain', async ({ parameters }) => new Page(`hello ${(await parameters()).get('name') ?? 'ö'}`))
    const form = async ({ parameters }: PageRequest) => new Page((await parameters()).get('name') ?? '')
    server.add('/form', { get: form, post: form })
    server.add('/act', { post: form })
    server.add('/broken', () => Promise.reject(new Error('it broke')))
    port = await freePort()
    base = `http://127.0.0.1:${port}`
    await server.listen('127.0.0.1', port)
  })
  after(() => server.close())

  it('escapes what a terminal obeys in pages of any type, and nothing in metrics', async () => {
    const odd = 'a\u202eb\u001bc\u0085d\u200be\n\tf'
    const shown = 'a\\u202eb\\u001bc\\u0085d\\u200be\n\tf'
    for (const type of [undefined, 'text/html; charset=utf-8', 'application/json; charset=utf-8']) {
      server.add('/odd', () => new Page(odd, type))
      expect(await textOf(await fetch(`${base}/odd`)), type).to.equal(shown)
    }
    for (const type of Object.values(mediaTypes)) {
      server.add('/odd', () => new Page(odd, type))
      expect(await (await fetch(`${base}/odd`)).text(), type).to.equal(odd)
    }
  })

  it('answers pages and forms, and rejects other paths and methods', async () => {
    const ask = async (path: string, init?: RequestInit) => {
      const answer = await fetch(base + path, init)
      return [answer.status, await textOf(answer)]
    }
    const form = { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' } }
    expect(await ask('/plain')).to.deep.equal([200, 'hello ö'])
    expect(await ask('/plain?name=a%20b&x=%ff')).to.deep.equal([200, 'hello a b'])
    expect(await ask('/plain', { method: 'HEAD' })).to.deep.equal([200, ''])
    expect(await ask('/form', { ...form, body: `name=${'x'.repeat(100_000)}` })).to.deep.equal([200, 'x'.repeat(100_000)])
    expect((await ask('/plain', { ...form, body: 'name=a' }))[0]).to.equal(405)
    expect((await ask('/form', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }))[0]).to.equal(415)
    expect((await ask('/form', { ...form, body: 'x'.repeat(1_100_000) }))[0]).to.equal(413)
    expect(await ask('/act?name=a', { method: 'POST' })).to.deep.equal([200, 'a'])
    expect(await ask('/act?name=a')).to.deep.equal([405, 'method GET is not allowed here; allowed: POST'])
    for (const [path, allowed] of [
      ['/plain', 'GET'],
      ['/form', 'GET, POST'],
      ['/act', 'POST'],
    ])
      expect((await fetch(base + path, { method: 'DELETE' })).headers.get('allow')).to.equal(allowed)
    expect((await ask('/nothing'))[0]).to.equal(404)
    expect(await ask('/broken')).to.deep.equal([500, 'it broke'])
  })

  it('rejects what is not HTTP, survives disconnecting clients, and reports an address in use', async () => {
    const raw = (bytes: string) =>
      new Promise<string>((resolve) => {
        const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
        let answer = ''
        socket.on('data', (chunk) => (answer += chunk))
        socket.on('close', () => resolve(answer))
        socket.on('error', () => resolve(answer))
      })
    expect(await raw('\u0000\u0001 nothing\r\n\r\n')).to.match(/^HTTP\/1\.1 400 /)
    expect(await raw('FOO / HTTP/1.1\r\n\r\n'))
      .to.match(/^HTTP\/1\.1 400 /)
      .and.to.match(/\r\n\r\nthe request cannot be read: Invalid method encountered\n$/)
    expect(await raw('GET //[ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')).to.match(/^HTTP\/1\.1 40\d /)
    const gone = connect(port, '127.0.0.1', () => gone.resetAndDestroy())
    gone.on('error', () => {})
    expect(await textOf(await fetch(`${base}/plain`))).to.equal('hello ö')
    const other = new PageServer()
    const refused = await other.listen('127.0.0.1', port).catch((error: NodeJS.ErrnoException) => error.code)
    expect(refused).to.equal('EADDRINUSE')
  })

  it('has a front page of the pages that say what they are about, as HTML for browsers', async () => {
    expect((await fetch(`${base}/`)).status).to.equal(404)
    server.add('/plain', () => new Page('hello ö'), 'a greeting & more')
    expect(await (await fetch(`${base}/`)).text()).to.equal('/plain       a greeting & more\n')
    const html = await fetch(`${base}/`, { headers: { accept: 'text/html,*/*' } })
    expect([html.headers.get('content-type'), await html.text()]).to.satisfy(
      ([type, text]: [string, string]) =>
        type === 'text/html; charset=utf-8' && text.includes('<a href="/plain">/plain</a></td><td>a greeting &#38; more'),
    )
  })

  it('shows text and JSON to browsers with a way back, and nothing in them is HTML', async () => {
    server.add('/debug', () => new Page('above'), 'what is above')
    server.add('/debug/odd', () => new Page('{"a": "<b>&"}', 'application/json; charset=utf-8', 503))
    const shown = await fetch(`${base}/debug/odd`, { headers: { accept: 'text/html' } })
    const { status, headers } = shown
    expect([status, headers.get('content-type'), headers.get('content-security-policy')]).to.deep.equal([
      503,
      'text/html; charset=utf-8',
      "default-src 'none'",
    ])
    expect(await shown.text()).to.contain('<a href="/">/</a> | <a href="/debug">/debug</a></p><pre>{"a": "&#60;b&#62;&#38;"}</pre>')
    expect(await textOf(await fetch(`${base}/debug/odd`))).to.equal('{"a": "<b>&"}')
  })

  it('closes connections beyond its limit, and reports each', async () => {
    let refused = 0
    const small = new PageServer({ maxConnections: 1, refused: () => refused++ })
    const at = await freePort()
    await small.listen('127.0.0.1', at)
    const sockets = Array.from({ length: 3 }, () => connect(at, '127.0.0.1'))
    let closed = 0
    for (const socket of sockets) socket.on('error', () => {}).on('close', () => closed++)
    await until('two of them to be closed', () => refused === 2 && closed === 2)
    for (const socket of sockets) socket.destroy()
    await small.close()
  })
})
