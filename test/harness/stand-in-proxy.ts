/** A stand-in for Envoy, for tests in which only its process and its admin port matter. */
import type { createServer } from 'node:http'

/** The behaviour of the program. */
export interface StandInOptions {
  /** The exit status after `POST /end`. */
  readonly status?: number
  /** The signal that terminates the program after `POST /end`, in place of an exit status. */
  readonly signal?: NodeJS.Signals
  /** Whether the program ignores SIGTERM. */
  readonly stays?: boolean
  /** The status of the response to a drain request. */
  readonly drainStatus?: number
}

/**
 * Returns the source of the program. It listens on the admin port of `PROXY_CONFIG`, answers `/asked` with the received requests, one per
 * line, `/args` with its arguments, `/env` with its environment, and `/pid` with its pid. `/stats` returns the statistics of a ready proxy after a request `/configure`.
 * SIGTERM ends it with status 0.
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
    const pages: Record<string, string> = {
      '/args': process.argv.slice(2).join('\n'),
      '/pid': String(process.pid),
      '/asked': asked.join('\n'),
      '/env': JSON.stringify(process.env),
    }
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
