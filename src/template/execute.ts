/** Executes a template (Go's package `text/template`) within a budget. */
import type { Budget } from './budget.ts'
import { lazyFunctions } from './builtins.ts'
import { argumentOf, checkCount, type Functions, literalOf, parameterAt, type TemplateFunction } from './function.ts'
import type { Node, Operand, Pipe, Tree } from './parse.ts'
import { orderedKeys, printed } from './printed.ts'
import { timeField } from './time.ts'
import { GoStruct, GoTime, goInt64, isInt, isList, isMap, isTrue, numberOf, TemplateError, typeName, type Value } from './values.ts'

/** The work of a character of a text that is not UTF-8: such a text is read byte by byte. */
const brokenWork = 20

/** The number of variables that are looked at for one unit of work. */
const variablesAtOnce = 2

interface Variable {
  readonly name: string
  value: Value | undefined
}

/** How the execution of a list of nodes ended. */
type Ended = 'done' | 'break' | 'continue'

type Control = Extract<Node, { pipe: Pipe; body: unknown }>

/** A value, or undefined where there is none: a missing key, and nil as the result of a pipeline. Nil in a list or map is null. */
type Found = Value | undefined

/** Where an operand is evaluated, and the result of the previous command of its pipeline. */
interface Place {
  readonly dot: Found
  readonly hasFinal: boolean
  readonly final: Found
}

/** One execution of a template. */
export class Execution {
  readonly #tree: Tree
  readonly #functions: Functions
  readonly #budget: Budget
  readonly #output: string[] = []
  /** The number of templates, and of scopes, within each other. */
  #templates = 0
  #depth = 0
  /** The line that is executed. */
  #line = 1
  #variables: Variable[] = []

  constructor(tree: Tree, functions: Functions, budget: Budget) {
    this.#tree = tree
    this.#functions = functions
    this.#budget = budget
  }

  /** Returns the output. Throws a {@link TemplateError} with a line. */
  run(data: Value): string {
    this.#variables = [{ name: '$', value: data ?? undefined }]
    try {
      this.#list(this.#tree.root, data ?? undefined)
    } catch (error) {
      if (error instanceof TemplateError && (error.line === undefined || error.template !== undefined))
        throw new TemplateError(error.message, this.#line)
      // The stack of JavaScript is the last bound: depths within the bounds together can exceed it.
      if (error instanceof RangeError) throw new TemplateError(exceeded(error), this.#line)
      throw error
    }
    return this.#output.join('')
  }

  #write(text: string): void {
    this.#budget.write(text.length)
    this.#output.push(text)
  }

  #list(nodes: readonly Node[], dot: Found): Ended {
    for (const node of nodes) {
      const ended = this.#node(node, dot)
      if (ended !== 'done') return ended
    }
    return 'done'
  }

  #node(node: Node, dot: Found): Ended {
    this.#budget.step()
    switch (node.type) {
      case 'text':
        this.#write(node.text)
        return 'done'
      case 'action': {
        const value = this.#pipe(node.pipe, dot)
        if (node.pipe.declares.length === 0) this.#write(value === undefined ? '<no value>' : printed(value, this.#budget))
        return 'done'
      }
      case 'template':
        this.#template(node.name, node.pipe, { dot, line: node.line })
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
    const { depth } = this.#budget.bounds
    if (++this.#depth > depth) throw new TemplateError(`conditions, ranges and templates within each other deeper than ${depth} levels`)
    const result = run()
    this.#depth--
    this.#variables.length = known
    return result
  }

  #condition({ type, pipe, body, otherwise }: Control, dot: Found): Ended {
    const value = this.#pipe(pipe, dot)
    if (!isTrue(value ?? null)) return this.#list(otherwise, dot)
    return this.#list(body, type === 'with' ? value : dot)
  }

  #range({ pipe, body, otherwise }: Control, dot: Found): Ended {
    const value = this.#pipe(pipe, dot)
    const [first, second] = pipe.declares
    const { length } = this.#variables
    let isEmpty = true
    for (const [key, item] of this.#items(value ?? null, second !== undefined)) {
      isEmpty = false
      this.#budget.step()
      const ended = this.#scoped(() => {
        if (first !== undefined) this.#turn(pipe, length, second === undefined ? { item } : { key, item })
        return this.#list(body, item)
      })
      if (ended === 'break') return 'done'
    }
    return isEmpty ? this.#list(otherwise, dot) : 'done'
  }

  /** Sets the variables of one turn of a loop. Those that it declares are the last ones of `length`. */
  #turn({ declares: [first = '', second = ''], isAssignment }: Pipe, length: number, { key, item }: { key?: Value; item: Value }): void {
    if (isAssignment) {
      this.#variable(first).value = key === undefined ? item : key
      if (key !== undefined) this.#variable(second).value = item
      return
    }
    if (key !== undefined) (this.#variables[length - 2] as Variable).value = key
    ;(this.#variables[length - 1] as Variable).value = item
  }

  *#items(value: Value, hasTwo: boolean): Iterable<readonly [Value, Value]> {
    if (value === null) return
    if (isList(value)) yield* value.entries()
    else if (isMap(value)) {
      const items = orderedKeys(value, this.#budget).map((key): [Value, Value] => [key, value.get(key) ?? null])
      yield* items
    } else if (!isInt(value)) throw new TemplateError(`range can't iterate over ${printed(value, this.#budget)}`)
    else if (hasTwo) throw new TemplateError(`can't use ${printed(value, this.#budget)} to iterate over more than one variable`)
    else for (let at = 0; at < numberOf(value); at++) yield [at, typeof value === 'number' ? at : goInt64(at)]
  }

  #template(name: string, pipe: Pipe | undefined, { dot, line }: { dot: Found; line: number }): void {
    this.#line = line
    const nodes = this.#tree.defined.get(name)
    if (!nodes) throw new TemplateError(`template ${JSON.stringify(name.slice(0, 60))} not defined`)
    const most = this.#budget.bounds.templates
    if (++this.#templates > most) throw new TemplateError(`templates within each other deeper than ${most} levels`)
    const data = pipe && this.#pipe(pipe, dot)
    const variables = this.#variables
    this.#variables = [{ name: '$', value: data }]
    this.#scoped(() => this.#list(nodes, data))
    this.#variables = variables
    this.#templates--
  }

  #variable(name: string): Variable {
    this.#budget.spend(this.#variables.length / variablesAtOnce)
    const found = this.#variables.findLast((variable) => variable.name === name)
    if (!found) throw new TemplateError(`undefined variable: ${name}`)
    return found
  }

  #pipe(pipe: Pipe, dot: Found): Found {
    this.#line = pipe.line
    this.#budget.step()
    let place: Place = { dot, hasFinal: false, final: undefined }
    // Nil is no value for the next command, as in Go.
    for (const command of pipe.commands) place = { dot, hasFinal: true, final: this.#command(command, place) ?? undefined }
    for (const name of pipe.declares) {
      if (pipe.isAssignment) this.#variable(name).value = place.final
      else this.#variables.push({ name, value: place.final })
    }
    return place.final
  }

  #command(operands: readonly Operand[], place: Place): Found {
    const [first, ...rest] = operands as [Operand, ...Operand[]]
    this.#line = first.line
    if (first.type === 'function') return this.#call(first.name, rest, place)
    if (rest.length > 0 || place.hasFinal) {
      // A field of what is not there is no value, whatever it is given.
      if ((first.type === 'field' || first.type === 'variable') && first.path.length > 0) {
        const of = first.type === 'field' ? place.dot : this.#variable(first.name).value
        if (fields(of, first.path.slice(0, -1)) === undefined) return undefined
      }
      throw new TemplateError(
        first.type === 'field' || first.type === 'variable'
          ? `${first.path.at(-1) ?? first.type} has arguments but cannot be invoked as function`
          : "can't give argument to non-function",
      )
    }
    if (first.type === 'literal' && first.literal.value === null) throw new TemplateError('nil is not a command')
    return this.#operand(first, place.dot)
  }

  #operand(operand: Operand, dot: Found): Found {
    this.#line = operand.line
    switch (operand.type) {
      case 'literal':
        return operand.literal.value
      case 'dot':
        return dot
      case 'field':
        return fields(dot, operand.path)
      case 'variable':
        return fields(this.#variable(operand.name).value, operand.path)
      case 'pipe':
        return fields(this.#pipe(operand.pipe, dot), operand.path)
      case 'function':
        return this.#call(operand.name, [], { dot, hasFinal: false, final: undefined })
    }
  }

  #call(name: string, operands: readonly Operand[], place: Place): Value {
    const found = this.#functions.get(name)
    if (!found) throw new TemplateError(`function ${JSON.stringify(name)} not defined`)
    const line = this.#line
    checkCount(name, found, operands.length + (place.hasFinal ? 1 : 0))
    try {
      if (lazyFunctions.has(name)) return this.#untilDecided(name === 'or', operands, place)
      const args = operands.map((operand, at) => this.#argument(found, at, { operand, dot: place.dot }))
      if (place.hasFinal) args.push(argumentOf(parameterAt(found, operands.length) ?? 'any', place.final))
      this.#line = line
      this.#count(args)
      const result = found.call(this.#budget, args)
      this.#count([result])
      return result
    } catch (error) {
      if (!(error instanceof TemplateError) || (error.line !== undefined && error.template === undefined)) throw error
      throw new TemplateError(`error calling ${name}: ${error.message}`, this.#line)
    }
  }

  #argument(called: TemplateFunction, at: number, { operand, dot }: { operand: Operand; dot: Found }): unknown {
    const type = parameterAt(called, at) ?? 'any'
    return operand.type === 'literal' ? literalOf(type, operand.literal) : argumentOf(type, this.#operand(operand, dot))
  }

  /** Counts the texts that a function takes, or returns. */
  #count(values: readonly unknown[]): void {
    let [size, work] = [0, 0]
    for (const value of values)
      if (typeof value === 'string') {
        size += value.length
        work += value.isWellFormed() ? value.length : value.length * brokenWork
      }
    this.#budget.text(size)
    this.#budget.spend(work)
  }

  /** Evaluates `and` and `or` with short-circuit: arguments after the deciding one are not evaluated. */
  #untilDecided(byTruth: boolean, operands: readonly Operand[], { dot, hasFinal, final }: Place): Value {
    let value: Value = null
    for (const operand of operands) {
      value = this.#operand(operand, dot) ?? null
      if (isTrue(value) === byTruth) return value
    }
    return hasFinal ? (final ?? null) : value
  }
}

/**
 * Evaluates a path of fields and keys. A missing key of a map is no value, and so is every field below it. A field of a nil that is stored
 * in a map or message is an error.
 */
function fields(of: Found, path: readonly string[]): Found {
  let value = of
  for (const name of path) {
    if (value === undefined) return undefined
    if (value === null) {
      // Go's messages have a getter for each field, which returns nil for a nil message.
      if (!name.startsWith('Get')) throw new TemplateError(`nil pointer evaluating interface {}.${name}`)
      value = undefined
    } else value = field(value, name)
  }
  return value
}

function field(value: NonNullable<Value>, name: string): Found {
  if (isMap(value)) return value.get(name)
  if (value instanceof GoTime) return timeField(value, name)
  const known = value instanceof GoStruct && !value.fields.has(name) ? name.replace(/^Get/, '') : name
  if (!(value instanceof GoStruct && value.fields.has(known))) throw new TemplateError(`can't evaluate field ${name} in type ${typeName(value)}`)
  return value.fields.get(known) ?? null
}

/** What a template has too much of, where JavaScript itself has no more room: its stack, or the length of a text or list. */
const exceeded = ({ message }: RangeError): string =>
  message.startsWith('Invalid') ? 'a text or a list is too long' : 'templates, conditions and data within each other are too deep'
