/** The applications of the two workloads: servers that know nothing of the mesh. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpServer } from '../http/http-server.ts'
import { ask } from '../http/single-request.ts'
import type { MeshPorts } from './example-files.ts'

const bounds = { connections: 100, requestMs: 10_000 }
const answerBounds = { ms: 10_000, bytes: 10_000 }

/** Starts both applications. Resolves with the function that ends them. */
export async function startApplications(ports: MeshPorts): Promise<() => Promise<void>> {
  const stock = new HttpServer((request, response) => response.end(`stock: 12 apples, for ${callerOf(request)}\n`), bounds)
  const shop = new HttpServer((request, response) => void askStock(ports.services, request, response), bounds)
  await Promise.all([stock.listen('127.0.0.1', ports.stockApplication), shop.listen('127.0.0.1', ports.shopApplication)])
  return async () => {
    await Promise.all([stock.close(), shop.close()])
  }
}

/** The shop asks the stock through its sidecar, by its host. */
async function askStock(port: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const host = 'stock.demo.svc.cluster.local'
  try {
    const { status, body } = await ask({ host: '127.0.0.11', port, headers: { host }, timeout: answerBounds.ms }, answerBounds)
    response.statusCode = status
    response.end(`shop: asked by ${callerOf(request)}\n${body}${body.endsWith('\n') ? '' : '\n'}`)
  } catch (error) {
    response.statusCode = 502
    response.end(`shop: the stock does not answer: ${(error as Error).message}\n`)
  }
}

/** Returns who called, of whose certificate the sidecar tells the application. */
const callerOf = ({ headers }: IncomingMessage): string =>
  /URI=([^;,]+)/.exec(String(headers['x-forwarded-client-cert']))?.[1] ?? 'somebody without a certificate'
