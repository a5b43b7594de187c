/**
 * The one table that maps mesh-owned names to the mesh domain (`mesh.io`, or `MESH_DOMAIN`) and accepts `istio.io` as an alias wherever
 * such a name can appear. No other part of the project handles the alias.
 */

const aliasDomain = 'istio.io'

/** Whether an API group is written with the alias. */
export const isAliasGroup = (group: string): boolean => group === aliasDomain || group.endsWith(`.${aliasDomain}`)

/** Both spellings of a group of the mesh, that of a domain and the alias: `networking` -> `networking.mesh.io`, `networking.istio.io`. */
export const groupSpellings = (group: string, domain = 'mesh.io'): readonly string[] => [`${group}.${domain}`, `${group}.${aliasDomain}`]

/** Converts mesh-owned names for one mesh domain. */
export interface MeshNames {
  /** The domain of names on output, by default `mesh.io`. */
  readonly domain: string
  /**
   * Returns an API group in its mesh form (`networking.istio.io` -> `networking.mesh.io`). Groups that are not mesh-owned are returned
   * unchanged.
   */
  canonicalGroup(group: string): string
  /** Returns a label or annotation key in its mesh form. Keys that are not mesh-owned are returned unchanged. */
  canonicalKey(key: string): string
  /** Returns both spellings of a label or annotation key, the mesh form first; of a key that is not mesh-owned the key alone. */
  keySpellings(key: string): readonly string[]
  /** Returns the map with every mesh-owned key in its mesh form. The mesh form has precedence where both are present. */
  canonicalKeys(map: Readonly<Record<string, string>>): Record<string, string>
}

/** Node metadata keys that have an alias spelling, alias first. */
const metadataAliases: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ISTIO_VERSION: 'MESH_VERSION',
    ISTIO_PROXY_SHA: 'MESH_PROXY_SHA',
    ENVOY_PROMETHEUS_PORT: 'PROXY_PROMETHEUS_PORT',
    ENVOY_STATUS_PORT: 'PROXY_STATUS_PORT',
  }),
)

/** Environment variables that have an alias spelling, alias first. */
export const variableAliases: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ISTIO_BOOTSTRAP: 'MESH_BOOTSTRAP',
    ISTIO_BOOTSTRAP_OVERRIDE: 'MESH_BOOTSTRAP_OVERRIDE',
    ISTIO_DELTA_XDS: 'MESH_DELTA_XDS',
    ISTIO_KUBE_APP_PROBERS: 'MESH_ORCH_APP_PROBERS',
    ISTIO_GPRC_MAXRECVMSGSIZE: 'MESH_GPRC_MAXRECVMSGSIZE',
    ISTIO_GPRC_MAXSTREAMS: 'MESH_GPRC_MAXSTREAMS',
    ISTIO_PROMETHEUS_ANNOTATIONS: 'MESH_METRICS_ANNOTATIONS',
    ENVOY_PORT: 'PROXY_PORT',
    ENVOY_PROMETHEUS_PORT: 'PROXY_PROMETHEUS_PORT',
    ENVOY_STATUS_PORT: 'PROXY_STATUS_PORT',
    ENVOY_USER: 'PROXY_USER',
    GCP_METADATA: 'CLOUD_METADATA',
    GKE_CLUSTER_URL: 'CLOUD_CLUSTER_URL',
    KUBERNETES_SERVICE_HOST: 'ORCHESTRATOR_SERVICE_HOST',
    KUBERNETES_SERVICE_PORT: 'ORCHESTRATOR_SERVICE_PORT',
  }),
)

/** Prefixes of environment variables that become node metadata, alias first. */
const variablePrefixes = [
  ['ISTIO_META_', 'MESH_META_'],
  ['ISTIO_METAJSON_', 'MESH_METAJSON_'],
] as const

/** Returns an environment with alias names in the mesh form. The mesh form has precedence where both are set. */
export function canonicalEnvironment(environment: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> {
  return withKeys(environment, (name) => {
    const [alias, mesh] = variablePrefixes.find(([prefix]) => name.startsWith(prefix)) ?? []
    return alias !== undefined && mesh !== undefined ? mesh + name.slice(alias.length) : (variableAliases.get(name) ?? name)
  })
}

/** Labels of workloads with an alias outside the mesh domain, alias first. */
const localityLabels = ['istio-locality', 'mesh-locality'] as const

/**
 * Returns the locality in a workload's label, `<region>/<zone>/<sub-zone>`. Dots count as slashes if there are no slashes. Undefined
 * without such a label.
 */
export function localityLabel(labels: Readonly<Record<string, unknown>>): string | undefined {
  const [alias, mesh] = localityLabels.map((name) => (Object.hasOwn(labels, name) ? labels[name] : undefined))
  const value = mesh ?? alias
  if (typeof value !== 'string') return undefined
  return value.includes('/') ? value : value.replaceAll('.', '/')
}

/** Names of cloud-specific parts of the agent, alias first. */
const cloudAliases: ReadonlyMap<string, string> = new Map(
  Object.entries({ GoogleCA: 'CloudCA', GoogleComputeEngine: 'CloudComputeEngine', GoogleTokenExchange: 'CloudTokenExchange' }),
)

/** Returns the name of a plugin, provider or credential fetcher in the mesh form. Other names are returned unchanged. */
export function canonicalCloudName(name: string): string {
  return cloudAliases.get(name) ?? name
}

/** Returns the TLS mode for mesh certificates in the mesh form. Other modes are returned unchanged. */
export const canonicalTlsMode = (mode: string): string => (mode === 'ISTIO_MUTUAL' ? 'MESH_MUTUAL' : mode)

/** Returns the names of a TLS mode: its own, and the alias if there is one. */
export const tlsModeNames = (mode: string): string[] => (mode === 'MESH_MUTUAL' ? [mode, 'ISTIO_MUTUAL'] : [mode])

/** Whether the value of the label `tlsMode` of a workload says that its proxy accepts mutual TLS. */
export const isMutualTlsLabel = (value: string): boolean => value === 'mesh' || value === 'istio'

/** gRPC services that have an alias name. */
const serviceAliases: ReadonlyMap<string, string> = new Map(
  Object.entries({ 'mesh.v1.auth.MeshCertificateService': 'istio.v1.auth.IstioCertificateService' }),
)

/** Returns the full names of a gRPC service: its own, and the alias if there is one. */
export function serviceNames(service: string): string[] {
  const alias = serviceAliases.get(service)
  return [service, ...(alias === undefined ? [] : [alias])]
}

/** Returns the request paths of a gRPC method, one for each name of its service. */
export const servicePaths = (service: string, method: string): string[] => serviceNames(service).map((name) => `/${name}/${method}`)

/** Messages defined by the mesh that have an alias name, by mesh name. */
const messageAliases: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'mesh.networking.nds.v1.NameTable': 'istio.networking.nds.v1.NameTable',
    'mesh.v1.HealthInformation': 'istio.v1.HealthInformation',
    'mesh.mcp.v1alpha1.Resource': 'istio.mcp.v1alpha1.Resource',
  }),
)

/** Returns the two type URLs of a message defined by the mesh: by its name, and by its alias. */
export function typeUrlsOf(message: string): { readonly mesh: string; readonly alias: string } {
  const url = (name: string) => `type.googleapis.com/${name}`
  return { mesh: url(message), alias: url(messageAliases.get(message) ?? message) }
}

/** The address of the cluster as a source of configuration, and its alias. */
export const clusterAddress = 'orch://'
const clusterAddressAlias = 'k8s://'

/** Returns the address of a source of configuration in the mesh form. Addresses of other sources are returned unchanged. */
export const canonicalSource = (address: string): string => (address === clusterAddressAlias ? clusterAddress : address)

/** The name of an orchestrator's registry in messages with an alias name. */
export const orchestratorAlias = 'Kubernetes'

/** The names of the ConfigMap with the settings of the mesh, the alias last. */
export const settingsConfigMaps: readonly string[] = ['mesh', 'istio']

/** The labels of gateways that serve Ingresses, the alias last; default classes of Ingresses; default Services of these gateways. */
export const gatewayLabels: readonly string[] = ['mesh', 'istio']
export const ingressClasses: readonly string[] = ['mesh', 'istio']
export const ingressServices: readonly string[] = ['mesh-ingressgateway', 'istio-ingressgateway']

/** The names of the containers that injection adds to pods, the alias last. */
export const injectedContainers = {
  proxy: ['mesh-proxy', 'istio-proxy'],
  init: ['mesh-init', 'istio-init'],
  validation: ['mesh-validation', 'istio-validation'],
  coreDump: ['enable-core-dump'],
} as const

/** Returns the spellings of the name of an injected container, the given one first; that one alone for other names. */
export const containerSpellings = (name: string): readonly string[] => {
  const spellings: readonly string[] = Object.values(injectedContainers).find((names) => (names as readonly string[]).includes(name)) ?? []
  return [name, ...spellings.filter((spelling) => spelling !== name)]
}

/** The names of the ConfigMap with the configuration of injection, the alias last. */
export const injectorConfigMaps: readonly string[] = ['mesh-sidecar-injector', 'istio-sidecar-injector']

/** The ends of the names of injection webhooks, the alias last. */
export const injectorWebhooks: readonly string[] = ['sidecar-injector.mesh.io', 'sidecar-injector.istio.io']

/** Whether variables are spelled with the alias: some are, and none is in the mesh form. */
export const areAliasVariables = (names: readonly string[]): boolean =>
  names.some((name) => name.startsWith('ISTIO_')) && !names.some((name) => name.startsWith('MESH_'))

/** Returns the name of a variable in the mesh form. */
export const canonicalVariable = (name: string): string => Object.keys(canonicalEnvironment({ [name]: '' }))[0] ?? name

/** Returns the alias of a variable; its own name where it has none. */
export function variableAlias(name: string): string {
  for (const [alias, mesh] of variablePrefixes) if (name.startsWith(mesh)) return alias + name.slice(mesh.length)
  for (const [alias, mesh] of variableAliases) if (mesh === name && alias.startsWith('ISTIO_')) return alias
  return name
}

/** Returns the name of a registry in the mesh form. Other names are returned unchanged. */
export const canonicalRegistry = (name: string): string => (name === orchestratorAlias ? 'Orchestrator' : name)

/** Returns node metadata with alias keys in the mesh form. The mesh form has precedence where both are present. */
export function canonicalMetadata(metadata: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return withKeys(metadata, (key) => metadataAliases.get(key) ?? key)
}

/** Renames the keys of a map. A key that already exists keeps its own value. A map without any that is renamed is returned itself. */
function withKeys<T>(map: Readonly<Record<string, T>>, rename: (key: string) => string): Readonly<Record<string, T>> {
  if (!Object.keys(map).some((key) => rename(key) !== key)) return map
  const entries: [string, T][] = []
  for (const [key, value] of Object.entries(map)) {
    const renamed = rename(key)
    if (renamed === key || !Object.hasOwn(map, renamed)) entries.push([renamed, value])
  }
  return Object.fromEntries(entries)
}

/** Creates the table for a mesh domain. */
export function meshNames(domain: string): MeshNames {
  const rename = (name: string): string => {
    if (name === aliasDomain) return domain
    return name.endsWith(`.${aliasDomain}`) ? name.slice(0, -aliasDomain.length) + domain : name
  }
  const canonicalKey = (key: string): string => {
    const slash = key.indexOf('/')
    return slash < 0 ? key : rename(key.slice(0, slash)) + key.slice(slash)
  }
  return {
    domain,
    canonicalGroup: rename,
    canonicalKey,
    keySpellings(key) {
      const mesh = canonicalKey(key)
      const slash = mesh.indexOf('/')
      const owner = mesh.slice(0, Math.max(slash, 0))
      if (owner !== domain && !owner.endsWith(`.${domain}`)) return [key]
      return [mesh, owner.slice(0, -domain.length) + aliasDomain + mesh.slice(slash)]
    },
    canonicalKeys: (map) => withKeys(map, canonicalKey),
  }
}
