import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { HttpServer } from '../../actors/http/http-server.ts'
import { until } from '../harness/until.ts'

describe('the HTTP server', () => {
  const sockets: Socket[] = []
  const servers: HttpServer[] = []
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    await Promise.all(servers.splice(0).map((server) => server.close()))
  })

  /** Starts a server, and returns the requests that it has been asked to answer. */
  async function serving(answer: (request: IncomingMessage, response: ServerResponse) => void, connections = 8) {
    const asked: { readonly request: IncomingMessage; readonly response: ServerResponse }[] = []
    const server = new HttpServer(
      (request, response) => {
        asked.push({ request, response })
        answer(request, response)
      },
      { connections, requestMs: 60_000 },
    )
    servers.push(server)
    await server.listen('127.0.0.1', 0)
    return { server, asked }
  }

  function opened(server: HttpServer, bytes: string) {
    const socket = connect(server.port ?? 0, '127.0.0.1')
    sockets.push(socket)
    const client = { socket, came: '' }
    socket.on('data', (more) => (client.came += more.toString('latin1')))
    socket.on('error', () => undefined)
    socket.write(bytes, 'latin1')
    return client
  }

  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`

  it('answers the requests of a connection one after the other, in order', async () => {
    const { server, asked } = await serving(() => undefined)
    const client = opened(server, Array.from({ length: 2000 }, (_, index) => get(`/${index}`)).join(''))
    for (let index = 0; index < 20; index++) {
      await until('the next request', () => asked.length === index + 1)
      asked[index]?.response.end(`<${asked[index]?.request.url}>`)
    }
    await until('the answers', () => client.came.includes('</19>'))
    expect([...client.came.matchAll(/<\/(\d+)>/g)].map(([, index]) => Number(index))).to.deep.equal(Array.from({ length: 20 }, (_, index) => index))
  })

  it('lets other connections have their turn between the requests of one', async () => {
    const order: string[] = []
    const { server } = await serving((request, response) => {
      order.push(request.url ?? '')
      response.end()
    })
    const flood = opened(server, get('/many').repeat(2500))
    await until('the first answer', () => flood.came !== '')
    opened(server, get('/one'))
    await until('all answers', () => order.length === 2501)
    expect(order.indexOf('/one')).to.be.below(1500)
  })

  it('reads bodies that contain heads, and the requests behind them', async () => {
    const bodies: string[] = []
    const { server } = await serving(async (request, response) => {
      let body = ''
      for await (const bytes of request) body += bytes
      bodies.push(body)
      response.end()
    })
    const body = get('/no-request').repeat(3)
    const post = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const chunked = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\n\r\n'
    const bytes = post + post + chunked + get('/')
    const client = opened(server, '')
    for (let at = 0; at < bytes.length; at += 7) client.socket.write(bytes.slice(at, at + 7))
    await until('all bodies', () => bodies.length === 4)
    expect(bodies).to.deep.equal([body, body, 'x', ''])
    opened(server, bytes)
    await until('all bodies again', () => bodies.length === 8)
    expect(bodies.slice(4)).to.deep.equal([body, body, 'x', ''])
  })

  it('never has more than two requests of a connection, however they are cut', async () => {
    const { server, asked } = await serving(() => undefined)
    opened(server, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx'.repeat(1000))
    opened(server, 'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n'.repeat(1000))
    await until('requests', () => asked.length >= 2)
    await fetch(`http://127.0.0.1:${server.port}/`, { signal: AbortSignal.timeout(500) }).catch(() => undefined)
    expect(asked.length).to.be.within(3, 4)
  })

  it('ends a connection whose request is answered before its body is there', async () => {
    const { server } = await serving((_request, response) => void response.end('early'))
    const client = opened(server, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nx')
    await until('the end', () => client.socket.closed || client.socket.readableEnded)
    expect(client.came)
      .to.match(/^HTTP\/1\.1 200 /)
      .and.to.include('early')
  })

  it('notices that a client is gone while it answers', async () => {
    const { server, asked } = await serving(() => undefined)
    const client = opened(server, get('/'))
    await until('the request', () => asked.length === 1)
    let isClosed = false
    asked[0]?.response.once('close', () => (isClosed = true))
    client.socket.destroy()
    await until('the response to be closed', () => isClosed)
  })

  it('keeps a bounded number of unsent bytes: the response that is unread for longest gives way', async () => {
    const page = 'x'.repeat(30_000_000)
    const { server, asked } = await serving((_request, response) => void response.end(page), 100)
    const unread: Socket[] = []
    for (let index = 0; index < 5; index++) {
      const { socket } = opened(server, '')
      socket.pause()
      socket.write(get('/'))
      unread.push(socket)
      await until('the response to begin', () => asked.length === index + 1)
    }
    await until('the first three to be closed', () => asked.slice(0, 3).every(({ response }) => response.destroyed))
    expect(asked.slice(3).map(({ response }) => response.destroyed)).to.deep.equal([false, false])
    const answer = await fetch(`http://127.0.0.1:${server.port}/`)
    expect((await answer.text()).length).to.equal(page.length)
  })

  it('closes the connection of a client that is answered for longest when the client has half of all', async () => {
    const { server, asked } = await serving(() => undefined, 4)
    const clients: ReturnType<typeof opened>[] = []
    for (let index = 1; index <= 6; index++) {
      clients.push(opened(server, get('/')))
      await until('the request', () => asked.length === index)
    }
    await until('the oldest to be closed', () => clients.filter(({ socket }) => socket.closed).length === 4)
    expect(clients.map(({ socket }) => socket.closed)).to.deep.equal([true, true, true, true, false, false])
  })
})
