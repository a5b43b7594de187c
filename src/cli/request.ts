/** The request of `pilot-discovery request`: to the metrics and debug pages of the service on this machine. */
import { request as httpRequest } from 'node:http'

/** Where the metrics and debug pages are, and how long an answer may take. */
const monitoring = { host: '127.0.0.1', port: 15_014, timeoutMs: 60_000 }

/** Sends it. Rejects when there is no answer in time. */
export function send(method: string, path: string, body: string | undefined): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: monitoring.host, port: monitoring.port, method, path, timeout: monitoring.timeoutMs }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts).toString() }))
      response.on('error', reject)
    })
    request.on('timeout', () => request.destroy(new Error(`no answer within ${monitoring.timeoutMs} ms`)))
    request.on('error', reject)
    request.end(body)
  })
}
