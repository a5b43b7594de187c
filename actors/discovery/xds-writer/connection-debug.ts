/** A writer's answers to the debug pages about its connections. */
import type { ReplicaState } from '../../../protocols/messages/replicas.ts'
import { textField } from '../../../src/xds/slab/wire.ts'
import type { ShownNode } from '../../../src/xds/status/status-messages.ts'
import type { Catalog } from '../../../src/xds/stream/catalog.ts'
import type { SessionParts } from '../../../src/xds/stream/session.ts'
import type { TypeState } from '../../../src/xds/stream/type-state.ts'
import type { Watch } from '../../../src/xds/stream/watch.ts'
import {
  clusterType,
  endpointType,
  extensionConfigType,
  listenerType,
  nameTableType,
  routeType,
  virtualHostType,
} from '../../../src/xds/type-urls.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Connection } from './connection.ts'
import { shownNode } from './proxy-event-reports.ts'

/** State of one type on one connection, as shown by `syncz` and by client status discovery. */
export interface TypeStatus {
  readonly typeUrl: string
  readonly nonceSent: string
  readonly nonceAcked: string
  readonly version: string
  readonly error: string
  /** Whether the proxy has acknowledged the present version of all resources that it subscribed to. */
  readonly current: boolean
  /** How long the last response has been unanswered, in milliseconds; undefined: it was answered, or there was none. */
  readonly waitingMs?: number
}

/** State of one connection, as shown by the debug pages. */
export interface ConnectionStatus {
  readonly connectionId: string
  readonly nodeId: string
  /** The namespace that determines the configuration of the proxy. */
  readonly namespace: string
  /** SPIFFE ids of the caller; empty in plain text. */
  readonly identities: readonly string[]
  readonly version: string
  readonly connectedAt: string
  readonly address: string
  readonly delta: boolean
  readonly classId: string
  /** Ledger of the last push that the writer has applied. */
  readonly digest: string
  readonly types: readonly TypeStatus[]
  /** Its addresses, where it has several; that of the node id is one of them. */
  readonly addresses?: readonly string[]
  /** Its release of Envoy, `[major, minor]`; undefined: it is not known. */
  readonly envoy?: readonly [number, number]
  /** The secrets that its configuration names, that it subscribes to and that do not exist for it; undefined: none. */
  readonly missingSecrets?: readonly string[]
  /** Metadata of the node, under the mesh's own names; only if requested. */
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** The connections of all replicas of discovery. */
export interface ConnectionsOfAll {
  /** Each with the replica that has it, where there are others. */
  readonly connections: readonly (ConnectionStatus & { readonly replica?: string })[]
  /** The names of the replicas that have answered; none where other replicas are not asked. */
  readonly answered: readonly string[]
  /** Those that have not. */
  readonly silent: readonly ReplicaState[]
  /** The same as a sentence, for messages; empty: all have answered. */
  readonly silence: string
}

/** The subscriptions and NACKs of a connection, as shown by `adsz`. Subscribed names need not exist. */
export interface ConnectionWatches {
  readonly connectionId: string
  readonly namespace: string
  readonly connectedAt: string
  readonly address: string
  readonly watches: Readonly<Record<string, readonly string[]>>
  readonly rejections: readonly { typeUrl: string; message: string; at: string }[]
}

/** Returns the functions that answer the debug pages. None of them is on the push path. */
export function connectionAnswers(connections: ReadonlyMap<string, Connection>, parts: SessionParts, digest: () => string) {
  return {
    /** All connections. `withMetadata` adds the node metadata, which may be large. */
    connections: (withMetadata = false): ConnectionStatus[] =>
      [...connections.values()].map((connection) => {
        const { metadata, labels } = connection.node ?? {}
        return { ...statusOf(connection, parts.catalog, digest()), ...(withMetadata ? { metadata: { ...metadata, LABELS: labels } } : {}) }
      }),
    /** The number of connections. */
    proxies: (): number => connections.size,
    watches: (): ConnectionWatches[] => [...connections.values()].map(watchesOf),
    /**
     * The encoded resources of a connection by type, as list elements of a response in base64. Undefined when this writer has no such
     * connection.
     */
    resources: (
      connectionId: string,
    ): { connectionId: string; resources: Record<string, { name: string; version: string; element: string }[]> } | undefined => {
      const connection = connections.get(connectionId)
      if (!connection) return undefined
      const resources = Object.fromEntries(
        [clusterType, endpointType, listenerType, routeType, virtualHostType, extensionConfigType, nameTableType].map((typeUrl) => {
          const state = parts.catalog.typeState(connection.session.classId, typeUrl)
          return [
            typeUrl,
            Array.from(state.entries(), (entry) => ({
              name: entry.name,
              version: entry.version,
              element: Buffer.concat(entry.chunks).toString('base64'),
            })),
          ]
        }),
      )
      return { connectionId: connection.id, resources }
    },
    /** What a proxy told of itself. Undefined when this writer has no such connection. */
    node: (connectionId: string): ShownNode | undefined => {
      const connection = connections.get(connectionId)
      return connection && shownNode(connection)
    },
    /** Ends a connection by its id. Returns whether this writer had it. */
    disconnect: (connectionId: string): boolean => {
      const connection = connections.get(connectionId)
      connection?.stream.end(14, 'disconnected by request')
      return connection !== undefined
    },
  }
}

/** The types whose resources may name secrets. */
const namingSecrets = [listenerType, clusterType, extensionConfigType]

/**
 * Whether something that a class has at present names a secret. An Envoy goes on asking for those of a listener that was removed until it has drained it, 45 s by default.
 */
const isNamed = (secret: string, classId: string, catalog: Pick<Catalog, 'typeState'>): boolean =>
  namingSecrets.some((typeUrl) => names(catalog.typeState(classId, typeUrl), secret))

/** The maximum number of secrets of a connection that are looked for, and that are known of a type of a class: their names are the client's own. */
const most = { missing: 50, known: 1000 }

/** By what a class has of a type, whether that names a secret: it takes milliseconds to look through 10,000 clusters, and all proxies of a class ask for the same. */
const naming = new WeakMap<TypeState, Map<string, boolean>>()

function names(state: TypeState, secret: string): boolean {
  const known = naming.get(state) ?? new Map<string, boolean>()
  naming.set(state, known)
  const before = known.get(secret)
  if (before !== undefined) return before
  // `SdsSecretConfig.name`
  const isThere = hasBytes(state, textField(1, secret))
  if (known.size >= most.known) known.clear()
  known.set(secret, isThere)
  return isThere
}

function hasBytes(state: TypeState, bytes: Buffer): boolean {
  for (const { chunks } of state.entries()) if (chunks.some((chunk) => chunk.includes(bytes))) return true
  return false
}

function statusOf(connection: Connection, catalog: Pick<Catalog, 'typeState'>, digest: string): ConnectionStatus {
  const watches = [...connection.session.watches.values()]
  const version = connection.node?.metadata.MESH_VERSION
  const missingSecrets = connection.session
    .missingSecrets()
    .slice(0, most.missing)
    .filter((name) => isNamed(name, connection.session.classId, catalog))
  return {
    connectionId: connection.id,
    nodeId: connection.node?.id ?? '',
    namespace: connection.node?.namespace ?? '',
    identities: connection.caller?.identities ?? [],
    version: typeof version === 'string' ? version : '',
    connectedAt: new Date(connection.connectedAt).toISOString(),
    address: connection.stream.peer,
    delta: connection.session.delta,
    classId: connection.session.classId,
    digest,
    types: watches.map((watch) => typeStatus(watch, connection.session.versionOf(watch))),
    ...((connection.node?.addresses.length ?? 0) > 1 && { addresses: connection.node?.addresses }),
    ...(connection.node?.envoy && { envoy: connection.node.envoy }),
    ...(missingSecrets.length > 0 && { missingSecrets }),
  }
}

function watchesOf({ id, node, connectedAt, stream, session, rejections }: Connection): ConnectionWatches {
  const watches = [...session.watches.values()].map(({ typeUrl, subscription }) => [typeUrl, subscription.wildcard ? [] : [...subscription.names]])
  return {
    connectionId: id,
    namespace: node?.namespace ?? '',
    connectedAt: new Date(connectedAt).toISOString(),
    address: stream.peer,
    watches: Object.fromEntries(watches),
    rejections: rejections.map(({ typeUrl, message, at }) => ({ typeUrl, message, at: new Date(at).toISOString() })),
  }
}

function typeStatus(watch: Watch, present: string): TypeStatus {
  return {
    typeUrl: watch.typeUrl,
    nonceSent: watch.nonce,
    nonceAcked: watch.nonceAcked,
    version: watch.version,
    error: watch.lastError?.message ?? '',
    current: isCurrent(watch, present),
    ...(isUnanswered(watch) && { waitingMs: monotonicMs() - watch.sentAt }),
  }
}

const isUnanswered = ({ nonce, nonceAcked, lastError }: Watch): boolean => nonce !== '' && nonce !== nonceAcked && nonce !== lastError?.nonce

/** Whether a proxy has acknowledged the present version of all resources of a type that it subscribed to. `present`: that version. */
export function isCurrent({ nonce, nonceAcked, version, dueInFull }: Watch, present: string): boolean {
  return nonce !== '' && nonceAcked === nonce && version === present && !dueInFull
}
