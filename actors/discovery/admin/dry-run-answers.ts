/** The answer about what documents would change for proxies. */
import type { DryRun, DryRunInput, DryRunPiece, DryRunProxy, GivenText } from '../../../protocols/messages/dry-run.ts'
import type { ReplicaState } from '../../../protocols/messages/replicas.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { PageSources } from './page-sources.ts'

/** The maximum size of a mesh of which a dry run is made, in bytes as it is passed on. */
const mostBytes = 256 * 1_048_576

/** Says what documents would change for the proxies of all replicas; a string says why that is not possible. */
export async function dryRunOf(
  sources: PageSources,
  texts: readonly GivenText[],
  { replace, namespace }: Pick<DryRunInput, 'replace' | 'namespace'>,
): Promise<{ readonly run: DryRun; readonly replicas: readonly ReplicaState[] } | string> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for (let piece = await sources.queue<DryRunPiece>('dryRun'); ; piece = await sources.queue<DryRunPiece>('moreOfDryRun', piece.next)) {
    pieces.push(piece.rows)
    bytes += piece.rows.length
    if (bytes > mostBytes) return `the mesh is too large for a dry run: it has more than ${mostBytes} bytes`
    if (piece.next === undefined) break
  }
  // Its own proxies are in the pieces.
  const { rows, replicas } = await sources.ofAll<DryRunProxy>('nodes', async () => [])
  const others = rows.map(({ nodeId, node }) => ({ nodeId, node }))
  const run = await sources.explanations.dryRun({ texts, replace, namespace, pieces, others, at: wallClockMs() })
  return { run, replicas }
}

/** The proxies of this replica, for the dry run of another one. */
export const ownNodes = (sources: PageSources): Promise<DryRunProxy[]> => sources.list<DryRunProxy>('nodes')
