/** The data of the debug pages: answers of the push queue, the writers and the certificate authority. */
import type { ListPiece } from '../../../protocols/messages/pages.ts'
import { Page } from '../../http/page-server.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import type { ConnectionStatus } from '../xds-writer/connection-debug.ts'
import type { ProxyResources } from './config-dump.ts'
import type { Explanations } from './explanations.ts'
import type { Profiles } from './profiles.ts'

/** Asks the actors for the data of pages. */
export class PageSources {
  readonly supervisor: Supervisor
  /** Whether nonces identify the version of the configuration (`PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING`). */
  readonly tracking: boolean
  readonly explanations: Explanations
  /** Present where profiles are served (`--profile`). */
  readonly profiles: Profiles | undefined

  constructor(supervisor: Supervisor, tracking: boolean, explanations: Explanations, profiles?: Profiles) {
    this.supervisor = supervisor
    this.tracking = tracking
    this.explanations = explanations
    this.profiles = profiles
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
    return this.#ifThere('webhooks', 'this server has no webhooks (INJECT_ENABLED, --httpsAddr, a cluster)', question)
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

  connections(): Promise<ConnectionStatus[]> {
    return this.writers<ConnectionStatus>('connections')
  }

  /** The push queue's answer about a proxy, whichever writer has its connection. */
  async ofProxy(question: string, { connectionId }: ConnectionStatus, ...details: unknown[]): Promise<unknown> {
    for (const { name } of this.supervisor.states().filter((state) => state.name.startsWith('xds-writer/'))) {
      const answer = await this.queue(question, `${name}/${connectionId}`, ...details)
      if (answer) return answer
    }
    return {}
  }

  /** The encoded resources of a proxy, by type. */
  async resourcesOf({ connectionId }: ConnectionStatus): Promise<ProxyResources> {
    const answers = await this.supervisor.askAll<{ resources: ProxyResources } | undefined>('xds-writer', 'resources', connectionId)
    return answers.find((answer) => answer !== undefined)?.resources ?? {}
  }
}
