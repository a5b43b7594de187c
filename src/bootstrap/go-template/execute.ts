/** Executes a template (Go's package `text/template`) with limits on output, work and depth. */
import { functions, lazyFunctions } from './functions.ts'
import { type Node, type Operand, type Pipe, parseTemplate, type Tree } from './parse.ts'
import { GoStruct, isList, isMap, isTrue, printed, sortedKeys, TemplateError, textLimit, typeName, type Value } from './values.ts'

/**
 * The limits of one execution. `output` and `text`, the limit on the text arguments and the text result of a function call, are in
 * characters. `work` bounds the time: it is the characters that functions read and write, and the elements of maps that are put in order.
 * `depth` counts conditions, ranges and templates within each other.
 */
const limits = { output: 8 * 1024 * 1024, text: textLimit, steps: 1_000_000, work: 20_000_000, templates: 100, depth: 500 }
/** The number of variables that are looked at for one unit of work. */
const variablesAtOnce = 2
/** The work of putting one key of a map in order. */
const keyWork = 8

/**
 * Renders a template with `data`. Throws a {@link TemplateError} that names the line when the template cannot be parsed or executed, or
 * exceeds a limit.
 */
export function renderTemplate(template: string, data: Value): string {
  const tree = parseTemplate(template, new Set(functions.keys()))
  return new Execution(tree).run(data)
}

interface Variable {
  readonly name: string
  value: Value
}

/** How the execution of a list of nodes ended. */
type Ended = 'done' | 'break' | 'continue'

class Execution {
  readonly #tree: Tree
  readonly #output: string[] = []
  #size = 0
  #steps = 0
  #work = 0
  /** The number of templates, and of scopes, within each other. */
  #templates = 0
  #depth = 0
  /** The line of the last pipe that was begun. */
  #line = 1
  #variables: Variable[] = []

  constructor(tree: Tree) {
    this.#tree = tree
  }

  run(data: Value): string {
    this.#variables = [{ name: '$', value: data }]
    try {
      this.#list(this.#tree.root, data)
    } catch (error) {
      if (!(error instanceof TemplateError) || error.message.startsWith('line ')) throw error
      throw new TemplateError(`line ${this.#line}: ${error.message}`)
    }
    return this.#output.join('')
  }

  #write(text: string): void {
    this.#size += text.length
    if (this.#size > limits.output) throw new TemplateError(`the output is larger than ${limits.output} characters`)
    this.#output.push(text)
  }

  /** Counts work that has been or will be done. */
  #spend(work: number): void {
    this.#work += work
    if (this.#work > limits.work) throw new TemplateError(`the functions read and write more than ${limits.work} characters and elements`)
  }

  #step(): void {
    if (++this.#steps > limits.steps) throw new TemplateError(`more than ${limits.steps} steps`)
  }

  #list(nodes: readonly Node[], dot: Value): Ended {
    for (const node of nodes) {
      const ended = this.#node(node, dot)
      if (ended !== 'done') return ended
    }
    return 'done'
  }

  #node(node: Node, dot: Value): Ended {
    this.#step()
    switch (node.type) {
      case 'text':
        this.#write(node.text)
        return 'done'
      case 'action': {
        const value = this.#pipe(node.pipe, dot)
        if (node.pipe.declares.length === 0) this.#write(value === null ? '<no value>' : printed(value))
        return 'done'
      }
      case 'template':
        this.#template(node.name, node.pipe ? this.#pipe(node.pipe, dot) : null, node.line)
        return 'done'
      case 'break':
      case 'continue':
        return node.type
      default:
        return this.#scoped(() => (node.type === 'range' ? this.#range(node, dot) : this.#condition(node, dot)))
    }
  }

  #scoped<T>(run: () => T): T {
    const known = this.#variables.length
    if (++this.#depth > limits.depth) throw new TemplateError(`conditions, ranges and templates within each other deeper than ${limits.depth} levels`)
    const result = run()
    this.#depth--
    this.#variables.length = known
    return result
  }

  #condition({ type, pipe, body, otherwise }: Extract<Node, { pipe: Pipe; body: unknown }>, dot: Value): Ended {
    const value = this.#pipe(pipe, dot)
    if (!isTrue(value)) return this.#list(otherwise, dot)
    return this.#list(body, type === 'with' ? value : dot)
  }

  #range({ pipe, body, otherwise }: Extract<Node, { pipe: Pipe; body: unknown }>, dot: Value): Ended {
    const value = this.#pipe({ ...pipe, declares: [] }, dot)
    let isEmpty = true
    for (const [key, item] of this.#items(value, pipe)) {
      isEmpty = false
      this.#step()
      const ended = this.#scoped(() => {
        const [first, second] = pipe.declares
        if (first !== undefined) this.#set(first, second === undefined ? item : key, pipe)
        if (second !== undefined) this.#set(second, item, pipe)
        return this.#list(body, item)
      })
      if (ended === 'break') return 'done'
    }
    return isEmpty ? this.#list(otherwise, dot) : 'done'
  }

  *#items(value: Value, { declares, line }: Pipe): Iterable<readonly [Value, Value]> {
    if (value === null) return
    if (isList(value)) yield* value.entries()
    else if (isMap(value)) for (const key of this.#sorted(value)) yield [key, value.get(key) ?? null]
    else if (typeof value === 'number' && declares.length < 2) for (let at = 0; at < value; at++) yield [at, at]
    else if (typeof value === 'number') throw new TemplateError(`line ${line}: can't use ${value} to iterate over more than one variable`)
    else throw new TemplateError(`line ${line}: range can't iterate over ${printed(value)}`)
  }

  #sorted(map: ReadonlyMap<string, Value>): string[] {
    this.#spend(map.size * keyWork)
    return sortedKeys(map)
  }

  #template(name: string, data: Value, line: number): void {
    const nodes = this.#tree.defined.get(name)
    if (!nodes) throw new TemplateError(`line ${line}: template ${JSON.stringify(name.slice(0, 60))} not defined`)
    if (++this.#templates > limits.templates)
      throw new TemplateError(`line ${line}: templates within each other deeper than ${limits.templates} levels`)
    const variables = this.#variables
    this.#variables = [{ name: '$', value: data }]
    this.#scoped(() => this.#list(nodes, data))
    this.#variables = variables
    this.#templates--
  }

  #set(name: string, value: Value, { isAssignment }: Pipe): void {
    if (!isAssignment) {
      this.#variables.push({ name, value })
      return
    }
    this.#variable(name).value = value
  }

  #variable(name: string): Variable {
    this.#spend(this.#variables.length / variablesAtOnce)
    const found = this.#variables.findLast((variable) => variable.name === name)
    if (!found) throw new TemplateError(`undefined variable: ${name}`)
    return found
  }

  #pipe(pipe: Pipe, dot: Value): Value {
    this.#line = pipe.line
    this.#step()
    let value: Value | undefined
    for (const command of pipe.commands) value = this.#command(command, dot, value)
    for (const name of pipe.declares) this.#set(name, value ?? null, pipe)
    return value ?? null
  }

  #command(operands: readonly Operand[], dot: Value, final: Value | undefined): Value {
    const [first, ...rest] = operands as [Operand, ...Operand[]]
    if (first.type === 'function') return this.#call(first.name, rest, { dot, final, line: first.line })
    if (rest.length > 0 || final !== undefined) {
      const what =
        first.type === 'field' || first.type === 'variable'
          ? `${first.path.at(-1) ?? first.type} has arguments but cannot be invoked as function`
          : "can't give argument to non-function"
      throw new TemplateError(`line ${first.line}: ${what}`)
    }
    if (first.type === 'literal' && first.value === null) throw new TemplateError(`line ${first.line}: nil is not a command`)
    return this.#operand(first, dot)
  }

  #operand(operand: Operand, dot: Value): Value {
    switch (operand.type) {
      case 'literal':
        return operand.value
      case 'dot':
        return dot
      case 'field':
        return fields(dot, operand.path, operand.line)
      case 'variable':
        return fields(this.#variable(operand.name).value, operand.path, operand.line)
      case 'pipe':
        return fields(this.#pipe(operand.pipe, dot), operand.path, operand.line)
      case 'function':
        return this.#call(operand.name, [], { dot, final: undefined, line: operand.line })
    }
  }

  #call(name: string, operands: readonly Operand[], { dot, final, line }: { dot: Value; final: Value | undefined; line: number }): Value {
    const found = functions.get(name)
    if (!found) throw new TemplateError(`line ${line}: function ${JSON.stringify(name)} not defined`)
    const given = operands.length + (final === undefined ? 0 : 1)
    if (given < found.least || given > found.most) {
      const wanted = found.most === found.least ? String(found.least) : `at least ${found.least}`
      throw new TemplateError(`line ${line}: wrong number of args for ${name}: want ${wanted} got ${given}`)
    }
    try {
      if (lazyFunctions.has(name)) return this.#untilDecided(name === 'or', operands, { dot, final })
      const args = operands.map((operand) => this.#operand(operand, dot))
      if (final !== undefined) args.push(final)
      this.#spend(sizeOf(args))
      const result = found.call(...bounded(args)) ?? null
      this.#spend(sizeOf([result]))
      return bounded([result])[0] ?? null
    } catch (error) {
      if (!(error instanceof TemplateError) || error.message.startsWith('line ')) throw error
      throw new TemplateError(`line ${line}: error calling ${name}: ${error.message}`)
    }
  }

  /** Evaluates `and` and `or` with short-circuit: arguments after the deciding one are not evaluated. */
  #untilDecided(byTruth: boolean, operands: readonly Operand[], { dot, final }: { dot: Value; final: Value | undefined }): Value {
    let value: Value = null
    for (const operand of operands) {
      value = this.#operand(operand, dot)
      if (isTrue(value) === byTruth) return value
    }
    return final === undefined ? value : final
  }
}

/** The number of characters of the texts. */
const sizeOf = (values: readonly Value[]): number => values.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0)

/** Returns the values. Throws a {@link TemplateError} when their texts together exceed the limit. */
function bounded(values: readonly Value[]): readonly Value[] {
  if (sizeOf(values) > limits.text) throw new TemplateError(`texts are longer than ${limits.text} characters`)
  return values
}

/**
 * Evaluates a path of fields and keys. A missing key of a map is nil, and so is every field below it. A field of a nil that is stored in a
 * map or message is an error.
 */
function fields(of: Value, path: readonly string[], line: number): Value {
  let value = of
  let isThere = false
  for (const name of path) {
    if (value === null) {
      if (isThere && !name.startsWith('Get')) throw new TemplateError(`line ${line}: nil pointer evaluating interface {}.${name}`)
      return null
    }
    // Go's messages have a getter for each field, which returns nil for a nil message.
    const known = value instanceof GoStruct && !value.fields.has(name) ? name.replace(/^Get/, '') : name
    if (!(isMap(value) || (value instanceof GoStruct && value.fields.has(known))))
      throw new TemplateError(`line ${line}: can't evaluate field ${name} in type ${typeName(value)}`)
    const entries: ReadonlyMap<string, Value> = isMap(value) ? value : value.fields
    isThere = entries.has(known)
    value = entries.get(known) ?? null
  }
  return value
}
