/** The table of the debug pages. What a page shows decides who may see it (docs/operation.md, "Debug pages"). Pages contain no secrets. */
import type { Endpoint, Service, ServicePort } from '../../../protocols/data.ts'
import type { EndpointsRow } from '../../../protocols/messages/pages.ts'
import type { ReplicaState } from '../../../protocols/messages/replicas.ts'
import type { Validity } from '../../../protocols/messages/secrets.ts'
import { readKey } from '../../../src/config/kinds.ts'
import type { CheckedPolicies } from '../../../src/config/policy-checks.ts'
import type { EffectRow } from '../../../src/config/without-effect.ts'
import { ambiguous } from '../../../src/model/named-connection.ts'
import { compare } from '../../../src/model/order.ts'
import type { Share } from '../../../src/push/classes/identity-shares.ts'
import { registryName } from '../../../src/registry/merged-services.ts'
import type { ListenerConflict } from '../../../src/xds/draft.ts'
import { clusterType, endpointType, listenerType, routeType } from '../../../src/xds/type-urls.ts'
import { Page } from '../../http/page-server.ts'
import type { SecretSummary } from '../sources/secret-delivery.ts'
import type { Exceeded } from '../xds-writer/budgets.ts'
import type { ConnectionStatus } from '../xds-writer/connection-debug.ts'
import type { SlowConnection } from '../xds-writer/slow-connections.ts'
import type { Coverage } from './coverage.ts'
import { readDescribedRequest, readSentRequest, requestParameters } from './described-request.ts'
import { type DistributionRow, distributionOf, instancesOf } from './distribution-rows.ts'
import { explainedFor, explainedTypes } from './explain-answers.ts'
import {
  actorsOf,
  clustersOf,
  disconnect,
  explanationOf,
  faultsOf,
  filesOf,
  findingsOf,
  holdersOf,
  longestLedger,
  proxiesOf,
  pushAgain,
  type Sees,
  silenceOf,
  silentAmong,
} from './mesh-answers.ts'
import { forbiddenNamespace } from './page-access.ts'
import { type Parameter, proxyParameter } from './page-parameters.ts'
import type { PageSources, Placed, RowsOfAll } from './page-sources.ts'
import { pushesOf } from './push-answers.ts'
import { routingOf } from './routing-answers.ts'

/** The action of a page, performed on POST with certain parameters. For operators only. */
export interface Action {
  /** The parameters of the action, for messages. */
  readonly form: string
  readonly isMeant: (query: URLSearchParams) => boolean
  readonly act: (sources: PageSources, query: URLSearchParams) => Promise<unknown>
}

/**
 * A debug page. A string is sent as text, a {@link Page} as it is, everything else as JSON. `shows` decides on access: `mesh` pages are
 * for operators; `namespaces` pages are for every caller, with the rows of the caller's own namespaces; `proxy` pages are for callers who
 * may see that proxy. `covers` decides whether a page has other replicas to ask: only one that covers all.
 */
export type DebugPage = {
  readonly what: string
  /** What the page may be asked with, beside `namespace` and the parameters of its action. */
  readonly parameters?: readonly Parameter[]
  readonly covers: Coverage
  readonly action?: Action
} & (
  | { readonly shows: 'mesh'; readonly page: (sources: PageSources, query: URLSearchParams) => Promise<unknown> }
  | { readonly shows: 'namespaces'; readonly page: (sources: PageSources, query: URLSearchParams, sees: Sees) => Promise<unknown> }
  | {
      readonly shows: 'proxy'
      readonly page: (sources: PageSources, query: URLSearchParams, proxy: Placed<ConnectionStatus>, sees: Sees) => Promise<unknown>
    }
  /** Only an action, without content. Served only where admin endpoints are enabled (`ENABLE_ADMIN_ENDPOINTS`, the admin socket). */
  | { readonly shows: 'nothing'; readonly action: Action }
)

/** Pages of the specification that are not served, with the reason. */
export const unbuiltPages: ReadonlyMap<string, string> = new Map()

/** The pages, by their names below `/debug/`. */
export const debugPages: Readonly<Record<string, DebugPage>> = {
  adsz: {
    what: 'connected proxies and their subscriptions; POST with push=true sends all configuration again',
    shows: 'namespaces',
    covers: 'replicas',
    page: async (sources, _, sees) => {
      const { rows, replicas } = await proxiesOf(sources, sees)
      const clients = rows.map(({ connectionId, namespace, connectedAt, address, watches, rejections, replica }) => ({
        ...{ connectionId, namespace, connectedAt, address, watches, rejections, replica },
      }))
      return { totalClients: clients.length, clients, ...(replicas.length > 0 && { replicas }) }
    },
    action: {
      form: 'push=true',
      isMeant: (query) => query.get('push') === 'true',
      act: async (sources) => {
        const { proxies, replicas } = await pushAgain(sources)
        return [`Pushed to ${proxies} servers`, silenceOf(silentAmong(replicas))].filter((line) => line !== '').join('; ')
      },
    },
  },
  syncz: {
    what: 'nonces sent to each proxy and acknowledged by it',
    shows: 'namespaces',
    covers: 'replicas',
    page: async (sources, _, sees) => {
      const { rows, replicas } = await sources.allConnections()
      return [...rows.filter(({ namespace }) => sees(namespace)).map(syncStatus), ...silentAmong(replicas)]
    },
  },
  slowz: {
    what: 'slow proxies: they read no data of a response at present, or are sent one without a permit of PILOT_PUSH_THROTTLE',
    shows: 'namespaces',
    covers: 'replicas',
    page: async (sources, _, sees) => listed(await sources.ofAll('slow', () => sources.writers<SlowConnection>('slow')), sees),
  },
  identityz: {
    what: 'identities with the most streams, and how much the streams of each use in total',
    shows: 'mesh',
    covers: 'replicas',
    page: async (sources) => listed(await sources.ofAll('shares', () => sources.queue<Share[]>('shares'))),
  },
  budgetz: {
    what: 'streams that were ended because the client exceeded one of its limits, with limit and time',
    shows: 'mesh',
    covers: 'replicas',
    page: async (sources) => listed(await sources.ofAll('exceeded', () => sources.writers<Exceeded>('exceeded'))),
  },
  filez: {
    what: 'configuration files that cannot be read or keep the process from being ready, faults and warnings of documents, and unusable policies that a strict stand-in replaces',
    shows: 'mesh',
    covers: 'process',
    page: filesOf,
  },
  configz: {
    what: 'all configuration objects; of Secrets the dates of their certificates',
    shows: 'namespaces',
    covers: 'configuration',
    page: async (sources, _, sees) => (await configs(sources)).filter(({ metadata }) => sees(metadata.namespace)),
  },
  noeffectz: {
    what: 'objects and fields that have no effect, or not for all proxies, with reasons',
    shows: 'namespaces',
    covers: 'replicas',
    page: async (sources, _, sees) => listed(await sources.ofAllOnce('withoutEffect', () => sources.queue<EffectRow[]>('withoutEffect')), sees),
  },
  analysisz: {
    what: 'mistakes in configuration, with code, object, field and what to do (PILOT_ENABLE_ANALYSIS)',
    shows: 'namespaces',
    covers: 'configuration',
    page: (sources, _, sees) => findingsOf(sources, sees),
  },
  registryz: {
    what: 'all services',
    parameters: [{ name: 'cluster', about: 'only services of this cluster' }],
    shows: 'namespaces',
    covers: 'configuration',
    page: async (sources, query, sees) => {
      const of = query.get('cluster')
      const services = await sources.list<Service & { readonly clusters?: readonly string[] }>('services')
      return services.filter(({ namespace, cluster, clusters = [cluster] }) => sees(namespace) && (of === null || clusters.includes(of)))
    },
  },
  clusterz: {
    what: 'clusters: the remote secret that names each and why it is not followed, the connection, and of each kind the number of objects, what is done (streaming, paging, watching, paused), version, age, failures and audits',
    shows: 'mesh',
    covers: 'replicas',
    page: async (sources) => listed(await clustersOf(sources)),
  },
  inject: {
    what: 'the configuration of sidecar injection in force, where it is, and what is wrong with a newer one',
    shows: 'mesh',
    covers: 'configuration',
    page: (sources) => sources.webhooks('injection'),
  },
  endpointz: {
    what: 'endpoints of each service port',
    parameters: [{ name: 'brief', about: 'addresses only', isSwitch: true }],
    shows: 'namespaces',
    covers: 'configuration',
    page: async (sources, query, sees) => endpointPage(await endpoints(sources, sees), query.has('brief')),
  },
  endpointShardz: {
    what: 'endpoints by host, namespace and registry (provider and cluster)',
    shows: 'namespaces',
    covers: 'configuration',
    page: async (sources, _, sees) => shardPage(await endpoints(sources, sees)),
  },
  edsz: {
    what: 'load assignments of a proxy',
    parameters: [proxyParameter],
    shows: 'proxy',
    covers: 'replicas',
    page: async (sources, _, proxy) => (await import('./config-dump.ts')).loadAssignments(await sources.resourcesOf(proxy)),
  },
  ndsz: {
    what: 'names that the agent of a proxy resolves',
    parameters: [proxyParameter],
    shows: 'proxy',
    covers: 'replicas',
    page: async (sources, _, proxy) => (await import('./config-dump.ts')).nameTableOf(await sources.resourcesOf(proxy)) ?? {},
  },
  config_dump: {
    what: 'configuration of a proxy as Envoy dumps it',
    parameters: [proxyParameter],
    shows: 'proxy',
    covers: 'replicas',
    page: async (sources, _, proxy) => (await import('./config-dump.ts')).configDump(await sources.resourcesOf(proxy)),
  },
  config_distribution: {
    what: 'which proxies have which generation of an object, or how many',
    parameters: [
      { name: 'resource', about: 'the object: <Kind>/<namespace>/<name>; required' },
      { name: 'proxy_namespace', about: 'only proxies of this namespace' },
      { name: 'count', about: 'how many proxies have each generation', isSwitch: true },
    ],
    shows: 'namespaces',
    covers: 'replicas',
    page: distributionPage,
  },
  pushz: {
    what: 'the last pushes: objects that caused each, and which proxies have acknowledged it, refused it or owe an answer',
    parameters: [{ name: 'after', about: 'the cursor of an earlier answer: only pushes after it' }],
    shows: 'namespaces',
    covers: 'replicas',
    page: (sources, query, sees) => pushesOf(sources, sees, query.get('after') ?? '', 0),
  },
  cachez: {
    what: 'groups of encoded resources in the XDS cache',
    shows: 'mesh',
    covers: 'process',
    page: async (sources) => (await sources.list<{ group: string }>('cacheKeys')).sort((one, other) => compare(one.group, other.group)),
  },
  sidecarz: {
    what: 'what is visible to a proxy under its Sidecar',
    parameters: [proxyParameter],
    shows: 'proxy',
    covers: 'replicas',
    page: (sources, _, proxy) => sources.ofProxy('sidecarScope', proxy),
  },
  instancesz: {
    what: 'service instances of each proxy',
    shows: 'namespaces',
    covers: 'replicas',
    page: async (sources, _, sees) => {
      const { rows, replicas } = await sources.ofAll('instances', () => instancesOf(sources))
      const seen = rows.filter(({ namespace }) => sees(namespace)).map(({ connection, instances }) => [connection, instances])
      const silent = silentAmong(replicas)
      return { ...Object.fromEntries(seen), ...(silent.length > 0 && { replicas: silent }) }
    },
  },
  authorizationz: {
    what: 'authorization policies by namespace',
    shows: 'namespaces',
    covers: 'configuration',
    page: async (sources, _, sees) => {
      const { namespace_to_policies: policies, root_namespace } = await sources.queue<AuthorizationPolicies>('authorizationPolicies')
      const seen = Object.fromEntries(Object.entries(policies).filter(([namespace]) => sees(namespace)))
      return { authorization_policies: { namespace_to_policies: seen, root_namespace } }
    },
  },
  policyz: {
    what: 'checks that make policies stricter than an earlier release, and the objects and fields that each concerns',
    shows: 'namespaces',
    covers: 'configuration',
    page: async (sources, _, sees) =>
      (await withSecrets(sources, await sources.queue<CheckedPolicies[]>('policyChecks'))).map((row) => ({
        ...row,
        objects: row.objects.filter(({ namespace }) => sees(namespace)),
      })),
  },
  authz: {
    what: 'which policy decides a request to a proxy, and why',
    parameters: [proxyParameter, ...requestParameters],
    shows: 'proxy',
    covers: 'replicas',
    page: async (sources, query, proxy) => {
      const request = readDescribedRequest(query)
      return typeof request === 'string' ? new Page(request, undefined, 400) : explanationOf(sources, proxy, request)
    },
  },
  routing: {
    what: 'where a proxy sends a request, and why each route does not take it',
    parameters: [proxyParameter, { name: 'scheme', about: 'http by default', choices: ['http', 'https'] }, ...requestParameters],
    shows: 'proxy',
    covers: 'replicas',
    page: async (sources, query, proxy, sees) => {
      const request = readSentRequest(query)
      return typeof request === 'string' ? new Page(request, undefined, 400) : routingOf(sources, proxy, request, sees)
    },
  },
  explain: {
    what: 'why a proxy has a resource, or has not: every object with a part in it, and every one that was left out, with the reason',
    parameters: [
      proxyParameter,
      { name: 'type', about: 'type of the resource; required', choices: [...explainedTypes.keys()] },
      { name: 'name', about: 'name of the resource, as the proxy has it; required' },
    ],
    shows: 'proxy',
    covers: 'replicas',
    page: async (sources, query, proxy, sees) => {
      const answer = await explainedFor(sources, proxy, query.get('type') ?? '', query.get('name') ?? '', sees)
      return typeof answer === 'string' ? new Page(answer, undefined, 400) : answer
    },
  },
  push_status: {
    what: 'faults of the current configuration, conflicts of listeners, and use of memory by the replica that is asked',
    shows: 'mesh',
    covers: 'replicas',
    page: async (sources) => {
      const [faults, conflicts] = await Promise.all([
        faultsOf(sources),
        sources.ofAllOnce('conflicts', () => sources.queue<readonly (ListenerConflict & { readonly reference: object })[]>('conflicts')),
      ])
      const silent = silentAmong([...faults.replicas, ...conflicts.replicas])
      return {
        ...{ faults: faults.rows, listenerConflicts: conflicts.rows, memory: await sources.queue('memory') },
        ...(silent.length > 0 && { replicas: [...new Map(silent.map((replica) => [replica.name, replica])).values()] }),
      }
    },
  },
  mesh: { what: 'mesh configuration', shows: 'mesh', covers: 'configuration', page: (sources) => sources.queue('mesh') },
  networkz: {
    what: 'networks; the source and the place of the mesh configuration and of the networks that are in force, and of those that are overruled',
    shows: 'mesh',
    covers: 'configuration',
    page: (sources) => sources.queue('settings'),
  },
  resourcesz: {
    what: 'kinds of configuration objects that are present',
    shows: 'namespaces',
    covers: 'configuration',
    page: async (sources, _, sees) => {
      const seen = (await configs(sources)).filter(({ metadata }) => sees(metadata.namespace))
      return [...new Set(seen.map(({ apiVersion, kind }) => `${apiVersion}/${kind}`))]
    },
  },
  ca: {
    what: 'the certificate authority: roots, expiries, the stage of a root rotation and what blocks it',
    shows: 'mesh',
    covers: 'authority',
    page: (sources) => sources.authority('status'),
  },
  ca_ledger: {
    what: 'which identity holds which certificate until when',
    parameters: [
      { name: 'start', about: 'number of the first one; 0 by default' },
      { name: 'length', about: `how many at most; ${longestLedger} by default, and at most` },
    ],
    shows: 'namespaces',
    covers: 'authority',
    page: ledgerOf,
  },
  ca_rotate: {
    what: 'POST begins a rotation of the own root, or advances it by one stage; force=true: although some holders are not ready',
    shows: 'nothing',
    covers: 'authority',
    action: {
      form: 'force=<true or false>',
      isMeant: () => true,
      act: (sources, query) => sources.authority('rotate', query.get('force') === 'true'),
    },
  },
  ca_distrust: {
    what: 'POST distrusts a root at once (id: the first digits of its fingerprint); dryRun=true: only says who would be cut off',
    shows: 'nothing',
    covers: 'authority',
    action: {
      form: 'id=<digits>&dryRun=<true or false>',
      isMeant: (query) => query.has('id'),
      act: (sources, query) => sources.authority('distrust', query.get('id') ?? '', query.get('dryRun') === 'true'),
    },
  },
  ca_trust: {
    what: 'POST trusts a root again that was distrusted',
    shows: 'nothing',
    covers: 'authority',
    action: { form: 'id=<digits>', isMeant: (query) => query.has('id'), act: (sources, query) => sources.authority('trust', query.get('id') ?? '') },
  },
  ca_accept_time: {
    what: 'POST takes the wall clock for right, although it contradicts what was recorded',
    shows: 'nothing',
    covers: 'authority',
    action: { form: 'accept=true', isMeant: (query) => query.get('accept') === 'true', act: (sources) => sources.authority('acceptTime') },
  },
  actorsz: { what: 'actors, their state and load', shows: 'mesh', covers: 'process', page: ({ supervisor }) => actorsOf(supervisor) },
  force_disconnect: {
    what: 'POST with proxyID ends the stream of that proxy',
    shows: 'nothing',
    covers: 'replicas',
    action: {
      form: 'proxyID=<name or id of a proxy>',
      isMeant: () => true,
      act: async (sources, query) => {
        const { connectionId, silent } = await disconnect(sources, query.get('proxyID') ?? '')
        return connectionId === undefined ? noProxy(query, silent) : 'OK'
      },
    },
  },
}

async function ledgerOf(sources: PageSources, query: URLSearchParams, sees: Sees): Promise<unknown> {
  const whole = (name: string, otherwise: number) => (/^\d{1,9}$/.test(query.get(name) ?? '') ? Number(query.get(name)) : otherwise)
  return holdersOf(sources, whole('start', 0), whole('length', longestLedger), sees)
}

interface AuthorizationPolicies {
  readonly namespace_to_policies: Readonly<Record<string, unknown>>
  readonly root_namespace: string
}

interface Config {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly namespace: string; readonly name: string }
}

const byNamespaceAndName = ({ metadata: one }: Config, { metadata: other }: Config): number =>
  compare(one.namespace, other.namespace) || compare(one.name, other.name)

/** All configuration objects; for Secrets, only their names and validity. */
async function configs(sources: PageSources): Promise<Config[]> {
  const secrets = await sources.supervisor.askAll<SecretSummary[]>('source', 'secrets')
  const objects = (await sources.list<Config>('configs')).sort((one, other) => compare(one.kind, other.kind) || byNamespaceAndName(one, other))
  return [...objects, ...secrets.flat().map(secretRow)]
}

/** Adds the Secrets that checks concern, which the push queue does not know. */
async function withSecrets(sources: PageSources, rows: readonly CheckedPolicies[]): Promise<CheckedPolicies[]> {
  const secrets = await sources.supervisor.askAll<SecretSummary[]>('source', 'secrets')
  const { checkedPolicies, checkedSecret } = await import('../../../src/config/policy-checks.ts')
  const objects = secrets
    .flat()
    .map((secret) => checkedSecret(secret, { hasKey: secret.pair !== undefined, serviceAccounts: secret.serviceAccounts }))
  const concerned = new Map(checkedPolicies(objects, new Set()).map((row) => [row.check, row.objects]))
  return rows.map((row) => ({ ...row, objects: [...row.objects, ...(concerned.get(row.check) ?? [])] }))
}

function secretRow({ namespace, name, type, place, serviceAccounts, refused, pair, authorities }: SecretSummary) {
  const dates = (validity: Validity | undefined) =>
    validity && { notBefore: new Date(validity.notBefore).toISOString(), notAfter: new Date(validity.notAfter).toISOString() }
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type,
    metadata: { namespace, name },
    certificate: dates(pair),
    authorities: dates(authorities),
    serviceAccounts,
    refused,
    place,
  }
}

async function endpoints(sources: PageSources, sees: Sees): Promise<EndpointState[]> {
  const rows = (await sources.list<EndpointsRow>('endpoints')).filter(({ namespace }) => sees(namespace))
  const states: EndpointState[] = []
  for (const { hostname, namespace, ports, shard, endpoints } of rows) {
    let state = states.at(-1)
    if (state?.hostname !== hostname || state.namespace !== namespace)
      states.push((state = { hostname, namespace, ports, endpoints: [], shards: [] }))
    state.endpoints.push(...endpoints)
    const known = state.shards.at(-1)
    if (known && known.provider === shard?.provider && known.cluster === shard.cluster) known.endpoints.push(...endpoints)
    else if (shard) state.shards.push({ ...shard, endpoints: [...endpoints] })
  }
  return states
}

/** The generation of an object that each proxy has acknowledged, by type. */
/** The most characters of the key of an object: kind, group, namespace, name and cluster. */
const longestKey = 1000

async function distributionPage(sources: PageSources, query: URLSearchParams, sees: Sees): Promise<unknown> {
  const resource = query.get('resource')
  if (!resource) return new Page('You must provide a resource in the query string: <Kind>/<namespace>/<name>', undefined, 422)
  if (!sources.tracking) return new Page('Tracking is disabled: PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING is false', undefined, 409)
  const named = [readKey(resource, '').namespace, query.get('proxy_namespace') || undefined]
  for (const namespace of named) if (namespace !== undefined && !sees(namespace)) return forbiddenNamespace(namespace)
  const inNamespace = ({ proxy }: DistributionRow) => named[1] === undefined || proxy.endsWith(`.${named[1]}`)
  const { rows, replicas } = await sources.ofAll('distribution', () => distributionOf(sources, resource), resource)
  // Proxies may still have an object that is gone.
  const isHeld = rows.some(({ cluster_acked, listener_acked, route_acked }) => `${cluster_acked}${listener_acked}${route_acked}` !== '')
  const unknown = isHeld ? undefined : await sources.queue<string | undefined>('unknownObject', resource.slice(0, longestKey))
  if (unknown !== undefined) return new Page(unknown, undefined, 404)
  const states = rows.filter((row) => sees(row.namespace) && inNamespace(row)).map(({ namespace: _, ...state }) => state)
  return query.has('count')
    ? { proxies: states.length, ...countsOf(states), ...(replicas.length > 0 && { replicas }) }
    : [...states, ...silentAmong(replicas)]
}

/** The number of proxies with each generation, by type. The empty text stands for proxies that have none. */
function countsOf(states: readonly Readonly<Record<'cluster_acked' | 'listener_acked' | 'route_acked', string>>[]): object {
  const types = ['cluster_acked', 'listener_acked', 'route_acked'] as const
  return Object.fromEntries(types.map((type) => [type, tally(states.map((state) => state[type]))]))
}

function tally(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1
  return counts
}

/** The rows of a page that is a list, of which a caller sees those of its namespaces, and the replicas whose rows are missing. */
function listed<Row extends object>({ rows, replicas }: RowsOfAll<Row>): unknown[]
function listed<Row extends { readonly namespace: string }>(all: RowsOfAll<Row>, sees: Sees): unknown[]
function listed({ rows, replicas }: RowsOfAll<object>, sees?: Sees): unknown[] {
  const seen = sees ? rows.filter((row) => sees((row as { readonly namespace: string }).namespace)) : rows
  return [...seen, ...silentAmong(replicas)]
}

/** The answer when no proxy is named. */
export const proxyWanted = 'You must provide a proxyID in the query string'

/** The answer when no proxy is named, or the named proxy is not connected or not visible to the viewer. */
export function noProxy(query: URLSearchParams, silent: readonly ReplicaState[], candidates: readonly string[] = []): Page {
  if (candidates.length > 0) return new Page(`proxyID: ${ambiguous(query.get('proxyID') ?? '', candidates)}`, undefined, 404)
  if (silent.length > 0 && query.get('proxyID')) return new Page(`No replica that answers has this proxy; ${silenceOf(silent)}`, undefined, 503)
  return query.get('proxyID')
    ? new Page('Proxy not connected to this Pilot instance. It may be connected to another instance.', undefined, 404)
    : new Page(proxyWanted, undefined, 400)
}

interface EndpointState {
  readonly hostname: string
  readonly namespace: string
  readonly ports: readonly ServicePort[]
  readonly endpoints: Endpoint[]
  readonly shards: { readonly provider: string; readonly cluster: string; readonly endpoints: Endpoint[] }[]
}

function endpointPage(states: readonly EndpointState[], brief: boolean): unknown {
  return states.flatMap((state) =>
    state.ports.map((port) => ({
      svc: `${state.hostname}:${port.name}`,
      ep: state.endpoints.map((endpoint) => {
        const address = `${endpoint.address}:${endpoint.ports[port.name] ?? (port.targetPort || port.number)}`
        return brief ? address : { ...endpoint, ports: undefined, address }
      }),
    })),
  )
}

function shardPage(states: readonly EndpointState[]): unknown {
  const shards: Record<string, Record<string, Record<string, unknown>>> = {}
  for (const state of states) {
    shards[state.hostname] ??= {}
    const byNamespace = shards[state.hostname] as Record<string, Record<string, unknown>>
    byNamespace[state.namespace] = Object.fromEntries(state.shards.map((shard) => [registryName(shard), shard.endpoints]))
  }
  return shards
}

function syncStatus({ replica, ...connection }: Placed<ConnectionStatus>): Record<string, string> {
  const result: Record<string, string> = {
    proxy: connection.nodeId.split('~')[2] ?? '',
    istio_version: connection.version,
    ...(replica !== undefined && { replica }),
  }
  for (const [name, typeUrl] of [
    ['cluster', clusterType],
    ['listener', listenerType],
    ['route', routeType],
    ['endpoint', endpointType],
  ] as const) {
    const type = connection.types.find((entry) => entry.typeUrl === typeUrl)
    result[`${name}_sent`] = type?.nonceSent ?? ''
    result[`${name}_acked`] = type?.nonceAcked ?? ''
  }
  return result
}
