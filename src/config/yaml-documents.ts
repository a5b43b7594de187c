/**
 * Reads YAML or JSON that nobody vouches for: documents are separated first, so that each mistake costs one document; nesting and
 * aliases are bounded; the time it takes grows with the size of the text and not with its square.
 */
import { type Document, isAlias, isScalar, LineCounter, parseAllDocuments, visit } from 'yaml'

/** Bounds on the documents of a text. */
export const documentLimits = { documents: 50_000, depth: 64, aliases: 100 }

/** A document as plain values, or why it cannot be used. */
export type ReadDocument = { readonly value: unknown } | { readonly error: string }

const tooDeep = `nested deeper than ${documentLimits.depth} levels`

/** The documents of a text, in order. Never throws. */
export function readDocuments(content: string): ReadDocument[] {
  const json = readJson(content)
  if (json) return [json]
  const texts = separate(content)
  if (texts.length > documentLimits.documents) return [{ error: `more than ${documentLimits.documents} documents` }]
  return texts.flatMap(({ text, line }) => readYaml(text, line))
}

/** A text that is one JSON value; undefined when it is not: YAML's flow style looks alike, and its reader has the better message. */
function readJson(content: string): ReadDocument | undefined {
  if (!content.trimStart().startsWith('{')) return undefined
  try {
    return withinDepth(JSON.parse(content))
  } catch {
    return undefined
  }
}

interface DocumentText {
  readonly text: string
  /** Lines of the file before it. */
  readonly line: number
}

/**
 * Cuts a text where YAML lets a document start: at lines that begin with `---` (YAML 1.2, production 203), which nothing within a document
 * may do. What comes before the first such line is a document only if it holds more than comments and directives.
 */
function separate(content: string): DocumentText[] {
  const starts = [0]
  for (const { index } of content.matchAll(/^---(?=[ \t\r\n]|$)/gm)) if (index > 0) starts.push(index)
  if (starts.length > 1 && /^(?:\uFEFF?[ \t]*(?:[#%].*)?(?:\r?\n|$))*$/.test(content.slice(0, starts[1]))) starts.splice(1, 1)
  let line = 0
  return starts.map((start, index) => {
    const text = content.slice(start, starts[index + 1])
    const document = { text, line }
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) line++
    return document
  })
}

/** Reads one separated document; a `...` line may make several of it. */
function readYaml(text: string, line: number): ReadDocument[] {
  try {
    const counter = new LineCounter()
    // The library looks for repeated keys by comparing each with all others; here it is done by a set.
    const parsed = parseAllDocuments(text, { lineCounter: counter, uniqueKeys: false, merge: false, strict: true, logLevel: 'silent' })
    if (!Array.isArray(parsed)) return []
    return parsed.map((document) => {
      const at = (offset: number) => line + counter.linePos(offset).line
      const [error] = document.errors
      if (error) return { error: `not YAML, line ${at(error.pos[0])}: ${error.message.split('\n')[0]}` }
      return readTree(document, at)
    })
  } catch (error) {
    // The library descends into nesting by calling itself.
    return [{ error: error instanceof RangeError ? tooDeep : `cannot be read: ${error instanceof Error ? error.message : String(error)}` }]
  }
}

function readTree(document: Document, lineOf: (offset: number) => number): ReadDocument {
  let aliases = 0
  let repeated: string | undefined
  visit(document, {
    Node(_, node) {
      if (isAlias(node)) aliases++
    },
    Map(_, { items }) {
      const keys = new Set<unknown>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        if (keys.has(key.value))
          repeated ??= `line ${lineOf(key.range?.[0] ?? 0)}: the key ${JSON.stringify(key.value)?.slice(0, 100)} is given twice`
        keys.add(key.value)
      }
    },
  })
  if (repeated !== undefined) return { error: `not YAML, ${repeated}` }
  if (aliases > documentLimits.aliases) return { error: `more than ${documentLimits.aliases} aliases` }
  return withinDepth(document.toJS({ maxAliasCount: documentLimits.aliases }))
}

/** A value, unless it is nested too deep for those who walk through it by calling themselves. */
function withinDepth(value: unknown): ReadDocument {
  const seen = new Set<unknown>()
  const isNew = (item: unknown): item is object => typeof item === 'object' && item !== null && !seen.has(item) && seen.add(item) !== undefined
  let level = [value].filter(isNew)
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > documentLimits.depth) return { error: tooDeep }
    level = level.flatMap((item) => Object.values(item).filter(isNew))
  }
  return { value }
}
