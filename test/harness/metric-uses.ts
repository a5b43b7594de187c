/** Finds the metrics that the source code declares, and those of them that nothing moves. */
import { child, type Node, nameOf, readsOf, type SourceFile } from './syntax.ts'

const kinds = new Set(['Counter', 'Gauge', 'Histogram'])
const movers = new Set(['inc', 'set', 'observe', 'series'])
const functions = new Set(['ArrowFunctionExpression', 'FunctionExpression', 'FunctionDeclaration', 'ClassMethod', 'PrivateMethod', 'MethodProperty'])

/** A metric that nothing moves: where it is declared, and why it cannot move. */
export interface IdleMetric {
  readonly path: string
  readonly metric: string
  readonly reason: string
}

/**
 * Returns the declared metrics that nothing moves. A metric moves when it is declared with `collect`, or when its variable, member or
 * property is added to, set or passed on, in a function that something calls. Functions and properties count by their names.
 */
export function idleMetrics(files: readonly SourceFile[]): IdleMetric[] {
  const called = new Set(files.flatMap((file) => [...readsOf(file), ...calledFunctions(file)]))
  const moved = new Set(files.flatMap((file) => movedNames(file, called)))
  return files.flatMap((file) =>
    declarationsIn(file).flatMap((made) => {
      const reason = whyIdle(made, file, moved, called)
      return reason === undefined ? [] : [{ path: file.path, metric: metricName(made), reason }]
    }),
  )
}

/** The nodes that declare a metric: of a class of metrics, or calls of a function of the same file that returns one. */
function declarationsIn({ nodes }: SourceFile): Node[] {
  const made = nodes.filter((node) => node.type === 'NewExpression' && kinds.has(String(nameOf(child(node, 'callee')))))
  const makers = new Map(made.map((node) => [makerOf(node), node]))
  const isMaking = (node: Node) => node.type === 'CallExpression' && child(node, 'callee')?.type === 'Identifier' && makers.has(nameOf(node))
  const direct = made.filter((node) => makerOf(node) === undefined && !hasCollect(node))
  return [...direct, ...nodes.filter((node) => isMaking(node) && !hasCollect(makers.get(nameOf(node))))]
}

/** The name of the function that makes a metric for others of its file: `const counter = (name) => new Counter(...)`. */
function makerOf(made: Node): string | undefined {
  const maker = ancestor(made, (node) => functions.has(node.type))
  return maker && variableOf(maker)
}

/** The name of the variable whose value a node is. */
const variableOf = (node: Node): string | undefined =>
  node.parent?.type === 'VariableDeclarator' && node.at === 'init' ? nameOf(child(node.parent, 'id')) : undefined

const hasCollect = (made: Node | undefined): boolean =>
  within(made, (node) => node.type === 'MethodProperty' && nameOf(child(node, 'key')) === 'collect') !== undefined

function metricName(made: Node): string {
  const text = within(made, ({ type }) => type === 'StringLiteral' || type === 'TemplateElement')
  return String(text?.value ?? '')
}

/** Returns why nothing moves a metric; undefined if something may. */
function whyIdle(made: Node, file: SourceFile, moved: ReadonlySet<string>, called: ReadonlySet<string>): string | undefined {
  const { parent, at } = made
  if (parent?.type === 'VariableDeclarator') {
    const name = nameOf(child(parent, 'id')) as string
    const uses = file.nodes.filter((node) => node.type === 'Identifier' && node.value === name && isReference(node, parent))
    const reasons = uses.map((use) => whyUseIsIdle(use, made, moved, called))
    return reasons.includes(undefined) ? undefined : (reasons[0] ?? `nothing uses ${name}`)
  }
  if (parent?.type === 'KeyValueProperty') return propertyIdle(nameOf(child(parent, 'key')), moved, called)
  if (parent?.type === 'AssignmentExpression') return propertyIdle(nameOf(child(parent, 'left')), new Set(movedNames(file, called)), called)
  if (parent?.type === 'MemberExpression') return movers.has(String(nameOf(parent))) ? undefined : 'nothing moves it'
  // The value of a function, or an argument.
  return at === 'expression' && parent?.type === 'ExpressionStatement' ? 'nothing uses it' : undefined
}

/** Whether an identifier refers to the variable of a declaration, and is no key or name of a member. */
const isReference = (node: Node, declaration: Node): boolean =>
  node.parent !== declaration && node.at !== 'key' && !(node.parent?.type === 'MemberExpression' && node.at === 'property')

/** Returns why a use of a variable moves no metric: it only makes a series of the value zero, or it is in a function that nothing calls. */
function whyUseIsIdle(use: Node, made: Node, moved: ReadonlySet<string>, called: ReadonlySet<string>): string | undefined {
  const { parent } = use
  if (parent?.type === 'ObjectExpression') return propertyIdle(String(use.value), moved, called)
  if (parent?.type === 'KeyValueProperty') return propertyIdle(nameOf(child(parent, 'key')), moved, called)
  if (parent?.type === 'MemberExpression') {
    if (!movers.has(String(nameOf(parent)))) return `${use.value}.${nameOf(parent)} moves nothing`
    const amount = parent.parent?.children.filter(({ at }) => at === 'arguments').at(-1)
    if (amount?.type === 'NumericLiteral' && amount.value === 0) return 'only series of the value zero are made'
  }
  const home = ancestor(made, ({ type }) => functions.has(type) || type === 'Constructor')
  const idle = idleFunction(use, home, called)
  return idle === undefined ? undefined : `nothing calls ${idle}`
}

/** The name by which a function is called: of its method, property or variable. */
function functionName(node: Node): string | undefined {
  const holder = node.parent?.type === 'KeyValueProperty' ? node.parent : node
  const key = nameOf(child(holder, 'key') ?? child(holder, 'identifier'))
  return key ?? variableOf(node)
}

function propertyIdle(name: string | undefined, moved: ReadonlySet<string>, called: ReadonlySet<string>): string | undefined {
  return name !== undefined && !moved.has(name) && !called.has(`${name}()`) ? `nothing moves ${name}` : undefined
}

/** The names of variables, members and properties that something adds to, sets or observes, in functions that something calls. */
function movedNames({ nodes }: SourceFile, called: ReadonlySet<string>): string[] {
  return nodes.flatMap((node) => {
    const isMove = node.type === 'MemberExpression' && movers.has(String(nameOf(node))) && idleFunction(node, undefined, called) === undefined
    return isMove ? [nameOf(child(node, 'object')) ?? ''] : []
  })
}

/** The name of a function around a node, and within another one, that nothing calls. */
function idleFunction(node: Node, home: Node | undefined, called: ReadonlySet<string>): string | undefined {
  for (let around = node.parent; around && around !== home; around = around.parent) {
    const name = functions.has(around.type) ? functionName(around) : undefined
    if (name !== undefined && !called.has(name)) return name
  }
  return undefined
}

/** The names of functions and members that are called, once plain and once with parentheses. */
const calledFunctions = ({ nodes }: SourceFile): string[] =>
  nodes.flatMap((node) => {
    const name = node.type === 'CallExpression' ? nameOf(child(node, 'callee')) : undefined
    return name === undefined ? [] : [name, `${name}()`]
  })

function ancestor(node: Node, is: (node: Node) => boolean): Node | undefined {
  let around = node.parent
  while (around && !is(around)) around = around.parent
  return around
}

function within(node: Node | undefined, is: (node: Node) => boolean): Node | undefined {
  if (!node || is(node)) return node
  for (const inner of node.children) {
    const found = within(inner, is)
    if (found) return found
  }
  return undefined
}
