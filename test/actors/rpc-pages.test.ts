/** Bounds of RPCs over HTTP/1.1: time, size and number, as on the gRPC ports. */
import { request } from 'node:http'
import { expect } from 'chai'
import { PageServer } from '../../actors/http/page-server.ts'
import { freePort } from '../../bench/ports.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { textService } from '../harness/text-service.ts'
import { until } from '../harness/until.ts'

describe('RPCs over HTTP/1.1', () => {
  const server = new PageServer()
  const waiting: { readonly signal: AbortSignal; readonly answer: (text: string) => void }[] = []
  const failed: unknown[] = []
  let port = 0

  before(async () => {
    const bounds = { timeLimit: 10_000, requestBytes: 100, concurrent: 2 }
    const held = (_: string, { signal }: { signal: AbortSignal }) => new Promise<string>((answer) => waiting.push({ signal, answer }))
    server.addRpcs(
      textService(
        {
          Echo: { bounds, answer: (text) => text },
          Wait: { bounds, answer: held },
          Late: { bounds: { ...bounds, timeLimit: 300 }, answer: held },
          Break: { bounds, answer: () => Promise.reject(new Error('the reason is ours')) },
        },
        (_, error) => failed.push((error as Error).message),
      ),
      () => undefined,
    )
    port = await freePort()
    await server.listen('127.0.0.1', port)
  })
  after(() => server.close())

  /** Begins a call by Connect in JSON. */
  const begin = (method: string, body = '"a"', headers: Record<string, string> = {}) => {
    const { promise, resolve } = Promise.withResolvers<[status: number | undefined, body: string, pushback: unknown]>()
    const path = `/t.T/${method}`
    const asked = request({
      host: '127.0.0.1',
      port,
      path,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      agent: false,
    })
    asked.on('response', (answer) => {
      let text = ''
      answer.on('data', (bytes) => (text += bytes)).on('end', () => resolve([answer.statusCode, text, answer.headers['grpc-retry-pushback-ms']]))
    })
    asked.on('error', () => resolve([0, '', undefined]))
    asked.end(body)
    return { ended: promise, cancel: () => asked.destroy() }
  }

  it('are answered, and errors are only logged', async () => {
    expect((await begin('Echo').ended).slice(0, 2)).to.deep.equal([200, '"a"'])
    expect((await begin('Break').ended).slice(0, 2)).to.deep.equal([500, '{"code":"internal","message":"internal error"}'])
    expect(failed).to.deep.equal(['the reason is ours'])
  })

  it('whose message cannot be read are the fault of their client in every protocol', async () => {
    const unreadable = Buffer.from([0x0a, 0xff])
    const ask = (type: string, body: Buffer) =>
      fetch(`http://127.0.0.1:${port}/t.T/Echo`, { method: 'POST', headers: { 'content-type': type }, body: Uint8Array.from(body) })
    const byConnect = await ask('application/proto', unreadable)
    expect([byConnect.status, await byConnect.json()]).to.deep.equal([
      400,
      { code: 'invalid_argument', message: 'the request cannot be read: premature EOF' },
    ])
    const byWeb = await ask('application/grpc-web+proto', messageFrame(unreadable))
    const trailers = Buffer.from(await byWeb.arrayBuffer())
    expect([byWeb.status, trailers.readUInt8(), trailers.readUInt32BE(1)]).to.deep.equal([200, 0x80, trailers.length - 5])
    expect(trailers.toString('latin1', 5).split('\r\n')).to.include.members([
      'grpc-status: 3',
      `grpc-message: ${encodeURIComponent('the request cannot be read: premature EOF')}`,
    ])
  })

  it('are limited in size', async () => {
    expect((await begin('Echo', JSON.stringify('x'.repeat(98))).ended)[0]).to.equal(200)
    expect((await begin('Echo', JSON.stringify('x'.repeat(99))).ended).slice(0, 2)).to.deep.equal([
      429,
      '{"code":"resource_exhausted","message":"the request is larger than 100 bytes"}',
    ])
  })

  it('are limited in number until they are answered, also if their client is gone', async () => {
    const [one, other] = [begin('Wait'), begin('Wait')]
    await until('both', () => waiting.length === 2)
    const [status, body, pushback] = await begin('Wait').ended
    expect([status, JSON.parse(body).code]).to.deep.equal([429, 'resource_exhausted'])
    expect(Number(pushback)).to.be.within(500, 1500)
    one.cancel()
    await until('it to hear that nobody waits', () => waiting[0]?.signal.aborted === true)
    expect((await begin('Wait').ended)[0], 'while the work goes on').to.equal(429)
    for (const { answer } of waiting.splice(0)) answer('done')
    expect((await other.ended)[1]).to.equal('"done"')
    const third = begin('Wait')
    await until('the next', () => waiting.length === 1)
    waiting.pop()?.answer('third')
    expect((await third.ended)[1]).to.equal('"third"')
  })

  it('end at the deadline of server or client', async () => {
    expect((await begin('Late').ended).slice(0, 2)).to.deep.equal([
      504,
      '{"code":"deadline_exceeded","message":"the deadline of the call was exceeded"}',
    ])
    expect((await begin('Wait', '"a"', { 'connect-timeout-ms': '50' }).ended)[0]).to.equal(504)
    expect(waiting.map(({ signal }) => signal.aborted)).to.deep.equal([true, true])
    for (const { answer } of waiting.splice(0)) answer('too late')
  })
})
