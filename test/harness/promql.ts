/** The metrics and labels that expressions of Prometheus name. */

/** A series that an expression selects, with the labels that its selector names. */
interface Selected {
  readonly metric: string
  readonly labels: readonly string[]
}

/** Words between series. */
const words = new Set(['and', 'or', 'unless', 'bool', 'offset', 'by', 'without', 'on', 'ignoring', 'group_left', 'group_right', 'inf', 'nan'])

const grouping = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g

/** Returns the labels that an expression groups by. */
export const groupedBy = (expression: string): string[] =>
  [...expression.matchAll(grouping)].flatMap(([, labels = '']) => labels.split(',').map((label) => label.trim()))

/** Returns what an expression selects. */
export function selectedBy(expression: string): Selected[] {
  const withoutGroups = expression.replaceAll(grouping, ' ').replaceAll(/\[[^\]]*\]/g, ' ')
  return [...withoutGroups.matchAll(/([a-zA-Z_][\w:]*)\s*(\{[^}]*\}|\()?/g)].flatMap(([, metric = '', after = '']) => {
    if (after === '(' || words.has(metric.toLowerCase())) return []
    return [{ metric, labels: [...after.matchAll(/([a-zA-Z_]\w*)\s*(?:!=|!~|=~|=)/g)].map(([, label = '']) => label) }]
  })
}
