/** How commands show objects, and the rules of policies. */
import type { ExplainRequestResponse, ObjectReference } from '../../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { isColoured } from '../../../src/cli/print.ts'
import { type Cell, table } from '../../../src/cli/table.ts'
import { oneLine } from '../../../src/logging/layout.ts'

/** Names an object with its place: `VirtualService shop/reviews (reviews.yaml, document 1)`. */
export function objectText({ kind, namespace, name, place }: ObjectReference): string {
  return oneLine(`${kind} ${namespace === '' ? '' : `${namespace}/`}${name}${place === '' ? '' : ` (${place})`}`)
}

/** The rules that were evaluated for a request, as a table after an empty line; none: there are none. */
export function consideredLines({ considered }: Pick<ExplainRequestResponse, 'considered'>): string[] {
  const rows = considered.map((each): Cell[] => [
    each.policy ? named(each.policy) : '-',
    String(each.rule),
    each.dryRun ? `${each.action} (dry run)` : each.action,
    each.matched ? { text: 'matches', means: 'good' } : { text: 'does not match', means: 'warning' },
    each.because,
  ])
  return rows.length === 0 ? [] : ['', table(['POLICY', 'RULE', 'ACTION', 'RESULT', 'BECAUSE'], rows, isColoured())]
}

const named = ({ namespace, name }: ObjectReference): string => `${namespace}/${name}`
