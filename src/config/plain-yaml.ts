/**
 * Reads plain YAML documents straight from the tokens of the library's parser. A plain document is a mapping or list of mappings, lists and
 * scalars in block or flow style, with comments; it has no anchors, aliases, merge keys, tags, directives, explicit keys, tabs between tokens or
 * mistakes. Any other document is left to the library's composer, which describes mistakes.
 */
import { CST } from 'yaml'
import { isNoNumber, plainScalar } from './plain-scalars.ts'

/** The result for tokens that are not certainly those of one plain document. */
export const notPlain = Symbol('not plain')

const unsure = new Error('not certainly plain')

function need(condition: boolean): asserts condition {
  if (!condition) throw unsure
}

/** Returns the value of a document, given all tokens of its text. Collections may be nested `maxDepth` deep. */
export function plainDocument(tokens: readonly CST.Token[], maxDepth: number): unknown {
  try {
    const [document, another] = tokens.filter(({ type }) => type !== 'space' && type !== 'comment' && type !== 'newline')
    need(document?.type === 'document' && another === undefined)
    const { start, value, end = [] } = document
    const mark = markIn(start, true)
    need(mark === undefined || (mark.type === 'doc-start' && hasNewline(start)))
    need(markIn(end, true) === undefined)
    need(CST.isCollection(value))
    return valueIn(value, maxDepth)
  } catch (error) {
    if (error !== unsure) throw error
    return notPlain
  }
}

function valueIn(token: CST.Token, depth: number): unknown {
  switch (token.type) {
    case 'block-map':
      return blockMap(token, depth)
    case 'block-seq':
      return blockSequence(token, depth)
    case 'flow-collection':
      return token.start.source === '{' ? flowMap(token, depth) : flowSequence(token, depth)
    case 'scalar':
    case 'single-quoted-scalar':
    case 'double-quoted-scalar':
    case 'block-scalar':
      return scalarOf(token)
    default:
      throw unsure
  }
}

function blockMap({ indent, items }: CST.BlockMap, depth: number): Record<string, unknown> {
  need(depth > 0)
  const mapping: Record<string, unknown> = {}
  for (const item of items) {
    const { start, key, sep, value } = item
    need(markIn(start, true) === undefined)
    if (isBlank(item)) {
      need(item === items.at(-1))
      continue
    }
    need(isKey(key) && key.indent === indent && key.end === undefined && !key.source.includes('\n') && sep !== undefined)
    const colon = markIn(sep, false)
    // The length of a key is limited by the library, too.
    need(colon?.type === 'map-value-ind' && colon.offset - key.offset < 1000)
    need((value?.type !== 'block-map' && value?.type !== 'block-seq') || hasNewline(sep))
    add(mapping, key, value, depth)
  }
  return mapping
}

function blockSequence({ items }: CST.BlockSequence, depth: number): unknown[] {
  need(depth > 0)
  const values: unknown[] = []
  for (const item of items) {
    const dash = markIn(item.start, true)
    if (!dash && isBlank(item)) need(item === items.at(-1))
    else {
      need(dash?.type === 'seq-item-ind')
      values.push(item.value ? valueIn(item.value, depth - 1) : null)
    }
  }
  return values
}

function flowMap(map: CST.FlowCollection, depth: number): Record<string, unknown> {
  need(depth > 0)
  const mapping: Record<string, unknown> = {}
  for (const { key, sep, value } of flowItems(map, '}')) {
    need(isKey(key) && sep !== undefined && markIn(sep, false)?.type === 'map-value-ind')
    add(mapping, key, value, depth)
  }
  return mapping
}

function flowSequence(sequence: CST.FlowCollection, depth: number): unknown[] {
  need(depth > 0)
  return flowItems(sequence, ']').map(({ key, sep, value }) => {
    need(!key && !sep && value !== undefined)
    return valueIn(value, depth - 1)
  })
}

/** The items of a flow collection. A comma may follow the last one. */
function flowItems({ items, end }: CST.FlowCollection, bracket: '}' | ']'): CST.CollectionItem[] {
  const [close, ...after] = end
  need(close?.source === bracket && markIn(after, false) === undefined)
  return items.filter((item, index) => {
    const comma = markIn(item.start, false)
    const isLast = isBlank(item)
    if (isLast) need(index === items.length - 1)
    need(index === 0 ? comma === undefined : comma?.type === 'comma' || (isLast && comma === undefined))
    need(item.value?.type !== 'block-map' && item.value?.type !== 'block-seq')
    return !isLast
  })
}

function add(mapping: Record<string, unknown>, key: CST.FlowScalar, value: CST.Token | undefined, depth: number): void {
  const name = scalarOf(key)
  // A merge key is replaced by what it stands for.
  need(typeof name === 'string' && (name !== '<<' || key.type !== 'scalar') && !Object.hasOwn(mapping, name))
  const read = value ? valueIn(value, depth - 1) : null
  // An assignment to `__proto__` would change the prototype.
  if (name in mapping) Object.defineProperty(mapping, name, { value: read, writable: true, enumerable: true, configurable: true })
  else mapping[name] = read
}

const isKey = (token: CST.Token | null | undefined): token is CST.FlowScalar =>
  token?.type === 'scalar' || token?.type === 'double-quoted-scalar' || token?.type === 'single-quoted-scalar'

/** Whether an item consists of white space and comments, as at the end of a collection. */
const isBlank = ({ key, sep, value }: CST.CollectionItem): boolean => !key && !sep && !value

const hasNewline = (tokens: readonly CST.SourceToken[]): boolean => tokens.some(({ type }) => type === 'newline')

/**
 * Returns the one token that is neither white space nor a comment. Undefined when there is none. `isSpaced`: whether a comment may come
 * first.
 */
function markIn(tokens: readonly CST.SourceToken[], isSpaced: boolean): CST.SourceToken | undefined {
  let mark: CST.SourceToken | undefined
  let mayComment = isSpaced
  for (const token of tokens) {
    if (token.type === 'comment') need(mayComment)
    else if (token.type === 'space') need(!token.source.includes('\t'))
    else if (token.type !== 'newline') {
      need(mark === undefined)
      mark = token
    }
    mayComment = token.type === 'space' || token.type === 'newline'
  }
  return mark
}

/** Plain scalars on one line that begin with an allowed character. */
const simple = /^[^\t,%|>@`\n][^\n]*$/

function scalarOf(token: CST.FlowScalar | CST.BlockScalar): unknown {
  const isPlain = token.type === 'scalar'
  const text = isPlain && token.end === undefined && simple.test(token.source) ? token.source : resolved(token)
  const value = isPlain ? plainScalar(text) : text
  need(!isNoNumber(value))
  return value
}

const resolved = (token: CST.FlowScalar | CST.BlockScalar): string => CST.resolveAsScalar(token, true, fail).value

function fail(): never {
  throw unsure
}
