/** Single HTTP requests to servers on this machine. */
import { request as httpRequest } from 'node:http'
import type { LookupFunction } from 'node:net'
import { deadlineAfter } from '../runtime/timers.ts'
import { refuseUpgrade } from './refused-upgrade.ts'

/** A request to a port on a loopback address. */
export interface LocalRequest {
  readonly port: number
  readonly method: string
  readonly path: string
  readonly body?: string | undefined
}

/** The response. */
export interface LocalAnswer {
  readonly status: number
  readonly body: string
}

/** Resolves to both loopback addresses, so that a server that listens on only one of them is found. */
const bothLoopbacks: LookupFunction = (_host, _options, found) =>
  found(null, [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ])

/**
 * Sends a request to a server that listens on 127.0.0.1 or ::1. Rejects with an Error that names the port when there is no answer within
 * `timeoutMs`, or the body is longer than `maxBytes`.
 */
export function callLocal({ port, method, path, body }: LocalRequest, timeoutMs: number, maxBytes = 2 ** 30): Promise<LocalAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<LocalAnswer>()
  const headers = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
  const lookup = { lookup: bothLoopbacks, autoSelectFamily: true }
  const request = httpRequest({ host: 'localhost', port, method, path, headers, agent: false, ...lookup }, (response) => {
    const parts: Buffer[] = []
    let length = 0
    response.on('data', (part: Buffer) => {
      length += part.length
      if (length > maxBytes) request.destroy(new Error(`the answer is longer than ${maxBytes} bytes`))
      else parts.push(part)
    })
    response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts).toString() }))
    response.on('error', failed)
  })
  const failed = (error: NodeJS.ErrnoException) =>
    reject(new Error(`localhost:${port}: ${error.code === 'ECONNREFUSED' ? 'no process listens there' : error.message}`))
  const late = deadlineAfter(timeoutMs, () => request.destroy(new Error(`no answer within ${timeoutMs} ms`)))
  request.on('error', failed)
  refuseUpgrade(request, failed)
  request.on('close', () => late.cancel())
  request.end(body)
  return promise
}
