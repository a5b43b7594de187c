/**
 * The agent's DNS server as an actor: answers queries for services from the name table that discovery sent, and forwards all other queries
 * to the DNS servers of the system (docs/agent.md, D1 to D7). Consumes `NameTableChanged` from the relay. Asks: `state`, {@link DnsState}.
 */
import { randomInt } from 'node:crypto'
import type { DnsConfig, DnsState } from '../../../protocols/messages/dns.ts'
import type { NameTableChanged } from '../../../protocols/messages/name-table.ts'
import { decide, forwarded } from '../../../src/dns/answers.ts'
import { NameTable } from '../../../src/dns/name-table.ts'
import { count } from '../../../src/model/counts.ts'
import { splitAddress } from '../../http/address.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { readKeptTable, writeKeptTable } from './kept-table.ts'
import { type Incoming, Listeners } from './listeners.ts'
import { type DnsMetrics, dnsMetrics } from './metrics.ts'
import { SystemResolver } from './system-resolver.ts'
import { Upstream } from './upstream.ts'

/**
 * The delay between a change of the name table and its write to the file, in milliseconds: in a busy mesh the next change follows soon, and
 * writing a large table takes 20 ms.
 */
const keepAfterMs = 60_000

class DnsServer implements Behaviour<NameTableChanged, never> {
  readonly asks = { state: () => this.#state() }
  readonly #config: DnsConfig
  readonly #log: ScopedLogger
  readonly #metrics: DnsMetrics
  readonly #resolver: SystemResolver
  readonly #upstream: Upstream
  readonly #listeners = new Listeners((incoming) => this.#take(incoming))
  #table: NameTable | undefined
  #isKept = false
  /** The table that is to be written to the file, and the timer of the write. */
  #unwritten: Uint8Array | undefined
  #writing: Timer | undefined
  #saidLoop = false
  #saidUnwritten = false

  /** Throws an Error when the resolver configuration cannot be read. */
  constructor({ config, log, metrics }: ActorContext<DnsConfig>) {
    this.#config = config
    this.#log = log('dns')
    this.#metrics = dnsMetrics(metrics)
    this.#upstream = new Upstream(config.serverPort, this.#metrics)
    this.#resolver = new SystemResolver(
      config.resolvConf,
      ({ servers }) =>
        this.#log.info(`${config.resolvConf} has changed: names outside the mesh are forwarded to ${servers.join(', ') || 'no server'}`),
      (reason) => this.#log.warn(`${reason}; the DNS servers read from it before stay in use`),
    )
  }

  /** Starts to listen. Rejects when it cannot listen on the address. */
  async start(): Promise<this> {
    this.#restore()
    await this.#listeners.open(...splitAddress(this.#config.address))
    const { servers } = this.#resolver.config
    this.#log.info(`DNS on ${this.#listeners.addresses.join(', ')}; names outside the mesh are forwarded to ${servers.join(', ') || 'no server'}`)
    return this
  }

  receive({ table }: NameTableChanged): void {
    try {
      this.#table = new NameTable(table, this.#config)
      this.#isKept = false
    } catch (error) {
      this.#log.error(`a name table cannot be used, the one before stays: ${(error as Error).message}`)
      return
    }
    this.#log.debug(`received a name table of ${count(this.#table.hosts, 'host')}`)
    if (this.#config.keptIn === undefined) return
    this.#unwritten = table
    this.#writing ??= after(keepAfterMs, () => this.#write()).unref()
  }

  async drain(): Promise<void> {
    this.#write()
    await this.#listeners.close()
    this.#upstream.close()
  }

  #take(incoming: Incoming): void {
    const { message, port, isStream, client } = incoming
    this.#metrics.asked()
    const { servers, search } = this.#resolver.config
    const decision = decide(message, { table: this.#table, search }, isStream, (limit) => randomInt(limit))
    if (decision === 'ignore') return incoming.answer(undefined)
    if ('answer' in decision) return incoming.answer(decision.answer)
    if (this.#upstream.isOwn(message, port, isStream)) {
      this.#sayLoop()
      return incoming.answer(forwarded(decision, undefined, isStream))
    }
    const others = servers.filter((server) => !this.#isOurs(server))
    const asking = this.#upstream.ask({ query: decision.forward, message, isStream, client }, others)
    const answer = (response?: Buffer) => incoming.answer(forwarded(decision, response, isStream))
    // The promise rejects when no socket can be opened; the query then fails.
    void asking.then(answer, () => answer())
  }

  /** Whether an upstream server is this DNS server. */
  #isOurs(server: string): boolean {
    const address = `${server.includes(':') ? `[${server}]` : server}:${this.#config.serverPort}`
    return this.#listeners.addresses.includes(address)
  }

  #sayLoop(): void {
    if (this.#saidLoop) return
    this.#saidLoop = true
    this.#log.error('DNS queries of the agent are redirected back to it and fail: exclude the user that it runs as from the redirect rules')
  }

  /** Loads the table that the last run stored. It is used until discovery sends one. */
  #restore(): void {
    const { keptIn, domain } = this.#config
    if (keptIn === undefined) return
    try {
      const kept = readKeptTable(keptIn, domain)
      if (!kept) return
      this.#table = new NameTable(kept, this.#config)
      this.#isKept = true
      this.#log.info(`names of ${count(this.#table.hosts, 'host')} are answered from the last run, until discovery sends a name table`)
    } catch (error) {
      this.#log.warn(`the names of the last run are not used: ${(error as Error).message}`)
    }
  }

  #write(): void {
    const { keptIn, domain } = this.#config
    this.#writing?.cancel()
    this.#writing = undefined
    const table = this.#unwritten
    this.#unwritten = undefined
    if (keptIn === undefined || !table) return
    try {
      writeKeptTable(keptIn, domain, table)
      this.#saidUnwritten = false
    } catch (error) {
      if (!this.#saidUnwritten) this.#log.warn(`the name table could not be saved for the next start: ${(error as Error).message}`)
      this.#saidUnwritten = true
    }
  }

  #state(): DnsState {
    return { addresses: this.#listeners.addresses, hosts: this.#table?.hosts, isKept: this.#isKept, servers: this.#resolver.config.servers }
  }
}

/** Definition of the actor. */
export const actor: ActorDefinition<DnsConfig, NameTableChanged, never> = {
  kind: 'dns',
  start: (context) => new DnsServer(context).start(),
}
