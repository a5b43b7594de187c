/**
 * Records what is read while a value is made, and decides from that record when to make the value again. All reads of the state go through
 * this module: each is recorded as a question with its answer, also when nothing was found. When the state changes, the questions are asked
 * again; a value that read an answer that has changed is outdated, and no other value is. There is no hand-kept list of what a change
 * affects.
 */
import { contain, reasonOf } from '../../model/faults.ts'

/** The reads of a question node: none. */
const none: readonly never[] = []

/** A node of the dependency graph: it may have readers and may have read other nodes. */
class Node implements Cell, Product<unknown> {
  /** The last answer of a question, or the last value computed. */
  value: unknown
  reads: Nodes = none
  readers: Nodes = none
  /** What the node was made for: the class, group or proxy of a product, the key of a value in a collection. It is added to `waiting` when the node is outdated. */
  madeFor: unknown
  waiting: Set<unknown> | undefined
  /** Whether something that the node read may have changed. */
  outdated = true
  /**
   * `question`: a read of the state; `derived`: a named value that all its readers share; `cell`: a value that belongs to the caller that
   * keeps it; `product`: a group or class, which nothing in the graph reads.
   */
  readonly kind: 'question' | 'derived' | 'cell' | 'product'
  readonly name: string
  /** Answers a question, given the part of the state that it is about and its name, or computes a derived value. */
  readonly ask: (of?: unknown, name?: string) => unknown
  readonly alike: (one: unknown, other: unknown) => boolean
  /** What holds the node under its name. The node is deleted from it when its last reader is gone. */
  readonly home: Home | undefined

  constructor(kind: Node['kind'], name: string, ask: Node['ask'] = nothing, alike: Node['alike'] = identical, home?: Home) {
    this.kind = kind
    this.name = name
    this.ask = ask
    this.alike = alike
    this.home = home
  }

  get isCurrent(): boolean {
    return !this.outdated
  }

  /** Marks the node as made for something, which `waiting` contains while the node is outdated. */
  isFor(madeFor: unknown, waiting: Set<unknown>): this {
    this.madeFor = madeFor
    this.waiting = waiting
    return this
  }

  /** Marks the node as outdated. */
  expire(): void {
    this.outdated = true
    this.waiting?.add(this.madeFor)
  }

  /** Marks the node as made from the present state. */
  renew(): void {
    this.outdated = false
    this.waiting?.delete(this.madeFor)
  }

  /** Takes the node from what it was made for, which needs it no longer. */
  disown(): void {
    this.outdated = true
    this.waiting?.delete(this.madeFor)
  }
}

/** What holds nodes under their names. */
interface Home {
  delete(name: string): unknown
}

/** The questions about a topic that were asked, by key. */
class Questions implements Home {
  readonly nodes = new Map<string, Node>()
  readonly #topic: Pick<Topic<never, never>, 'dropped'>

  constructor(topic: Pick<Topic<never, never>, 'dropped'>) {
    this.#topic = topic
  }

  delete(key: string): void {
    this.nodes.delete(key)
    this.#topic.dropped?.(key)
  }
}

/**
 * A set of nodes: the node itself where there is one, an array for a few, a Set for more. Most nodes have one reader and few reads; one in
 * an array takes 56 bytes more than by itself, and twelve take 150 bytes in an array and 830 in a Set.
 */
type Nodes = Node | readonly Node[] | Set<Node>

/** The maximum number of nodes that are kept as an array. */
const fewNodes = 24

/** The nodes, to iterate over. */
const eachOf = (nodes: Nodes): Iterable<Node> => (nodes instanceof Node ? [nodes] : nodes)
const countOf = (nodes: Nodes): number => (nodes instanceof Node ? 1 : nodes instanceof Set ? nodes.size : nodes.length)
const has = (nodes: Nodes, node: Node): boolean =>
  nodes === node || (nodes instanceof Set ? nodes.has(node) : !(nodes instanceof Node) && nodes.includes(node))

/** Returns the nodes with one more. A Set is changed in place. */
function withNode(nodes: Nodes, node: Node): Nodes {
  if (nodes instanceof Set) return nodes.add(node)
  if (nodes instanceof Node) return nodes === node ? nodes : [nodes, node]
  if (nodes.length === 0) return node
  if (nodes.includes(node)) return nodes
  return nodes.length < fewNodes ? nodes.concat([node]) : new Set(nodes).add(node)
}

/** Returns the nodes without one. A Set is changed in place. */
function withoutNode(nodes: Nodes, node: Node): Nodes {
  if (nodes instanceof Set) {
    nodes.delete(node)
    return nodes
  }
  if (nodes instanceof Node) return nodes === node ? none : nodes
  return nodes.includes(node) ? compact(nodes.filter((other) => other !== node)) : nodes
}

/** Converts the nodes to the form that takes the least memory. */
function compact(nodes: Nodes): Nodes {
  if (nodes instanceof Node || countOf(nodes) > fewNodes) return nodes
  const [first, ...others] = nodes
  return first === undefined ? none : others.length === 0 ? first : nodes instanceof Set ? [...nodes] : nodes
}

/** Records that `reader` has read `read`. */
function link(reader: Node, read: Node): void {
  reader.reads = withNode(reader.reads, read)
  read.readers = withNode(read.readers, reader)
}

/** Removes that record. */
function unlink(reader: Node, read: Node): void {
  reader.reads = withoutNode(reader.reads, read)
  read.readers = withoutNode(read.readers, reader)
}

/** The result of a computation that threw. It is not equal to any value. */
class Failed {
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

const identical = (one: unknown, other: unknown): boolean => one === other
const nothing = () => undefined

/** A part of the state that questions are asked about. Each topic is one object and is identified by it. */
export interface Topic<State, Value> {
  readonly of: (state: State) => Value
  /** Returns the keys of the questions whose answers may differ between two values. Undefined, or without this function: any may. */
  changed?(before: Value, now: Value): Iterable<string> | undefined
  /** Whether an answer stays the same while `changed` does not name its question, so that a recorded one is given without asking again. */
  readonly keepsAnswers?: boolean
  /** Called when nothing reads the answer to a question any more. */
  dropped?(key: string): void
}

/** A recorded value that belongs to the caller that keeps it. */
export interface Cell {
  /** Whether nothing that the value was made from has changed. Otherwise the caller has to make a new cell. */
  readonly isCurrent: boolean
}

/** The record of what was read to make something: a group, a class, the class of a proxy. */
export interface Product<Subject> {
  readonly madeFor: Subject
  /** Whether it was made and nothing that was read has changed since. */
  readonly isCurrent: boolean
}

/** Values by key. Each is made again only when something that it read has changed. */
export interface Collection<Value> {
  /** Keys whose values have to be made again. */
  readonly outdated: ReadonlySet<string>
  isCurrent(key: string): boolean
  /** Returns the value of a key, and whether it was made in this call. Throws the error that making it threw. */
  get(key: string, make: () => Value): { value: Value; isNew: boolean }
  /** Removes all keys except these. */
  keep(keys: ReadonlySet<string>): void
  /** Removes these keys. */
  drop(keys: Iterable<string>): void
  /** Records that the node being made has read all values. Outdated values have to be made with `get` before. */
  read(): void
}

/** Records what is read of a state, and finds what a change of the state makes outdated. */
export class Dependencies<State extends object> {
  #state: State
  readonly #questions = new Map<Topic<State, unknown>, Questions>()
  readonly #derived = new Map<string, Node>()
  /** The node being made, to which reads are recorded. */
  #making: Node | undefined
  /** Derived nodes to compute again before their readers are marked as outdated. */
  readonly #pending = new Set<Node>()

  constructor(state: State) {
    this.#state = state
  }

  /** The present state. Reads of it are not recorded. */
  get state(): State {
    return this.#state
  }

  /** The number of questions recorded. Tests of memory check that it falls when readers are forgotten. */
  get questions(): number {
    return [...this.#questions.values()].reduce((sum, { nodes }) => sum + nodes.size, 0)
  }

  /**
   * Returns the answer to a question about a topic. Questions with equal keys must be the same question: `ask` is kept with the question and
   * gets its key, so that one function serves all keys. `alike` decides whether two answers make no difference to the readers. Throws what
   * `ask` throws.
   */
  read<Value, Answer>(
    topic: Topic<State, Value>,
    key: string,
    ask: (value: Value, key: string) => Answer,
    alike: (one: Answer, other: Answer) => boolean = identical,
  ): Answer {
    if (!this.#making) return ask(topic.of(this.#state), key)
    const known = topic.keepsAnswers ? this.#questions.get(topic)?.nodes.get(key) : undefined
    if (known) return this.#valueOf(known) as Answer
    try {
      const answer = ask(topic.of(this.#state), key)
      this.#question(topic, key, ask as Node['ask'], alike as Node['alike'], answer)
      return answer
    } catch (error) {
      this.#question(topic, key, ask as Node['ask'], alike as Node['alike'], new Failed(reasonOf(error)))
      throw error
    }
  }

  /** Records that the node being made has read the answer to a question. */
  #question<Value>(topic: Topic<State, Value>, key: string, ask: Node['ask'], alike: Node['alike'], answer: unknown): void {
    let asked = this.#questions.get(topic)
    if (!asked) this.#questions.set(topic, (asked = new Questions(topic)))
    let node = asked.nodes.get(key)
    if (!node) {
      node = new Node('question', key, ask, alike, asked)
      node.value = answer
      node.outdated = false
      asked.nodes.set(key, node)
    }
    this.#record(node)
  }

  /** Whether something is being made, so that reads are recorded. */
  get isRecording(): boolean {
    return this.#making !== undefined
  }

  /** What the products were made for that asked a question directly. Tests check who looks what up. */
  *askers<Value>(topic: Topic<State, Value>, key: string): Generator<unknown> {
    for (const { kind, madeFor } of eachOf(this.#questions.get(topic)?.nodes.get(key)?.readers ?? none)) if (kind === 'product') yield madeFor
  }

  /**
   * Returns a named value that all its readers share. When it is computed again, its readers are outdated only if it differs according to
   * `alike`; otherwise the value stays the same object.
   */
  derived<Value>(name: string, make: () => Value, alike: (one: Value, other: Value) => boolean = identical): Value {
    if (!this.#making && !this.#derived.has(name)) return make()
    let node = this.#derived.get(name)
    if (!node) {
      node = new Node('derived', name, make, alike as Node['alike'], this.#derived)
      this.#derived.set(name, node)
    }
    return this.#valueOf(node) as Value
  }

  /** Makes a value and records what it reads. When the cell becomes outdated, its readers do too. */
  cell(make: () => unknown): Cell {
    const node = new Node('cell', '')
    this.#compute(node, make)
    return node
  }

  /** Returns the value of a cell and records the read for the node being made. Throws the error that making it threw. */
  valueIn(cell: Cell): unknown {
    return this.#valueOf(cell as Node)
  }

  /**
   * Creates a collection whose values are read as a whole. The reads of each value are recorded separately, so that only outdated values
   * are made again.
   */
  collection<Value>(): Collection<Value> {
    const all = new Node('cell', '')
    all.outdated = false
    const cells = new Map<string, Node>()
    const outdated = new Set<string>()
    const leave = (cell: Node) => {
      unlink(all, cell)
      this.#unread(all, [cell])
    }
    const drop = (keys: Iterable<string>) => {
      for (const key of keys) {
        const cell = cells.get(key)
        if (!cell) continue
        cells.delete(key)
        cell.waiting = undefined
        outdated.delete(key)
        leave(cell)
      }
    }
    return {
      outdated,
      isCurrent: (key) => cells.get(key)?.outdated === false,
      get: (key, make) => {
        const known = cells.get(key)
        const isNew = known?.outdated !== false
        let cell = known as Node
        if (isNew) {
          cell = new Node('cell', key).isFor(key, outdated)
          this.#compute(cell, make)
          cells.set(key, cell)
          link(all, cell)
          if (known) {
            known.waiting = undefined
            leave(known)
          }
          outdated.delete(key)
        }
        if (cell.value instanceof Failed) throw new Error(cell.value.reason)
        return { value: cell.value as Value, isNew }
      },
      keep: (keys) => {
        if (cells.size !== keys.size) drop([...cells.keys()].filter((key) => !keys.has(key)))
      },
      drop,
      read: () => {
        all.outdated = false
        this.#record(all)
      },
    }
  }

  /** Creates the record of something that is made for a subject. `outdated` contains the subject while it has to be made again. */
  product<Subject>(madeFor: Subject, outdated: Set<Subject>): Product<Subject> {
    return new Node('product', '').isFor(madeFor, outdated as Set<unknown>) as Node & Product<Subject>
  }

  /** Makes a product and records what it reads. It is current until something that it read changes. Throws what `make` throws. */
  produce<Value>(product: Product<unknown>, make: () => Value): Value {
    const node = product as Node
    node.renew()
    return this.#recordReads(node, make)
  }

  /** Makes more of a product; the reads are added to the recorded ones. */
  extend(product: Product<unknown>, make: () => void): void {
    const outer = this.#making
    this.#making = product as Node
    try {
      make()
    } finally {
      this.#making = outer
    }
  }

  /** Replaces the state: asks the questions about changed topics again, and computes derived values again that read a changed answer. */
  advance(state: State): void {
    const before = this.#state
    this.#state = state
    for (const [topic, { nodes: asked }] of this.#questions) {
      const [one, other] = [topic.of(before), topic.of(state)]
      if (one === other) continue
      const changed = topic.changed?.(one, other)
      for (const node of changed ? questionsOf(asked, changed) : [...asked.values()])
        this.#store(
          node,
          contain<unknown>(
            () => node.ask(other, node.name),
            (reason) => new Failed(reason),
          ),
        )
    }
    for (const node of this.#pending) {
      this.#pending.delete(node)
      if (node.outdated && countOf(node.readers) > 0) this.#compute(node)
    }
  }

  /**
   * Marks the readers of some questions about a topic as outdated. For answers that are not part of the state, but of something that is
   * changed in place.
   */
  changedInPlace(topic: Topic<State, unknown>, keys: Iterable<string>): void {
    const asked = this.#questions.get(topic)
    if (asked) for (const { readers } of questionsOf(asked.nodes, keys)) this.#outdate(readers)
  }

  /** Drops the record of a product, and the nodes that only it read. */
  forget(product: Product<unknown>): void {
    const node = product as Node
    node.disown()
    this.#unread(node, eachOf(node.reads))
  }

  #valueOf(node: Node): unknown {
    if (node.outdated && node.kind === 'derived') this.#compute(node)
    this.#record(node)
    if (node.value instanceof Failed) throw new Error(node.value.reason)
    return node.value
  }

  #record(node: Node): void {
    if (!this.#making) return
    link(this.#making, node)
  }

  /** Computes the value of a node. A cell is computed once, by `make`, which is not kept. */
  #compute(node: Node, make: () => unknown = node.ask): void {
    this.#pending.delete(node)
    node.outdated = false
    const value = this.#recordReads(node, () => contain<unknown>(make, (reason) => new Failed(reason)))
    this.#store(node, value)
  }

  /** Stores an answer; if it differs from the one before, the readers are outdated. */
  #store(node: Node, value: unknown): void {
    const isKnown = node.value !== undefined && !(node.value instanceof Failed) && !(value instanceof Failed)
    const same = node.value === value || (isKnown && value !== undefined && node.alike(node.value, value))
    // A computed value that is alike stays the same object, because readers may compare it by identity.
    if (!same || countOf(node.reads) === 0) node.value = value
    if (!same) this.#outdate(node.readers)
  }

  #outdate(readers: Nodes): void {
    for (const reader of eachOf(readers)) {
      if (reader.outdated) continue
      reader.expire()
      if (reader.kind === 'cell') this.#outdate(reader.readers)
      else if (reader.kind === 'derived') this.#pending.add(reader)
    }
  }

  /** Runs `work` with reads recorded to `node`; they replace the reads recorded before. */
  #recordReads<T>(node: Node, work: () => T): T {
    const before = node.reads
    const outer = this.#making
    node.reads = new Set()
    this.#making = node
    try {
      return work()
    } finally {
      this.#making = outer
      node.reads = compact(node.reads)
      for (const read of eachOf(before)) if (!has(node.reads, read)) this.#unread(node, [read])
    }
  }

  #unread(reader: Node, reads: Iterable<Node>): void {
    for (const node of reads) {
      unlink(reader, node)
      if (countOf(node.readers) > 0) continue
      // A cell lives as long as what it was made for keeps it, but is marked as outdated when nobody reads it: changes are no longer propagated to it.
      node.home?.delete(node.name)
      node.expire()
      this.#unread(node, eachOf(node.reads))
      node.reads = none
    }
  }
}

/** Returns the question nodes of some keys, each once. */
function questionsOf(asked: ReadonlyMap<string, Node>, keys: Iterable<string>): ReadonlySet<Node> {
  const found = new Set<Node>()
  for (const key of keys) {
    const node = asked.get(key)
    if (node) found.add(node)
  }
  return found
}
