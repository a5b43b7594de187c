/**
 * An XDS writer: owns the connections that it accepts and the state of their streams, and writes slices of shared memory to them. It
 * consumes pushes (`WriterCommand`) and the certificates and trust of the secured port (`SecuredPortEvent`), and emits connecting and
 * disconnecting proxies (`WriterEvent`), their identities (`IdentityEvent`), what they acknowledged (`ProxiesReported`) and, while it is watched,
 * what happens to them (`ProxyEventsReported`), and workloads that register themselves (`WorkloadEvent`). When a writer dies, only its own connections are lost;
 * the proxies reconnect to any writer.
 */
import { randomBytes } from 'node:crypto'
import { adminServiceName } from '../../../protocols/messages/admin-call.ts'
import type { XdsWriterConfig } from '../../../protocols/messages/config.ts'
import type { DistributionCommand, ProxiesReported } from '../../../protocols/messages/distribution.ts'
import type { Caller, TokenKeysEvent } from '../../../protocols/messages/identity.ts'
import { attentionNote, servingNote, unopenedNote } from '../../../protocols/messages/notes.ts'
import type { ProxyEventsReported } from '../../../protocols/messages/proxy-events.ts'
import type { PushInfo, WriterCommand, WriterEvent } from '../../../protocols/messages/push.ts'
import type { RegistrationRefused, WorkloadEvent } from '../../../protocols/messages/registration.ts'
import type { SecretCommand, SecretEvent } from '../../../protocols/messages/secrets.ts'
import type { IdentityEvent } from '../../../protocols/messages/trust.ts'
import type { Features } from '../../../src/config/features.ts'
import { principalOf } from '../../../src/identity/access.ts'
import type { TokenRule } from '../../../src/identity/token-rules.ts'
import { LineBounds } from '../../../src/logging/line-bounds.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { Turn } from '../../../src/push/pacing/budget.ts'
import { SharedPermits } from '../../../src/push/pacing/permits.ts'
import { ProxySlots } from '../../../src/push/pacing/proxy-slots.ts'
import { KnownAddresses } from '../../../src/transport/known-addresses.ts'
import { Transports } from '../../../src/transport/transports.ts'
import { AnnouncedRoots } from '../../../src/xds/secrets/announced-roots.ts'
import { KeyedSums } from '../../../src/xds/slab/sums.ts'
import { BudgetExceeded } from '../../../src/xds/stream/budget.ts'
import { Catalog } from '../../../src/xds/stream/catalog.ts'
import { Plans } from '../../../src/xds/stream/plans.ts'
import { type DeltaRequest, namesIn, readDeltaRequest, readSotwRequest } from '../../../src/xds/stream/request.ts'
import { type Outcome, type Refused, type SessionParts, XdsSession } from '../../../src/xds/stream/session.ts'
import { Subscriptions } from '../../../src/xds/stream/subscription.ts'
import { aliasHealthType, healthType } from '../../../src/xds/type-urls.ts'
import { GrpcServer } from '../../grpc/grpc-server.ts'
import type { GrpcStream } from '../../grpc/grpc-stream.ts'
import type { Method } from '../../grpc/methods.ts'
import { StandstillTimer } from '../../grpc/standstill-timer.ts'
import { PeerPrograms, portsOfProxies } from '../../http/peer-programs.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import { monotonicMs, wallClockMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { clusterOfActor } from '../given/sources.ts'
import { TokenChecks } from '../tokens/token-checks.ts'
import { reviewedByCluster } from '../tokens/token-reviewer.ts'
import { Acknowledgements } from './acknowledgements.ts'
import { adminPassing } from './admin-passing.ts'
import { Admission } from './admission.ts'
import { Authentication } from './authentication.ts'
import { Budgets } from './budgets.ts'
import { Callers } from './callers.ts'
import { certificateService, certificateServiceNames } from './certificate-service.ts'
import { ClassMembers } from './class-members.ts'
import { type ConfigRequest, ConfigStreams } from './config-streams.ts'
import { type Connection, rejectionHistory } from './connection.ts'
import { connectionAnswers } from './connection-debug.ts'
import { GatewaySecrets } from './gateway-secrets.ts'
import { ProxyEventReports, type Refusing } from './proxy-event-reports.ts'
import { Pushes } from './pushes.ts'
import { RegisteringWorkloads } from './registering-workloads.ts'
import { Releases } from './releases.ts'
import { SecuredPort, type SecuredPortEvent } from './secured-port.ts'
import { serverOptions } from './server-options.ts'
import { StatusAccess } from './status-access.ts'
import { statusServiceNames, statusServices } from './status-services.ts'
import { StatusStreams } from './status-streams.ts'
import { WriterTokenKeys } from './token-keys.ts'
import { cacheMetrics, writerMetrics } from './writer-metrics.ts'

/** Appended to the notice that further log lines about a client are suppressed. */
const suppressionHint = ' (metrics and /debug/adsz show all)'

type Message = WriterCommand | SecuredPortEvent | SecretEvent | DistributionCommand | TokenKeysEvent | RegistrationRefused
type Sent = WriterEvent | IdentityEvent | SecretCommand | ProxiesReported | ProxyEventsReported | WorkloadEvent

const discoveryServiceName = 'envoy.service.discovery.v3.AggregatedDiscoveryService'

class XdsWriter implements Behaviour<Message, Sent> {
  readonly asks
  readonly #context: ActorContext<XdsWriterConfig>
  readonly #features: Features
  readonly #names
  readonly #plans: Plans
  readonly #catalog: Catalog
  readonly #announced: AnnouncedRoots
  readonly #sessionParts: SessionParts
  readonly #connections = new Map<string, Connection>()
  readonly #transports = new Transports<Connection>()
  readonly #members = new ClassMembers()
  readonly #pushes: Pushes
  readonly #acknowledgements = new Acknowledgements(this.#connections)
  readonly #events = new ProxyEventReports(this.#connections)
  readonly #statusStreams: StatusStreams
  readonly #configStreams: ConfigStreams
  readonly #secrets: GatewaySecrets
  readonly #registering: RegisteringWorkloads
  readonly #standstillTimer = new StandstillTimer()
  readonly #metrics
  readonly #lines = new LineBounds()
  readonly #budgets: Budgets
  readonly #releases: Releases
  readonly #server: GrpcServer
  readonly #secured: SecuredPort
  readonly #callers: Callers
  readonly #admission: Admission
  readonly #tokenKeys: WriterTokenKeys
  #queue: Peer<WriterEvent> | undefined
  #push: PushInfo = { id: 0, startedAt: 0, reasons: [], digest: '' }
  /** Whether the full state has been requested and has not arrived yet. */
  #isFullStateRequested = false
  /** Counters for ids of connections and for nonces. */
  #connectionCount = 0
  #nonceCount = 0
  /** Distinguishes the nonces of this writer from those of all others. */
  readonly #noncePrefix = randomBytes(8).toString('hex')

  constructor(context: ActorContext<XdsWriterConfig>) {
    this.#context = context
    this.#features = context.config.features as Features
    this.#names = meshNames(this.#features.MESH_DOMAIN)
    const tracking = this.#features.PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING
    this.#metrics = writerMetrics(context.metrics, this.#connections, () => this.#pushes.slow())
    this.#catalog = new Catalog(new KeyedSums(context.config.versionKey))
    this.#plans = new Plans(this.#catalog, {
      enabled: this.#features.PILOT_ENABLE_XDS_CACHE,
      size: this.#features.PILOT_XDS_CACHE_SIZE,
      ...(this.#features.PILOT_XDS_CACHE_STATS ? cacheMetrics(context.metrics, () => this.#plans.size) : {}),
    })
    this.#announced = new AnnouncedRoots(this.#catalog.parts)
    this.#sessionParts = {
      ...{ announced: this.#announced, catalog: this.#catalog, plans: this.#plans, subscriptions: new Subscriptions() },
      flowControlTimeoutMs: this.#features.PILOT_ENABLE_FLOW_CONTROL ? this.#features.PILOT_FLOW_CONTROL_TIMEOUT : undefined,
      nonce: () => `${tracking ? this.#push.digest.padEnd(12, '0') : ''}${this.#noncePrefix}-${++this.#nonceCount}`,
      held: (typeUrl, timedOut) => this.#metrics.held(typeUrl, timedOut),
    }
    this.#secrets = new GatewaySecrets(this.#features, this.#catalog, this.#sessionParts.subscriptions, ({ namespace, account }, resource) =>
      this.#warn(
        `missing|${namespace}|${account}`,
        `gateways of service account ${account} in namespace ${namespace} request ${resource}, which does not exist: listeners and clusters that need it refuse connections until it does`,
      ),
    )
    this.#registering = new RegisteringWorkloads({
      ...{ authenticates: this.#features.XDS_AUTH, names: () => this.#secured.names, connections: this.#connections },
      warn: (kind, line) => this.#warn(kind, line, 'wle'),
    })
    this.#pushes = new Pushes({
      permits: new SharedPermits(context.config.permits, context.config.index, this.#features.PILOT_PUSH_THROTTLE, monotonicMs),
      metrics: this.#metrics,
      flowControlTimeoutMs: this.#sessionParts.flowControlTimeoutMs,
      busy: () => this.#standstillTimer.wake(),
      secretFrame: (response, delta) => this.#secrets.frame(response, delta),
      sent: (connection, response) => this.#acknowledgements.sent(connection, response),
      settled: (connection) => this.#acknowledgements.settled(connection),
      refuse: (connection, error) => this.#admission.refuse(connection, error),
    })
    this.#budgets = new Budgets(context.metrics)
    this.#releases = new Releases({ transports: this.#transports, log: context.log('ads'), spread: (count) => this.#metrics.spread(count) })
    this.asks = {
      ...connectionAnswers(this.#connections, this.#sessionParts, () => this.#push.digest),
      ...this.#releases.answers,
      clusterReplaced: (cluster: string) => this.#callers.vouchedNoMore(cluster, this.#connections.values()),
      exceeded: () => this.#budgets.list(),
      slow: () => this.#pushes.slow(),
    }
    this.#secured = new SecuredPort({
      config: context.config.secure,
      server: () => this.#server,
      sign: ({ csr }) => context.askFor(patient, 'signServingCertificate', { csr, server: context.name }),
      log: context.log('ads'),
      metrics: context.metrics,
      isFirst: context.config.index === 0,
      noted: (lines) => context.note(attentionNote, lines),
      unopened: (lines) => context.note(unopenedNote, lines),
    })
    const tokenRules = context.config.tokenRules as readonly TokenRule[]
    this.#tokenKeys = new WriterTokenKeys(tokenRules, (question) => context.askFor(patient, 'tokenKeys', question))
    const tokens = new TokenChecks({
      rules: tokenRules,
      keysOf: (rule) => this.#tokenKeys.of(rule),
      trustDomain: () => this.#secured.names?.trustDomain,
      review: context.config.reviewsTokens ? reviewedByCluster(this.#features, context.askFor) : undefined,
      log: context.log,
      metrics: context.metrics,
    })
    const authentication = this.#authenticationBy(tokens)
    this.#callers = new Callers({
      authentication,
      authenticates: this.#features.XDS_AUTH,
      checksNode: this.#features.PILOT_ENABLE_XDS_IDENTITY_CHECK,
      grace: this.#features.PILOT_XDS_CREDENTIAL_GRACE,
      metrics: context.metrics,
      warn: (kind, line) => this.#warn(kind, line),
    })
    this.#admission = this.#admissionOf()
    const access = this.#accessOf(authentication)
    const streams = {
      ...{ access, names: this.#names, nonce: this.#sessionParts.nonce, version: () => new Date(wallClockMs()).toISOString() },
      ask: <Answer>(question: string, ...details: unknown[]) => context.ask<Answer>(question, ...details),
      warn: (kind: string, line: string) => this.#warn(kind, line),
    }
    this.#statusStreams = new StatusStreams(streams)
    this.#configStreams = new ConfigStreams({ ...streams, meshNames: () => this.#secured.names })
    this.#server = this.#serverOf(authentication, access)
    // Added after the server, whose own tick determines first which streams made progress since the last one.
    this.#standstillTimer.add((ms) => this.#pushes.charge(ms))
  }

  #authenticationBy(tokens: TokenChecks): Authentication {
    const { askFor, config } = this.#context
    return new Authentication(
      (question, signal) => tokens.check(question, signal),
      ({ peer, connection }) => this.#server.trust(peer, connection),
      config.followsClusters ? (cluster) => askFor(patient, 'isNamed', cluster) : undefined,
    )
  }

  /** What lets proxies in. */
  #admissionOf(): Admission {
    const { proxySlots, index } = this.#context.config
    const maxProxies = this.#features.PILOT_XDS_MAX_PROXIES
    return new Admission({
      ...{ names: this.#names, budgets: this.#budgets, callers: this.#callers, maxProxies },
      slots: new ProxySlots(proxySlots, index, maxProxies),
      full: () => this.#metrics.full(),
      warn: (kind, line) => this.#warn(kind, line),
    })
  }

  /** Who may see what of the service. */
  #accessOf(authentication: Authentication): StatusAccess {
    const context = this.#context
    return new StatusAccess({
      authentication,
      onLoopback: context.config.statusOnLoopback,
      peers: new PeerPrograms({ listeningOn: portsOfProxies(() => context.ask('portsOfProxies')) }),
      names: () => this.#secured.names,
      warn: (kind, line) => this.#warn(kind, line, 'status'),
    })
  }

  /** The server of discovery streams, and of the calls and pages on the same ports. */
  #serverOf(authentication: Authentication, access: StatusAccess): GrpcServer {
    const context = this.#context
    const failed = (path: string, error: unknown) => context.log('ads').error(`${path} failed: ${error instanceof Error ? error.message : error}`)
    const certificates = () =>
      certificateService({
        authentication,
        sign: (request, call) => context.askFor(call, 'signCertificate', request),
        metrics: context.metrics,
        warn: (kind, line) => this.#warn(kind, line, 'serverca'),
        failed,
      })
    const signs = context.config.secure?.signs ?? false
    const services = [discoveryServiceName, adminServiceName, ...statusServiceNames, ...(signs ? certificateServiceNames : [])]
    const streams = (delta: boolean): Method => ({
      type: 'bidi_stream',
      open: (stream) => this.#callers.open(stream, (caller) => this.#accept(stream, delta, caller)),
    })
    return new GrpcServer(serverOptions(context.config), {
      log: context.log('ads'),
      metrics: context.metrics,
      standstillTimer: this.#standstillTimer,
      methods: new Map([
        [`/${discoveryServiceName}/StreamAggregatedResources`, streams(false)],
        [`/${discoveryServiceName}/DeltaAggregatedResources`, streams(true)],
        ...statusServices({
          ...{ ask: (question, ...details) => context.ask(question, ...details), access, services, failed },
          warn: (kind, line) => this.#warn(kind, line, 'status'),
        }),
        ...adminPassing(access, (question) => context.ask('adminCall', question)),
        ...(signs ? certificates() : []),
      ]),
      page: (call) => access.page(call, (question) => context.ask('debugPage', question)),
      trust: this.#secured.trust,
      known: new KnownAddresses(context.config.knownAddresses, context.config.versionKey),
      refused: () => this.#budgets.refused(),
    })
  }

  linked(peer: Peer<Sent>): void {
    this.#registering.linked(peer)
    if (peer.kind === 'certificate-authority') this.#callers.linked(peer, this.#connections.values())
    if (peer.kind === 'source') this.#secrets.linked(peer)
    if (peer.kind === 'distribution') {
      this.#acknowledgements.linked(peer)
      this.#events.linked(peer)
    }
    if (peer.kind !== 'push-queue') return
    this.#queue = peer
    this.#isFullStateRequested = false
    for (const connection of this.#connections.values()) this.#announce(connection)
  }

  unlinked(peer: Peer): void {
    this.#registering.unlinked(peer)
    this.#secrets.unlinked(peer)
    if (peer.kind === 'distribution') {
      this.#acknowledgements.unlinked()
      this.#events.unlinked()
    }
  }

  forgotten(peer: Peer): void {
    this.#wakeDue(this.#secrets.forgotten(peer), monotonicMs())
    const cluster = clusterOfActor(peer.name)
    if (cluster !== undefined) this.#callers.vouchedNoMore(cluster, this.#connections.values())
  }

  receive(command: Message, from: Peer): void {
    switch (command.type) {
      case 'MeshNamesChanged':
        this.#secured.receive(command)
        this.#secrets.named(command, this.#connections.values())
        return this.#wakeDue(this.#connections.values(), monotonicMs())
      case 'TokenKeysChanged':
        return this.#tokenKeys.receive(command)
      case 'CertificateChanged':
        return this.#secured.receive(command)
      case 'TrustChanged':
        this.#secured.receive(command)
        if (command.announced !== undefined && this.#announced.announce(command.announced)) this.#wakeDue(this.#connections.values(), monotonicMs())
        return
      case 'SecretChanged':
        return this.#wakeDue(this.#secrets.receive(command, from), command.at)
      case 'PublishPush':
        return this.#publish(command)
      case 'ReportTaken':
        return this.#acknowledgements.taken()
      case 'ReportProxyEvents':
        return this.#events.want(command)
      case 'ProxyEventsTaken':
        return this.#events.taken()
      case 'PushAgain':
        this.#push = command.push
        for (const connection of this.#connections.values()) {
          connection.session.sendAgain()
          this.#pushes.changed(connection, command.push.startedAt)
        }
        return this.#pushes.work()
      case 'ReleaseConnections':
        return this.#releases.balance(command.count)
      case 'RefuseProxy':
        return this.#refuseProxy(command.connection, command.reason)
      case 'RegistrationRefused':
        return this.#registering.refused(command)
      case 'OpenListener':
        // Configuration is served on the plaintext port although the secured one has no certificate (docs/certificates.md, V2).
        return void Promise.race([this.#server.open(), this.#secured.missing]).then(() => this.#context.note(servingNote, true))
    }
  }

  async drain(): Promise<void> {
    await this.#server.close()
  }

  #publish(command: Extract<WriterCommand, { type: 'PublishPush' }>): void {
    const changed = this.#catalog.apply(command, (classId) => this.#members.has(classId))
    this.#requestFullState()
    this.#push = command.push
    const isChange = this.#acknowledgements.applied(command.push)
    const touched = this.#catalog.classesOf(changed)
    for (const { classId } of command.manifests) touched.add(classId)
    for (const { connection: id, classId } of command.assignments) {
      const connection = this.#connections.get(id)
      if (!connection) continue
      this.#members.move(connection, classId)
      for (const refused of connection.session.stillRefused()) this.#reportRefusal(connection, refused)
      if (connection.isClassKnown) {
        this.#pushes.changed(connection, command.push.startedAt)
        if (isChange && connection.session.isDue()) this.#acknowledgements.owes(connection, command.push)
      } else {
        connection.isClassKnown = true
        this.#pushes.wake(connection)
      }
    }
    for (const classId of touched)
      for (const connection of this.#members.of(classId))
        if (connection.session.isDue()) {
          this.#pushes.changed(connection, command.push.startedAt)
          if (isChange) this.#acknowledgements.owes(connection, command.push)
        }
    this.#queue?.tell({ type: 'PushApplied', push: command.push.id }, 'taken')
    this.#pushes.work()
  }

  /** Pushes to those of the given connections that have something due, after a change first seen at `at` (monotonic milliseconds). */
  #wakeDue(connections: Iterable<Connection>, at: number): void {
    for (const connection of connections) if (connection.isClassKnown && connection.session.isDue()) this.#pushes.changed(connection, at)
    this.#pushes.work()
  }

  /** Requests the full state when an update was refused because its base is not the state here. The present state is served until then. */
  #requestFullState(): void {
    const isOutOfSync = this.#catalog.outOfSyncGroups.size > 0
    if (isOutOfSync && !this.#isFullStateRequested) this.#queue?.tell({ type: 'FullStateRequested' }, 'everything')
    this.#isFullStateRequested = isOutOfSync
  }

  #accept(stream: GrpcStream, delta: boolean, caller: Caller | undefined): void {
    // Without XDS_AUTH nobody presents a credential, and whoever can reach the port is served.
    if (stream.isSecure && !this.#features.XDS_AUTH) this.#server.trust(stream.peer, stream.connection)
    const session = new XdsSession(delta, this.#sessionParts, this.#budgets.opened(stream.connection, caller))
    const connection: Connection = {
      id: '',
      transport: 0,
      node: undefined,
      nodeBytes: 0,
      caller,
      verifiedIdentity: undefined,
      session,
      stream,
      connectedAt: wallClockMs(),
      isClassKnown: false,
      turn: new Turn(),
      sending: undefined,
      ...{ changedAt: 0, pushedSince: 0, heldTimer: undefined },
      rejections: [],
    }
    connection.transport = this.#transports.add(stream.connection, connection).number
    stream.onBorrowed((message) => this.#request(connection, message))
    stream.onEnd(() => stream.end(0, ''))
    stream.onStandstill((reason) => this.#stoodStill(connection, reason))
    stream.onClose(() => this.#closed(connection))
  }

  #request(connection: Connection, message: Buffer): void {
    try {
      const { session } = connection
      if (session.delta) {
        const request = readDeltaRequest(message)
        if (!this.#admission.identify(connection, request.node) || this.#isAside(connection, request, request.rawSubscribe)) return
        this.#recordOutcome(connection, request, session.takeDelta(request, monotonicMs()))
      } else {
        const request = readSotwRequest(message)
        if (!this.#admission.identify(connection, request.node) || this.#isAside(connection, request, request.rawNames)) return
        this.#recordOutcome(connection, request, session.takeSotw(request, monotonicMs()))
      }
    } catch (error) {
      this.#admission.refuse(connection, error)
    }
  }

  /** Takes requests that are not for configuration. With the first one that is, the stream is that of a proxy. */
  #isAside(connection: Connection, request: ConfigRequest, rawNames: Buffer): boolean {
    if (this.#statusStreams.takes(connection, request, () => namesIn(rawNames)) || this.#configStreams.takes(connection, request)) return true
    return !this.#admit(connection) || this.#isHealthReport(connection, request)
  }

  /**
   * Whether a request is an agent's report of its workload's health (docs/agent.md, H9), which subscribes to nothing and rejects nothing:
   * its error says why the workload is unhealthy.
   */
  #isHealthReport(connection: Connection, { typeUrl, error }: Pick<DeltaRequest, 'typeUrl' | 'error'>): boolean {
    if (typeUrl !== healthType && typeUrl !== aliasHealthType) return false
    this.#context.log('wle').debug(this.#registering.reported(connection, error))
    return true
  }

  /** Ends a proxy's stream because the push queue refused it: its identity exceeds its limits. */
  #refuseProxy(id: string, reason: string): void {
    const connection = this.#connections.get(id)
    if (connection) this.#admission.refuse(connection, new BudgetExceeded(reason))
  }

  /** Makes the stream that of a proxy, which is served configuration. Returns false when it was ended because there are too many. */
  #admit(connection: Connection): boolean {
    if (connection.id !== '') return true
    if (!this.#admission.takePlace(connection)) return false
    connection.id = `${connection.node?.id}-${this.#context.config.index + this.#context.config.writers * this.#connectionCount++}`
    this.#connections.set(connection.id, connection)
    this.#secrets.admit(connection)
    this.#context.log('ads').info(`new connection ${connection.id}`, {
      delta: connection.session.delta,
      ...(connection.verifiedIdentity === undefined ? {} : { identity: connection.verifiedIdentity }),
    })
    this.#announce(connection)
    this.#registering.connected(connection)
    this.#callers.connected(connection)
    this.#events.connected(connection)
    return true
  }

  #announce(connection: Connection): void {
    const { id, node, transport, nodeBytes, caller, verifiedIdentity: identity = caller?.identities[0] } = connection
    const claim = identity === undefined ? {} : { claim: { identity: principalOf(identity, caller ?? {}), nodeBytes } }
    if (node) this.#queue?.tell({ type: 'ProxyConnected', connection: id, transport, node, ...claim }, `proxy|${id}`)
  }

  #recordOutcome(connection: Connection, request: Refusing, outcome: Outcome): void {
    const { typeUrl, nonce, error } = request
    this.#metrics.request(typeUrl, outcome)
    if (outcome === 'nack') {
      rejectionHistory(connection, typeUrl, error)
      this.#events.refused(connection, request)
      const refused = error && connection.session.refused(typeUrl, nonce, error.message)
      if (refused) this.#acknowledgements.refused(connection, refused)
      this.#reportRefusal(connection, refused)
      this.#warn(`rejected|${connection.node?.id}|${typeUrl}`, `${connection.id} rejected ${typeUrl}: ${(error?.message ?? '').replace(/\s+/g, ' ')}`)
    }
    if (outcome === 'stale') return
    const resources = error ? [] : connection.session.acceptedAgain(typeUrl)
    const { id } = connection
    if (resources.length > 0) this.#queue?.tell({ type: 'ResourcesAccepted', connection: id, typeUrl, resources }, `accepted|${id}|${typeUrl}`)
    const isDue = connection.session.isDue()
    this.#acknowledgements.answered(connection, typeUrl, isDue)
    if (isDue && connection.isClassKnown) this.#pushes.wake(connection)
  }

  /** Reports a NACK to the push queue, which may assign other resources to the proxy. */
  #reportRefusal({ id, session }: Connection, refused: Refused | undefined): void {
    if (refused)
      this.#queue?.tell({ type: 'ResourcesRefused', connection: id, classId: session.classId, ...refused }, `refused|${id}|${refused.typeUrl}`)
  }

  /** Counts and logs a stream that was ended because it made no progress. */
  #stoodStill(connection: Connection, reason: string): void {
    this.#metrics.stoodStill()
    const { peer } = connection.stream
    this.#warn(`still|${connection.node?.id ?? peer}`, `${connection.id || peer} ended with DeadlineExceeded: ${reason}`)
  }

  /** Logs a line about a client. The number of lines of one kind is limited. */
  #warn(kind: string, line: string, scope: 'ads' | 'serverca' | 'status' | 'wle' = 'ads'): void {
    const bounded = this.#lines.bounded(kind, line, monotonicMs(), suppressionHint)
    if (bounded !== undefined) this.#context.log(scope).warn(bounded)
  }

  #closed(connection: Connection): void {
    this.#pushes.drop(connection)
    const { session, stream } = connection
    this.#transports.remove(stream.connection, connection)
    session.close()
    this.#admission.gone(connection)
    this.#secrets.gone(connection)
    this.#members.leave(connection)
    if (connection.id !== '' && this.#connections.delete(connection.id)) {
      this.#admission.leavePlace()
      this.#context.log('ads').info(`connection ${connection.id} closed`)
      this.#callers.gone(connection)
      this.#registering.gone(connection)
      this.#acknowledgements.gone(connection)
      this.#events.gone(connection)
      this.#queue?.tell({ type: 'ProxyDisconnected', connection: connection.id }, `proxy|${connection.id}`)
    }
    this.#budgets.closed(connection.caller)
    this.#pushes.work()
  }
}

/** The actor definition of an XDS writer. */
export const actor: ActorDefinition<XdsWriterConfig, Message, Sent> = {
  kind: 'xds-writer',
  start: (context) => new XdsWriter(context),
}
