/**
 * Reports the events of a writer's proxies to the actor `distribution` while somebody watches them (`ProxyEventsReported`): at once, and in one
 * report what happens before the last report was taken.
 */
import type { ProxyEvent, ProxyEventKind, ProxyEventsReported, ReportProxyEvents } from '../../../protocols/messages/proxy-events.ts'
import { nodeMessage, refusalMessage, type ShownNode } from '../../../src/xds/status/status-messages.ts'
import type { Peer } from '../../runtime/link.ts'
import type { Connection } from './connection.ts'

/** The events that wait for a report: their number and their size in bytes. What is beyond is dropped, and told as a gap. */
const waiting = { events: 5000, bytes: 8_388_608 }

/** A request that refused a response. `rawNames`: its names as fields 3, or empty. */
export interface Refusing {
  readonly typeUrl: string
  readonly nonce: string
  readonly error: { readonly code: number; readonly message: string } | undefined
  readonly rawNames?: Uint8Array
}

/** The events of one writer. */
export class ProxyEventReports {
  readonly #connections: ReadonlyMap<string, Connection>
  #peer: Peer<ProxyEventsReported> | undefined
  #isWanted = false
  /** Whether the last report was not taken yet, and whether another one is due even if it is empty. */
  #isAway = false
  #isDue = false
  #events: ProxyEvent[] = []
  #bytes = 0
  #isGap = false

  /** `connections`: the identified connections of the writer. */
  constructor(connections: ReadonlyMap<string, Connection>) {
    this.#connections = connections
  }

  /** A recipient, which says when it wants events. */
  linked(peer: Peer<ProxyEventsReported>): void {
    this.unlinked()
    this.#peer = peer
  }

  unlinked(): void {
    this.#peer = undefined
    this.#isWanted = false
    this.#isAway = false
    this.#clear()
  }

  /** Begins or ends to report. */
  want({ isWanted, isLate }: ReportProxyEvents): void {
    this.#isWanted = isWanted
    if (!isWanted) return this.#clear()
    if (isLate) for (const connection of this.#connections.values()) this.connected(connection)
    this.#isDue = true
    this.#report()
  }

  /** The recipient has taken the last report. */
  taken(): void {
    this.#isAway = false
    this.#report()
  }

  connected(connection: Connection): void {
    if (this.#isWanted) this.#add('connect', connection, nodeMessage(shownNode(connection)))
  }

  gone(connection: Connection): void {
    if (this.#isWanted) this.#add('disconnect', connection, nodeMessage(shownNode(connection)))
  }

  refused(connection: Connection, { typeUrl, nonce, error, rawNames = new Uint8Array() }: Refusing): void {
    if (!this.#isWanted || !error) return
    const version = connection.session.watches.get(typeUrl)?.version ?? ''
    this.#add('nack', connection, refusalMessage({ version, node: shownNode(connection), rawNames, typeUrl, nonce, error }))
  }

  #add(kind: ProxyEventKind, { node }: Connection, message: Buffer): void {
    this.#events.push({ kind, namespace: node?.namespace ?? '', nodeId: node?.id ?? '', message })
    this.#bytes += message.length
    if (this.#events.length > waiting.events || this.#bytes > waiting.bytes) {
      this.#clear()
      this.#isGap = true
    }
    this.#report()
  }

  #report(): void {
    if (!this.#peer || this.#isAway || !(this.#isDue || this.#isGap || this.#events.length > 0)) return
    this.#peer.tell({ type: 'ProxyEventsReported', events: this.#events, isGap: this.#isGap }, 'events')
    this.#clear()
    this.#isAway = true
  }

  #clear(): void {
    this.#events = []
    this.#bytes = 0
    this.#isGap = false
    this.#isDue = false
  }
}

/** The node of a connection, for messages. */
export function shownNode({ node }: Connection): ShownNode {
  const { id = '', metadata = {}, labels, locality = '' } = node ?? {}
  return { id, metadata: { ...metadata, LABELS: labels }, locality }
}
