/** Answers of a writer to the debug pages: what it knows of its connections. */
import type { SessionParts } from '../../../src/xds/stream/session.ts'
import type { Watch } from '../../../src/xds/stream/watch.ts'
import { clusterType, endpointType, listenerType, nameTableType, routeType, virtualHostType } from '../../../src/xds/type-urls.ts'
import type { Connection } from './connection.ts'

/** State of one type on one connection, as `syncz` and client status discovery tell it. */
export interface TypeStatus {
  readonly typeUrl: string
  readonly nonceSent: string
  readonly nonceAcked: string
  readonly version: string
  readonly error: string
  /** Whether the proxy has acknowledged all that there is for it. */
  readonly current: boolean
}

/** One connection as the debug pages tell it. */
export interface ConnectionStatus {
  readonly connectionId: string
  readonly nodeId: string
  /** The namespace whose configuration the proxy has. */
  readonly namespace: string
  /** SPIFFE ids of its caller; none in plain text. */
  readonly identities: readonly string[]
  readonly version: string
  readonly connectedAt: string
  readonly address: string
  readonly delta: boolean
  readonly classId: string
  /** Ledger of the last push that its writer has taken. */
  readonly ledger: string
  readonly types: readonly TypeStatus[]
  /** Of its node, under the mesh's own names; only where it was asked for. */
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** What a connection has subscribed to and refused, as `adsz` tells it; names that nobody knows are among them. */
export interface ConnectionWatches {
  readonly connectionId: string
  readonly namespace: string
  readonly connectedAt: string
  readonly address: string
  readonly watches: Readonly<Record<string, readonly string[]>>
  readonly rejections: readonly { typeUrl: string; message: string; at: string }[]
}

/** What a writer answers when asked; nothing here is on the push path. */
export function connectionAnswers(connections: ReadonlyMap<string, Connection>, parts: SessionParts, ledger: () => string) {
  return {
    /** With their metadata if that is asked for: it may be long. */
    connections: (withMetadata = false): ConnectionStatus[] =>
      [...connections.values()].map((connection) => {
        const { metadata, labels } = connection.node ?? {}
        return { ...statusOf(connection, ledger()), ...(withMetadata ? { metadata: { ...metadata, LABELS: labels } } : {}) }
      }),
    watches: (): ConnectionWatches[] => [...connections.values()].map(watchesOf),
    /** Encoded resources of a connection by type: list elements of a response, as base64. Undefined when it is not here. */
    resources: (
      connectionId: string,
    ): { connectionId: string; resources: Record<string, { name: string; version: string; element: string }[]> } | undefined => {
      const connection = connections.get(connectionId)
      if (!connection) return undefined
      const resources = Object.fromEntries(
        [clusterType, endpointType, listenerType, routeType, virtualHostType, nameTableType].map((typeUrl) => {
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
    /** Ends a connection by its id; returns whether it was here. */
    disconnect: (connectionId: string): boolean => {
      const connection = connections.get(connectionId)
      connection?.stream.end(14, 'disconnected by request')
      return connection !== undefined
    },
  }
}

function statusOf(connection: Connection, ledger: string): ConnectionStatus {
  const watches = [...connection.session.watches.values()]
  const version = connection.node?.metadata.MESH_VERSION
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
    ledger,
    types: watches.map((watch) => typeStatus(watch, connection.session.versionOf(watch))),
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
    current: watch.nonce !== '' && watch.nonceAcked === watch.nonce && watch.version === present && !watch.dueInFull,
  }
}
