/**
 * Reads YAML or JSON that nobody vouches for: documents are separated first, so that each mistake costs one document; nesting and
 * aliases are bounded; the time it takes grows with the size of the text and not with its square.
 */
import { Composer, type Document, isAlias, isScalar, LineCounter, Parser, visit, YAMLParseError } from 'yaml'

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
  return texts.flatMap(({ text, line }) => readYaml(text, line) ?? [])
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
 * Cuts a text where YAML lets a document start: at lines that begin with `---`, and after those that begin with `...` (YAML 1.2,
 * productions 203 and 204), neither of which may be within a document. What comes before a `---` is a document only if it holds more than
 * comments and directives.
 */
function separate(content: string): DocumentText[] {
  const texts: DocumentText[] = []
  let [start, line] = [0, 0]
  const cut = (end: number) => {
    const text = content.slice(start, end)
    if (content.startsWith('---', end) && /^(?:\uFEFF?[ \t]*(?:[#%].*)?(?:\r?\n|$))*$/.test(text)) return
    texts.push({ text, line })
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) line++
    start = end
  }
  for (const { index, 0: mark } of content.matchAll(/(?<![^\n])(?:---|\.\.\.)(?![^ \t\r\n])/g)) {
    const next = mark === '---' ? index : content.indexOf('\n', index) + 1
    if (next > start) cut(next)
  }
  cut(content.length)
  return texts
}

/** Reads the document of a separated text. Undefined when it holds none. */
function readYaml(text: string, line: number): ReadDocument | undefined {
  const counter = new LineCounter()
  const at = (offset: number) => line + counter.linePos(offset).line
  try {
    const document = compose(text, counter)
    return document && readTree(document, at)
  } catch (error) {
    // The library descends into nesting by calling itself.
    if (error instanceof RangeError || (error instanceof YAMLParseError && error.code === 'RESOURCE_EXHAUSTION')) return { error: tooDeep }
    if (error instanceof YAMLParseError) return { error: `not YAML, line ${at(error.pos[0])}: ${withoutText(error.message)}` }
    return { error: `cannot be read: ${error instanceof Error ? error.message : String(error)}` }
  }
}

/** A message of the library without what it quotes of the text: that may be part of a private key. */
const withoutText = (message: string): string => message.replace(/((?:token|characters|tag)[^:]*): .*/s, '$1').slice(0, 200)

/**
 * Parses one document. Throws at its first mistake: the library would go on, describe each with an excerpt of its line, and take a time that
 * grows with the square of a long line.
 */
function compose(text: string, counter: LineCounter): Document | undefined {
  // The library looks for repeated keys by comparing each with all others; here it is done by a set.
  const composer = new Composer({ uniqueKeys: false, merge: false, strict: true, logLevel: 'silent' })
  const report: (...mistake: unknown[]) => void = Reflect.get(composer, 'onError')
  let first: YAMLParseError | undefined
  Reflect.set(composer, 'onError', (source: unknown, code: unknown, message: unknown, isWarning?: boolean) => {
    if (isWarning) return
    // Every collection around it catches what is thrown, and reports it again as its own.
    if (!first) report(source, code, message)
    first ??= composer.streamInfo().errors[0]
    throw first
  })
  const documents: Document[] = []
  for (const token of new Parser(counter.addNewLine).parse(text)) {
    if (token.type === 'error') throw new YAMLParseError([token.offset, token.offset + 1], 'UNEXPECTED_TOKEN', token.message)
    documents.push(...composer.next(token))
  }
  documents.push(...composer.end())
  return documents[0]
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
