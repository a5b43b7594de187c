/** What one rendering may use: time, memory and depth (docs/templates.md). */
import { fail } from './values.ts'

/** The limits of one rendering. */
export interface Bounds {
  /** The size of the output in characters. */
  readonly output: number
  /** The size in characters of the texts that a function takes together, and of the text that it returns. */
  readonly text: number
  /** Nodes, pipelines and turns of loops. */
  readonly steps: number
  /** Characters and elements that functions read and write. It bounds time and memory. */
  readonly work: number
  /** Elements of lists and entries of maps that functions make. */
  readonly values: number
  /** Templates within each other. */
  readonly templates: number
  /** Conditions, ranges and templates within each other. */
  readonly depth: number
  /** Lists and maps within each other that a function reads. */
  readonly data: number
  /**
   * What slow functions take (keys, certificates, hashes of passwords), in milliseconds as they are assumed. 0 where others wait for the
   * thread: the first call throws {@link SlowCall}.
   */
  readonly slow: number
}

/** The limits without others given. */
export const defaultBounds: Bounds = {
  output: 8 * 1024 * 1024,
  text: 2 * 1024 * 1024,
  steps: 1_000_000,
  work: 20_000_000,
  values: 1_000_000,
  templates: 100,
  depth: 500,
  data: 100,
  slow: 0,
}

/** Thrown where a template calls a slow function and none may run. It is no fault of the template, which can be rendered on another thread. */
export class SlowCall extends Error {}

/** Counts what a rendering uses. Its methods throw a TemplateError that names the bound that is exceeded. */
export class Budget {
  readonly bounds: Bounds
  #output = 0
  #steps = 0
  #work = 0
  #values = 0
  #slow = 0

  constructor(bounds: Partial<Bounds> = {}) {
    this.bounds = { ...defaultBounds, ...bounds }
  }

  /** Counts characters of output. */
  write(length: number): void {
    this.#output += length
    if (this.#output > this.bounds.output) fail(`the output is larger than ${this.bounds.output} characters`)
  }

  step(): void {
    if (++this.#steps > this.bounds.steps) fail(`more than ${this.bounds.steps} steps`)
  }

  /** Counts work that has been or will be done, in characters and elements. */
  spend(work: number): void {
    this.#work += work
    if (!(this.#work <= this.bounds.work)) fail(`the functions read and write more than ${this.bounds.work} characters and elements`)
  }

  /** Counts elements that are about to be made. */
  make(count: number): void {
    this.#values += count
    if (!(this.#values <= this.bounds.values)) fail(`the functions make more than ${this.bounds.values} elements of lists and maps`)
    this.spend(count)
  }

  /** Checks the length of a text that is about to be made. */
  text(length: number): void {
    if (!(length <= this.bounds.text)) fail(`texts are longer than ${this.bounds.text} characters`)
  }

  /** Counts the milliseconds that a slow function is about to take. Throws {@link SlowCall} where none may run. */
  slow(ms: number): void {
    const { slow } = this.bounds
    if (slow === 0) throw new SlowCall('the template calls a slow function')
    this.#slow += ms
    if (!(this.#slow <= slow)) fail(`the slow functions (keys, certificates, hashes of passwords) take more than ${slow} ms`)
  }

  /** Checks how deep in a list or map a function reads. */
  deep(depth: number): void {
    if (depth > this.bounds.data) fail(`a value is nested too deep: more than ${this.bounds.data} lists and maps within each other`)
  }
}
