/**
 * Reads YAML of the form that templates usually make: block mappings and lists whose keys and values stand on one line each, values in quotes
 * or in flow style, and comments on lines of their own. Any other text is left to the library. It takes a tenth of the time of the library's tokens.
 */
import { isNoNumber, plainScalar } from './plain-scalars.ts'
import { notPlain } from './plain-yaml.ts'

/** The longest line that is read, in characters: what patterns do with one takes time. */
const longestLine = 20_000

/** Characters that end a line, tabs, byte order marks, and control characters: a text with one of them is not read. */
const unusual = /[\0-\x09\x0b-\x1f\x7f\x85\u2028\u2029\uFEFF]/

/** Returns the value of the one document of a text, as the orchestrator reads it (docs/operation.md, F3), or {@link notPlain}. */
export function lineDocument(text: string, maxDepth: number): unknown {
  if (unusual.test(text)) return notPlain
  try {
    return new LineReader(text, maxDepth).document()
  } catch (error) {
    if (error !== unsure) throw error
    return notPlain
  }
}

const unsure = new Error('not certainly read')

function leave(): never {
  throw unsure
}

/** A key that is read as it stands, up to its colon. */
const plainKey = /[A-Za-z_/][\w./-]*(?=:(?: |$))/y
/** A text in double quotes whose escapes are those of JSON too, without halves of surrogate pairs. */
const doubleQuoted = /"(?:[^"\\]|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[\da-fA-F]{4})*"/y
const singleQuoted = /'(?:[^']|'')*'/y
/** A plain scalar of block style: what could be another token in it, or begin a comment, is left out. */
const blockScalar = /^(?:[\w./$(+~]|-(?=[^ ]))(?:[^:#]|:(?=[^ ])|(?<! )#)*$/
/** A plain scalar of flow style. */
const flowScalar = /(?:[\w./$(+~]|-(?=[\w.$/-]))[\w./$()+=~@-]*(?: [\w./$()+=~@-]+)*/y
/** Words that are no text: as keys they are left to the library. */
const words: ReadonlySet<string> = new Set(['y', 'n', 'yes', 'no', 'on', 'off', 'true', 'false', 'null'])
/** The longest key, in characters: the library limits them too. */
const longestKey = 500

class LineReader {
  readonly #lines: readonly string[]
  readonly #maxDepth: number
  #at = 0
  /** The current line, and the column at which its content begins; -1 behind the last one. */
  #line = ''
  #indent = -1

  constructor(text: string, maxDepth: number) {
    this.#lines = text.split('\n')
    this.#maxDepth = maxDepth
    this.#seek()
  }

  document(): unknown {
    if (this.#indent < 0) return leave()
    const value = this.#block(this.#maxDepth)
    return this.#indent < 0 ? value : leave()
  }

  /** Goes to the next line with content, from the current position on. */
  #seek(): void {
    for (; this.#at < this.#lines.length; this.#at++) {
      const line = this.#lines[this.#at] as string
      if (line.length > longestLine) leave()
      let indent = 0
      while (line.charCodeAt(indent) === space) indent++
      if (indent === line.length || line.charCodeAt(indent) === hash) continue
      if (indent === 0 && (line.startsWith('---') || line.startsWith('...'))) leave()
      let { length } = line
      while (line.charCodeAt(length - 1) === space) length--
      this.#line = line.slice(0, length)
      this.#indent = indent
      return
    }
    this.#indent = -1
  }

  #next(): void {
    this.#at++
    this.#seek()
  }

  #block(depth: number): unknown {
    if (depth <= 0) leave()
    return this.#isItem(this.#indent) ? this.#list(this.#indent, depth) : this.#map(this.#indent, depth)
  }

  /** Whether a list element begins at a column of the current line. */
  #isItem(column: number): boolean {
    return this.#line.charCodeAt(column) === dash && (column + 1 === this.#line.length || this.#line.charCodeAt(column + 1) === space)
  }

  #list(indent: number, depth: number): unknown[] {
    const values: unknown[] = []
    while (this.#indent === indent && this.#isItem(indent)) {
      let column = indent + 1
      while (this.#line.charCodeAt(column) === space) column++
      values.push(column >= this.#line.length ? this.#nested(indent, depth, false) : this.#element(column, depth))
    }
    return this.#indent > indent ? leave() : values
  }

  /** Reads an element of a list whose content begins in the line of its dash. */
  #element(column: number, depth: number): unknown {
    if (this.#isItem(column)) return leave()
    if (this.#keyEnd(column) >= 0) {
      if (depth <= 1) leave()
      this.#indent = column
      return this.#map(column, depth - 1)
    }
    const value = this.#value(column, depth - 1)
    this.#next()
    return value
  }

  #map(indent: number, depth: number): Record<string, unknown> {
    const mapping: Record<string, unknown> = {}
    while (this.#indent === indent) {
      const end = this.#keyEnd(indent)
      if (end < 0) leave()
      const key = this.#key(indent, end)
      if (key in mapping) leave()
      let column = end + 1
      while (this.#line.charCodeAt(column) === space) column++
      if (column >= this.#line.length) mapping[key] = this.#nested(indent, depth, true)
      else {
        mapping[key] = this.#value(column, depth - 1)
        this.#next()
      }
    }
    return this.#indent > indent ? leave() : mapping
  }

  /** Reads what belongs to the key, or the dash, at the end of the current line. */
  #nested(indent: number, depth: number, isOfKey: boolean): unknown {
    this.#next()
    if (this.#indent > indent) return this.#block(depth - 1)
    // A list may stand at the column of its key.
    if (!isOfKey || this.#indent !== indent || !this.#isItem(indent)) return null
    return depth > 1 ? this.#list(indent, depth - 1) : leave()
  }

  /** The column of the colon behind a key that begins at a column of the current line; -1 where there is none. */
  #keyEnd(column: number): number {
    const quoted = quotedEnd(this.#line, column)
    const end = quoted >= 0 ? quoted : matchEnd(plainKey, this.#line, column)
    if (end < 0 || this.#line.charCodeAt(end) !== colon) return -1
    if (end + 1 < this.#line.length && this.#line.charCodeAt(end + 1) !== space) return -1
    return end
  }

  #key(column: number, end: number): string {
    if (end - column > longestKey) leave()
    const given = this.#line.slice(column, end)
    const quote = given.charCodeAt(0)
    if (quote === double || quote === single) return unquoted(given)
    return words.has(given.toLowerCase()) ? leave() : given
  }

  /** Reads the value that begins at a column and ends with the line. */
  #value(column: number, depth: number): unknown {
    const line = this.#line
    const first = line.charCodeAt(column)
    if (first === double || first === single) return quotedEnd(this.#line, column) === line.length ? unquoted(line.slice(column)) : leave()
    if (first === openBracket || first === openBrace) {
      const flow = new FlowReader(line, column)
      const value = flow.value(depth)
      return flow.at === line.length ? value : leave()
    }
    const text = line.slice(column)
    return blockScalar.test(text) ? scalar(text) : leave()
  }
}

/** Reads a value in flow style that stands on one line. */
class FlowReader {
  readonly #line: string
  /** The column behind what was read. */
  at: number

  constructor(line: string, at: number) {
    this.#line = line
    this.at = at
  }

  value(depth: number): unknown {
    const first = this.#line.charCodeAt(this.at)
    if (first === openBracket || first === openBrace) {
      if (depth <= 0) leave()
      this.at++
      return first === openBracket ? this.#list(depth) : this.#map(depth)
    }
    const quoted = quotedEnd(this.#line, this.at)
    if (quoted >= 0) return unquoted(this.#to(quoted))
    const end = matchEnd(flowScalar, this.#line, this.at)
    return end < 0 ? leave() : scalar(this.#to(end))
  }

  #list(depth: number): unknown[] {
    const values: unknown[] = []
    for (this.#spaces(); !this.#takes(closeBracket); this.#separator(closeBracket)) values.push(this.value(depth - 1))
    return values
  }

  #map(depth: number): Record<string, unknown> {
    const mapping: Record<string, unknown> = {}
    for (this.#spaces(); !this.#takes(closeBrace); this.#separator(closeBrace)) {
      const quoted = quotedEnd(this.#line, this.at)
      const end = quoted >= 0 ? quoted : matchEnd(plainKey, this.#line, this.at)
      if (end < 0 || end - this.at > longestKey) leave()
      const given = this.#to(end)
      if (quoted < 0 && words.has(given.toLowerCase())) leave()
      const key = quoted >= 0 ? unquoted(given) : given
      if (key in mapping || !this.#takes(colon)) leave()
      this.#spaces()
      mapping[key] = this.value(depth - 1)
    }
    return mapping
  }

  #to(end: number): string {
    const text = this.#line.slice(this.at, end)
    this.at = end
    return text
  }

  #takes(code: number): boolean {
    const isThere = this.#line.charCodeAt(this.at) === code
    if (isThere) this.at++
    return isThere
  }

  #spaces(): void {
    while (this.#line.charCodeAt(this.at) === space) this.at++
  }

  /** Reads the comma behind an element, unless the collection is closed there. */
  #separator(close: number): void {
    this.#spaces()
    if (this.#line.charCodeAt(this.at) === close) return
    if (!this.#takes(comma)) leave()
    this.#spaces()
    if (this.#line.charCodeAt(this.at) === close) leave()
  }
}

const [space, hash, dash, colon, comma] = [0x20, 0x23, 0x2d, 0x3a, 0x2c]
const [double, single] = [0x22, 0x27]
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d]

/** The end of what a sticky pattern finds at a column; -1 where it finds nothing. */
function matchEnd(pattern: RegExp, line: string, column: number): number {
  pattern.lastIndex = column
  return pattern.test(line) ? pattern.lastIndex : -1
}

/** The end of the text in quotes that begins at a column; -1 where none does. */
function quotedEnd(line: string, column: number): number {
  const first = line.charCodeAt(column)
  if (first !== double && first !== single) return -1
  const end = matchEnd(first === double ? doubleQuoted : singleQuoted, line, column)
  return end < 0 ? leave() : end
}

function unquoted(given: string): string {
  if (given.charCodeAt(0) === single) return given.slice(1, -1).replaceAll("''", "'")
  return given.includes('\\') ? (JSON.parse(given) as string) : given.slice(1, -1)
}

/** Returns what a plain scalar means. */
function scalar(text: string): unknown {
  const value = plainScalar(text)
  return isNoNumber(value) ? leave() : value
}
