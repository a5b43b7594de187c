/** The agent's client of the authority, and servers that are no authority. */
import { readFileSync } from 'node:fs'
import { createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { expect } from 'chai'
import { CertificateClient } from '../../actors/agent/sds/certificate-client.ts'
import { fileMetrics, secretMetrics } from '../../actors/agent/sds/metrics.ts'
import { CallFailed } from '../../actors/agent/unary-call.ts'
import { outgoingMetrics } from '../../actors/http/outgoing-metrics.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import { textField } from '../../src/xds/slab/wire.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'

const order = { csr: 'csr', ttlSeconds: 60, clusterId: '' }
const none = { token: undefined, pair: undefined, roots: undefined }
const chain = messageFrame(Buffer.concat([textField(1, 'leaf'), textField(1, 'root')]))
const headers = { ':status': 200, 'content-type': 'application/grpc' }

const clientOf = (port: number) => new CertificateClient({ host: '127.0.0.1', port, isPlain: true, serverName: '127.0.0.1' }, undefined)

/** Answers with these bytes, then with these trailers. */
const answering = (bytes: Buffer, trailers: Record<string, string>) => (stream: ServerHttp2Stream) => {
  stream.respond(headers, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers(trailers))
  stream.end(bytes)
}

describe("the agent's client of the authority", () => {
  const servers: (Http2Server | Server)[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) server.close()
  })
  async function portOf(server: Http2Server | Server): Promise<number> {
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
    return (server.address() as AddressInfo).port
  }
  const ask = async (port: number) => {
    return clientOf(port)
      .create(order, none)
      .then(
        (answer) => answer.join(),
        (error: CallFailed) => {
          expect(error).to.be.instanceOf(CallFailed)
          return `${error.code} ${error.message}`
        },
      )
  }
  const answerOf = async (answer: (stream: ServerHttp2Stream) => void) => {
    const server = createServer()
    server.on('stream', (stream) => {
      stream.on('error', () => undefined)
      answer(stream)
    })
    server.on('sessionError', () => undefined)
    return ask(await portOf(server))
  }

  const answers: [name: string, answer: (stream: ServerHttp2Stream) => void, expected: RegExp][] = [
    ['an answer', answering(chain, { 'grpc-status': '0' }), /^leaf,root$/],
    ['an answer in bytes', (stream) => inBytes(stream), /^leaf,root$/],
    ['a status alone', (stream) => stream.respond({ ...headers, 'grpc-status': '7', 'grpc-message': 'no%21' }, { endStream: true }), /^7 no!$/],
    ['no message', answering(Buffer.alloc(0), { 'grpc-status': '0' }), /^13 the answer has no message$/],
    ['no status', (stream) => stream.respond(headers, { endStream: true }), /^14 the call ended without a status$/],
    ['a page', (stream) => stream.respond({ ':status': 404 }, { endStream: true }), /^12 answered with HTTP status 404$/],
    ['a page of an error', (stream) => stream.respond({ ':status': 502 }, { endStream: true }), /^14 answered with HTTP status 502$/],
    ['garbage', answering(messageFrame(Buffer.from([0x0a, 0xff])), { 'grpc-status': '0' }), /^13 the answer cannot be read/],
    ['a compressed message', answering(Buffer.from([1, 0, 0, 0, 1, 0]), { 'grpc-status': '0' }), /^13 the answer cannot be read: compressed/],
    [
      'more than a megabyte',
      answering(messageFrame(Buffer.alloc(1_100_000)), { 'grpc-status': '0' }),
      /^13 the answer cannot be read: received message larger/,
    ],
    ['a message that is cut off', answering(chain.subarray(0, 9), { 'grpc-status': '0' }), /^13 the answer has no message$/],
    ['a reset', (stream) => stream.close(2), /^14 /],
    ['an end of the connection', (stream) => stream.session?.destroy(), /^14 /],
  ]
  for (const [name, answer, expected] of answers)
    it(`reports ${name} as what it is`, async () => {
      expect(await answerOf(answer)).to.match(expected)
    })

  it('reports a server of another protocol as unavailable', async () => {
    for (const bytes of ['HTTP/1.1 400 Bad Request\r\n\r\n', '\0\0\0\0\0\0\0\0\0\0', 'x'.repeat(100_000)]) {
      const server = createTcpServer((socket) => {
        socket.on('error', () => undefined)
        socket.end(bytes)
      })
      expect(await ask(await portOf(server)), JSON.stringify(bytes.slice(0, 20))).to.match(/^14 /)
    }
  })

  it('retries under the alias service name if the first is not implemented, and then prefers that name', async () => {
    const asked: string[] = []
    let known = 'istio'
    const server = createServer()
    server.on('stream', (stream, { ':path': path = '' }) => {
      asked.push(path.split('.')[0] as string)
      if (path.startsWith(`/${known}.`)) answering(chain, { 'grpc-status': '0' })(stream)
      else stream.respond({ ...headers, 'grpc-status': '12' }, { endStream: true })
    })
    const client = clientOf(await portOf(server))
    for (let call = 0; call < 2; call++) expect(await client.create(order, none)).to.deep.equal(['leaf', 'root'])
    known = 'mesh'
    expect(await client.create(order, none)).to.deep.equal(['leaf', 'root'])
    known = 'nothing'
    const failure = await client.create(order, none).catch((error: CallFailed) => error.code)
    expect(failure).to.equal(12)
    expect(asked).to.deep.equal(['/mesh', '/istio', '/istio', '/istio', '/mesh', '/mesh', '/istio'])
  })

  it('has documented metrics', () => {
    const registry = new MetricRegistry()
    secretMetrics(registry, () => [])
    fileMetrics(registry)
    outgoingMetrics(registry)('csr')
    const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8').split('## Of the agent')[1] ?? ''
    const documented = [...page.matchAll(/^\| `(\w+)` +\| (\w+) /gm)].map(([, name, type]) => `${name} ${type}`)
    const declared = registry.collect().map(({ name, type }) => `${name} ${type}`)
    expect(documented).to.include.members(declared)
  })
})

/** Sends the response one byte per frame. */
function inBytes(stream: ServerHttp2Stream): void {
  stream.respond(headers, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  for (const byte of chain) stream.write(Buffer.of(byte))
  stream.end()
}
