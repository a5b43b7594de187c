/** The relay of an agent under test, between discovery servers and proxies that a test controls. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { actor } from '../../actors/agent/xds-relay/xds-relay.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { HealthChanged } from '../../protocols/messages/health.ts'
import type { LogRecord } from '../../protocols/messages/log.ts'
import type { NameTableChanged } from '../../protocols/messages/name-table.ts'
import type { XdsRelayConfig, XdsRelayState } from '../../protocols/messages/xds-relay.ts'
import { fieldHead, textField } from '../../src/xds/slab/wire.ts'
import { startActor } from './actor.ts'
import { labelText } from './metric-text.ts'
import { FakeDiscovery, RelayClient } from './relay.ts'

/** The node of the proxy in requests. */
export const node = { id: 'sidecar~10.0.0.1~web.shop~shop.svc.cluster.local' }
/** The type of name tables. */
export const nameTable = 'type.googleapis.com/mesh.networking.nds.v1.NameTable'

const message = (field: number, ...parts: Uint8Array[]) => {
  const content = Buffer.concat(parts)
  return Buffer.concat([fieldHead(field, content.length), content])
}

/** Encodes a response with one resource. */
export function response(isDelta: boolean, typeUrl: string, value: Buffer, { version = 'v1', nonce = 'n1' } = {}): Buffer {
  const any = message(2, textField(1, typeUrl), message(2, value))
  const resource = isDelta ? message(2, textField(3, ''), any) : any
  return Buffer.concat([textField(1, version), resource, textField(4, typeUrl), textField(5, nonce)])
}

const noCredentials = { roots: { files: undefined, learned: undefined, isPinned: true }, tokenFile: undefined, pair: undefined }

/** Starts relays, discovery servers and proxies, and ends them. */
export class RelayFixture {
  /** A directory for the files of the test. It exists until {@link dispose}. */
  readonly dir = mkdtempSync(join(tmpdir(), 'mesh-relay-'))
  /** The socket that relays listen on. */
  readonly socket = join(this.dir, 'run/XDS')
  readonly #servers: FakeDiscovery[] = []
  readonly #clients: RelayClient[] = []
  readonly #relays: Behaviour<HealthChanged, NameTableChanged>[] = []
  #metrics = new MetricRegistry()
  /** The log records since the last {@link end}. */
  logged: LogRecord[] = []
  /** Answers the questions of the relay to its supervisor. */
  answer: (question: string) => unknown = () => undefined

  /** Ends everything that was started. */
  async end(): Promise<void> {
    for (const client of this.#clients.splice(0)) client.close()
    await Promise.all(this.#relays.splice(0).map((relay) => relay.drain?.()))
    await Promise.all(this.#servers.splice(0).map((server) => server.stop()))
    this.logged = []
  }

  /** Removes the directory. */
  dispose(): void {
    rmSync(this.dir, { recursive: true })
  }

  /** Starts a discovery server, over TLS if the files of a certificate are given. */
  async discovery(files?: { readonly cert: string; readonly key: string }): Promise<FakeDiscovery> {
    const server = await new FakeDiscovery(files).start()
    this.#servers.push(server)
    return server
  }

  /** Starts a relay to a port of this machine: in plaintext without credentials unless `changes` has others. */
  relayTo(port: number, changes: Partial<XdsRelayConfig> = {}) {
    const address = { host: '127.0.0.1', port, isPlain: changes.discovery === undefined, serverName: 'localhost' }
    return this.relay({ ...changes, discovery: { address, credentials: changes.discovery?.credentials ?? noCredentials } })
  }

  /** Starts a relay with metrics of its own. */
  async relay(config: Pick<XdsRelayConfig, 'discovery'> & Partial<XdsRelayConfig>) {
    this.#metrics = new MetricRegistry()
    const relay = await startActor(
      actor,
      { socket: this.socket, headers: {}, exchangesToken: false, keeps: undefined, asksNameTable: false, asksTrust: false, ...config },
      {
        logged: (record) => this.logged.push(record),
        metrics: this.#metrics,
        ask: async (question, token) => this.answer(`${question} ${token}`),
      },
    )
    this.#relays.push(relay)
    return { relay, state: relay.asks?.state as () => XdsRelayState }
  }

  /** Connects a proxy. */
  proxy(options: ConstructorParameters<typeof RelayClient>[1] = {}): RelayClient {
    const client = new RelayClient(this.socket, options)
    this.#clients.push(client)
    return client
  }

  /** The warnings in the log. */
  warnings(): string[] {
    return this.logged.filter(({ level }) => level === 'warn').map(({ message }) => message)
  }

  /** The values of a metric of the last relay that was started, by labels. */
  counted(name: string): Record<string, number> {
    const family = this.#metrics.collect().find((each) => each.name === name)
    return Object.fromEntries((family?.series ?? []).map(({ labels, values }) => [labelText(labels), values[0] as number]))
  }
}
