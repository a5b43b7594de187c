/**
 * The agent's relay as an actor: accepts Envoy's discovery streams on a Unix socket and relays their messages to and from discovery, frame
 * by frame. Consumes: `HealthChanged`, from the status server. Emits: `NameTableChanged`, to the DNS server; `TrustBundleChanged`, to the
 * secret agent. Asks: `state`, {@link XdsRelayState}.
 */
import type { HealthChanged } from '../../../protocols/messages/health.ts'
import type { NameTableChanged } from '../../../protocols/messages/name-table.ts'
import type { ExchangedToken } from '../../../protocols/messages/sts.ts'
import type { TrustBundleChanged } from '../../../protocols/messages/trust-bundle.ts'
import type { XdsRelayConfig, XdsRelayState } from '../../../protocols/messages/xds-relay.ts'
import { BackOff } from '../../../src/model/back-off.ts'
import { status } from '../../../src/model/status-codes.ts'
import { reconnects } from '../../../src/relay/reconnects.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import type { Peer } from '../../runtime/link.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { readPair, readRoots, readToken } from '../credentials/credential-file.ts'
import { ConfigurationFile } from './configuration-file.ts'
import type { StreamCredentials } from './discovery-stream.ts'
import { relayMetrics } from './metrics.ts'
import { ProxyServer } from './proxy-server.ts'
import type { ProxyStream } from './proxy-stream.ts'
import { RelayedStream, type RelayParts } from './relayed-stream.ts'

/** What the relay tells other actors of the agent, and the kind of actor that each message is for. */
type Sent = NameTableChanged | TrustBundleChanged
const receivers: Readonly<Record<Sent['type'], string>> = { NameTableChanged: 'dns', TrustBundleChanged: 'secret-agent' }

class XdsRelay implements Behaviour<HealthChanged, Sent> {
  readonly asks = { state: () => this.#state() }
  readonly #config: XdsRelayConfig
  /** Exchanges a token at the token service. */
  readonly #exchange: (token: string) => Promise<ExchangedToken>
  readonly #log: ScopedLogger
  readonly #server: ProxyServer
  readonly #parts: RelayParts
  readonly #peers = new Set<Peer<Sent>>()
  /** The last message of each type. */
  readonly #said = new Map<Sent['type'], Sent>()
  #health: HealthChanged | undefined
  #stream: RelayedStream | undefined
  /** The last stream, open or ended. */
  #latest: RelayedStream | undefined

  constructor({ config, log, metrics, ask }: ActorContext<XdsRelayConfig>) {
    this.#config = config
    this.#exchange = (token) => ask<ExchangedToken>('exchange', token)
    this.#log = log('xdsproxy')
    this.#parts = {
      address: config.discovery.address,
      log: this.#log,
      metrics: relayMetrics(metrics),
      backOff: new BackOff(reconnects),
      own: { asksNameTable: config.asksNameTable, asksTrust: config.asksTrust, health: () => this.#health },
      credentials: () => this.#credentials(),
      named: (table) => this.#say({ type: 'NameTableChanged', table }),
      announced: (roots) => this.#say({ type: 'TrustBundleChanged', roots }),
      file: config.keeps && new ConfigurationFile(config.keeps, this.#log),
    }
    this.#server = new ProxyServer(config, this.#log, (stream) => this.#take(stream))
  }

  /** Starts to listen. Rejects when it cannot listen on the socket. */
  async start(): Promise<this> {
    await this.#server.open()
    return this
  }

  receive(message: HealthChanged): void {
    this.#health = message
    this.#stream?.healthChanged()
  }

  linked(peer: Peer<Sent>): void {
    this.#peers.add(peer)
    for (const message of this.#said.values()) if (receivers[message.type] === peer.kind) peer.tell(message, message.type)
  }

  unlinked(peer: Peer<Sent>): void {
    this.#peers.delete(peer)
  }

  async drain(): Promise<void> {
    this.#stream?.end(status.ok, '')
    await this.#server.close()
    await this.#parts.file?.close()
  }

  /** Accepts a stream. Only one is served at a time: a new stream ends the previous one. */
  #take(proxy: ProxyStream): void {
    if (this.#stream) {
      this.#log.warn('the proxy has opened another stream; the one before is ended')
      this.#stream.end(status.ok, '')
    }
    const stream: RelayedStream = new RelayedStream(proxy, this.#parts, () => {
      if (this.#stream === stream) this.#stream = undefined
    })
    this.#stream = stream
    this.#latest = stream
  }

  #say(message: Sent): void {
    this.#said.set(message.type, message)
    for (const peer of this.#peers) if (receivers[message.type] === peer.kind) peer.tell(message, message.type)
  }

  /** Reads the credentials of a stream. The files are read for each stream because they are replaced while the agent runs. */
  async #credentials(): Promise<StreamCredentials> {
    const { address, credentials } = this.#config.discovery
    const { headers } = this.#config
    // Without TLS a token could be read on the network.
    if (address.isPlain) return { headers, pair: undefined, roots: undefined }
    const roots = await readRoots(credentials.roots)
    const pair = credentials.pair && (await this.#unlessBroken('no client certificate is presented', readPair(credentials.pair)))
    const token = credentials.tokenFile && (await this.#unlessBroken('no token is sent', readToken(credentials.tokenFile)))
    return { headers: token ? { ...headers, authorization: `Bearer ${await this.#tokenFor(token)}` } : headers, pair, roots }
  }

  /**
   * Returns the token for discovery: the workload's token, or the one it was exchanged for. Rejects with an Error when the exchange fails.
   */
  async #tokenFor(token: string): Promise<string> {
    if (!this.#config.exchangesToken) return token
    try {
      return (await this.#exchange(token)).token
    } catch (error) {
      throw new Error(`the token could not be exchanged: ${(error as Error).message}`)
    }
  }

  /** Resolves with the result, or with undefined after a logged warning when the file cannot be used. */
  async #unlessBroken<T>(otherwise: string, read: Promise<T>): Promise<T | undefined> {
    try {
      return await read
    } catch (error) {
      this.#log.warn(`${otherwise}: ${(error as Error).message}`)
      return undefined
    }
  }

  #state(): XdsRelayState {
    const { failures } = this.#parts.backOff
    return { stream: this.#stream?.state ?? 'none', failures, fault: this.#latest?.fault }
  }
}

/** Definition of the actor. */
export const actor: ActorDefinition<XdsRelayConfig, HealthChanged, Sent> = {
  kind: 'xds-relay',
  start: (context) => new XdsRelay(context).start(),
}
