import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { askServer } from '../../actors/http/admin-request.ts'
import { callLocal } from '../../actors/http/local-call.ts'
import { ask } from '../../actors/http/single-request.ts'
import { freePort } from '../../bench/ports.ts'
import { until } from '../harness/until.ts'

const faultOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    (answer) => expect.fail(`it was answered: ${JSON.stringify(answer)}`),
    ({ message }: Error) => message,
  )

describe('a single HTTP request', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-single-'))
  const socketPath = join(dir, 'admin.sock')
  const open = new Set<Socket>()
  /** What the server writes when a request has arrived. */
  let reply = ''
  let received = ''
  const serve = (socket: Socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      received += data.toString()
      if (reply !== '') socket.write(reply)
    })
  }
  const servers = [createServer(serve), createServer(serve)] as const
  let port = 0
  before(async () => {
    await new Promise<void>((resolve) => servers[0].listen(0, '127.0.0.1', resolve))
    await new Promise<void>((resolve) => servers[1].listen(socketPath, resolve))
    port = (servers[0].address() as AddressInfo).port
  })
  beforeEach(() => {
    received = ''
  })
  afterEach(() => until('its connection to be closed', () => open.size === 0))
  after(() => {
    for (const server of servers) server.close()
    rmSync(dir, { recursive: true, force: true })
  })

  const bounds = { ms: 5000, bytes: 20 }
  const headers = { 'x-one': '1' }
  const get = (change: object = {}, within = bounds) => ask({ host: '127.0.0.1', port, path: '/page', headers, ...change }, within)

  it('has a connection of its own, and says how long its body is, whatever its method', async () => {
    reply = 'HTTP/1.1 201 Created\r\nx-two: 2\r\ncontent-length: 2\r\n\r\nok'
    const { status, headers: answered, body } = await get({ body: 'größer' })
    expect([status, answered['x-two'], body]).to.deep.equal([201, '2', 'ok'])
    expect(received).to.match(/^GET \/page HTTP\/1\.1\r\n/)
    for (const part of ['x-one: 1', 'content-length: 8', 'Connection: close', '\r\n\r\ngrößer']) expect(received).to.include(part)
  })

  it('goes to the host, the port and the path of a URL', async () => {
    reply = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
    await ask({ url: new URL(`http://127.0.0.1:${port}/a/b?c=d`) }, bounds)
    expect(received)
      .to.match(/^GET \/a\/b\?c=d HTTP\/1\.1\r\n/)
      .and.to.include(`Host: 127.0.0.1:${port}`)
  })

  it('fails for a longer answer, a late one, one that stands still, and one that is cut off', async () => {
    reply = `HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(21)}`
    expect(await faultOf(get())).to.equal('the answer is longer than 20 bytes')
    reply = 'HTTP/1.1 200 OK\r\n\r\nx'
    expect(await faultOf(get({}, { ms: 50, bytes: 20 }))).to.equal('no answer within 50 ms')
    expect(await faultOf(get({ timeout: 50 }, { ms: Number.POSITIVE_INFINITY, bytes: 20 }))).to.equal('no answer within 50 ms')
    reply = ''
    expect(await faultOf(get({}, { ms: 50, bytes: 20 }))).to.equal('no answer within 50 ms')
    const cut = faultOf(get())
    await until('its request', () => received.split('GET').length === 6)
    for (const socket of open) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx')
    expect(await cut).to.equal('aborted')
  })

  it('fails where the other side changes the protocol, also over the admin socket and to a port of this machine', async () => {
    reply = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: other\r\nconnection: upgrade\r\n\r\n'
    expect(await faultOf(get())).to.equal('HTTP status 101')
    const page = { method: 'GET', path: '/page' }
    expect(await faultOf(askServer(page, { MESHD_ADMIN_SOCKET: socketPath }))).to.equal(`${socketPath}: HTTP status 101`)
    expect(await faultOf(callLocal({ ...page, port }, 5000))).to.equal(`localhost:${port}: HTTP status 101`)
  })

  it('says that nobody listens', async () => {
    const free = await freePort()
    expect(await faultOf(callLocal({ method: 'GET', path: '/', port: free }, 5000))).to.equal(`localhost:${free}: no process listens there`)
  })
})
