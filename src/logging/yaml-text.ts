/** Plain data as YAML, for people who read a log. */

/** Text that YAML reads as itself: no number, no word of its own, nothing that has a meaning in it. */
const plain = /^(?!(?:true|false|null|yes|no|on|off|y|n)$)(?:[A-Za-z_/$]|\.\/)[\w./$@():-]*(?<!:)$/i

/** A value as YAML in block style. */
export function yamlText(value: unknown): string {
  return linesOf(value)
    .map((line) => `${line}\n`)
    .join('')
}

function linesOf(value: unknown): string[] {
  if (Array.isArray(value) && value.length > 0)
    return value.flatMap((item) => linesOf(item).map((line, index) => `${index === 0 ? '- ' : '  '}${line}`))
  if (!isMapping(value)) return [scalarOf(value)]
  return Object.entries(value).flatMap(([key, item]) => {
    const lines = linesOf(item)
    if (isMapping(item) || (Array.isArray(item) && item.length > 0)) return [`${scalarOf(key)}:`, ...lines.map((line) => `  ${line}`)]
    return [`${scalarOf(key)}: ${lines[0]}`]
  })
}

const isMapping = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0

function scalarOf(value: unknown): string {
  if (typeof value === 'string') return plain.test(value) ? value : JSON.stringify(value)
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? '[]' : '{}'
  return String(value)
}
