/** The debug pages: what is known, who is connected, what they were sent. No secrets in them. */
import type { ActorStats } from '../../../protocols/messages/envelope.ts'
import { registryName } from '../../../src/registry/merged-services.ts'
import { clusterType, endpointType, listenerType, routeType } from '../../../src/xds/type-urls.ts'
import { Page, type PageRequest, type PageServer } from '../../http/page-server.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import type { Exceeded } from '../xds-writer/budgets.ts'
import type { ConnectionStatus, ConnectionWatches } from '../xds-writer/connection-debug.ts'
import type { SlowConnection } from '../xds-writer/slow-connections.ts'
import type { ProxyResources } from './config-dump.ts'
import { readDescribedRequest, requestParameters } from './described-request.ts'

type Query = Readonly<Record<string, string | undefined>>

const pageTexts: readonly (readonly [path: string, what: string])[] = [
  ['adsz', 'connected proxies and what they watch; ?push=true sends everything again'],
  ['syncz', 'nonces sent to each proxy and taken by it'],
  ['slowz', 'proxies that take nothing of a response, or are sent it without a permit, because they are slow'],
  ['budgetz', 'proxies that asked for more than one client may, and when'],
  ['configz', 'all configuration objects'],
  ['registryz', 'all services'],
  ['endpointz', 'endpoints of each service port; ?brief=1 for addresses only'],
  ['endpointShardz', 'endpoints by host, namespace and registry (provider and cluster)'],
  ['edsz', 'load assignments of a proxy (proxyID)'],
  ['config_dump', 'configuration of a proxy as Envoy dumps it (proxyID)'],
  ['config_distribution', 'which proxies have which generation of a resource (resource)'],
  ['cachez', 'groups of encoded resources'],
  ['sidecarz', 'what a proxy may see (proxyID)'],
  ['instancesz', 'service instances of each proxy'],
  ['authorizationz', 'authorization policies by namespace'],
  ['authz', `which policy decides a request to a proxy, and why (proxyID; ${requestParameters})`],
  ['push_status', 'problems of the present configuration'],
  ['mesh', 'mesh configuration'],
  ['resourcesz', 'kinds that are watched'],
  ['actorsz', 'actors, their state and load'],
]

/** Adds the pages below `/debug`; with `admin` those that do something too. With `tracking`, nonces tell what version of the configuration a proxy has. */
export function addDebugPages(server: PageServer, supervisor: Supervisor, { admin, tracking }: { admin: boolean; tracking: boolean }): void {
  const pages = new DebugPages(server, supervisor)
  addIndex(server)
  addConnectionPages(pages)
  addConfigurationPages(pages)
  addProxyPages(pages)
  if (admin) addActions(pages)
  pages.add('config_distribution', (query) => distributionPage(pages, query, tracking))
  pages.add('actorsz', () => actorsPage(supervisor))
}

/** What the pages are made from, and how they are added. */
class DebugPages {
  readonly #server: PageServer
  readonly #supervisor: Supervisor

  constructor(server: PageServer, supervisor: Supervisor) {
    this.#server = server
    this.#supervisor = supervisor
  }

  /** Adds a page. A text is shown as it is, a page too, everything else as JSON. What is too long for a URL may come as the body of a form. */
  add(name: string, answer: (query: Query, parameters: URLSearchParams) => Promise<unknown>): void {
    const show = async (request: PageRequest) => {
      const parameters = await request.parameters()
      const value = await answer(Object.fromEntries(parameters), parameters)
      if (value instanceof Page) return value
      return typeof value === 'string' ? new Page(value) : new Page(JSON.stringify(value, null, 2) ?? '', 'application/json; charset=utf-8')
    }
    this.#server.add(`/debug/${name}`, { get: show, post: show })
  }

  /** Adds a page about one proxy, which says so when that is not named or not connected. A page that acts takes exact names only. */
  addForProxy(name: string, answer: (connection: ConnectionStatus, query: URLSearchParams) => Promise<unknown>, find = findConnection): void {
    this.add(name, async (query, parameters) => {
      if (!query.proxyID) return new Page('You must provide a proxyID in the query string', undefined, 400)
      const found = find(await this.connections(), query.proxyID)
      if (!found) return new Page('Proxy not connected to this Pilot instance. It may be connected to another instance.', undefined, 404)
      return answer(found, parameters)
    })
  }

  /** Asks the push queue. */
  queue<T>(question: string, ...details: unknown[]): Promise<T> {
    return this.#supervisor.ask<T>('push-queue', question, ...details)
  }

  /** Asks all writers. */
  writers<T>(question: string, ...details: unknown[]): Promise<T[]> {
    return this.#supervisor.askAll<T>('xds-writer', question, ...details)
  }

  async connections(): Promise<ConnectionStatus[]> {
    return (await this.writers<ConnectionStatus[]>('connections')).flat()
  }

  /** What the push queue answers of a proxy, whichever writer has it. */
  async ofProxy(question: string, { connectionId }: ConnectionStatus, ...details: unknown[]): Promise<unknown> {
    for (const { name } of this.#supervisor.states().filter((state) => state.name.startsWith('xds-writer/'))) {
      const answer = await this.queue(question, `${name}/${connectionId}`, ...details)
      if (answer) return answer
    }
    return {}
  }

  /** What a proxy was sent, by type. */
  async resourcesOf({ connectionId }: ConnectionStatus): Promise<ProxyResources> {
    const answers = await this.writers<{ resources: ProxyResources } | undefined>('resources', connectionId)
    return answers.find((answer) => answer !== undefined)?.resources ?? {}
  }
}

function addIndex(server: PageServer): void {
  const rows = pageTexts.map(([path, what]) => `<tr><td><a href="/debug/${path}">${path}</a></td><td>${what}</td></tr>`)
  const index = `<!doctype html><html lang="en"><title>Debug pages</title><h1>Debug pages</h1><table>${rows.join('')}</table></html>`
  server.add('/debug', () => new Page(index, 'text/html; charset=utf-8'))
}

function addConnectionPages(pages: DebugPages): void {
  pages.add('adsz', async (query) => {
    if (query.push === 'true') return `Pushed to ${await pages.queue<number>('pushAgain')} servers`
    const clients = (await pages.writers<ConnectionWatches[]>('watches')).flat()
    return { totalClients: clients.length, clients }
  })
  pages.add('syncz', async () => (await pages.connections()).map(syncStatus))
  pages.add('slowz', async () => (await pages.writers<SlowConnection[]>('slow')).flat())
  pages.add('budgetz', async () => (await pages.writers<Exceeded[]>('exceeded')).flat())
  pages.add('instancesz', () => pages.queue('instances'))
}

function addConfigurationPages(pages: DebugPages): void {
  pages.add('configz', () => pages.queue('configs'))
  pages.add('registryz', () => pages.queue('services'))
  pages.add('endpointz', async (query) => endpointPage(await pages.queue<EndpointState[]>('endpoints'), query.brief !== undefined))
  pages.add('endpointShardz', async () => shardPage(await pages.queue<EndpointState[]>('endpoints')))
  pages.add('authorizationz', async () => ({ authorization_policies: await pages.queue('authorizationPolicies') }))
  pages.add('cachez', () => pages.queue('cacheKeys'))
  pages.add('push_status', async () => ({
    faults: await pages.queue('faults'),
    listenerConflicts: await pages.queue('conflicts'),
    memory: await pages.queue('memory'),
  }))
  pages.add('mesh', () => pages.queue('mesh'))
  pages.add('resourcesz', async () => [
    ...new Set((await pages.queue<{ apiVersion: string; kind: string }[]>('configs')).map(({ apiVersion, kind }) => `${apiVersion}/${kind}`)),
  ])
}

function addProxyPages(pages: DebugPages): void {
  pages.addForProxy('edsz', async (connection) => (await import('./config-dump.ts')).loadAssignments(await pages.resourcesOf(connection)))
  pages.addForProxy('config_dump', async (connection) => (await import('./config-dump.ts')).configDump(await pages.resourcesOf(connection)))
  pages.addForProxy('sidecarz', (connection) => pages.ofProxy('sidecarScope', connection))
  pages.addForProxy('authz', async (connection, query) => {
    const request = readDescribedRequest(query)
    return typeof request === 'string' ? new Page(request, undefined, 400) : pages.ofProxy('explain', connection, request)
  })
}

function addActions(pages: DebugPages): void {
  const disconnect = async ({ connectionId }: ConnectionStatus) => {
    await pages.writers<boolean>('disconnect', connectionId)
    return 'OK'
  }
  pages.addForProxy('force_disconnect', disconnect, findExactly)
}

/** Which generation of an object each proxy has acknowledged, by type. */
async function distributionPage(pages: DebugPages, query: Query, tracking: boolean): Promise<unknown> {
  if (!query.resource) return new Page('You must provide a resource in the query string: <Kind>/<namespace>/<name>', undefined, 422)
  if (!tracking) return new Page('Tracking is disabled: PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING is false', undefined, 409)
  const inNamespace = (connection: ConnectionStatus) =>
    !query.proxy_namespace || connection.nodeId.split('~')[2]?.endsWith(`.${query.proxy_namespace}`)
  const asked = (await pages.connections()).filter(inNamespace)
  const rows = asked.map((connection) => [clusterType, listenerType, routeType].map((typeUrl) => ackedLedger(connection, typeUrl)))
  const ledgers = [...new Set(rows.flat())]
  const found = await pages.queue<(number | undefined)[]>('generations', query.resource, ledgers)
  const generations = new Map(ledgers.map((ledger, index) => [ledger, found[index]]))
  return asked.map((connection, index) => {
    const [cluster_acked, listener_acked, route_acked] = (rows[index] ?? []).map((ledger) => String(generations.get(ledger) ?? ''))
    return { proxy: connection.nodeId.split('~')[2] ?? '', cluster_acked, listener_acked, route_acked }
  })
}

async function actorsPage(supervisor: Supervisor): Promise<unknown> {
  const stats = new Map((await supervisor.askAll<ActorStats>('*', 'stats')).map((stat) => [stat.name, stat]))
  return supervisor.states().map((state) => ({
    ...state,
    startedAt: new Date(state.startedAt).toISOString(),
    lastError: state.lastError?.message,
    notes: Object.fromEntries(state.notes),
    ...stats.get(state.name),
  }))
}

interface Named {
  readonly connectionId: string
  readonly nodeId: string
}

/** The connection of a given id; else one of the node of that id, or of the proxy of that name, `<pod>.<namespace>`. */
export function findExactly<C extends Named>(connections: readonly C[], named: string): C | undefined {
  return (
    connections.find(({ connectionId }) => connectionId === named) ??
    connections.find(({ nodeId }) => nodeId === named || nodeId.split('~')[2] === named)
  )
}

/** The connection that is named exactly; else one whose node id contains the name. The number at the end of a connection id is never matched in part. */
export function findConnection<C extends Named>(connections: readonly C[], named: string): C | undefined {
  return findExactly(connections, named) ?? connections.find(({ nodeId }) => nodeId.includes(named))
}

interface EndpointState {
  readonly hostname: string
  readonly namespace: string
  readonly ports: readonly { number: number; name: string; targetPort: number }[]
  readonly endpoints: readonly { address: string; ports: Readonly<Record<string, number>>; labels: object; locality: string; weight: number }[]
  readonly shards: readonly { provider: string; cluster: string; endpoints: readonly object[] }[]
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

function syncStatus(connection: ConnectionStatus): Record<string, string> {
  const result: Record<string, string> = { proxy: connection.nodeId.split('~')[2] ?? '', istio_version: connection.version }
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

/** The ledger of the version that a proxy has acknowledged for a type; empty when it has none. A type of which it has all there is counts as acknowledged. */
function ackedLedger({ ledger, types }: ConnectionStatus, typeUrl: string): string {
  const type = types.find((entry) => entry.typeUrl === typeUrl)
  return type?.current ? ledger : (type?.nonceAcked.slice(0, ledgerLength) ?? '')
}

/** Characters of a ledger, which nonces begin with. */
const ledgerLength = 12
