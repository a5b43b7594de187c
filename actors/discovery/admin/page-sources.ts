/** The data of the debug pages: answers of the push queue, the writers and the certificate authority. */
import type { RemoteKey } from '../../../protocols/messages/orchestrator.ts'
import type { ListPiece } from '../../../protocols/messages/pages.ts'
import type { ReplicaQuestion, ReplicaState } from '../../../protocols/messages/replicas.ts'
import type { ShownNode } from '../../../src/xds/status/status-messages.ts'
import { Page } from '../../http/page-server.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import type { ConnectionStatus } from '../xds-writer/connection-debug.ts'
import type { ProxyResources } from './config-dump.ts'
import type { Explanations } from './explanations.ts'
import type { OtherReplicas } from './other-replicas.ts'
import type { Profiles } from './profiles.ts'

/** A row about a proxy, with the replica that serves it; without it where other replicas are not asked. */
export type Placed<Row> = Row & { readonly replica?: string }

/** Rows of all replicas, and which of these have answered; none of these where other replicas are not asked. */
export interface RowsOfAll<Row> {
  readonly rows: readonly Placed<Row>[]
  readonly replicas: readonly ReplicaState[]
}

/** A proxy as its writer and the push queue know it, wherever it is connected. */
type OneProxy = Placed<Pick<ConnectionStatus, 'connectionId'>>

/** What not every service has. */
interface OptionalParts {
  readonly profiles?: Profiles | undefined
  readonly others?: OtherReplicas | undefined
  readonly remoteKeys?: (() => readonly RemoteKey[]) | undefined
}

/** Asks the actors for the data of pages. */
export class PageSources {
  readonly supervisor: Supervisor
  /** Whether nonces identify the version of the configuration (`PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING`). */
  readonly tracking: boolean
  readonly explanations: Explanations
  /** Present where profiles are served (`--profile`). */
  readonly profiles: Profiles | undefined
  /** Present where the other replicas are asked too. */
  readonly others: OtherReplicas | undefined
  /** The keys of remote secrets, and what became of each. */
  readonly remoteKeys: () => readonly RemoteKey[]

  constructor(supervisor: Supervisor, tracking: boolean, explanations: Explanations, parts: OptionalParts = {}) {
    this.others = parts.others
    this.profiles = parts.profiles
    this.remoteKeys = parts.remoteKeys ?? (() => [])
    this.supervisor = supervisor
    this.tracking = tracking
    this.explanations = explanations
  }

  /** The same of this replica alone. */
  get own(): PageSources {
    const { supervisor, tracking, explanations, profiles, remoteKeys } = this
    return this.others ? new PageSources(supervisor, tracking, explanations, { profiles, remoteKeys }) : this
  }

  /** Rows of this replica and of all others, of which those that do not answer are named. */
  async ofAll<Row extends object>(
    question: ReplicaQuestion,
    own: () => Promise<readonly Row[]>,
    ...details: readonly unknown[]
  ): Promise<RowsOfAll<Row>> {
    const { others } = this
    if (!others) return { rows: await own(), replicas: [] }
    const [here, there] = await Promise.all([own(), others.ask<readonly Row[]>(question, ...details)])
    const placed = (replica: string, rows: readonly Row[]) => rows.map((row) => ({ ...row, replica }))
    return {
      rows: [...placed(others.own, here), ...there.answers.flatMap(({ replica, value }) => placed(replica, value))],
      replicas: [{ name: others.own, answered: true, reason: '' }, ...there.replicas],
    }
  }

  /** The same of rows that do not tell of single proxies: each once, however many replicas have it. */
  async ofAllOnce<Row extends object>(question: ReplicaQuestion, own: () => Promise<readonly Row[]>): Promise<RowsOfAll<Row>> {
    const { rows, replicas } = await this.ofAll(question, own)
    const once = new Map(rows.map(({ replica: _, ...row }) => [JSON.stringify(row), row as Placed<Row>]))
    return { rows: [...once.values()], replicas }
  }

  /** The replica of a proxy, if it is another one. */
  elsewhere({
    replica,
  }: {
    readonly replica?: string
  }): { ask(question: ReplicaQuestion, ...details: readonly unknown[]): Promise<unknown> } | undefined {
    const { others } = this
    if (!others || replica === undefined || replica === others.own) return undefined
    return { ask: (question, ...details) => others.askOne(replica, question, ...details) }
  }

  /** Asks the push queue. */
  queue<T>(question: string, ...details: unknown[]): Promise<T> {
    return this.supervisor.ask<T>('push-queue', question, ...details)
  }

  /** Asks the push queue for a list, which it gives out piece by piece. */
  async list<Row>(question: string): Promise<Row[]> {
    const rows: Row[] = []
    let piece = await this.queue<ListPiece<Row>>(question)
    rows.push(...piece.rows)
    while (piece.next !== undefined) {
      piece = await this.queue<ListPiece<Row>>('more', piece.next)
      rows.push(...piece.rows)
    }
    return rows
  }

  /** Asks the record of what the proxies have acknowledged. */
  distribution<T>(question: string, ...details: unknown[]): Promise<T> {
    return this.supervisor.ask<T>('distribution', question, ...details)
  }

  /** Asks the certificate authority. If this process has none, resolves to a page that says so. */
  authority<T>(question: string, ...details: unknown[]): Promise<T | Page> {
    return this.#ifThere('certificate-authority', 'this server has no certificate authority (ENABLE_CA_SERVER, --secureGRPCAddr)', question, details)
  }

  /** Asks the analyzer. If it does not run, resolves to a page that says so. */
  analyzer<T>(question: string): Promise<T | Page> {
    return this.#ifThere('analyzer', 'this server does not analyze configuration (PILOT_ENABLE_ANALYSIS)', question)
  }

  /** Asks the webhooks. If they do not run, resolves to a page that says so. */
  webhooks<T>(question: string): Promise<T | Page> {
    return this.#ifThere('webhooks', 'no webhooks run yet (INJECT_ENABLED, --httpsAddr, a cluster, a first review)', question)
  }

  /** Asks an actor that runs only with some settings; resolves to a page with status 404 that says `otherwise` where it does not. */
  #ifThere<T>(actor: string, otherwise: string, question: string, details: readonly unknown[] = []): Promise<T | Page> {
    const isThere = this.supervisor.states().some(({ name }) => name === actor)
    return isThere ? this.supervisor.ask<T>(actor, question, ...details) : Promise.resolve(new Page(otherwise, undefined, 404))
  }

  /** Asks all writers and concatenates their lists. */
  async writers<T>(question: string, ...details: unknown[]): Promise<T[]> {
    return (await this.supervisor.askAll<T[]>('xds-writer', question, ...details)).flat()
  }

  /** The connections of this replica; `withMetadata`: with the metadata of their nodes, which may be large. */
  connections(withMetadata = false): Promise<ConnectionStatus[]> {
    return this.writers<ConnectionStatus>('connections', withMetadata)
  }

  /** The connections of all replicas. */
  allConnections(withMetadata = false): Promise<RowsOfAll<ConnectionStatus>> {
    return this.ofAll('connections', () => this.connections(withMetadata), withMetadata)
  }

  /** The push queue's answer about a proxy, whichever writer of whichever replica has its connection. */
  async ofProxy(question: string, proxy: OneProxy, ...details: unknown[]): Promise<unknown> {
    const { connectionId } = proxy
    const elsewhere = this.elsewhere(proxy)
    if (elsewhere) return elsewhere.ask('ofProxy', question, connectionId, ...details)
    for (const { name } of this.supervisor.states().filter((state) => state.name.startsWith('xds-writer/'))) {
      const answer = await this.queue(question, `${name}/${connectionId}`, ...details)
      if (answer) return answer
    }
    return {}
  }

  /** The encoded resources of a proxy, by type. */
  async resourcesOf(proxy: OneProxy): Promise<ProxyResources> {
    const { connectionId } = proxy
    const elsewhere = this.elsewhere(proxy)
    if (elsewhere) return (await elsewhere.ask('resources', connectionId)) as ProxyResources
    const answers = await this.supervisor.askAll<{ resources: ProxyResources } | undefined>('xds-writer', 'resources', connectionId)
    return answers.find((answer) => answer !== undefined)?.resources ?? {}
  }

  /** What a proxy told of itself; undefined: it is not connected any more. */
  async nodeOf(proxy: OneProxy): Promise<ShownNode | undefined> {
    const elsewhere = this.elsewhere(proxy)
    if (elsewhere) return ((await elsewhere.ask('node', proxy.connectionId)) ?? undefined) as ShownNode | undefined
    const answers = await this.supervisor.askAll<ShownNode | undefined>('xds-writer', 'node', proxy.connectionId)
    return answers.find((answer) => answer !== undefined)
  }
}
