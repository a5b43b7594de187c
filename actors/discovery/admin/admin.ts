/** The HTTP servers of the discovery service: readiness, version, metrics, debug pages (docs/operation.md). */
import { resolve } from 'node:path'
import { adminServiceName } from '../../../protocols/messages/admin-call.ts'
import type { DiscoveryOptions } from '../../../protocols/messages/discovery.ts'
import { configSourcesNote } from '../../../protocols/messages/notes.ts'
import type { RemoteKey } from '../../../protocols/messages/orchestrator.ts'
import { buildInfo } from '../../../src/cli/build-info.ts'
import { controlZ } from '../../../src/cli/defaults.ts'
import type { Settings } from '../../../src/cli/settings.ts'
import { type ConfigSource, directoryOf, isDirectory } from '../../../src/config/config-sources.ts'
import { type Features, variables } from '../../../src/config/features.ts'
import { clientKey } from '../../../src/model/client-address.ts'
import { listenError, splitAddress } from '../../http/address.ts'
import { descriptorLimit, pageShare } from '../../http/connection-limit.ts'
import { type Answer, Page, PageServer, type PageServerOptions } from '../../http/page-server.ts'
import { PassedConnections, type PassedListening } from '../../http/passed-connection.ts'
import { PeerPrograms, portsOfProxies } from '../../http/peer-programs.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Counter, Gauge, type MetricRegistry } from '../../runtime/metrics.ts'
import { formatFor, mediaTypes } from '../../runtime/metrics-format.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import { pause } from '../../runtime/timers.ts'
import type { ReplicaExchange } from '../given/replicas.ts'
import { addReviewPages } from '../webhooks/review-pages.ts'
import { writerConnections } from '../xds-writer/server-options.ts'
import { healthServiceName, healthServices } from '../xds-writer/status-services.ts'
import { adminService } from './admin-service.ts'
import { addDebugPages } from './debug-pages.ts'
import type { Explanations } from './explanations.ts'
import type { IntrospectionParts } from './introspection.ts'
import type { LevelsInForce } from './levels-in-force.ts'
import { admitOperator, admitOverNetwork } from './page-access.ts'
import { PageSources } from './page-sources.ts'
import { loadOf, spreadProxies } from './proxy-spreading.ts'
import type { ReadinessJudge } from './readiness.ts'
import { replicaAnswers } from './replica-answers.ts'
import { Scraper } from './scrape.ts'
import { tokenPage } from './token-page.ts'

/** Dependencies and settings of the HTTP servers. */
export interface AdminParts {
  readonly supervisor: Supervisor
  readonly readiness: ReadinessJudge
  /** Number of writers. */
  readonly writers: number
  readonly options: DiscoveryOptions
  readonly features: Features
  /** Whether local callers may read the debug pages without a token. */
  readonly openOnLoopback: boolean
  /** Metrics of the main thread. */
  readonly metrics: MetricRegistry
  /** Monotonic milliseconds at which the service began to start. */
  readonly startedAt: number
  readonly log: Logger
  /** Where resources are explained. */
  readonly explanations: Explanations
  /** The other replicas, where they are asked too, and what answers them. */
  readonly replicas?: Pick<ReplicaExchange, 'others' | 'answerWith'> | undefined
  /** The keys of remote secrets, where there are any. */
  readonly remoteKeys?: (() => readonly RemoteKey[]) | undefined
  /** The log levels in force, and how to change them in all threads. */
  readonly levels: LevelsInForce
  /** What the flags and variables of this process are set to. */
  readonly settings: () => Promise<Settings>
  /** The webhooks, where the server of --httpAddr receives their reviews. Their actor is started with the first one. */
  readonly webhooks?: { start(): void } | undefined
  /** Where writers take the gRPC connections of --httpAddr; undefined where gRPC has an address of its own. */
  readonly passedTo?: readonly PassedListening[] | undefined
}

/** Running HTTP servers. */
export interface Admin {
  ready(): Promise<void>
  close(): Promise<void>
}

/** Interval at which readiness is determined again when no actor changes, in milliseconds. */
const quietMs = 1000
/** The time after which a client that does not read is given up, beyond that of the writers, in milliseconds. */
const givenUpMs = 10_000
/** A refused connection is logged when this many milliseconds have passed since the previous one. */
const quietRefusalsMs = 60_000

/** Said when the service is ready. Who started it by npm types commands by `npx`. */
const whatNext = () => {
  const name = process.env.npm_command ? 'npx pilot-discovery' : 'pilot-discovery'
  return `"${name} request GET /debug" lists what can be asked, "${name} help" the commands`
}

/** Starts the HTTP servers. Rejects when an address cannot be bound. */
export async function startAdmin(parts: AdminParts): Promise<Admin> {
  const { supervisor, options, features, metrics, log, readiness } = parts
  const startup = new Gauge({ name: 'startup_duration_seconds', help: 'seconds from process start to being marked ready', registers: [metrics] })
  new Gauge({ name: 'mesh_build', help: 'component build info', labelNames: ['component', 'tag'], registers: [metrics] }).set(
    { component: 'pilot', tag: buildInfo().version },
    1,
  )
  new Gauge({ name: 'pilot_info', help: 'version of this instance', labelNames: ['version'], registers: [metrics] }).set(
    { version: buildInfo().version },
    1,
  )
  let closed = false
  const becomeReady = (async () => {
    // Readiness may change because of an event of an actor, and also because time has passed without one.
    while (!readiness.judge().ready) {
      if (closed) return
      await Promise.race([supervisor.changed(), pause(quietMs)])
    }
    startup.set(process.uptime())
    parts.log('default').info(`ready after ${Math.round(monotonicMs() - parts.startedAt)} ms; ${whatNext()}`)
  })()
  const scraper = new Scraper(supervisor, metrics)
  // The page servers: on --httpAddr, on the admin socket, on --monitoringAddr, and on both loopback addresses for ControlZ.
  const servers = 2 + (options.monitoringAddr === '' ? 0 : 1) + (options.ctrlzAddr === '' ? 0 : 2)
  const most = pageShare(descriptorLimit(), parts.writers, servers)
  const bounds = { maxConnections: most, refused: refusals(parts, most) }
  const passed = parts.passedTo && passedConnections(parts, parts.passedTo, bounds.refused)
  const http = new PageServer({ ...bounds, http2: passed && ((client, first) => passed.take(client, first)) })
  const monitoring = options.monitoringAddr === '' ? http : new PageServer(bounds)
  const local = new PageServer(bounds)
  const ready = () => {
    const judged = readiness.judge()
    return new Page(judged.text, undefined, judged.ready ? 200 : 503)
  }
  for (const server of [http, local]) server.add('/ready', ready, '200 while configuration is served; otherwise 503 and what is missing')
  const measured: Answer = async ({ connection, headers }) => {
    const format = formatFor(headers.accept)
    const text = await scraper.scrapeFor(clientKey(connection.remoteAddress), format)
    return text === undefined ? new Page('too many requests for metrics wait: this one gave way', undefined, 503) : new Page(text, mediaTypes[format])
  }
  const version = () => {
    const { version, revision, status } = buildInfo()
    return new Page(`${version}-${revision}-${status}`)
  }
  for (const server of [monitoring, local]) {
    server.add('/metrics', measured, 'metrics of all threads (docs/metrics.md)')
    server.add('/version', version, 'the version of this server')
  }
  const tracking = features.PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING
  const overNetwork = new Set(features.ENABLE_DEBUG_ON_HTTP ? [http, monitoring] : [])
  const profiles = options.profile ? new (await import('./profiles.ts')).Profiles(supervisor) : undefined
  const debug = {
    sources: new PageSources(supervisor, tracking, parts.explanations, { profiles, others: parts.replicas?.others, remoteKeys: parts.remoteKeys }),
    log: log('default'),
  }
  const load = () => loadOf(supervisor, () => readiness.judge().ready, features.PILOT_XDS_MAX_PROXIES)
  parts.replicas?.answerWith(replicaAnswers(debug.sources.own, load))
  const spreading =
    parts.replicas && spreadProxies({ supervisor, load, others: parts.replicas.others, perSecond: features.MESHD_SPREAD_RATE, log: log('ads') })
  const admit = admitOverNetwork({
    onLoopback: parts.openOnLoopback,
    authenticate: (question) => supervisor.ask('authenticator', 'authenticate', question),
    names: () => supervisor.ask('push-queue', 'mesh'),
    peers: new PeerPrograms({ listeningOn: portsOfProxies(() => supervisor.ask('push-queue', 'portsOfProxies')) }),
    warn: (line) => log('default').warn(line),
  })
  const rpcs = { ...debug, levels: parts.levels, settings: parts.settings, domain: features.MESH_DOMAIN }
  const failed = (path: string, error: unknown) => log('default').error(`${path} failed: ${error instanceof Error ? error.message : error}`)
  const health = (services: readonly string[]) => healthServices({ isReady: async () => readiness.judge().ready, services, failed })
  const withHealth = new Map([...adminService(rpcs, features.ENABLE_ADMIN_ENDPOINTS, admit), ...health([adminServiceName, healthServiceName])])
  const addRpcs = (server: PageServer) => server.addRpcs(features.ENABLE_DEBUG_ON_HTTP ? withHealth : health([healthServiceName]), failed)
  for (const server of new Set([http, monitoring])) addRpcs(server)
  for (const server of overNetwork) addDebugPages(server, { ...debug, admit, admin: features.ENABLE_ADMIN_ENDPOINTS })
  addDebugPages(local, { ...debug, admit: admitOperator, admin: true })
  local.addRpcs(new Map([...adminService(rpcs, true, admitOperator), ...health([adminServiceName, healthServiceName])]), failed)
  local.add('/token', tokenPage(debug.sources, log('default'), becomeReady))
  if (parts.webhooks) addReviews(http, supervisor, parts.webhooks.start)
  await listen(http, 'httpAddr', options.httpAddr)
  if (monitoring !== http) await listen(monitoring, 'monitoringAddr', options.monitoringAddr)
  await listenLocally(local, parts)
  const introspected = { supervisor, scraper, admit, levels: parts.levels, log: log('default'), signal: sendSignal }
  addActions(local, { ...introspected, admit: admitOperator })
  const introspection = await startIntrospection(parts, introspected, bounds)
  for (const server of introspection) addRpcs(server)
  return {
    ready: () => becomeReady,
    async close() {
      closed = true
      passed?.close()
      spreading?.close()
      await Promise.all([...new Set([http, monitoring, local, ...introspection])].map((server) => server.close()))
    },
  }
}

/** Adds the pages of webhooks, whose reviews are answered on the thread of their actor. */
function addReviews(server: PageServer, supervisor: Supervisor, start: () => void): void {
  addReviewPages(server, {
    answer: (call, asking) => {
      start()
      return supervisor.askFor(asking, 'webhooks', 'review', call)
    },
    refused: (path, status) => {
      start()
      supervisor.ask('webhooks', 'refused', path, status).catch(() => undefined)
    },
  })
}

/** What passes the gRPC connections of --httpAddr to the writers. A client that does not read is given up after its writer did so. */
function passedConnections({ options, features }: AdminParts, writers: readonly PassedListening[], refused: () => void): PassedConnections {
  const { PILOT_XDS_SEND_TIMEOUT } = features
  const givenUp = PILOT_XDS_SEND_TIMEOUT > 0 ? PILOT_XDS_SEND_TIMEOUT : options.keepaliveInterval + options.keepaliveTimeout
  return new PassedConnections({ writers, ofWriter: writerConnections(writers.length, true), standstillMs: givenUp + givenUpMs, refused })
}

/**
 * Listens on the admin socket. Rejects when an explicitly configured path cannot be used. When the default path cannot be used, the
 * service logs a warning and runs without the socket: the directory may be read-only or used by another service.
 */
async function listenLocally(server: PageServer, { features, log, options, supervisor }: AdminParts): Promise<void> {
  const path = features.MESHD_ADMIN_SOCKET
  if (process.platform === 'win32') return
  try {
    const directory = { isOwn: true, allowVolumes: features.ORCHESTRATOR_SERVICE_HOST !== '' }
    const read = () => [options.configDir, ...configuredDirectories(supervisor)].filter((each) => each !== '')
    await server.listenLocally({ path, directory, read, warn: (line) => log('default').warn(`admin socket: ${line}`) })
    log('default').info(`admin socket ${resolve(path)}: its owner has access to all pages and actions through it (pilot-discovery request)`)
  } catch (error) {
    const reason = `admin socket: ${(error as Error).message}`
    if (path !== variables.MESHD_ADMIN_SOCKET.default) throw new Error(`environment variable MESHD_ADMIN_SOCKET: ${reason}`, { cause: error })
    log('default').warn(`${reason}; "pilot-discovery request" cannot reach this service (set MESHD_ADMIN_SOCKET to another path)`)
  }
}

/** The directories of `configSources`. */
function configuredDirectories(supervisor: Supervisor): string[] {
  const sources = supervisor
    .states()
    .find(({ name }) => name === 'push-queue')
    ?.notes.get(configSourcesNote) as readonly ConfigSource[] | undefined
  return (sources ?? []).filter(isDirectory).map(directoryOf)
}

/**
 * Listens for ControlZ. Rejects when an explicitly configured address cannot be used. When the default address cannot be used, which may
 * be taken by another service, the service logs a warning and runs without ControlZ.
 */
async function startIntrospection(
  { options, openOnLoopback, log }: AdminParts,
  parts: IntrospectionParts,
  bounds: PageServerOptions,
): Promise<PageServer[]> {
  const { ctrlzAddr } = options
  if (ctrlzAddr === '') return []
  const { introspectionPages } = await import('./introspection.ts')
  const server = new PageServer(bounds)
  for (const [path, answers] of introspectionPages(parts)) server.add(path, answers)
  try {
    await listen(server, 'ctrlz_address', ctrlzAddr)
    const alone = openOnLoopback ? ', and to callers on this machine without a token, who may not change anything' : ''
    log('default').info(
      `ControlZ at ${ctrlzAddr}: log levels, environment and signals of this process, to callers with a token of the root namespace${alone}`,
    )
    return [server]
  } catch (error) {
    if (ctrlzAddr !== `${controlZ.address}:${controlZ.port}`) throw error
    log('default').warn(`${(error as Error).message}; ControlZ is not served (set another port with --ctrlz_port; 0 disables it)`)
    return []
  }
}

/** Pages of ControlZ that change something. */
const introspectionActions = ['/scopej', '/scopej/*', '/signalj', '/homej/exit'] as const

/** Adds the pages of ControlZ that change something to the admin socket, whose callers need no token. */
function addActions(server: PageServer, parts: IntrospectionParts): void {
  const pages = async () => (await import('./introspection.ts')).introspectionPages(parts)
  for (const path of introspectionActions) {
    const answer: Answer = async (request) => {
      const { get, post, put } = (await pages()).get(path) ?? {}
      const answered = { GET: get, POST: post, PUT: put }[request.method]
      return answered ? answered(request) : new Page('there is no such page', undefined, 404)
    }
    server.add(path, { get: answer, post: answer, put: answer })
  }
}

function sendSignal(signal: NodeJS.Signals): void {
  process.kill(process.pid, signal)
}

/**
 * Returns the function that counts connections closed by a page server because of its connection limit; the first after a quiet minute is
 * logged.
 */
function refusals({ metrics, log }: AdminParts, most: number): () => void {
  const counter = new Counter({
    name: 'pilot_http_refused_connections_total',
    help: 'connections to the HTTP and monitoring addresses that were closed because the maximum was reached, of the client with the most first',
    registers: [metrics],
  })
  let lastMs = Number.NEGATIVE_INFINITY
  return () => {
    counter.inc()
    const now = monotonicMs()
    if (now - lastMs > quietRefusalsMs)
      log('default').warn(
        `the maximum of ${most} HTTP connections of one address is reached (at most 512, fewer by the limit of file descriptors): connections are closed, of the client with the most first`,
      )
    lastMs = now
  }
}

/** Rejects with an error that names the flag: the address may have been taken since it was reserved. */
async function listen(instance: PageServer, flag: string, address: string): Promise<void> {
  if (address === '') return
  const [host, port] = splitAddress(address)
  await instance.listen(host === '' ? '::' : host, port).catch((error: unknown) => Promise.reject(listenError(flag, address, error)))
}
