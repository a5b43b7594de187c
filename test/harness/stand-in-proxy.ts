/** A program that stands in for Envoy where only its process and its admin port matter. */
import type { createServer } from 'node:http'

/** How the program behaves. */
export interface StandInOptions {
  /** Ends with this status when it is asked to by `POST /end`. */
  readonly status?: number
  /** Is ended by this signal when it is asked to by `POST /end`. */
  readonly signal?: NodeJS.Signals
  /** Whether SIGTERM has no effect. */
  readonly stays?: boolean
  /** Status of the answer to an order to drain. */
  readonly drainStatus?: number
}

/**
 * The text of the program. It listens on the admin port of `PROXY_CONFIG`, answers `/asked` with the requests that came, one a line, `/args` with its arguments,
 * and `/pid`; `/stats` says what a proxy that is ready does, once it was asked `/configure`. SIGTERM ends it with status 0.
 */
export function standInProxy(options: StandInOptions = {}): string {
  const serve = standIn.toString()
  return `#!${process.execPath}\nconst { createServer } = require('node:http')\n;(${serve})(createServer, ${JSON.stringify(options)})\n`
}

function standIn(create: typeof createServer, { status = 0, signal, stays = false, drainStatus = 200 }: StandInOptions): void {
  const asked: string[] = []
  const stats = ['cluster_manager.cds', 'listener_manager.lds'].map((name) => `${name}.update_success: 1`)
  stats.push('server.state: 0', 'listener_manager.workers_started: 1')
  const { proxyAdminPort } = JSON.parse(process.env.PROXY_CONFIG ?? '{}')
  process.on('SIGTERM', () => {
    if (!stays) process.exit(0)
  })
  const server = create((request, response) => {
    const { method, url } = request
    const pages: Record<string, string> = { '/args': process.argv.slice(2).join('\n'), '/pid': String(process.pid), '/asked': asked.join('\n') }
    const page = pages[url ?? '']
    if (page !== undefined) return void response.end(page)
    if (url?.startsWith('/stats?')) return void response.end(asked.includes('POST /configure') ? stats.join('\n') : '')
    asked.push(`${method} ${url}`)
    if (url === '/end') {
      if (signal) process.kill(process.pid, signal)
      else process.exit(status)
    }
    response.statusCode = url?.startsWith('/drain_listeners') ? drainStatus : 200
    response.end('LIVE')
  })
  server.listen(proxyAdminPort, '127.0.0.1')
}
