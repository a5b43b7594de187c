/** Compares declared names with what the source code reads, logs to and documents mention. */
import type { Scope } from '../../src/logging/scopes.ts'
import { canonicalEnvironment } from '../../src/names/mesh-names.ts'
import { child, keysOf, type Node, nameOf, readsOf, type SourceFile, textsOf } from './syntax.ts'

/** Returns the names that no file reads from an object or has as a text. Types and comments do not count. */
export function idleNames(names: readonly string[], files: readonly SourceFile[]): string[] {
  const used = new Set(files.flatMap((file) => [...readsOf(file), ...textsOf(file)]))
  return names.filter((name) => !used.has(name))
}

/** Returns the scopes that files log to: texts in the argument of `log`, and those that a function with a parameter `scope` passes on. */
export function loggedScopes(files: readonly SourceFile[]): Set<string> {
  return new Set(
    files.flatMap(({ nodes }) => {
      const parameters = nodes.filter((node) => node.type === 'Identifier' && node.value === 'scope' && isParameter(node))
      const passing = new Set(['log', '#log', ...parameters.map(functionOf)])
      const standard = parameters.flatMap((node) => textsIn(child(node.parent, 'right')))
      const calls = nodes.filter((node) => node.type === 'CallExpression' && passing.has(nameOf(child(node, 'callee')) ?? 'none'))
      return [...standard, ...calls.flatMap((call) => scopesIn(call))]
    }),
  )
}

/** The scopes in a call: the only argument of `log`, and the last one of a function that passes a scope on. */
function scopesIn(call: Node): string[] {
  const given = call.children.filter(({ at }) => at === 'arguments').at(-1)
  const choices = given?.type === 'ConditionalExpression' ? [child(given, 'consequent'), child(given, 'alternate')] : [given]
  return choices.flatMap(textsIn)
}

const textsIn = (node: Node | undefined): string[] => (node?.type === 'StringLiteral' ? [String(node.value)] : [])

const isParameter = (node: Node): boolean => node.at === 'left' && node.parent?.type === 'AssignmentPattern'

/** The name of the method or function that a parameter belongs to. */
function functionOf(parameter: Node): string {
  let around = parameter.parent
  while (around && !['ClassMethod', 'PrivateMethod', 'FunctionDeclaration', 'MethodProperty'].includes(around.type)) around = around.parent
  return nameOf(child(around, 'key') ?? child(around, 'identifier')) ?? 'log'
}

/** Returns what is wrong between a table of scopes and the scopes that are logged to. */
export function scopeFaults(table: Readonly<Record<string, Scope>>, logged: ReadonlySet<string>): string[] {
  const declared = Object.entries(table).flatMap(([name, scope]) => {
    if ('about' in scope) return logged.has(name) ? [] : [`${name}: nothing is logged to it`]
    return logged.has(name) ? [`${name}: lines are logged to it, although it is declared without`] : []
  })
  return [...declared, ...[...logged].filter((name) => !Object.hasOwn(table, name)).map((name) => `${name}: is not declared`)].sort()
}

/** The names that documents may mention, by what they are. */
export interface DeclaredNames {
  readonly variables: ReadonlySet<string>
  readonly flags: ReadonlySet<string>
  readonly metrics: ReadonlySet<string>
  readonly pages: ReadonlySet<string>
}

const shapes = {
  variables: /^([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=.*)?$/,
  flags: /^--([A-Za-z][\w-]+)(?:[ =].*)?$/,
  metrics: /^((?:pilot|citadel_server|galley|actor|meshd?|xds|grpc_server|num|total)_[a-z0-9_]*[a-z0-9])(?:\{.*)?$/,
  pages: /^(?:(?:GET|POST) )?\/debug\/(\w+)(?:\?.*)?$/,
} as const

/**
 * Returns the names in code marks of a document that are formed like declared ones, and are neither declared nor a text or a key of the source
 * code.
 */
export function undeclaredNames(document: string, declared: DeclaredNames, files: readonly SourceFile[]): string[] {
  const texts = new Set(files.flatMap((file) => [...textsOf(file), ...keysOf(file), ...readsOf(file)]))
  const isKnown = (what: string, name: string) => declared[what as keyof DeclaredNames].has(name) || texts.has(name)
  const marked = [...document.matchAll(/`([^`\n]+)`/g)].map(([, text]) => text as string)
  const unknown = marked.flatMap((text) =>
    Object.entries(shapes).flatMap(([what, shape]) => {
      const name = shape.exec(text)?.[1]
      if (name === undefined) return []
      const whole = what === 'flags' ? `--${name}` : what === 'pages' ? `/debug/${name}` : name
      const canonical = Object.keys(canonicalEnvironment({ [name]: '' }))[0] as string
      return isKnown(what, canonical) || texts.has(whole) ? [] : [whole]
    }),
  )
  return [...new Set(unknown)]
}
