/** The syntax trees of source files, without types, comments and names of imports, so that only what runs is found in them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from '@swc/core'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A node of a syntax tree with the node that contains it. */
export interface Node {
  readonly type: string
  readonly parent: Node | undefined
  /** The name of the field of the parent. */
  readonly at: string
  readonly children: readonly Node[]
  /** The name of an identifier, or the value of a literal. */
  readonly value: unknown
}

/** A source file: its path from the root of the repository, and all its nodes. */
export interface SourceFile {
  readonly path: string
  readonly nodes: readonly Node[]
}

/** Expressions around an expression that has a type added. */
const wrappers = new Set(['TsAsExpression', 'TsSatisfiesExpression', 'TsNonNullExpression', 'TsConstAssertion', 'ParenthesisExpression'])
const typeFields = new Set(['typeAnnotation', 'typeParams', 'typeParameters', 'typeArguments', 'returnType', 'superTypeParams', 'implements', 'span'])

/** Parses all source files of some rooms. */
export function sourceFiles(rooms: readonly string[]): SourceFile[] {
  return rooms
    .flatMap((room) => readdirSync(join(root, room), { recursive: true, encoding: 'utf8' }).map((file) => join(room, file)))
    .filter((path) => path.endsWith('.ts'))
    .map((path) => sourceFile(path, readFileSync(join(root, path), 'utf8')))
}

/** Parses a text in TypeScript as the file of this path. */
export function sourceFile(path: string, text: string): SourceFile {
  const nodes: Node[] = []
  visit(parseSync(text, { syntax: 'typescript' }), undefined, '', nodes)
  return { path, nodes }
}

interface Raw {
  readonly type: string
  readonly value?: unknown
  readonly cooked?: unknown
  readonly expression?: unknown
}

/** Adds a node of the parser and those within it. Wrappers are left out. */
function visit(raw: Raw, parent: Node | undefined, at: string, nodes: Node[]): Node | undefined {
  if (wrappers.has(raw.type)) return visit(raw.expression as Raw, parent, at, nodes)
  if (raw.type.startsWith('Ts') || raw.type === 'ImportDeclaration') return undefined
  const children: Node[] = []
  const value = raw.type === 'TemplateElement' ? raw.cooked : raw.value
  const node: Node = {
    type: raw.type,
    parent,
    at,
    children,
    value: typeof value === 'object' ? undefined : value,
  }
  nodes.push(node)
  for (const [field, content] of Object.entries(raw)) {
    if (typeFields.has(field)) continue
    for (const inner of innerNodes(content)) {
      const child = visit(inner, node, field, nodes)
      if (child) children.push(child)
    }
  }
  return node
}

/** The nodes of a field: of lists, and of objects that are no nodes themselves. */
function innerNodes(content: unknown): Raw[] {
  if (Array.isArray(content)) return content.flatMap(innerNodes)
  if (typeof content !== 'object' || content === null) return []
  if (typeof (content as Raw).type === 'string') return [content as Raw]
  return Object.entries(content).flatMap(([field, inner]) => (typeFields.has(field) ? [] : innerNodes(inner)))
}

/** Returns the child in a field. */
export const child = (node: Node | undefined, field: string): Node | undefined => node?.children.find(({ at }) => at === field)

/** Returns the name that a member expression, a call, an identifier or a key ends with: `a.b`, `a['b']` and `b` have `b`. */
export function nameOf(node: Node | undefined): string | undefined {
  switch (node?.type) {
    case 'Identifier':
    case 'StringLiteral':
      return String(node.value)
    case 'PrivateName':
      return `#${String(node.value ?? nameOf(child(node, 'id')))}`
    case 'Computed':
      return nameOf(child(node, 'expression'))
    case 'MemberExpression':
      return nameOf(child(node, 'property'))
    case 'OptionalChainingExpression':
      return nameOf(child(node, 'base'))
    case 'CallExpression':
      return nameOf(child(node, 'callee'))
    default:
      return undefined
  }
}

/** The names that a file reads from objects: members that are not assigned to, and destructured ones. */
export function readsOf({ nodes }: SourceFile): Set<string> {
  const names = nodes.flatMap((node) => {
    if (node.type === 'MemberExpression')
      return node.parent?.type === 'AssignmentExpression' && node.at === 'left' ? [] : [nameOf(child(node, 'property'))]
    return node.type === 'KeyValuePatternProperty' || node.type === 'AssignmentPatternProperty' ? [nameOf(child(node, 'key'))] : []
  })
  return new Set(names.filter((name) => name !== undefined))
}

/** The keys of a file's objects. */
export const keysOf = ({ nodes }: SourceFile): Set<string> =>
  new Set(nodes.flatMap((node) => (node.type === 'KeyValueProperty' ? (nameOf(child(node, 'key')) ?? []) : [])))

/** The texts of a file. */
export const textsOf = ({ nodes }: SourceFile): Set<string> =>
  new Set(nodes.filter(({ type }) => type === 'StringLiteral').map(({ value }) => String(value)))
