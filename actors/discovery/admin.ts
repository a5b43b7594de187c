/** The HTTP side of the discovery service: readiness, version, metrics, debug pages (discovery behaviour 4.1, 4.2). */
import fastify, { type FastifyInstance } from 'fastify'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import { buildInfo } from '../../src/cli/build-info.ts'
import type { Features } from '../../src/config/features.ts'
import type { Logger } from '../runtime/logger.ts'
import { Gauge, type Registry } from '../runtime/metrics.ts'
import type { Supervisor } from '../runtime/supervisor.ts'
import { pause } from '../runtime/timers.ts'
import { splitAddress } from './address.ts'
import { addDebugPages } from './debug-pages.ts'
import { Scraper, scrapeType } from './scrape.ts'

/** What the HTTP servers need. */
export interface AdminParts {
  readonly supervisor: Supervisor
  readonly options: DiscoveryOptions
  readonly features: Features
  /** Metrics of the main thread. */
  readonly metrics: Registry
  /** `performance.now()` at which the service began to start. */
  readonly startedAt: number
  readonly log: Logger
}

/** Running HTTP servers. */
export interface Admin {
  ready(): Promise<void>
  close(): Promise<void>
}

interface QueueStatus {
  readonly ready: boolean
  readonly unsynced: readonly string[]
}

const pollMs = 20

/** Starts the HTTP servers. Rejects when an address cannot be bound. */
export async function startAdmin(parts: AdminParts): Promise<Admin> {
  const { supervisor, options, features, metrics } = parts
  const startup = new Gauge({ name: 'startup_duration_seconds', help: 'seconds from process start to being marked ready', registers: [metrics] })
  new Gauge({ name: 'mesh_build', help: 'component build info', labelNames: ['component', 'tag'], registers: [metrics] }).set(
    { component: 'pilot', tag: buildInfo().version },
    1,
  )
  new Gauge({ name: 'pilot_info', help: 'version of this instance', labelNames: ['version'], registers: [metrics] }).set(
    { version: buildInfo().version },
    1,
  )
  let isReady = false
  const becomeReady = (async () => {
    await supervisor.started()
    for (;;) {
      const status = await supervisor.ask<QueueStatus>('push-queue', 'status').catch(() => undefined)
      if (status?.ready) break
      await pause(pollMs)
    }
    isReady = true
    startup.set(process.uptime())
    parts.log('default').info(`ready after ${Math.round(performance.now() - parts.startedAt)} ms`)
  })()

  const readiness = async (): Promise<string> => {
    if (!isReady) return 'discovery is not ready: not every source has been read and pushed yet'
    const failing = supervisor.states().filter((state) => state.state === 'failing')
    return failing.map((state) => `actor ${state.name} keeps failing: ${state.lastError?.message ?? ''}`).join('\n')
  }
  const scraper = new Scraper(supervisor, metrics)
  const http = server()
  http.get('/ready', async (_, reply) => {
    const reason = await readiness()
    return reply
      .code(reason === '' ? 200 : 503)
      .type('text/plain')
      .send(reason)
  })
  const monitoring = options.monitoringAddr === '' ? http : server()
  monitoring.get('/metrics', async (_, reply) => reply.type(scrapeType).send(await scraper.scrape()))
  monitoring.get('/version', async (_, reply) => {
    const { version, revision, status } = buildInfo()
    return reply.type('text/plain').send(`${version}-${revision}-${status}`)
  })
  for (const instance of new Set([http, monitoring])) {
    if (features.ENABLE_DEBUG_ON_HTTP) addDebugPages(instance, supervisor, features.ENABLE_ADMIN_ENDPOINTS)
  }
  await listen(http, options.httpAddr)
  if (monitoring !== http) await listen(monitoring, options.monitoringAddr)
  return {
    ready: () => becomeReady,
    async close() {
      await Promise.all([...new Set([http, monitoring])].map((instance) => instance.close()))
    },
  }
}

function server(): FastifyInstance {
  return fastify({ logger: false, bodyLimit: 1_048_576, forceCloseConnections: true, requestTimeout: 60_000 })
}

async function listen(instance: FastifyInstance, address: string): Promise<void> {
  if (address === '') return
  const [host, port] = splitAddress(address)
  await instance.listen({ host: host === '' ? '::' : host, port })
}
