/**
 * The secrets that a writer serves to gateways: their readers, the subscriptions sent to the sources (`SecretsWanted`), and the received
 * secrets (`SecretChanged`; docs/resources.md, K6 to K9).
 */
import type { MeshNamesEvent } from '../../../protocols/messages/identity.ts'
import type { SecretCommand, SecretEvent, SecretReader } from '../../../protocols/messages/secrets.ts'
import type { Features } from '../../../src/config/features.ts'
import { secretReader } from '../../../src/identity/access.ts'
import { type ReaderParts, ReaderSecrets } from '../../../src/xds/secrets/reader-secrets.ts'
import { SecretPlans, secretFrame } from '../../../src/xds/secrets/secret-plans.ts'
import type { Catalog } from '../../../src/xds/stream/catalog.ts'
import type { Response } from '../../../src/xds/stream/session.ts'
import type { Subscriptions } from '../../../src/xds/stream/subscription.ts'
import type { Peer } from '../../runtime/link.ts'
import { after } from '../../runtime/timers.ts'
import { isRemoteActor, orchestratorSource, remoteActor } from '../given/sources.ts'
import type { Connection } from './connection.ts'

/** The secrets of one reader, and the connections that read them. */
interface Served {
  readonly secrets: ReaderSecrets
  readonly connections: Set<Connection>
  /** The names of Secrets that sources have and do not give to the reader, by source. */
  readonly refused: Map<string, Set<string>>
}

/** Serves secrets to the gateways that are connected to one writer. */
export class GatewaySecrets {
  readonly #isServed: boolean
  readonly #ownCluster: string
  readonly #parts: ReaderParts
  readonly #readers = new Map<string, Served>()
  readonly #readerOf = new Map<Connection, string>()
  readonly #sources = new Set<Peer<SecretCommand>>()
  /** The names of the sources, also of those that are being restarted, in the order of their precedence. */
  #asked: readonly string[] = []
  #names: MeshNamesEvent | undefined
  #isSendScheduled = false

  readonly #missing: (reader: SecretReader, resource: string) => void

  /** `missing` is called for each resource that is subscribed to and does not exist. */
  constructor(features: Features, catalog: Catalog, subscriptions: Subscriptions, missing: (reader: SecretReader, resource: string) => void) {
    this.#missing = missing
    // Without the identity check a node could claim any namespace, and so read its secrets.
    this.#isServed = features.MESHD_ENABLE_SDS_SERVER && features.PILOT_ENABLE_XDS_IDENTITY_CHECK
    this.#ownCluster = features.CLUSTER_ID
    this.#parts = {
      groups: catalog.parts,
      plans: new SecretPlans(catalog),
      subscriptions,
      memory: new WeakSet(),
      sources: (reader) => this.#sourcesOf(reader),
      wanted: () => this.#sendLater(),
    }
  }

  /** A source of secrets is linked: sends it the subscriptions. */
  linked(source: Peer<SecretCommand>): void {
    this.#sources.add(source)
    if (!this.#asked.includes(source.name)) this.#ask([...this.#asked, source.name])
    this.#sendLater()
  }

  /** A source is unlinked. The secrets that it sent stay in use until its successor replaces them. */
  unlinked(source: Peer): void {
    this.#sources.delete(source as Peer<SecretCommand>)
  }

  /** A source was removed for good: its secrets are those of other sources, or gone. Returns the connections that may have to be sent something. */
  forgotten({ name }: Peer): Iterable<Connection> {
    const touched = this.#ask(this.#asked.filter((source) => source !== name))
    if (!isRemoteActor(name)) return touched
    // No other source has Secrets for the gateways of a cluster.
    const ofCluster = [...this.#readers.values()].filter(({ secrets }) => this.#sourcesOf(secrets.reader).includes(name))
    for (const served of ofCluster) {
      const known = [...served.secrets.names].flatMap((secret) => served.secrets.said(name, secret, undefined))
      for (const { session } of served.connections) session.secretsKnown(known)
    }
    return new Set([...touched, ...ofCluster.flatMap(({ connections }) => [...connections])])
  }

  /** Sets the sources that are asked. Returns the connections whose secrets may differ. */
  #ask(sources: readonly string[]): Connection[] {
    const order = this.#names?.sources ?? []
    // The watcher of `--configDir` is not among the sources of the mesh configuration, and comes first; a cluster is not either, and comes last.
    const rank = (source: string) => (source === orchestratorSource && !order.includes(source) ? order.length : order.indexOf(source))
    this.#asked = [...sources].sort((one, other) => rank(one) - rank(other))
    return [...this.#readers.values()].flatMap((served) => {
      const known = served.secrets.sourcesChanged()
      this.#reportMissing(served, known)
      for (const { session } of served.connections) session.secretsKnown(known)
      return [...served.connections]
    })
  }

  /**
   * The sources of a reader: its own cluster alone where that is another one, also while it is not linked, and otherwise those of this process
   * (docs/identity.md, I11).
   */
  #sourcesOf({ cluster }: SecretReader): readonly string[] {
    return cluster === undefined ? this.#asked.filter((source) => !isRemoteActor(source)) : [remoteActor(cluster)]
  }

  /** The mesh names changed: determines again which secrets each connection may read. */
  named(names: MeshNamesEvent, connections: Iterable<Connection>): void {
    const isOrdered = JSON.stringify(names.sources) === JSON.stringify(this.#names?.sources)
    this.#names = names
    for (const connection of connections) this.admit(connection)
    if (!isOrdered) this.#ask(this.#asked)
  }

  /** Gives a connection the secrets that it may read, according to its node and its verified identity. */
  admit(connection: Connection): void {
    const { node, verifiedIdentity: verified, session, caller } = connection
    const reader =
      this.#isServed && node && this.#names ? secretReader(node, { verified, cluster: caller?.cluster }, this.#names, this.#ownCluster) : undefined
    const key = reader && keyOf(reader)
    const before = this.#readerOf.get(connection)
    if (key === before) return
    let served = key === undefined ? undefined : this.#readers.get(key)
    if (reader && key !== undefined) {
      served ??= { secrets: new ReaderSecrets(reader, this.#parts), connections: new Set(), refused: new Map() }
      this.#readers.set(key, served)
      served.connections.add(connection)
      this.#readerOf.set(connection, key)
    }
    session.readSecrets(served?.secrets)
    this.#leave(connection, before)
  }

  /** Removes a connection whose session is closed. */
  gone(connection: Connection): void {
    this.#leave(connection, this.#readerOf.get(connection))
    this.#readerOf.delete(connection)
  }

  /** Stores a secret, or its absence, as received from a source. Returns the connections that may have to be sent something. */
  receive({ reader, name, material, isRefused }: SecretEvent, { name: source }: Peer): Iterable<Connection> {
    const served = this.#readers.get(keyOf(reader))
    if (!served || !this.#sourcesOf(reader).includes(source)) return []
    const known = served.secrets.said(source, name, material)
    const refused = served.refused.get(source) ?? new Set()
    served.refused.set(source, refused)
    if (isRefused) refused.add(name)
    else refused.delete(name)
    // What one source refuses exists, and the refusal has been told.
    if (!this.#sourcesOf(reader).some((each) => served.refused.get(each)?.has(name))) this.#reportMissing(served, known)
    for (const { session } of served.connections) session.secretsKnown(known)
    return served.connections
  }

  #reportMissing({ secrets }: Served, known: readonly string[]): void {
    for (const resource of known) if (!secrets.state.find(resource)) this.#missing(secrets.reader, resource)
  }

  /** The frame of a response with secrets. The caller must overwrite it once it is sent. */
  frame(response: Response, delta: boolean): Buffer {
    return secretFrame(response, delta, (chunk) => this.#parts.memory.has(chunk.buffer))
  }

  #leave(connection: Connection, key: string | undefined): void {
    const served = key === undefined ? undefined : this.#readers.get(key)
    if (!served || key === undefined) return
    served.connections.delete(connection)
    if (this.#readerOf.get(connection) === key) this.#readerOf.delete(connection)
    if (served.connections.size === 0) this.#readers.delete(key)
  }

  /** Sends the subscriptions to the sources, once for all changes within one turn of the event loop. */
  #sendLater(): void {
    if (this.#isSendScheduled) return
    this.#isSendScheduled = true
    after(0, () => {
      this.#isSendScheduled = false
      const all = [...this.#readers.values()].map(({ secrets }) => ({ reader: secrets.reader, names: [...secrets.names] }))
      for (const source of this.#sources)
        source.tell({ type: 'SecretsWanted', wanted: all.filter(({ reader }) => this.#sourcesOf(reader).includes(source.name)) }, 'wanted')
    })
  }
}

const keyOf = ({ cluster = '', namespace, account }: SecretReader): string => JSON.stringify([cluster, namespace, account])
