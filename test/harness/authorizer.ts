/**
 * External authorizers over HTTP and over gRPC (`envoy.service.auth.v3.Authorization`). Both allow requests with the header `x-word:
 * please`.
 */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import { freePort } from '../../bench/ports.ts'
import { serveMethod } from './grpc-server.ts'

/** A running authorizer. */
export interface RunningAuthorizer {
  readonly port: number
  /** The requests it received: paths over HTTP, encoded messages over gRPC. */
  readonly asked: string[]
  /** The headers and bodies of the requests over HTTP. */
  readonly seen: readonly { readonly headers: IncomingHttpHeaders; readonly body: string }[]
  stop(): Promise<void>
}

/** Allows requests with the header `x-word: please` and answers others with status 418. */
export async function httpAuthorizer(): Promise<RunningAuthorizer> {
  const asked: string[] = []
  const seen: { headers: IncomingHttpHeaders; body: string }[] = []
  const server = createServer(async (request, response) => {
    asked.push(request.url ?? '')
    seen.push({ headers: request.headers, body: await text(request) })
    response.setHeader('x-verdict', 'considered')
    response.writeHead(request.headers['x-word'] === 'please' ? 200 : 418).end('asked')
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    port,
    asked,
    seen,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Encodes a CheckResponse whose status has only a code (google.rpc.Code). */
const response = (code: number) => Buffer.from(code === 0 ? [0x0a, 0] : [0x0a, 2, 0x08, code])

/** The same over gRPC. Connections without HTTP are allowed unless their peer's service account is `other`. */
export async function grpcAuthorizer(): Promise<RunningAuthorizer> {
  const asked: string[] = []
  const check = (call: { request: Buffer }, done: (error: null, value: Buffer) => void) => {
    const text = call.request.toString('latin1')
    asked.push(text)
    const http = text.includes(':authority') || text.includes('HTTP/1.1')
    done(null, response((http ? /x-word[^a-z]+please/.test(text) : !text.includes('/sa/other')) ? 0 : 7))
  }
  const { port, stop } = await serveMethod('/envoy.service.auth.v3.Authorization/Check', false, check)
  return { port, asked, seen: [], stop: async () => stop() }
}
