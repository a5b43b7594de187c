/** What the debug pages are made from: answers of the push queue and of the writers. */
import { Page } from '../../http/page-server.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import type { ConnectionStatus } from '../xds-writer/connection-debug.ts'
import type { ProxyResources } from './config-dump.ts'

/** Asks the actors. */
export class PageSources {
  readonly supervisor: Supervisor
  /** Whether nonces tell what version of the configuration a proxy has. */
  readonly tracking: boolean

  constructor(supervisor: Supervisor, tracking: boolean) {
    this.supervisor = supervisor
    this.tracking = tracking
  }

  /** Asks the push queue. */
  queue<T>(question: string, ...details: unknown[]): Promise<T> {
    return this.supervisor.ask<T>('push-queue', question, ...details)
  }

  /** Asks the certificate authority. Where there is none, the answer is a page that says so. */
  authority<T>(question: string, ...details: unknown[]): Promise<T | Page> {
    const name = 'certificate-authority'
    if (this.supervisor.states().some((state) => state.name === name)) return this.supervisor.ask<T>(name, question, ...details)
    return Promise.resolve(new Page('this server has no certificate authority (ENABLE_CA_SERVER, --secureGRPCAddr)', undefined, 404))
  }

  /** Asks all writers, and puts their lists together. */
  async writers<T>(question: string, ...details: unknown[]): Promise<T[]> {
    return (await this.supervisor.askAll<T[]>('xds-writer', question, ...details)).flat()
  }

  connections(): Promise<ConnectionStatus[]> {
    return this.writers<ConnectionStatus>('connections')
  }

  /** What the push queue answers of a proxy, whichever writer has it. */
  async ofProxy(question: string, { connectionId }: ConnectionStatus, ...details: unknown[]): Promise<unknown> {
    for (const { name } of this.supervisor.states().filter((state) => state.name.startsWith('xds-writer/'))) {
      const answer = await this.queue(question, `${name}/${connectionId}`, ...details)
      if (answer) return answer
    }
    return {}
  }

  /** What a proxy was sent, by type. */
  async resourcesOf({ connectionId }: ConnectionStatus): Promise<ProxyResources> {
    const answers = await this.supervisor.askAll<{ resources: ProxyResources } | undefined>('xds-writer', 'resources', connectionId)
    return answers.find((answer) => answer !== undefined)?.resources ?? {}
  }
}
