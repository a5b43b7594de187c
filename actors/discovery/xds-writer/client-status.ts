/** Client status discovery (`envoy.service.status.v3`): which connected nodes have which configuration. */
import { create } from '@bufbuild/protobuf'
import {
  type ClientStatusRequest,
  type ClientStatusResponse,
  ClientStatusResponseSchema,
  ConfigStatus,
} from '../../../protocols/gen/envoy/service/status/v3/csds_pb.js'
import { count } from '../../../src/model/counts.ts'
import { status } from '../../../src/model/status-codes.ts'
import { silentReplicaNode } from '../../../src/xds/status/status-messages.ts'
import { BadMatcher, nodeTest } from '../../../src/xds/stream/node-matcher.ts'
import type { CallStatus } from '../../rpc/call.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ConnectionStatus, ConnectionsOfAll, TypeStatus } from './connection-debug.ts'

/** Maximum time for matching nodes in one request, in milliseconds. */
const matchingMs = 100

/** The connections that a request is about, and the replicas that have not answered. */
export type AskedConnections = Pick<ConnectionsOfAll, 'connections' | 'silent'>

/**
 * Answers one request about the nodes that its matchers accept. `ask` returns the connections, with the metadata of their nodes if a matcher
 * looks at them. A replica that has not answered is named by a node, whatever the matchers.
 */
export async function clientStatus(
  { nodeMatchers }: ClientStatusRequest,
  ask: (withMetadata: boolean) => Promise<AskedConnections>,
): Promise<ClientStatusResponse | CallStatus> {
  try {
    const isMeant = nodeTest(nodeMatchers)
    const { connections, silent } = await ask(nodeMatchers.some(({ nodeMetadatas }) => nodeMetadatas.length > 0))
    const begun = monotonicMs()
    const meant: ConnectionStatus[] = []
    for (const connection of connections) {
      if (isMeant({ id: connection.nodeId, metadata: connection.metadata ?? {} })) meant.push(connection)
      if (monotonicMs() - begun > matchingMs)
        return { code: status.resourceExhausted, message: `node_matchers take more than ${matchingMs} ms for ${count(connections.length, 'node')}` }
    }
    return statusOf(meant, silent)
  } catch (error) {
    if (error instanceof BadMatcher) return { code: status.invalidArgument, message: error.message }
    throw error
  }
}

function statusOf(connections: readonly ConnectionStatus[], silent: AskedConnections['silent']): ClientStatusResponse {
  const unknown = silent.map(silentReplicaNode).map(({ id, metadata }) => ({ node: { id, metadata } }))
  return create(ClientStatusResponseSchema, { config: [...connections.map(configOf), ...unknown] })
}

const configOf = ({ nodeId, types }: ConnectionStatus) => ({
  node: { id: nodeId },
  genericXdsConfigs: types.map((type) => ({
    typeUrl: type.typeUrl,
    versionInfo: type.version,
    configStatus: stateOf(type),
    ...(type.error === '' ? {} : { errorState: { details: type.error } }),
  })),
})

function stateOf({ error, nonceSent, nonceAcked }: TypeStatus): ConfigStatus {
  if (error !== '') return ConfigStatus.ERROR
  if (nonceSent === '') return ConfigStatus.NOT_SENT
  return nonceSent === nonceAcked ? ConfigStatus.SYNCED : ConfigStatus.STALE
}
