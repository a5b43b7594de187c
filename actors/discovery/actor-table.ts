/** The table of the discovery service's actors: what each consumes and emits, and where it runs. */
import type { WebhookPort, WebhooksConfig } from '../../protocols/messages/admission.ts'
import type { InForceEvent, SeenEvent } from '../../protocols/messages/analysis.ts'
import type { StatePlace } from '../../protocols/messages/authority.ts'
import type { CertificateEvent, CertificateFiles } from '../../protocols/messages/certificates.ts'
import type { ProcessSecrets, XdsWriterConfig } from '../../protocols/messages/config.ts'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { DistributionCommand, ProxiesReported, PushEvent } from '../../protocols/messages/distribution.ts'
import type { MeshNamesEvent, TokenKeysEvent } from '../../protocols/messages/identity.ts'
import type { InjectorEvent, InjectorWebhooksEvent, MeshSettingsEvent } from '../../protocols/messages/injection.ts'
import type { MeshObjectEvent, ObjectAnalysed, ObjectsPublished, ObjectsWithdrawn, ProxiesReached } from '../../protocols/messages/object-status.ts'
import type { ProxyEventsReported } from '../../protocols/messages/proxy-events.ts'
import type { KeySetEvent, ResolverCommand, SourceEvent, WriterCommand, WriterEvent } from '../../protocols/messages/push.ts'
import type { RegistrarConfig, RegistrationObjectEvent, RegistrationRefused, WorkloadEvent } from '../../protocols/messages/registration.ts'
import type { NamespaceRootsEvent } from '../../protocols/messages/root-certificates.ts'
import type { SecretCommand, SecretEvent } from '../../protocols/messages/secrets.ts'
import type { IdentityEvent, TrustEvent } from '../../protocols/messages/trust.ts'
import type { ValidationControllerConfig } from '../../protocols/messages/validation-webhook.ts'
import { actorOfSource, type ConfigSource, directoryOf, isCluster, isControlPlane } from '../../src/config/config-sources.ts'
import type { Features } from '../../src/config/features.ts'
import { permitWords, reclaimPermits } from '../../src/push/pacing/permits.ts'
import { proxySlotWords } from '../../src/push/pacing/proxy-slots.ts'
import { knownAddressWords } from '../../src/transport/known-addresses.ts'
import type { SpawnMode } from '../runtime/spawn.ts'
import { type ActorRow, type LateActor, type Wiring, wire, wireLate } from '../runtime/wiring.ts'
import { requestSettings } from './cluster/cluster-api.ts'
import { orchestratorSource, remoteActor, remoteSources } from './given/sources.ts'
import type { AuthenticatorConfig } from './identity/settings.ts'

/** Parameters of the table. */
export interface TableParts {
  /** With the actual listening addresses. */
  readonly options: DiscoveryOptions
  readonly features: Features
  /** Whether the registry of a cluster is followed. */
  readonly hasRegistry: boolean
  /** Whether there is a cluster. */
  readonly hasCluster: boolean
  /** The sources of configuration objects where the mesh configuration names none. */
  readonly configSources: readonly ConfigSource[]
  /** Names of sources that have no actor; with one of them, nothing is ever served. */
  readonly missingSources: readonly string[]
  /** The sources that an earlier push queue had synced; undefined before the first push. */
  readonly syncedBefore: () => readonly string[] | undefined
  /** Whether local callers may use client status without a credential. */
  readonly statusOnLoopback: boolean
  /** Number of writers. */
  readonly writers: number
  /** The secured address of the writers, and the plaintext one of each. */
  readonly listen: Pick<XdsWriterConfig, 'secure'> & { readonly plain: (writer: number) => XdsWriterConfig['plain'] }
  /** The certificate files of the secured port; undefined without such a port or such files. */
  readonly certificates: CertificateFiles | undefined
  /** Settings for workload tokens and for the roots of other trust domains. */
  readonly identity: AuthenticatorConfig
  /** Secrets of the push queue and the writers. */
  readonly secrets: ProcessSecrets
  /** Where the certificate authority has its state. */
  readonly place: StatePlace
  /** Where webhooks are served over TLS; undefined: their reviews come from the main thread. */
  readonly webhooks: WebhookPort | undefined
  /** The configuration of the validating webhook that is kept; undefined: none is. */
  readonly keptWebhook: ValidationControllerConfig | undefined
  /** The name of this replica, by which others know it, also as a keeper of WorkloadEntries. */
  readonly replica: string | undefined
  /** Where actors with CPU-bound work run. */
  readonly mode: SpawnMode
  /** Resolves the path of an actor's module, relative to this folder. */
  readonly module: (name: string) => URL
}

/** The actors to start, the links between them, and the sources. */
export interface DiscoveryWiring extends Wiring {
  /** Returns the actor for a source of the mesh configuration, which is asked for at each of its starts. */
  readonly configured: (source: () => ConfigSource) => LateActor
  /** Returns the actor that follows another cluster. */
  readonly remote: (cluster: string) => LateActor
  /** The webhooks, which are started where an API server may call them, or when somebody does. */
  readonly webhooks: LateActor
  /** Names of the sources whose first replay the first push waits for. */
  readonly sources: readonly string[]
}

/** The messages between actors. */
interface Messages {
  SourceEvent: SourceEvent
  KeySetEvent: KeySetEvent
  ResolverCommand: ResolverCommand
  WriterCommand: WriterCommand
  WriterEvent: WriterEvent
  CertificateEvent: CertificateEvent
  MeshNamesEvent: MeshNamesEvent
  TrustEvent: TrustEvent
  TokenKeysEvent: TokenKeysEvent
  IdentityEvent: IdentityEvent
  SecretCommand: SecretCommand
  SecretEvent: SecretEvent
  PushEvent: PushEvent
  ProxiesReported: ProxiesReported
  ProxyEventsReported: ProxyEventsReported
  NamespaceRootsEvent: NamespaceRootsEvent
  MeshSettingsEvent: MeshSettingsEvent
  InjectorEvent: InjectorEvent
  InjectorWebhooksEvent: InjectorWebhooksEvent
  DistributionCommand: DistributionCommand
  MeshObjectEvent: MeshObjectEvent
  ObjectsPublished: ObjectsPublished
  ObjectsWithdrawn: ObjectsWithdrawn
  ProxiesReached: ProxiesReached
  ObjectAnalysed: ObjectAnalysed
  InForceEvent: InForceEvent
  SeenEvent: SeenEvent
  WorkloadEvent: WorkloadEvent
  RegistrationObjectEvent: RegistrationObjectEvent
  RegistrationRefused: RegistrationRefused
}
type Row<Definition> = ActorRow<Messages, Definition>

type Analyzer = typeof import('./analyzer/analyzer.ts').actor
type PushQueue = typeof import('./push-queue/push-queue.ts').actor
type FileWatcher = typeof import('./sources/files/file-watcher.ts').actor
type DirectorySource = typeof import('./sources/files/directory-source.ts').actor
type ConfigWatcher = typeof import('./sources/orchestrator/config-watcher.ts').actor
type ControlPlaneSource = typeof import('./sources/xds/xds-source.ts').actor
type RegistryWatcher = typeof import('./sources/orchestrator/registry-watcher.ts').actor
type RemoteWatcher = typeof import('./sources/orchestrator/remote-watcher.ts').actor
type MockRegistry = typeof import('./sources/mock/mock-registry.ts').actor
type KeySetResolver = typeof import('./key-sets/jwks-resolver.ts').actor
type CertificateWatcher = typeof import('./certificates/certificate-watcher.ts').actor
type Authenticator = typeof import('./identity/authenticator.ts').actor
type CertificateAuthority = typeof import('./authority/certificate-authority.ts').actor
type RootCertificates = typeof import('./leader/root-certificates.ts').actor
type MeshCertificates = typeof import('./leader/mesh-certificates.ts').actor
type ValidationController = typeof import('./leader/validation-controller.ts').actor
type Registrar = typeof import('./registrar/registrar.ts').actor
type StatusWriter = typeof import('./leader/status-writer.ts').actor
type Distribution = typeof import('./distribution/distribution.ts').actor
type Webhooks = typeof import('./webhooks/webhooks.ts').actor
type XdsWriter = typeof import('./xds-writer/xds-writer.ts').actor

/**
 * Size of the young generation of the thread that parses configuration, in MiB. A document leaves many tokens that are needed until it has
 * been converted; a smaller young generation copies them.
 */
const parserYoungMib = 24

/** Maximum number of connections to the webhooks: those of a few API servers, which keep theirs. */
const webhookConnections = 128

/** Returns the wiring of a service. Two actors are linked when one emits a message that the other consumes. */
export function actorTable(parts: TableParts): DiscoveryWiring {
  const { options, features, secrets, mode } = parts
  const { allowUnreadableConfig: allowUnreadable, configDir, meshConfig, networksConfig, trustDomain, domain, plugins } = options
  // Without a directory, the watcher only waits for the two settings files and needs no thread of its own.
  const files: Row<FileWatcher> = {
    module: 'sources/files/file-watcher',
    consumes: { SecretCommand: true },
    emits: { SourceEvent: true, SecretEvent: true, SeenEvent: true },
    runs: configDir === '' ? 'in-thread' : mode,
    actors: [
      {
        name: 'source/files',
        config: { features, allowUnreadable, configDir, meshConfig, networksConfig, trustDomain, source: 'files' },
        youngMib: parserYoungMib,
      },
    ],
  }
  const mock: Row<MockRegistry> = {
    module: 'sources/mock/mock-registry',
    consumes: {},
    emits: { SourceEvent: true },
    runs: features.PILOT_MOCK_CHURN_PER_SECOND > 0 || features.PILOT_MOCK_ROLLOUT_PER_SECOND > 0 ? mode : 'in-thread',
    actors: options.registries.includes('Mock') ? [{ name: 'source/mock', config: { features, domain } }] : [],
  }
  const cluster = clusterRow(parts)
  const settingSources = [...files.actors, ...mock.actors, ...cluster.actors].map(({ name }) => name)
  const sources = [...settingSources, ...(parts.hasRegistry ? [remoteSources] : []), ...parts.missingSources]
  const own = { ...features, POD_NAMESPACE: options.namespace || features.POD_NAMESPACE }
  const forQueue = {
    hasCluster: parts.hasCluster,
    features: own,
    secrets,
    domain,
    trustDomain,
    plugins,
    sources,
    settingSources,
    configSources: parts.configSources,
  }
  const queue: Row<PushQueue> = {
    module: 'push-queue/push-queue',
    consumes: { SourceEvent: true, KeySetEvent: true, WriterEvent: true },
    emits: {
      WriterCommand: true,
      ResolverCommand: true,
      PushEvent: true,
      MeshNamesEvent: true,
      MeshSettingsEvent: true,
      InForceEvent: true,
      ObjectsPublished: true,
      ObjectsWithdrawn: true,
    },
    runs: mode,
    actors: [{ name: 'push-queue', config: () => ({ ...forQueue, syncedBefore: parts.syncedBefore() }) }],
  }
  const trust = trustRows(parts)
  const writers: Row<XdsWriter> = {
    module: 'xds-writer/xds-writer',
    consumes: {
      ...{ WriterCommand: true, CertificateEvent: true, TrustEvent: true, MeshNamesEvent: true, SecretEvent: true, TokenKeysEvent: true },
      ...{ DistributionCommand: true, RegistrationRefused: true },
    },
    emits: {
      ...{ WriterEvent: true, IdentityEvent: true, SecretCommand: true, ProxiesReported: true, ProxyEventsReported: true },
      WorkloadEvent: true,
    },
    runs: mode,
    actors: writerActors(parts, secrets.versionKey),
  }
  const late = configuredRows(mode)
  const remotes = remoteRow(mode)
  const webhooks: Row<Webhooks> = {
    module: 'webhooks/webhooks',
    consumes: {
      ...{ CertificateEvent: true, TrustEvent: true, MeshNamesEvent: true },
      ...{ MeshSettingsEvent: true, InjectorEvent: true, InjectorWebhooksEvent: true },
    },
    emits: {},
    runs: mode,
    actors: [],
  }
  const beside = [resolverRow(parts), analyzerRow(parts, own), distributionRow(), statusRow(parts), registrarRow(parts)]
  const rows = [queue, files, ...Object.values(late), mock, cluster, remotes, ...trust, ...beside, writers, webhooks]
  return {
    ...wire(rows, parts.module),
    webhooks: wireLate(webhooks, { name: 'webhooks', config: webhooksConfig(parts, own) }, rows, parts.module),
    sources,
    configured: (source) => configuredActor(parts, rows, late, source),
    remote: (id) => remoteWatcher(parts, remotes, rows, id),
  }
}

/** The configuration of the actor `webhooks`. `own`: its variables. */
const webhooksConfig = ({ webhooks: port, hasCluster, keptWebhook }: TableParts, own: object): WebhooksConfig => ({
  ...{ features: own, port, hasCluster, connections: webhookConnections },
  configuration: keptWebhook?.name ?? '',
})

/** The row of those who fetch the keys of tokens. */
const resolverRow = ({ features }: TableParts): Row<KeySetResolver> => ({
  module: 'key-sets/jwks-resolver',
  consumes: { ResolverCommand: true },
  emits: { KeySetEvent: true },
  runs: 'in-thread',
  actors: [{ name: 'jwks-resolver', config: { features } }],
})

/** The row of those who know what became of pushes. */
const distributionRow = (): Row<Distribution> => ({
  module: 'distribution/distribution',
  consumes: { PushEvent: true, ObjectsWithdrawn: true, ProxiesReported: true, ProxyEventsReported: true },
  emits: { DistributionCommand: true, ProxiesReached: true },
  runs: 'in-thread',
  actors: [{ name: 'distribution', config: {} }],
})

/** The row of the analyzer, which is there with `PILOT_ENABLE_ANALYSIS`. */
function analyzerRow({ options: { domain }, mode }: TableParts, features: Features): Row<Analyzer> {
  const config = { features, domain }
  const actors = features.PILOT_ENABLE_ANALYSIS ? [{ name: 'analyzer', config }] : []
  return { module: 'analyzer/analyzer', consumes: { InForceEvent: true, SeenEvent: true }, emits: { ObjectAnalysed: true }, runs: mode, actors }
}

/** The rows of those that know whom to trust. */
function trustRows(parts: TableParts) {
  const { features } = parts
  const certificates: Row<CertificateWatcher> = {
    module: 'certificates/certificate-watcher',
    consumes: {},
    emits: { CertificateEvent: true, TrustEvent: true },
    runs: 'in-thread',
    actors: parts.certificates ? [{ name: 'certificate-watcher', config: { files: parts.certificates } }] : [],
  }
  const authenticator: Row<Authenticator> = {
    module: 'identity/authenticator',
    consumes: { MeshNamesEvent: true },
    emits: { TrustEvent: true, TokenKeysEvent: true },
    runs: 'in-thread',
    actors: [{ name: 'authenticator', config: parts.identity }],
  }
  const authority: Row<CertificateAuthority> = {
    module: features.EXTERNAL_CA === '' ? 'authority/certificate-authority' : 'authority/registration-authority',
    consumes: { MeshNamesEvent: true, IdentityEvent: true },
    emits: { TrustEvent: true },
    runs: 'in-thread',
    actors: parts.listen.secure?.signs
      ? [{ name: 'certificate-authority', config: { features, place: parts.place, pluggedNamespace: pluggedNamespace(parts) } }]
      : [],
  }
  const rootCertificates: Row<RootCertificates> = {
    module: 'leader/root-certificates',
    consumes: { NamespaceRootsEvent: true, TrustEvent: true },
    emits: {},
    runs: 'in-thread',
    actors: keepsRoots(parts) ? [{ name: 'root-certificates', config: { domain: features.MESH_DOMAIN } }] : [],
  }
  const meshCertificates: Row<MeshCertificates> = {
    module: 'leader/mesh-certificates',
    consumes: { MeshNamesEvent: true },
    emits: {},
    runs: 'in-thread',
    actors: parts.hasCluster ? [{ name: 'mesh-certificates', config: { signer: features.ORCH_SIGNER } }] : [],
  }
  const validation: Row<ValidationController> = {
    module: 'leader/validation-controller',
    consumes: { TrustEvent: true, CertificateEvent: true },
    emits: {},
    runs: 'in-thread',
    actors: parts.keptWebhook ? [{ name: 'validation-controller', config: parts.keptWebhook }] : [],
  }
  return [certificates, authenticator, authority, rootCertificates, meshCertificates, validation]
}

/** How long after its start the status writer says nothing of proxies: those of a service that was restarted connect again. */
const statusSettleMs = 10_000

/** The writer of statuses, where there is a cluster. */
function statusRow({ hasCluster, features }: TableParts): Row<StatusWriter> {
  const { PILOT_ENABLE_STATUS: reconciled, PILOT_STATUS_QPS: perSecond, PILOT_STATUS_BURST: burst } = features
  const config = {
    reconciled,
    analysis: features.PILOT_ENABLE_ANALYSIS,
    perSecond,
    burst,
    settleMs: statusSettleMs,
    others: features.MESHD_REPLICA_ADDRESS !== '',
  }
  return {
    module: 'leader/status-writer',
    consumes: { MeshObjectEvent: true, ObjectsPublished: true, ProxiesReached: true, ObjectAnalysed: true },
    emits: {},
    runs: 'in-thread',
    actors: hasCluster && (config.reconciled || config.analysis) ? [{ name: 'status-writer', config }] : [],
  }
}

/** The registrar of workloads, where they register themselves. */
function registrarRow({ replica, features, writers }: TableParts): Row<Registrar> {
  const { MESH_DOMAIN: domain, PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: graceMs, PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS: checksHealth } = features
  const mostEntries = features.PILOT_WORKLOAD_ENTRY_MAX_PER_ACCOUNT
  const config = (name: string): RegistrarConfig => ({ replica: name, domain, graceMs, checksHealth, mostEntries, writers })
  return {
    module: 'registrar/registrar',
    consumes: { WorkloadEvent: true, RegistrationObjectEvent: true },
    emits: { RegistrationRefused: true },
    runs: 'in-thread',
    actors: replica === undefined || !features.PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION ? [] : [{ name: 'registrar', config: config(replica) }],
  }
}

/** The actor for a source of the mesh configuration. */
function configuredActor(
  parts: TableParts,
  rows: Parameters<typeof wireLate>[2],
  { directories, controlPlanes, clusterConfig }: ReturnType<typeof configuredRows>,
  source: () => ConfigSource,
): LateActor {
  const { address } = source()
  const { features, options } = parts
  const given = { features, allowUnreadable: options.allowUnreadableConfig, source: address }
  const spec = { name: actorOfSource({ address }), youngMib: parserYoungMib }
  const start = (row: Row<DirectorySource> | Row<ControlPlaneSource> | Row<ConfigWatcher>, config: () => object) =>
    wireLate(row, { ...spec, config }, rows, parts.module)
  if (isCluster({ address })) return start(clusterConfig, () => ({ ...watcherConfig(parts), source: address }))
  if (isControlPlane({ address })) return start(controlPlanes, () => ({ ...given, ...source() }))
  return start(directories, () => ({ ...given, configDir: directoryOf({ address }) }))
}

/** The rows of sources that come and go with `configSources` of the mesh configuration. */
function configuredRows(mode: SpawnMode): {
  readonly directories: Row<DirectorySource>
  readonly controlPlanes: Row<ControlPlaneSource>
  readonly clusterConfig: Row<ConfigWatcher>
} {
  return {
    directories: {
      module: 'sources/files/directory-source',
      consumes: { SecretCommand: true },
      emits: { SourceEvent: true, SecretEvent: true, SeenEvent: true },
      runs: mode,
      actors: [],
    },
    controlPlanes: { module: 'sources/xds/xds-source', consumes: {}, emits: { SourceEvent: true }, runs: mode, actors: [] },
    clusterConfig: {
      module: 'sources/orchestrator/config-watcher',
      consumes: {},
      emits: { SourceEvent: true, MeshObjectEvent: true, RegistrationObjectEvent: true, SeenEvent: true },
      runs: mode,
      actors: [],
    },
  }
}

/** The namespace whose Secret may have an authority where the state is in a directory; undefined: none is read. */
const pluggedNamespace = ({ features, hasCluster, place, options }: TableParts): string | undefined =>
  features.USE_REMOTE_CERTS && hasCluster && place.kind === 'directory' ? options.namespace || features.POD_NAMESPACE : undefined

/** Whether the ConfigMap with the root certificates is kept in each namespace: where there are a cluster and an own authority. */
const keepsRoots = ({ hasRegistry, listen, features }: TableParts): boolean =>
  hasRegistry && listen.secure?.signs === true && features.PILOT_CERT_PROVIDER !== 'orchestrator'

/** The settings of what follows the cluster. */
function watcherConfig(parts: TableParts) {
  const { options, features } = parts
  const { domain, resync: auditMs, appNamespace, allowUnreadableConfig: allowUnreadable, configDir, trustDomain } = options
  const namespace = options.namespace || features.POD_NAMESPACE
  const namespaces = appNamespace.length > 0 ? [...new Set([namespace, ...appNamespace])] : []
  const ingressNamespace = features.ORCH_INGRESS_NS || namespace
  const settings = { namespace, allowUnreadable, configDir, trustDomain }
  const own = { cluster: features.CLUSTER_ID, keepsRoots: keepsRoots(parts), staleMs: features.PILOT_ORCH_STALE_AFTER }
  return { features, domain, namespaces, ...own, auditMs, settings, ingressNamespace, ...requestSettings(options) }
}

/** The watcher of the registry of the cluster. */
function clusterRow(parts: TableParts): Row<RegistryWatcher> {
  const { hasRegistry, mode } = parts
  return {
    module: 'sources/orchestrator/registry-watcher',
    consumes: { SecretCommand: true, MeshNamesEvent: true },
    emits: {
      ...{ SourceEvent: true, SecretEvent: true, NamespaceRootsEvent: true, InjectorEvent: true, InjectorWebhooksEvent: true },
      SeenEvent: true,
    },
    runs: mode,
    actors: hasRegistry ? [{ name: orchestratorSource, config: watcherConfig(parts) }] : [],
  }
}

/** The row of the watchers of other clusters, which come and go with remote secrets. */
const remoteRow = (mode: SpawnMode): Row<RemoteWatcher> => ({
  module: 'sources/orchestrator/remote-watcher',
  consumes: { SecretCommand: true },
  emits: {
    ...{ SourceEvent: true, SecretEvent: true, NamespaceRootsEvent: true, InjectorEvent: true, InjectorWebhooksEvent: true },
    SeenEvent: true,
  },
  runs: mode,
  actors: [],
})

/** The watcher of another cluster. The webhooks come late as well, before or after it. */
function remoteWatcher(parts: TableParts, row: Row<RemoteWatcher>, rows: Parameters<typeof wireLate>[2], id: string): LateActor {
  const made = wireLate(row, { name: remoteActor(id), config: { ...watcherConfig(parts), cluster: id, isRemote: true } }, rows, parts.module)
  return parts.features.EXTERNAL_MESHD ? { ...made, peers: [...made.peers, 'webhooks'] } : made
}

function writerActors(
  { options, features, writers, listen, statusOnLoopback, identity, hasRegistry }: TableParts,
  versionKey: string,
): Row<XdsWriter>['actors'] {
  const { keepaliveInterval, keepaliveTimeout, keepaliveMaxServerConnectionAge: maxConnectionAge } = options
  const connections = { keepaliveInterval, keepaliveTimeout, maxConnectionAge }
  const [permits, proxySlots] = [permitWords(writers), proxySlotWords(writers)]
  const knownAddresses = knownAddressWords()
  return Array.from({ length: writers }, (_, index) => ({
    name: `xds-writer/${index}`,
    config: {
      features,
      ...{ plain: listen.plain(index), secure: listen.secure },
      statusOnLoopback,
      writers,
      index,
      versionKey,
      tokenRules: identity.rules,
      ...{ reviewsTokens: identity.reviewsTokens, followsClusters: hasRegistry },
      permits,
      proxySlots,
      knownAddresses,
      connections,
    },
    ended: () => reclaimPermits(permits, index),
  }))
}
