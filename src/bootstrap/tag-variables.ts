/** Environment variables of the proxy from which the tags of trace spans are read (docs/resources.md, L19). */
import type { MeshNames } from '../names/mesh-names.ts'
import type { WorkloadNode } from './node.ts'

/** Returns the variables: canonical name and revision of the workload by its labels, and its namespace. Unknown ones are absent. */
export function tagVariables({ namespace, name, metadata }: WorkloadNode, names: MeshNames): Record<string, string> {
  const labels = names.canonicalKeys((metadata.LABELS ?? {}) as Readonly<Record<string, string>>)
  const owned = `service.${names.domain}`
  const variables = {
    CANONICAL_SERVICE: labels[`${owned}/canonical-name`] ?? labels.app ?? metadata.WORKLOAD_NAME ?? name,
    CANONICAL_REVISION: labels[`${owned}/canonical-revision`] ?? labels.version,
    POD_NAMESPACE: namespace,
  }
  return Object.fromEntries(Object.entries(variables).filter((entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== ''))
}
