/** External authorizers: one over HTTP, one over gRPC (`envoy.service.auth.v3.Authorization`). Both let through whoever says the word. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import { freePort } from '../../bench/ports.ts'
import { serveMethod } from './grpc-server.ts'

/** An authorizer that is running. */
export interface RunningAuthorizer {
  readonly port: number
  /** What it was asked: paths over HTTP, messages over gRPC. */
  readonly asked: string[]
  /** What came with the questions over HTTP. */
  readonly seen: readonly { readonly headers: IncomingHttpHeaders; readonly body: string }[]
  stop(): Promise<void>
}

/** Lets through requests with the header `x-word: please`, answers 418 to others. */
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

/** CheckResponse with a status of no more than its code (google.rpc.Code). */
const response = (code: number) => Buffer.from(code === 0 ? [0x0a, 0] : [0x0a, 2, 0x08, code])

/** The same over gRPC; connections that carry no HTTP pass unless their peer is called `other`. */
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
