/** Many clients together send the HTTP servers of both commands more requests than they can answer. */
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { Agent } from '../harness/agent.ts'
import { OwnTime } from '../harness/own-time.ts'
import { send } from '../harness/raw-http.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

describe('the HTTP servers withstand 100 addresses with 4 connections each of', () => {
  const service = new Service()
  const agent = new Agent({})
  const open = new Set<Socket>()
  let isOver = true
  let answers = 0

  before(() => Promise.all([service.start(), agent.start()]))
  afterEach(() => {
    isOver = true
    for (const socket of open) socket.destroy()
    answers = 0
  })
  after(() => Promise.all([service.dispose(), agent.dispose()]))

  /** Keeps a connection full of requests, and opens it again when it is closed. */
  function flood(port: number, localAddress: string, bytes: string): void {
    if (isOver) return
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    const fill = () => {
      for (let writes = 0; writes < 4 && socket.write(bytes); writes++);
    }
    open.add(socket)
    socket
      .on('connect', fill)
      .on('drain', fill)
      .on('error', () => undefined)
    socket.on('data', () => answers++)
    socket.on('close', () => {
      open.delete(socket)
      setTimeout(() => flood(port, localAddress, bytes), 200)
    })
  }

  /** Asserts that a page is answered within a second while the others send a request again and again. */
  async function answered(port: number, page: string, status: number, request: string): Promise<void> {
    isOver = false
    for (let index = 0; index < 400; index++) flood(port, `127.77.${index % 100}.9`, request.repeat(64))
    await until('the first answers', () => answers > 500)
    let longest = 0
    for (let times = 0; times < 10; times++) {
      const watch = new OwnTime()
      expect(await send('127.0.0.1', port, { path: page, host: 'localhost' })).to.equal(status)
      longest = Math.max(longest, watch.ms())
    }
    expect(longest, 'the longest answer in milliseconds').to.be.below(1000)
  }

  it('forged tokens', async () => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = { iss: 'https://issuer.example', sub: 'system:serviceaccount:shop:shop', aud: ['istio-ca'], exp: 4_000_000_000 }
    const token = `${part({ alg: 'RS256', kid: 'a' })}.${part(claims)}.${Buffer.alloc(256, 7).toString('base64url')}`
    await answered(service.httpPort, '/ready', 200, `GET /debug/syncz HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  })

  it('scrapes and questions for readiness', async () => {
    const page = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
    await answered(agent.statusPort, '/healthz/ready', 503, page('/stats/prometheus') + page('/healthz/ready'))
  })
})
