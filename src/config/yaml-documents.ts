/**
 * Parses untrusted YAML or JSON, with the values that the orchestrator's command line reads (docs/operation.md, F3). Documents are separated first, so that an error affects only one document. Nesting and aliases are
 * limited. The time is linear in the size of the text, not quadratic.
 */
import { Composer, type CST, type Document, Lexer, LineCounter, Parser, YAMLParseError } from 'yaml'
import { notPlain, plainDocument } from './plain-yaml.ts'
import { composing, TreeMistake, valueOfTree } from './yaml-tree.ts'

/** Limits on the documents of a text. `shared`: how many values aliases and merge keys of a document may stand for. */
export const documentLimits = { documents: 50_000, depth: 64, aliases: 100, shared: 100_000 }

/** A document as plain values, or the error and the text of the document. */
export type ReadDocument = { readonly value: unknown } | { readonly error: string; readonly text: string }

/** A document, its collections and a scalar are on the stack of the library's parser, and two more for what it looks at. */
const longestStack = documentLimits.depth + 4

/** The reason why a text with more documents than {@link documentLimits} is not read. */
export const tooManyDocuments = `more than ${documentLimits.documents} documents`

const tooDeep = `nested deeper than ${documentLimits.depth} levels`

/** Parses the documents of a text, in order. Never throws. */
export function readDocuments(content: string): ReadDocument[] {
  const json = readJson(content)
  if (json) return [json]
  const texts = separate(content)
  if (texts.length > documentLimits.documents) return [{ error: tooManyDocuments, text: content }]
  return texts.flatMap(({ text, line }) => readYaml(text, line) ?? [])
}

/** Parses the documents of a text, in order, each with its text. Never throws. */
export function readDocumentTexts(content: string): (ReadDocument & { readonly text: string })[] {
  const json = readJson(content)
  if (json) return [{ ...json, text: content }]
  const texts = separate(content)
  if (texts.length > documentLimits.documents) return [{ error: tooManyDocuments, text: content }]
  return texts.flatMap(({ text, line }) => {
    const read = readYaml(text, line)
    return read ? { ...read, text } : []
  })
}

/** The text of a document, and the number of lines of the whole text before it. */
export interface DocumentText {
  readonly text: string
  readonly line: number
}

/** Returns the texts of the documents that {@link readDocuments} returns, in the same order. */
export function documentTexts(content: string): readonly DocumentText[] {
  if (readJson(content)) return [{ text: content, line: 0 }]
  const texts = separate(content)
  return texts.length > documentLimits.documents ? [{ text: content, line: 0 }] : texts.filter(({ text, line }) => readYaml(text, line))
}

/**
 * Parses a text that is one JSON value. Undefined when it is not, or contains a duplicate key: YAML's flow style looks alike, and the YAML
 * parser has the better error message.
 */
function readJson(content: string): ReadDocument | undefined {
  if (!/^\s*[{[]/.test(content)) return undefined
  try {
    const value: unknown = JSON.parse(content)
    const read = withinDepth(value, content)
    return 'error' in read || keysWritten(content) === keysHeld(value) ? read : undefined
  } catch {
    return undefined
  }
}

/** Counts the mapping keys in JSON text: strings before a colon. */
function keysWritten(content: string): number {
  let keys = 0
  for (const { index, 0: string } of content.matchAll(/"(?:[^"\\]|\\.)*"/g)) {
    let after = index + string.length
    while (' \t\r\n'.includes(content[after] ?? 'x')) after++
    if (content[after] === ':') keys++
  }
  return keys
}

/** Counts the mapping keys in a value. Of duplicate keys, JSON.parse keeps one. */
function keysHeld(value: unknown): number {
  let keys = 0
  const left: unknown[] = [value]
  for (let item = left.pop(); item !== undefined || left.length > 0; item = left.pop()) {
    if (typeof item !== 'object' || item === null) continue
    const inside = Object.values(item)
    if (!Array.isArray(item)) keys += inside.length
    for (const each of inside) left.push(each)
  }
  return keys
}

/**
 * Splits a text where YAML allows a document to start: at lines that begin with `---`, and after those that begin with `...` (YAML 1.2,
 * productions 203 and 204), neither of which can be within a document. Each may be preceded by a byte order mark (production 202), which
 * occurs in concatenated files. Text before a `---` is a document only if it contains more than comments and directives.
 */
function separate(content: string): DocumentText[] {
  const texts: DocumentText[] = []
  let [start, line] = [0, 0]
  const cut = (end: number) => {
    const text = content.slice(start, end)
    if (/^\uFEFF?---/.test(content.slice(end, end + 4)) && /^(?:\uFEFF?[ \t]*(?:[#%].*)?(?:\r?\n|$))*$/.test(text)) return
    texts.push({ text, line })
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) line++
    start = end
  }
  for (const { index, 0: mark } of content.matchAll(/(?<![^\n])\uFEFF?(?:---|\.\.\.)(?![^ \t\r\n])/g)) {
    const next = mark.endsWith('---') ? index : content.indexOf('\n', index) + 1
    if (next > start) cut(next)
  }
  cut(content.length)
  return texts
}

/** Characters not allowed in YAML (production 1): control characters other than tabs and line ends. */
const controls = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/

/** Parses a separated text. Undefined when it contains no document. */
function readYaml(text: string, line: number): ReadDocument | undefined {
  const read = readOne(text, line)
  return read && 'error' in read ? { error: read.error, text } : read
}

function readOne(text: string, line: number): { readonly value: unknown } | { readonly error: string } | undefined {
  const counter = new LineCounter()
  const at = (offset: number) => line + counter.linePos(offset).line
  const control = text.search(controls)
  if (control >= 0) return { error: `not YAML, line ${line + text.slice(0, control).split('\n').length}: a control character` }
  try {
    const tokens = tokensOf(text, counter)
    if (!tokens) return { error: tooDeep }
    const value = plainDocument(tokens, documentLimits.depth)
    if (value !== notPlain) return { value }
    const document = compose(text, tokens)
    return document && withinDepth(valueOfTree(document, documentLimits), '')
  } catch (error) {
    // The library parses nested collections recursively and overflows the stack.
    if (error instanceof RangeError || (error instanceof YAMLParseError && error.code === 'RESOURCE_EXHAUSTION')) return { error: tooDeep }
    if (error instanceof TreeMistake) return { error: `not YAML, line ${at(error.offset)}: ${error.message}` }
    if (error instanceof YAMLParseError) return { error: `not YAML, line ${at(error.pos[0])}: ${withoutText(error.message)}` }
    return { error: `cannot be read: ${error instanceof Error ? error.message : String(error)}` }
  }
}

/** Removes quotations of the text from an error message of the library, because they may contain parts of a private key. */
const withoutText = (message: string): string => message.replace(/((?:token|characters|tag)[^:]*): .*/s, '$1').slice(0, 200)

/**
 * Returns the tokens of a text up to the first one that is an error. Undefined as soon as collections are nested too deep: the library takes
 * microseconds for each level of a token that it has begun.
 */
function tokensOf(text: string, counter: LineCounter): CST.Token[] | undefined {
  const parser = new Parser(counter.addNewLine)
  counter.addNewLine(0)
  const tokens: CST.Token[] = []
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) {
      tokens.push(token)
      if (token.type === 'error') return tokens
    }
    if (parser.stack.length > longestStack) return undefined
  }
  for (const token of parser.end()) {
    tokens.push(token)
    if (token.type === 'error') break
  }
  return tokens
}

/**
 * Composes one document. Throws at its first error: the library would continue, describe each error with an excerpt of its line, and take
 * quadratic time for a long line.
 */
function compose(text: string, tokens: readonly CST.Token[]): Document | undefined {
  // The library detects duplicate keys by comparing each with all others.
  const composer = new Composer(composing)
  const report: (...mistake: unknown[]) => void = Reflect.get(composer, 'onError')
  let first: YAMLParseError | undefined
  Reflect.set(composer, 'onError', (source: unknown, code: unknown, message: unknown, isWarning?: boolean) => {
    if (isWarning) return
    // Every enclosing collection catches the error and reports it again as its own.
    if (!first) report(source, code, message)
    first ??= composer.streamInfo().errors[0]
    throw first
  })
  const documents: Document[] = []
  for (const token of tokens) {
    if (token.type === 'error') throw new YAMLParseError([token.offset, token.offset + 1], 'UNEXPECTED_TOKEN', token.message)
    documents.push(...composer.next(token))
  }
  documents.push(...composer.end())
  const [document, another] = documents
  if (another) throw new YAMLParseError([text.length - 1, text.length], 'UNEXPECTED_TOKEN', 'Unexpected second document')
  return document
}

/** Returns a value, or an error if it is nested too deep for recursive functions. */
function withinDepth(value: unknown, text: string): ReadDocument {
  const seen = new Set<unknown>()
  const isNew = (item: unknown): item is object => typeof item === 'object' && item !== null && !seen.has(item) && seen.add(item) !== undefined
  let level = [value].filter(isNew)
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > documentLimits.depth) return { error: tooDeep, text }
    level = level.flatMap((item) => Object.values(item).filter(isNew))
  }
  return { value }
}

/** Whether a text of YAML or JSON has no document: it is empty, or has comments and separators only. */
export const hasNoDocument = (text: string): boolean => text.split(/\r?\n/).every((line) => /^\s*(?:#|$)|^---\s*(?:#|$)/.test(line))
