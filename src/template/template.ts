/**
 * Templates of users, in the language of Go's `text/template` (docs/templates.md): {@link parseTemplate} once, `render` for
 * each data. Rendering is bounded ({@link Bounds}), whatever template and data are.
 */
import { type Bounds, Budget } from './budget.ts'
import { builtins } from './builtins.ts'
import { Execution } from './execute.ts'
import type { Functions } from './function.ts'
import { parse, type Tree } from './parse.ts'
import { copied, TemplateError, type Value, written } from './values.ts'

/** Functions that change the maps that they are given. */
const changing: ReadonlySet<string> = new Set(['set', 'unset', 'merge', 'mergeOverwrite', 'mustMerge', 'mustMergeOverwrite'])

/** The largest source of a template, in characters. */
const largest = 4 * 1024 * 1024

/** What a rendering has besides its data. */
export interface Rendering {
  /** Functions that replace those with which the template was parsed, for instance such as know the data. */
  readonly functions?: Functions
  /** The limits, where they differ from the usual ones. */
  readonly bounds?: Partial<Bounds>
  /** The budget of another rendering, of which this one is a part. */
  readonly budget?: Budget
}

/** A parsed template. It has no state: it can be rendered again and again. */
export class Template {
  readonly name: string
  readonly #tree: Tree
  /** The functions with which it was parsed. */
  readonly functions: Functions

  constructor(name: string, tree: Tree, functions: Functions) {
    this.name = name
    this.#tree = tree
    this.functions = functions
  }

  /**
   * Returns the output. The data stays as it is. Throws a {@link TemplateError} that names the template and the line when the template
   * cannot be executed with the data, or exceeds a bound.
   */
  render(data: Value, { functions, bounds, budget = new Budget(bounds) }: Rendering = {}): string {
    const all = functions ? new Map([...this.functions, ...functions]) : this.functions
    const isChanging = [...this.#tree.functions].some((name) => changing.has(name))
    return placed(this.name, () => written(new Execution(this.#tree, all, budget).run(isChanging ? copied(data) : data)))
  }
}

/**
 * Parses a template with Go's own functions and the given ones, which win. `name` stands in errors. Throws a {@link TemplateError} that
 * names the template and the line.
 */
export function parseTemplate(name: string, text: string, functions: Functions = new Map()): Template {
  const all = new Map([...builtins, ...functions])
  return placed(name, () => {
    if (text.length > largest) throw new TemplateError(`the template is longer than ${largest} characters`)
    return new Template(name, parse(text, all), all)
  })
}

/** Adds the name of the template and the line to errors. */
function placed<T>(name: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (error instanceof TemplateError) throw new TemplateError(`${name}: line ${error.line ?? 1}: ${error.message}`, error.line ?? 1, name)
    throw error
  }
}
