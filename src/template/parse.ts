/** Parses a template into a tree (Go's package `text/template/parse`). */

import type { Literal } from './function.ts'
import { unescapeGo } from './go-string.ts'
import { lex, type Token } from './lex.ts'
import { GoFloat, goInt, isInt, numberOf, TemplateError, type Value } from './values.ts'

/** An operand of a command. */
export type Operand =
  | { readonly type: 'literal'; readonly literal: Literal; readonly line: number }
  | { readonly type: 'dot'; readonly line: number }
  | { readonly type: 'field'; readonly path: readonly string[]; readonly line: number }
  | { readonly type: 'variable'; readonly name: string; readonly path: readonly string[]; readonly line: number }
  | { readonly type: 'function'; readonly name: string; readonly line: number }
  | { readonly type: 'pipe'; readonly pipe: Pipe; readonly path: readonly string[]; readonly line: number }

/** A pipeline: each command receives the value of the previous one as its last argument. The last value may be assigned to variables. */
export interface Pipe {
  readonly declares: readonly string[]
  readonly isAssignment: boolean
  readonly commands: readonly (readonly Operand[])[]
  readonly line: number
}

/** A node of a template. */
export type Node =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'action'; readonly pipe: Pipe }
  | { readonly type: 'if' | 'with' | 'range'; readonly pipe: Pipe; readonly body: readonly Node[]; readonly otherwise: readonly Node[] }
  | { readonly type: 'template'; readonly name: string; readonly pipe: Pipe | undefined; readonly line: number }
  | { readonly type: 'break' | 'continue' }

/** A template, and the templates that it defines, by name. */
export interface Tree {
  readonly root: readonly Node[]
  readonly defined: ReadonlyMap<string, readonly Node[]>
  /** The names of the functions that it calls. */
  readonly functions: ReadonlySet<string>
}

/** The maximum nesting depth of actions and parentheses. */
const deepest = 200

/** Parses a template that may call the given functions. Throws a {@link TemplateError} that names the line. */
export function parse(template: string, functions: { has(name: string): boolean }): Tree {
  return new Parser(lex(template), functions).parse()
}

type Ended = { readonly nodes: Node[]; readonly by: 'end' | 'else' | 'eof' }

class Parser {
  readonly #tokens: readonly Token[]
  readonly #functions: { has(name: string): boolean }
  readonly #called = new Set<string>()
  readonly #defined = new Map<string, readonly Node[]>()
  #at = 0
  #depth = 0
  #loops = 0
  #variables = ['$']

  constructor(tokens: readonly Token[], functions: { has(name: string): boolean }) {
    this.#tokens = tokens
    this.#functions = functions
  }

  parse(): Tree {
    const root: Node[] = []
    for (;;) {
      const { nodes, by } = this.#list(true)
      for (const node of nodes) root.push(node)
      if (by === 'eof') return { root, defined: this.#defined, functions: this.#called }
      throw this.#error(`unexpected {{${by}}}`)
    }
  }

  #line(): number {
    return (this.#tokens[this.#at] ?? this.#tokens.at(-1))?.line ?? 1
  }

  #error(text: string): TemplateError {
    return new TemplateError(text, this.#line())
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#at]
  }

  #skipSpace(): Token | undefined {
    while (this.#peek()?.type === 'space') this.#at++
    return this.#peek()
  }

  #takeWord(...words: string[]): string | undefined {
    const token = this.#skipSpace()
    if (token?.type !== 'word' || !words.includes(token.text)) return undefined
    this.#at++
    return token.text
  }

  #close(context: string): void {
    const token = this.#skipSpace()
    if (token?.type !== 'close') throw this.#error(`unexpected ${JSON.stringify(token?.text ?? 'end of template')} in ${context}`)
    this.#at++
  }

  /** Parses nodes up to `end`, `else` or the end of the template. Consumes that word, but nothing after it. */
  #list(isTop = false): Ended {
    const nodes: Node[] = []
    for (;;) {
      const token = this.#peek()
      if (token === undefined) return { nodes, by: 'eof' }
      this.#at++
      if (token.type === 'text') {
        nodes.push({ type: 'text', text: token.text })
        continue
      }
      const by = this.#takeWord('end', 'else')
      if (by) return { nodes, by: by as 'end' | 'else' }
      const node = this.#takeWord('define') ? this.#define(isTop) : this.#action()
      if (node) nodes.push(node)
    }
  }

  #action(): Node {
    const word = this.#takeWord('if', 'with', 'range', 'template', 'block', 'break', 'continue')
    switch (word) {
      case 'if':
      case 'with':
      case 'range':
        return this.#control(word)
      case 'template':
        return this.#template()
      case 'block':
        return this.#block()
      case 'break':
      case 'continue':
        if (this.#loops === 0) throw this.#error(`{{${word}}} outside {{range}}`)
        this.#close(word)
        return { type: word }
      default: {
        const pipe = this.#pipe('command')
        this.#close('command')
        return { type: 'action', pipe }
      }
    }
  }

  #nested<T>(make: () => T): T {
    if (++this.#depth > deepest) throw this.#error(`nested deeper than ${deepest} levels`)
    const made = make()
    this.#depth--
    return made
  }

  #control(type: 'if' | 'with' | 'range'): Node {
    return this.#nested(() => {
      const known = this.#variables.length
      const pipe = this.#pipe(type)
      this.#close(type)
      if (type === 'range') this.#loops++
      const { nodes: body, by } = this.#list()
      if (type === 'range') this.#loops--
      const otherwise = by === 'else' ? this.#otherwise(type) : []
      if (by === 'end') this.#close('end')
      if (by === 'eof') throw this.#error(`unclosed {{${type}}}`)
      this.#variables.length = known
      return { type, pipe, body, otherwise }
    })
  }

  #otherwise(type: 'if' | 'with' | 'range'): readonly Node[] {
    const chained = type === 'range' ? undefined : this.#takeWord(type)
    if (chained) return [this.#control(type)]
    this.#close('else')
    const { nodes, by } = this.#list()
    if (by !== 'end') throw this.#error(by === 'eof' ? `unclosed {{${type}}}` : 'expected end; found {{else}}')
    this.#close('end')
    return nodes
  }

  #name(context: string): string {
    const token = this.#skipSpace()
    if (token?.type !== 'string') throw this.#error(`unexpected ${JSON.stringify(token?.text ?? '')} in ${context}: a name in quotes is expected`)
    this.#at++
    return token.text
  }

  /** Parses the body of `define` or `block`, in which the variables of the enclosing template are not visible. */
  #own(context: string): readonly Node[] {
    const [variables, loops] = [this.#variables, this.#loops]
    this.#variables = ['$']
    this.#loops = 0
    const { nodes, by } = this.#nested(() => this.#list())
    if (by !== 'end') throw this.#error(`unclosed {{${context}}}`)
    this.#close('end')
    this.#variables = variables
    this.#loops = loops
    return nodes
  }

  #add(name: string, nodes: readonly Node[]): void {
    const isEmpty = (some: readonly Node[]) => some.every((node) => node.type === 'text' && node.text.trim() === '')
    const known = this.#defined.get(name)
    if (known && !isEmpty(known) && !isEmpty(nodes)) throw this.#error(`multiple definition of template ${JSON.stringify(name.slice(0, 60))}`)
    if (!known || !isEmpty(nodes)) this.#defined.set(name, nodes)
  }

  #define(isTop: boolean): undefined {
    if (!isTop) throw this.#error('unexpected {{define}}')
    const name = this.#name('define clause')
    this.#close('define clause')
    this.#add(name, this.#own('define'))
  }

  #block(): Node {
    const { line } = this.#tokens[this.#at - 1] as Token
    const name = this.#name('block clause')
    const pipe = this.#pipe('block clause')
    this.#close('block clause')
    this.#add(name, this.#own('block'))
    return { type: 'template', name, pipe, line }
  }

  #template(): Node {
    const { line } = this.#tokens[this.#at - 1] as Token
    const name = this.#name('template clause')
    const pipe = this.#skipSpace()?.type === 'close' ? undefined : this.#pipe('template clause')
    this.#close('template clause')
    return { type: 'template', name, pipe, line }
  }

  #pipe(context: string): Pipe {
    const line = this.#line()
    const { declares, isAssignment } = this.#declaration(context)
    const commands: (readonly Operand[])[] = []
    for (;;) {
      const command = this.#command()
      if (command.length === 0) throw this.#error(`missing value for ${context}`)
      const [first] = command
      if (commands.length > 0 && (first?.type === 'literal' || first?.type === 'dot'))
        throw this.#error(`non executable command in pipeline stage ${commands.length + 1}`)
      commands.push(command)
      const next = this.#skipSpace()
      if (next?.text !== '|' || next.type !== 'mark') break
      this.#at++
    }
    if (!isAssignment) this.#variables.push(...declares)
    return { declares, isAssignment, commands, line }
  }

  #declaration(context: string): { declares: string[]; isAssignment: boolean } {
    const start = this.#at
    const declares: string[] = []
    for (;;) {
      const token = this.#skipSpace()
      if (token?.type !== 'variable') break
      this.#at++
      declares.push(token.text)
      const mark = this.#skipSpace()
      if (mark?.type !== 'mark') break
      if (mark.text === ':=' || mark.text === '=') {
        this.#at++
        const isAssignment = mark.text === '='
        if (isAssignment) for (const name of declares) this.#known(name)
        return { declares, isAssignment }
      }
      if (mark.text !== ',' || context !== 'range' || declares.length > 1) break
      this.#at++
    }
    this.#at = start
    return { declares: [], isAssignment: false }
  }

  #known(name: string): void {
    if (!this.#variables.includes(name)) throw this.#error(`undefined variable "${name}"`)
  }

  #command(): Operand[] {
    const operands: Operand[] = []
    for (;;) {
      this.#skipSpace()
      const operand = this.#operand()
      if (!operand) return operands
      operands.push(operand)
      const next = this.#peek()
      if (next && next.type !== 'space' && next.type !== 'close' && !(next.type === 'mark' && (next.text === '|' || next.text === ')')))
        throw this.#error(`unexpected ${JSON.stringify(next.text)} in operand`)
    }
  }

  #operand(): Operand | undefined {
    const token = this.#peek()
    if (token === undefined) throw this.#error('unclosed action')
    const { type, text, line } = token
    const literal = (value: Value): Operand => ({ type: 'literal', literal: { value }, line })
    if (type === 'close' || (type === 'mark' && text !== '(')) return undefined
    this.#at++
    switch (type) {
      case 'string':
        return literal(text)
      case 'number':
        return { type: 'literal', literal: this.#number(text), line }
      case 'field':
        if (text === '.') return { type: 'dot', line }
        return { type: 'field', path: [text.slice(1), ...this.#path()], line }
      case 'variable':
        this.#known(text)
        return { type: 'variable', name: text, path: this.#path(), line }
      case 'word':
        if (text === 'true' || text === 'false') return literal(text === 'true')
        if (text === 'nil') return literal(null)
        if (!this.#functions.has(text)) throw this.#error(`function ${JSON.stringify(text.slice(0, 60))} not defined`)
        this.#called.add(text)
        return this.#chained({ type: 'function', name: text, line })
      default:
        return this.#nested(() => {
          const pipe = this.#pipe('parenthesized pipeline')
          if (this.#skipSpace()?.text !== ')') throw this.#error('unclosed left paren')
          this.#at++
          return { type: 'pipe', pipe, path: this.#path(), line }
        })
    }
  }

  /** A function with field names behind it is called without arguments. */
  #chained(operand: Extract<Operand, { type: 'function' }>): Operand {
    const path = this.#path()
    if (path.length === 0) return operand
    return { type: 'pipe', pipe: { declares: [], isAssignment: false, commands: [[operand]], line: operand.line }, path, line: operand.line }
  }

  /** Parses field names that follow without a space. */
  #path(): string[] {
    const path: string[] = []
    for (let token = this.#peek(); token?.type === 'field' && token.text !== '.'; token = this.#peek()) {
      path.push(token.text.slice(1))
      this.#at++
    }
    return path
  }

  #number(text: string): Literal {
    if (text.startsWith("'")) {
      const letters = [...(unescapeGo(text.slice(1, -1), "'") ?? '')]
      if (letters.length !== 1) throw this.#error(`malformed character constant: ${text.slice(0, 60)}`)
      const code = letters[0]?.codePointAt(0) as number
      // An escaped byte is its number.
      const value = code >= 0xdc80 && code <= 0xdcff ? code - 0xdc00 : code
      return { value, int: value, float: value }
    }
    if (/__|_$|_[.eE]|[.eE]_/.test(text)) throw this.#error(`bad number syntax: ${text.slice(0, 60)}`)
    const bare = text.replaceAll('_', '').replace(/^[+-]/, '')
    const isNegative = text.startsWith('-')
    if (/^\d*\.|^\d[\d.]*[eE]/.test(bare)) {
      const float = isNegative ? -Number(bare) : Number(bare)
      if (!Number.isFinite(float)) throw this.#error(`bad number syntax: ${text.slice(0, 60)}`)
      // A float without a fraction can be an integer, where one is asked for.
      return { value: new GoFloat(float), float, ...(Number.isInteger(float) && Math.abs(float) < 2 ** 63 ? { int: goInt(BigInt(float)) } : {}) }
    }
    const value = wholeNumber(bare, isNegative)
    if (value === undefined) throw this.#error(`number ${text.slice(0, 60)} is none, or too large`)
    return { value, int: value, ...(isInt(value) ? { float: numberOf(value) } : {}) }
  }
}

function wholeNumber(bare: string, isNegative: boolean): ReturnType<typeof goInt> | undefined {
  const digits = /^0\d/.test(bare) ? `0o${bare.slice(1)}` : bare
  if (digits.length > 70 || !/^(\d+|0[xX][\da-fA-F]+|0[bB][01]+|0[oO][0-7]+)$/.test(digits)) return undefined
  const value = isNegative ? -BigInt(digits) : BigInt(digits)
  return value === BigInt.asIntN(64, value) ? goInt(value) : undefined
}
