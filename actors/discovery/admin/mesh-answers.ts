/**
 * What operators ask about the running mesh: the answers of which `mesh.admin.v1.AdminService` (`admin-rpcs.ts`) and the debug pages
 * (`debug-table.ts`) are two views.
 */
import type { ObjectReference } from '../../../protocols/data.ts'
import type { FoundNow } from '../../../protocols/messages/analysis.ts'
import type { LedgerPage } from '../../../protocols/messages/authority-status.ts'
import type { DescribedRequest } from '../../../protocols/messages/described-request.ts'
import type { ActorStats } from '../../../protocols/messages/envelope.ts'
import type { ClusterStatus, RemoteKey } from '../../../protocols/messages/orchestrator.ts'
import type { ReplicaState } from '../../../protocols/messages/replicas.ts'
import { actorOfSource, clusterSource } from '../../../src/config/config-sources.ts'
import { parseWorkload } from '../../../src/identity/spiffe-id.ts'
import type { ResourceFault } from '../../../src/model/faults.ts'
import { findConnection, findExactly, suggestedProxy } from '../../../src/model/named-connection.ts'
import type { ReferencedExplanation } from '../../../src/policy/explain.ts'
import { Page } from '../../http/page-server.ts'
import type { ActorState, Supervisor } from '../../runtime/supervisor.ts'
import { isRemoteActor, orchestratorSource } from '../given/sources.ts'
import type { SidecarInForce } from '../push-queue/push-queue-debug.ts'
import type { FilesPage } from '../sources/files/file-watcher.ts'
import type { ConnectionStatus, ConnectionWatches } from '../xds-writer/connection-debug.ts'
import type { PageSources, Placed, RowsOfAll } from './page-sources.ts'

/** Whether the caller may see a namespace and did not exclude it. */
export type Sees = (namespace: string) => boolean

/** A connected proxy. */
export type ProxyAnswer = ConnectionStatus &
  Pick<ConnectionWatches, 'watches' | 'rejections'> & {
    /** What it refused, as far as it lacks that now; undefined from a replica of an earlier version. */
    readonly refusals?: readonly FaultAnswer[]
  }

/** The proxies that are connected to this replica. */
export async function ownProxies(sources: PageSources): Promise<ProxyAnswer[]> {
  const [connections, watches, refused] = await Promise.all([
    sources.connections(),
    sources.writers<ConnectionWatches>('watches'),
    sources.list<RefusedRow>('refusals'),
  ])
  const byId = new Map(watches.map((each) => [each.connectionId, each]))
  const refusalsById = Map.groupBy(refused, ({ connectionId }) => connectionId)
  return connections.map((connection) => {
    const { watches: names = {}, rejections = [] } = byId.get(connection.connectionId) ?? {}
    const isInForce = (typeUrl: string) => connection.types.some((type) => type.typeUrl === typeUrl && type.error !== '')
    const refusals = (refusalsById.get(connection.connectionId) ?? [])
      .filter(({ typeUrl, isReplaced }) => isReplaced || isInForce(typeUrl))
      .map(({ fault }) => fault)
    return { ...connection, watches: names, rejections, refusals }
  })
}

/** The connected proxies of some namespaces, of all replicas. */
export async function proxiesOf(sources: PageSources, sees: Sees): Promise<RowsOfAll<ProxyAnswer>> {
  const { rows, replicas } = await sources.ofAll('proxies', () => ownProxies(sources))
  return { rows: rows.filter(({ namespace }) => sees(namespace)), replicas }
}

/** A proxy that a caller named, and the replicas that have not said whether they serve it. */
export interface NamedProxy {
  readonly proxy: Placed<ConnectionStatus> | undefined
  /** The names of the proxies that may be meant, if there are several. */
  readonly candidates: readonly string[]
  /** The clause that suggests another name where no proxy has this one; may be empty. */
  readonly suggested: string
  readonly silent: readonly ReplicaState[]
}

/** Finds a proxy that a caller names, among those of some namespaces, wherever it is connected. */
export async function proxyNamed(sources: PageSources, named: string, sees: Sees): Promise<NamedProxy> {
  if (named === '') return { proxy: undefined, candidates: [], suggested: '', silent: [] }
  const { rows, replicas } = await sources.allConnections()
  const seen = rows.filter(({ namespace }) => sees(namespace))
  const { found, candidates } = findConnection(seen, named)
  const suggested = found || candidates.length > 0 ? '' : suggestedProxy(seen, named)
  return { proxy: found, candidates, suggested, silent: silentAmong(replicas) }
}

/** Those of replicas that have not answered. */
export const silentAmong = (replicas: readonly ReplicaState[]): readonly ReplicaState[] => replicas.filter(({ answered }) => !answered)

/** The sentence about replicas that have not answered, for messages; empty: all have. */
export function silenceOf(silent: readonly ReplicaState[]): string {
  if (silent.length === 0) return ''
  const named = silent.slice(0, 5).map(({ name, reason }) => `${name} (${reason})`)
  const more = silent.length > named.length ? [`${silent.length - named.length} more`] : []
  return `of these replicas it is not known: ${[...named, ...more].join(', ')}`
}

/** Which policy decides a request to a proxy, and why. */
export function explanationOf(
  sources: PageSources,
  proxy: Placed<ConnectionStatus>,
  request: DescribedRequest,
): Promise<ReferencedExplanation | object> {
  return sources.ofProxy('explain', proxy, request) as Promise<ReferencedExplanation | object>
}

/** The Sidecar in force for a proxy. Its fields are told to those who may see its namespace. */
export async function sidecarOf(sources: PageSources, proxy: Placed<ConnectionStatus>, sees: Sees): Promise<Partial<SidecarInForce>> {
  const { object, ...told } = (await sources.ofProxy('sidecarInForce', proxy)) as Partial<SidecarInForce>
  return object && told.reference && sees(told.reference.namespace) ? { ...told, object } : told
}

/** A resource that a proxy refused, with its connection, and whether another resource was made in its place. */
export interface RefusedRow {
  readonly connectionId: string
  readonly typeUrl: string
  readonly isReplaced: boolean
  readonly fault: FaultAnswer
}

/** A fault, with references to its objects in the same order. */
export interface FaultAnswer extends ResourceFault {
  readonly references: readonly ObjectReference[]
}

/** The faults that this replica has found: what it makes, and so what fails, depends on its proxies. */
export const ownFaults = (sources: PageSources): Promise<readonly FaultAnswer[]> => sources.queue<FaultAnswer[]>('faults')

/** The faults of the present configuration at all replicas, each once. */
export const faultsOf = (sources: PageSources): Promise<RowsOfAll<FaultAnswer>> => sources.ofAllOnce('faults', () => ownFaults(sources))

/** What analysis finds in objects of some namespaces; a page where nothing is analyzed. */
export async function findingsOf(sources: PageSources, sees: Sees): Promise<FoundNow | Page> {
  const found = await sources.analyzer<FoundNow>('findings')
  return found instanceof Page ? found : { ...found, findings: found.findings.filter(({ namespace }) => sees(namespace)) }
}

/** The configuration files that cannot be used, of `--configDir` and of `configSources`, whose actors may be starting and then are left out. */
export async function filesOf({ supervisor }: PageSources): Promise<FilesPage> {
  const others = supervisor.states().filter(({ name }) => /^source[/]((fs|xds)[/]|orch$)/.test(name))
  const [own, ...pages] = await Promise.all([
    supervisor.ask<FilesPage>('source/files', 'files'),
    ...others.map(({ name }) => supervisor.ask<FilesPage>(name, 'files').catch(() => undefined)),
  ])
  const all = [own, ...pages].filter((page) => page !== undefined)
  const joined = <T>(part: (page: FilesPage) => readonly T[]) => all.flatMap(part)
  return {
    waiting: joined(({ waiting }) => waiting),
    unreadable: joined(({ unreadable }) => unreadable),
    problems: joined(({ problems }) => problems),
    sources: joined(({ sources }) => sources),
    standIns: joined(({ standIns }) => standIns),
  }
}

/** An actor, its state and its load. */
export type ActorAnswer = Omit<ActorState, 'startedAt' | 'lastError' | 'notes'> &
  Partial<ActorStats> & { readonly startedAt: string; readonly lastError: string | undefined; readonly notes: Readonly<Record<string, unknown>> }

/** The actors of this process. */
export async function actorsOf(supervisor: Supervisor): Promise<ActorAnswer[]> {
  const stats = new Map((await supervisor.askAll<ActorStats>('*', 'stats')).map((stat) => [stat.name, stat]))
  return supervisor.states().map((state) => ({
    ...state,
    startedAt: new Date(state.startedAt).toISOString(),
    lastError: state.lastError?.message,
    notes: Object.fromEntries(state.notes),
    ...stats.get(state.name),
  }))
}

/** A followed cluster, and the actor that follows it. */
export type ClusterAnswer = ClusterStatus & Partial<Pick<RemoteKey, 'secret'>> & Pick<RemoteKey, 'actor'>

/** The clusters that this replica follows, one for each actor: of services, and of configuration; one whose actor does not run at present is left out. */
export async function ownClusters({ supervisor, remoteKeys }: PageSources): Promise<ClusterAnswer[]> {
  const keys = remoteKeys()
  const follows = (name: string) => name === orchestratorSource || name === actorOfSource(clusterSource) || isRemoteActor(name)
  const actors = supervisor.states().filter(({ name }) => follows(name))
  const answers = await Promise.all(
    actors.map(({ name: actor }) =>
      supervisor.ask<ClusterStatus>(actor, 'cluster').then(
        (status) => ({ ...status, actor, ...saidOf(keys, actor, status) }),
        () => undefined,
      ),
    ),
  )
  const followed = answers.filter((answer) => answer !== undefined)
  const shown = new Set(followed.map(({ actor }) => actor))
  // Who opens the page sees each key, also one of which nothing comes, or whose actor does not answer.
  return [...followed, ...keys.filter(({ actor }) => !shown.has(actor)).map(unfollowed)]
}

/** The Secret of a cluster, and what is wrong with it and with the server; nothing of one that no Secret names. */
function saidOf(keys: readonly RemoteKey[], actor: string, { trouble }: ClusterStatus): Partial<RemoteKey> {
  const key = keys.find((each) => each.actor === actor)
  return key ? { secret: key.secret, trouble: [key.trouble, trouble].filter((each) => each !== '').join('; ') } : {}
}

/** The row of a key by which no cluster is followed at present. */
const unfollowed = ({ actor, trouble, ...key }: RemoteKey): ClusterAnswer => ({
  ...{ ...key, actor, trouble: trouble === '' ? 'its actor does not answer at present' : trouble },
  ...{ server: undefined, connectedMs: undefined, connections: 0, lastError: undefined, isComplete: false, kinds: [] },
})

/** The clusters that each of the replicas follows. */
export const clustersOf = (sources: PageSources): Promise<RowsOfAll<ClusterAnswer>> => sources.ofAll('clusters', () => ownClusters(sources))

/** Maximum number of identities in one answer about the ledger. */
export const longestLedger = 1000

/** Who holds which certificate, from the one with the number `start` on; a page where there is no authority. */
export async function holdersOf(sources: PageSources, start: number, length: number, sees: Sees): Promise<LedgerPage | Page> {
  const page = await sources.authority<LedgerPage>('ledger', start, length)
  if (page instanceof Page) return page
  return { ...page, identities: page.identities.filter(({ identity }) => sees(parseWorkload(identity)?.namespace ?? '')) }
}

/** Has all proxies of all replicas be sent all of their configuration again. Resolves with their number. */
export async function pushAgain(sources: PageSources): Promise<{ readonly proxies: number; readonly replicas: readonly ReplicaState[] }> {
  const { rows, replicas } = await sources.ofAll('pushAgain', async () => [{ proxies: await sources.queue<number>('pushAgain') }])
  return { proxies: rows.reduce((sum, { proxies }) => sum + proxies, 0), replicas }
}

/** Ends the stream of a proxy with exactly this name, wherever it is connected. Resolves with its connection id; undefined when there is no such proxy. */
export async function disconnect(
  sources: PageSources,
  named: string,
): Promise<{ readonly connectionId: string | undefined; readonly silent: readonly ReplicaState[] }> {
  const { rows, replicas } = await sources.allConnections()
  const proxy = findExactly(rows, named)
  const elsewhere = proxy && sources.elsewhere(proxy)
  if (elsewhere) await elsewhere.ask('disconnect', proxy.connectionId)
  else if (proxy) await sources.supervisor.askAll('xds-writer', 'disconnect', proxy.connectionId)
  return { connectionId: proxy?.connectionId, silent: silentAmong(replicas) }
}
