/**
 * The discovery service: starts and supervises the actors, serves HTTP, writes the log, and stops in order. No part of the push path runs
 * on this thread.
 */
import { availableParallelism } from 'node:os'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { Settings } from '../../src/cli/settings.ts'
import { type Features, readFeatures } from '../../src/config/features.ts'
import { misspeltVariables } from '../../src/config/misspelt-variables.ts'
import { readOptOuts } from '../../src/config/opt-outs.ts'
import { optOutWarnings } from '../../src/config/policy-checks.ts'
import { agentDefaults } from '../../src/inject/agent-defaults.ts'
import type { LogOptions } from '../../src/logging/levels.ts'
import { webhookConfigName } from '../../src/orchestrator/validation-webhook.ts'
import { claimAddresses, splitAddress } from '../http/address.ts'
import { readCertificate } from '../http/certificate.ts'
import { boundedEnd } from '../runtime/bounded-end.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { openLog } from '../runtime/log.ts'
import type { Logger } from '../runtime/logger.ts'
import { MetricRegistry } from '../runtime/metrics.ts'
import { type RestartPolicy, restartPolicy } from '../runtime/restarts.ts'
import type { SpawnMode } from '../runtime/spawn.ts'
import { Supervisor } from '../runtime/supervisor.ts'
import { pause } from '../runtime/timers.ts'
import { watchPolicy } from '../runtime/watchdog.ts'
import type { Wiring } from '../runtime/wiring.ts'
import { actorTable, type TableParts } from './actor-table.ts'
import { AwaitedPorts } from './admin/awaited-ports.ts'
import { Explanations } from './admin/explanations.ts'
import type { LevelsInForce } from './admin/levels-in-force.ts'
import { ReadinessJudge } from './admin/readiness.ts'
import { statusAnswers } from './admin/status-answers.ts'
import { requestSettings } from './cluster/cluster-api.ts'
import { askHeld } from './cluster/held-elsewhere.ts'
import { MainCluster } from './cluster/main-cluster.ts'
import { ConfiguredSources } from './configured-sources.ts'
import { isOpenOnLoopback } from './given/access.ts'
import { type GivenAuthority, givenAuthority } from './given/authority.ts'
import { exposure, type Notice } from './given/exposure.ts'
import { checkGivenFiles } from './given/files.ts'
import { type PassedPlaces, passedPlaces } from './given/passed-places.ts'
import { givenPlace } from './given/place.ts'
import { replicaExchange } from './given/replicas.ts'
import { type GivenServing, givenServing, servingNotices } from './given/serving.ts'
import { givenSources } from './given/sources.ts'
import { givenWebhooks, keptWebhook } from './given/webhooks.ts'
import { authenticatorConfig } from './identity/settings.ts'
import { certificateWrites } from './leader/certificate-writes.ts'
import { Elections } from './leader/elections.ts'
import { ingressStatusAnswers } from './leader/ingress-status.ts'
import { rootWrites } from './leader/root-writes.ts'
import type { UnreadyTimes } from './leader/stand-while-ready.ts'
import { statusWrites } from './leader/status-writes.ts'
import { validationSteps } from './leader/validation-steps.ts'
import { keptSecrets, sharedSecrets } from './own-keys/process-secrets.ts'
import { givenPresence } from './registrar/given-presence.ts'
import { hasInjectorFiles } from './webhooks/injector-directory.ts'

/** A running discovery service. */
export interface DiscoveryService {
  readonly supervisor: Supervisor
  /** Resolves when the service is ready to serve configuration. */
  ready(): Promise<void>
  readonly log: Logger
  /** Logs an error that ends the process. Returns when the line is written. */
  fatal(error: unknown): void
  /** Reads all configuration files again and reopens the log files, as on SIGHUP. */
  reload(): void
  /** Stops everything in order; the reason is logged. */
  stop(reason?: string): Promise<void>
}

/** The longest that the last parts of a shutdown may take, each of the two steps, in milliseconds: with the actors before, less than a pod is given. */
const endMs = 5000

/** Whether this is the built code, where all modules that are loaded by name are in one folder. */
const isBuilt = import.meta.url.endsWith('.js')
const moduleOf = (path: string) => new URL(isBuilt ? `./${path.slice(path.lastIndexOf('/') + 1)}.js` : `./${path}.ts`, import.meta.url)

/** Settings that tests change: where actors run, how they are restarted, and when a leader that is not ready leads no more. */
export interface ActorSettings {
  readonly mode?: SpawnMode
  /** Resolves the path of an actor's module. */
  readonly module?: (name: string) => URL
  readonly policy?: RestartPolicy
  /** How long a leader may be not ready. */
  readonly unreadyTimes?: Partial<UnreadyTimes>
}

/** What flags and variables are set to, where no command line says it. */
const noSettings = async (): Promise<Settings> => ({ settings: [], misspelt: [] })

/** Starts the discovery service. Rejects when an address cannot be bound or a given file does not exist. */
export async function startDiscovery(
  given: DiscoveryOptions,
  logOptions: LogOptions,
  actors: ActorSettings = {},
  settings = noSettings,
): Promise<DiscoveryService> {
  const { mode = 'threads', module = moduleOf, policy = restartPolicy } = actors
  const startedAt = monotonicMs()
  const checked = await checkGiven(given)
  const { features, warnings, sources, cluster, identity, authority, secrets, serving, webhooks } = checked
  const { files, certificate, openOnLoopback, writers, claim, passing } = checked
  const options = { ...given, ...realAddresses(claim.of) }
  const hasFiles = files !== undefined && (options.secureGRPCAddr !== '' || webhooks.at === 'https')
  const opened = openLog(logOptions)
  const { log } = opened
  const ofPorts = [...exposure(options, features, openOnLoopback), ...servingNotices(given, serving, certificate), ...webhooks.notices]
  sayAtStart(log, options, warnings, [...sources.notices, ...ofPorts])

  const metrics = new MetricRegistry()
  const elections = cluster && new Elections({ ...leaderSettings(cluster, given, features), log, metrics })
  const presence = cluster && givenPresence(cluster, given, features)
  const replicas = presence && (await replicaExchange({ presence, secrets, namespace: given.namespace || features.POD_NAMESPACE, features, log }))
  const answers: Record<string, unknown> = {}
  const supervisor = new Supervisor({
    mode,
    log,
    logOptions: opened.levels,
    logged: (records) => {
      for (const record of records) opened.write(record)
    },
    answers,
    policy,
    watch: watchPolicy(features.PILOT_ACTOR_DEADLINE),
  })

  const configured = new ConfiguredSources(log)
  const wiring = actorTable({
    options,
    syncedBefore: () => configured.syncedBefore,
    ...{ hasRegistry: sources.hasRegistry, configSources: sources.configSources, missingSources: sources.missing },
    statusOnLoopback: openOnLoopback,
    writers,
    listen: listenOn(options, serving, authority, passing?.places ?? []),
    certificates: hasFiles ? files : undefined,
    webhooks: webhooks.at === 'https' ? { ...hostAndPort(options.httpsAddr), ownHosts: ownHosts(serving) } : undefined,
    ...{ identity, secrets, place: authority.place, hasCluster: cluster !== undefined, keptWebhook: keptWebhook(given, features, webhooks, serving) },
    ...{ features, replica: presence?.replica, mode, module },
  })
  // A port that the kernel chose is reserved until the writers listen on it. A client that knows the service as ready meets writers alone.
  const held = new AwaitedPorts(replicas && askHeld(replicas.others, 'openPorts'), log('ads')).why
  const readiness = new ReadinessJudge(() => supervisor.states(), wiring.sources, sources.advice, cluster?.troubles, claim.release, held)
  const levels = levelsInForce(opened, supervisor)
  const explanations = new Explanations()
  const shown = { features, log, readiness, levels, settings, explanations, remoteKeys: cluster?.remoteKeys }
  Object.assign(
    answers,
    cluster ? cluster.answers(log, metrics, features, replicas?.others) : { clusterAccess: () => Promise.reject(new Error(sources.noCluster)) },
    elections && cluster && leaderAnswers(elections, cluster, features, given.namespace || features.POD_NAMESPACE),
    presence?.answers,
    statusAnswers(supervisor, { ...shown, others: replicas?.others }),
  )
  startActors(supervisor, wiring)
  configured.follow(supervisor, wiring.configured)
  cluster?.remotes?.follow(supervisor, wiring.remote)
  const startWebhooks = once(() => supervisor.start(wiring.webhooks.spec, wiring.webhooks.peers))
  if (webhooks.at !== 'nowhere' && cluster) startWebhooks()
  elections?.standWhile(() => readiness.judge().ready, actors.unreadyTimes)

  // Loaded while the actors are starting.
  const { startAdmin } = await import('./admin/admin.ts')
  const admin = await startAdmin({
    ...{ ...shown, supervisor, writers, options, openOnLoopback, metrics, startedAt, replicas, passedTo: passing?.places },
    webhooks: webhooks.at === 'http' ? { start: startWebhooks } : undefined,
  })
  // What is wrong with files is told before the first review; without any, the first review starts them.
  if (webhooks.at === 'http' && hasInjectorFiles()) startWebhooks()
  return {
    supervisor,
    ready: () => admin.ready(),
    log,
    fatal: opened.fatal,
    reload() {
      opened.reopen()
      reloadFiles(supervisor, log, [...(hasFiles ? ['certificate-watcher'] : []), ...(authority.signs ? ['certificate-authority'] : [])])
    },
    stop: (reason) => shutDown({ supervisor, elections, replicas, presence, cluster, admin, explanations, claim, passing, opened }, reason),
  }
}

/** What ends with a service. */
interface Ending {
  readonly supervisor: Supervisor
  readonly elections: Elections | undefined
  readonly replicas: Awaited<ReturnType<typeof replicaExchange>>
  readonly presence: Awaited<ReturnType<typeof givenPresence>>
  readonly cluster: MainCluster | undefined
  readonly admin: { close(): Promise<void> }
  readonly explanations: Explanations
  readonly claim: { release(): void }
  readonly passing: PassedPlaces | undefined
  readonly opened: ReturnType<typeof openLog>
}

/** Ends a service in order. What does not end by itself ends with the process. */
async function shutDown(parts: Ending, reason: string | undefined): Promise<void> {
  const { supervisor, elections, replicas, presence, admin, explanations, opened } = parts
  const log = opened.log('default')
  log.info(reason === undefined ? 'shutting down' : `shutting down: ${reason}`)
  const end = (ending: Readonly<Record<string, Promise<unknown> | undefined>>) =>
    boundedEnd(ending, endMs, (part, why) => log.warn(`${part}: ${why}; the process ends nevertheless`))
  const released = elections?.close()
  await supervisor.drain(['webhooks', 'registrar', 'source', 'jwks-resolver', 'push-queue', 'xds-writer'], 10_000)
  await end({ Leases: released, 'answers to other replicas': replicas?.close(), 'the Lease of this replica': presence?.close() })
  parts.cluster?.close()
  await end({ 'HTTP servers': admin.close(), explanations: explanations.close() })
  parts.claim.release()
  await parts.passing?.remove()
  await opened.flush()
}

/** Starts the actors that are there from the start, and links them. */
function startActors(supervisor: Supervisor, { actors, links }: Wiring): void {
  for (const spec of actors) supervisor.start(spec)
  for (const [one, other] of links) supervisor.connect(one, other)
}

/**
 * Reads environment variables and given files, and reserves the addresses. Rejects when any of them cannot be used; then nothing was
 * started.
 */
async function checkGiven(given: DiscoveryOptions) {
  const { features, named, warnings: odd } = readFeatures(given.clusterID === '' ? process.env : { ...process.env, CLUSTER_ID: given.clusterID })
  const misspelt = misspeltVariables(process.env).map(
    ({ name, nearest }) => `variable ${JSON.stringify(name.slice(0, 100))} is not known; did you mean ${nearest}?`,
  )
  const warnings = [...odd, ...misspelt, ...optOutWarnings(readOptOuts(features.MESH_POLICY_OPT_OUTS))]
  // What no agent could read fails the start, and not the first pod.
  agentDefaults(features)
  const sources = givenSources(given, features)
  const place = givenPlace({ hasCluster: sources.cluster !== undefined, isNamed: named.has('MESHD_CA_STATE_DIR') }, given, features)
  const pluggedNamespace = features.USE_REMOTE_CERTS ? given.namespace || features.POD_NAMESPACE : undefined
  const cluster = sources.cluster && (await MainCluster.open(sources.cluster, given, place.place, pluggedNamespace))
  const identity = authenticatorConfig(features, cluster !== undefined)
  checkGivenFiles(given)
  const hasCluster = cluster !== undefined
  if (features.PILOT_ENABLE_STATUS && !hasCluster) warnings.push('PILOT_ENABLE_STATUS has no effect: there is no cluster whose objects have a status')
  if (features.PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION && !hasCluster)
    warnings.push('PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION has no effect: there is no cluster in which WorkloadEntries could be created')
  if (features.USE_REMOTE_CERTS && !hasCluster)
    warnings.push('USE_REMOTE_CERTS has no effect: there is no cluster whose Secret cacerts could be read')
  const authority = { ...(await givenAuthority(given, features, { place: place.place, hasCluster })), place: place.place }
  // The authority has made its directory by now, if it has one.
  const { secrets, warning } = cluster?.secrets ? await sharedSecrets(cluster.secrets) : keptSecrets(features.MESHD_CA_STATE_DIR)
  if (warning !== undefined) warnings.push(warning)
  const serving = givenServing(given, features, authority, hasCluster)
  const files = serving.from === 'files' ? serving.files : undefined
  const certificate = files && (await readCertificate(files))
  const webhooks = givenWebhooks(given, features, sources.cluster !== undefined, serving)
  const openOnLoopback = await isOpenOnLoopback(given, features, cluster?.secrets ?? cluster?.plugged)
  const writers = given.writers > 0 ? given.writers : Math.max(1, availableParallelism())
  const claim = await claimAddresses([
    { flag: 'grpcAddr', address: given.grpcAddr, listeners: writers },
    { flag: 'secureGRPCAddr', address: serving.from === 'nowhere' ? '' : given.secureGRPCAddr, listeners: writers },
    { flag: 'httpAddr', address: given.httpAddr, listeners: 1 },
    { flag: 'httpsAddr', address: webhooks.at === 'https' ? given.httpsAddr : '', listeners: 1 },
    { flag: 'monitoringAddr', address: given.monitoringAddr, listeners: 1 },
  ])
  const passing = given.grpcAddr === '' ? await passedPlaces(writers) : undefined
  return {
    features,
    warnings,
    sources: { ...sources, notices: [...sources.notices, ...place.notices] },
    cluster,
    identity,
    authority,
    secrets,
    serving,
    webhooks,
    files,
    certificate,
    openOnLoopback,
    writers,
    claim,
    passing,
  }
}

/** The listening addresses of the writers. `passed`: where they take the connections that the main thread passes on. */
function listenOn(
  { grpcAddr, secureGRPCAddr }: DiscoveryOptions,
  serving: GivenServing,
  { signs }: GivenAuthority,
  passed: PassedPlaces['places'],
): TableParts['listen'] {
  const plain = (writer: number) => passed[writer] ?? hostAndPort(grpcAddr)
  if (secureGRPCAddr === '') return { plain, secure: undefined }
  const trustSources = [...(serving.from === 'files' ? ['certificate-watcher'] : []), ...(signs ? ['certificate-authority'] : [])]
  return { plain, secure: { ...hostAndPort(secureGRPCAddr), trustSources, signs, ownHosts: ownHosts(serving) } }
}

/** The hosts for which certificates are requested from the own authority; undefined where they are read from files. */
const ownHosts = (serving: GivenServing) => (serving.from === 'authority' ? serving.hosts : undefined)

/** Returns a function that runs another one at its first call only. */
function once(run: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) run()
    isDone = true
  }
}

/** Has the sources and these actors read their files again. */
function reloadFiles(supervisor: Supervisor, log: Logger, others: readonly string[]): void {
  log('default').info(
    'SIGHUP: reading configuration files again, and certificate files; log files are opened anew; flags and variables are read at start only',
  )
  const sources = supervisor.states().flatMap((state) => (/^source[/](files|fs[/])/.test(state.name) ? state.name : []))
  for (const name of [...sources, ...others]) supervisor.ask(name, 'reload').catch((error: Error) => log('default').error(`reload: ${error.message}`))
}

/** The log levels, which are set in all threads. */
const levelsInForce = (opened: ReturnType<typeof openLog>, supervisor: Supervisor): LevelsInForce => ({
  get: () => opened.levels,
  async set(next) {
    opened.setLevels(next)
    // A hung actor does not delay the answer; it applies the levels when it continues.
    await Promise.race([supervisor.setLogLevels(next), pause(1000)])
  },
})

/** The answers to actors that do what only the leader may do. */
const leaderAnswers = (elections: Elections, { signer, remotes }: MainCluster, features: Features, namespace: string) => ({
  ...elections.answers,
  ...(signer && certificateWrites({ leadership: () => elections.of('certificates'), signer, domain: features.MESH_DOMAIN, namespace })),
  ...rootWrites(
    () => elections.of('namespaces'),
    features.MESH_DOMAIN,
    (id) => remotes?.apiOf(id),
  ),
  ...validationSteps({
    leadership: () => elections.of('validation'),
    name: webhookConfigName(features.VALIDATION_WEBHOOK_CONFIG_NAME, namespace),
    ...{ namespace, revision: features.REVISION },
  }),
  ...ingressStatusAnswers(elections),
  ...statusWrites(() => elections.of('status')),
})

/** The settings of elections. */
const leaderSettings = (
  { connection, api, statusApi }: MainCluster,
  given: DiscoveryOptions,
  { POD_NAMESPACE, POD_NAME, REVISION: revision }: Features,
) => ({
  ...{ connection, api, apiOf: { status: statusApi } },
  ...{ settings: requestSettings(given), namespace: given.namespace || POD_NAMESPACE, revision, name: POD_NAME.slice(0, 253) },
})

/** Writes the first lines of the log: the given flags, warnings, and who may reach what. */
function sayAtStart(log: Logger, { given, notices }: DiscoveryOptions, warnings: readonly string[], said: readonly Notice[]): void {
  for (const flag of given) log('default').info(`FLAG: ${flag}`)
  for (const warning of warnings) log('default').warn(warning)
  for (const notice of notices) if (notice.level !== 'debug' && notice.level !== 'fatal') log('default')[notice.level](notice.message)
  for (const { level, message } of said) log('default')[level](message)
}

function realAddresses(of: (flag: string) => string) {
  const [grpcAddr, secureGRPCAddr, httpAddr] = [of('grpcAddr'), of('secureGRPCAddr'), of('httpAddr')]
  return { grpcAddr, secureGRPCAddr, httpAddr, httpsAddr: of('httpsAddr'), monitoringAddr: of('monitoringAddr') }
}

function hostAndPort(address: string): { host: string; port: number } {
  const [host, port] = splitAddress(address)
  return { host, port }
}
