/**
 * Splits a template into tokens: text, and the contents of actions between `{{` and `}}` (Go's package `text/template`, "Actions" and "Text
 * and spaces").
 */
import { unescapeGo } from './go-string.ts'
import { TemplateError } from './values.ts'

/** A token. `line` is the line on which it begins. */
export interface Token {
  readonly type: 'text' | 'open' | 'close' | 'space' | 'string' | 'number' | 'field' | 'variable' | 'word' | 'mark'
  /** The text, the value of a string literal, or the source of any other token. */
  readonly text: string
  readonly line: number
}

const isSpace = (letter: string | undefined): boolean => letter !== undefined && ' \t\r\n'.includes(letter)

function trimEnd(text: string): string {
  let end = text.length
  while (isSpace(text[end - 1])) end--
  return text.slice(0, end)
}

function trimStart(text: string): string {
  let start = 0
  while (isSpace(text[start])) start++
  return text.slice(start)
}

/** Splits a template into tokens. Throws a {@link TemplateError} that names the line with invalid input. */
export function lex(template: string): Token[] {
  const tokens: Token[] = []
  let [at, line] = [0, 1]
  let trimsNext = false
  const advance = (to: number) => {
    for (const letter of template.slice(at, to)) if (letter === '\n') line++
    at = to
  }
  while (at < template.length) {
    const open = template.indexOf('{{', at)
    const trims = open >= 0 && template[open + 2] === '-' && isSpace(template[open + 3])
    let text = template.slice(at, open < 0 ? undefined : open)
    if (trimsNext) text = trimStart(text)
    if (trims) text = trimEnd(text)
    if (text !== '') tokens.push({ type: 'text', text, line })
    if (open < 0) break
    advance(open + (trims ? 3 : 2))
    const isComment = (trims ? /^[ \t\r\n]\/\*/ : /^\/\*/).test(template.slice(at, at + 3))
    const inner = isComment ? comment(template, at, line) : action(template, at, line)
    if (inner.tokens) {
      tokens.push({ type: 'open', text: '{{', line })
      for (const token of inner.tokens) tokens.push(token)
      tokens.push({ type: 'close', text: '}}', line })
    }
    trimsNext = inner.trimsNext
    advance(inner.end)
  }
  return tokens
}

interface Inner {
  /** Undefined for a comment. */
  readonly tokens: Token[] | undefined
  readonly end: number
  readonly trimsNext: boolean
}

function comment(template: string, start: number, line: number): Inner {
  const end = template.indexOf('*/', start + 2)
  const close = /^([ \t\r\n]-)?\}\}/.exec(end < 0 ? '' : template.slice(end + 2, end + 6))
  if (!close) throw new TemplateError(`${end < 0 ? 'unclosed comment' : 'comment ends before closing delimiter'}`, line)
  return { tokens: undefined, end: end + 2 + close[0].length, trimsNext: close[1] !== undefined }
}

const patterns: readonly (readonly [Token['type'], RegExp])[] = [
  ['space', /[ \t\r\n]+/y],
  ['string', /"(?:[^"\\\n]|\\.)*"|`[^`]*`/y],
  [
    'number',
    /'(?:[^'\\\n]|\\.)+'|[+-]?(?:0[xX][\da-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\p{L}\p{N}_])/uy,
  ],
  ['field', /\.[\p{L}_][\p{L}\p{N}_]*|\./uy],
  ['variable', /\$[\p{L}\p{N}_]*/uy],
  ['word', /[\p{L}_][\p{L}\p{N}_]*/uy],
  ['mark', /:=|[=|(),]/y],
]

function action(template: string, start: number, startLine: number): Inner {
  const tokens: Token[] = []
  let [at, line] = [start, startLine]
  for (;;) {
    const close = /^(?:[ \t\r\n]-)?\}\}/.exec(template.slice(at, at + 4))
    if (close) return { tokens, end: at + close[0].length, trimsNext: close[0].length > 2 }
    const token = tokenAt(template, at, line)
    // The space in ` -}}` is part of the trim marker.
    const length = token.type === 'space' && template.startsWith('-}}', at + token.text.length) ? token.text.length - 1 : token.text.length
    if (length > 0) tokens.push(token.type === 'string' ? { ...token, text: stringValue(token) } : { ...token, text: token.text.slice(0, length) })
    line += token.text.slice(0, length).split('\n').length - 1
    at += length
  }
}

function tokenAt(template: string, at: number, line: number): Token {
  for (const [type, pattern] of patterns) {
    pattern.lastIndex = at
    const [text] = pattern.exec(template) ?? []
    if (text !== undefined) return { type, text, line }
  }
  const rest = template.slice(at, at + 1)
  throw new TemplateError(`${rest === '' ? 'unclosed action' : `unexpected ${JSON.stringify(rest)} in action`}`, line)
}

function stringValue({ text, line }: Token): string {
  if (text.startsWith('`')) return text.slice(1, -1).replaceAll('\r', '')
  const value = unescapeGo(text.slice(1, -1))
  if (value === undefined) throw new TemplateError(`invalid escape in ${text.slice(0, 60)}`, line)
  return value
}
