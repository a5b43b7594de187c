/**
 * What was read while something was made decides when it is made again. Whoever makes something reads through here: questions to the present
 * state are recorded with their answers, misses too. When the state changes, the questions are asked again; what read an answer that is
 * another now is outdated, and nothing else. No list says what a change cannot touch.
 */
import { contain } from '../../model/faults.ts'

/** What questions read. */
const none: readonly never[] = []

/** Something that has readers and may read. */
class Node {
  /** The last answer, or what was worked out last. */
  value: unknown
  reads: Nodes = none
  readers: Nodes = none
  /** Parts of a product that were made by themselves since it was made, if there are any. */
  parts: Map<string, Node> | undefined
  /** Called when it becomes outdated. */
  told: (() => void) | undefined
  /** Something that it read may be another. */
  outdated = true
  readonly kind: 'question' | 'derived' | 'cell' | 'product'
  readonly name: string
  readonly ask: () => unknown
  readonly alike: (one: unknown, other: unknown) => boolean
  /** Called when nobody reads it any more. */
  readonly dropped: () => void

  constructor(kind: Node['kind'], name: string, ask: () => unknown, alike: (one: unknown, other: unknown) => boolean, dropped: () => void) {
    this.kind = kind
    this.name = name
    this.ask = ask
    this.alike = alike
    this.dropped = dropped
  }
}

/** Some nodes, each once: a few as a list, more as a set. Most nodes have one reader and have read fewer than eight others, and a list takes a third of the memory. */
type Nodes = readonly Node[] | Set<Node>

/** So many nodes are a list, of just that length. */
const fewNodes = 8

const isSet = (nodes: Nodes): nodes is Set<Node> => nodes instanceof Set
const countOf = (nodes: Nodes): number => (isSet(nodes) ? nodes.size : nodes.length)
const has = (nodes: Nodes, node: Node): boolean => (isSet(nodes) ? nodes.has(node) : nodes.includes(node))

/** The nodes with one more; a set is changed itself. */
function withNode(nodes: Nodes, node: Node): Nodes {
  if (isSet(nodes)) return nodes.add(node)
  if (nodes.length === 0) return [node]
  if (nodes.includes(node)) return nodes
  return nodes.length < fewNodes ? nodes.concat([node]) : new Set(nodes).add(node)
}

/** The nodes without one; a set is changed itself. */
function withoutNode(nodes: Nodes, node: Node): Nodes {
  if (!isSet(nodes)) return nodes.includes(node) ? nodes.filter((other) => other !== node) : nodes
  nodes.delete(node)
  return nodes
}

/** The nodes in the least memory. */
const compact = (nodes: Nodes): Nodes => (isSet(nodes) && nodes.size <= fewNodes ? [...nodes] : nodes)

/** Notes that a node has read another. */
function link(reader: Node, read: Node): void {
  reader.reads = withNode(reader.reads, read)
  read.readers = withNode(read.readers, reader)
}

/** Takes that back. */
function unlink(reader: Node, read: Node): void {
  reader.reads = withoutNode(reader.reads, read)
  read.readers = withoutNode(read.readers, reader)
}

/** Something that could not be worked out; it equals nothing. */
class Failed {
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

const identical = (one: unknown, other: unknown): boolean => one === other
const nothing = () => undefined

/** What questions of one sort are asked of. There is one object of each. */
export interface Topic<State, Value> {
  readonly of: (state: State) => Value
  /** Keys of the questions whose answers may differ between two values; undefined when that may be any. By default it may be any. */
  changed?(before: Value, now: Value): Iterable<string> | undefined
}

/** A value that belongs to whoever keeps it. */
export interface Cell<Value> {
  /** Whether nothing that it was made from is another; else another cell has to take its place. */
  readonly isCurrent: boolean
  /** The value, recorded for whoever is being made. Throws what making it threw. */
  read(): Value
}

class RecordedCell<Value> implements Cell<Value> {
  readonly #node: Node
  readonly #read: (node: Node) => unknown

  constructor(node: Node, read: (node: Node) => unknown) {
    this.#node = node
    this.#read = read
  }

  get isCurrent(): boolean {
    return !this.#node.outdated
  }

  read(): Value {
    return this.#read(this.#node) as Value
  }
}

/** Values by key, each of which is made anew only when something that it read is another. */
export interface Collection<Value> {
  /** Keys whose values are to be made anew. */
  readonly outdated: ReadonlySet<string>
  isCurrent(key: string): boolean
  /** The value of a key, and whether it was made just now. Throws what making it threw. */
  get(key: string, make: () => Value): { value: Value; isNew: boolean }
  /** Forgets all keys but these. */
  keep(keys: ReadonlySet<string>): void
  /** Records that whoever is being made has read all values. Those that are outdated must have been got before. */
  read(): void
}

/** Records what is read of a state, and finds what a change of the state outdates. */
export class Dependencies<State extends object> {
  #state: State
  readonly #questions = new Map<Topic<State, unknown>, Map<string, Node>>()
  readonly #products = new Map<string, Node>()
  readonly #derived = new Map<string, Node>()
  /** What is being made. */
  #making: Node | undefined
  /** What is to be worked out anew before anybody is told that it is outdated. */
  readonly #pending = new Set<Node>()
  readonly #outdated = new Set<string>()

  constructor(state: State) {
    this.#state = state
  }

  /** The present state, unrecorded. */
  get state(): State {
    return this.#state
  }

  /** Questions that were asked and are remembered. */
  get questions(): number {
    return [...this.#questions.values()].reduce((sum, asked) => sum + asked.size, 0)
  }

  /** The answer to a question about a topic. Equal keys ask the same. `alike` says whether two answers come to the same for whoever asks. Throws what `ask` throws. */
  read<Value, Answer>(
    topic: Topic<State, Value>,
    key: string,
    ask: (value: Value) => Answer,
    alike: (one: Answer, other: Answer) => boolean = identical,
  ): Answer {
    const answer = ask(topic.of(this.#state))
    if (!this.#making) return answer
    let asked = this.#questions.get(topic)
    if (!asked) this.#questions.set(topic, (asked = new Map()))
    let node = asked.get(key)
    if (!node) {
      const there = asked
      node = new Node(
        'question',
        key,
        () => ask(topic.of(this.#state)),
        alike as Node['alike'],
        () => there.delete(key),
      )
      node.value = answer
      node.outdated = false
      asked.set(key, node)
    }
    this.#record(node)
    return answer
  }

  /** Names of the products that have asked a question themselves. */
  *askers<Value>(topic: Topic<State, Value>, key: string): Generator<string> {
    for (const { kind, name } of this.#questions.get(topic)?.get(key)?.readers ?? []) if (kind === 'product') yield name
  }

  /** A value under a name that all who read it share. Who reads it is outdated only when it is another, as `alike` has it; the value that they have read stays otherwise. */
  derived<Value>(name: string, make: () => Value, alike: (one: Value, other: Value) => boolean = identical): Value {
    if (!this.#making && !this.#derived.has(name)) return make()
    let node = this.#derived.get(name)
    if (!node) {
      node = new Node('derived', name, make, alike as Node['alike'], () => this.#derived.delete(name))
      this.#derived.set(name, node)
    }
    return this.#valueOf(node) as Value
  }

  /** Makes a value and records what it reads. Whoever read it is outdated when it is. */
  cell<Value>(make: () => Value): Cell<Value> {
    const node = new Node('cell', '', make, identical, nothing)
    this.#workOut(node)
    return new RecordedCell<Value>(node, this.#read)
  }

  readonly #read = (node: Node): unknown => this.#valueOf(node)

  /** Values by key that are read all together: what they read is recorded for each by itself, so that it is known which are to be made anew. */
  collection<Value>(): Collection<Value> {
    const all = new Node('cell', '', nothing, identical, nothing)
    all.outdated = false
    const cells = new Map<string, Node>()
    const outdated = new Set<string>()
    const leave = (cell: Node) => {
      unlink(all, cell)
      this.#unread(all, [cell])
    }
    return {
      outdated,
      isCurrent: (key) => cells.get(key)?.outdated === false,
      get: (key, make) => {
        const known = cells.get(key)
        const isNew = known?.outdated !== false
        let cell = known as Node
        if (isNew) {
          cell = new Node('cell', key, make, identical, nothing)
          cell.told = () => outdated.add(key)
          this.#workOut(cell)
          cells.set(key, cell)
          link(all, cell)
          if (known) {
            known.told = undefined
            leave(known)
          }
          outdated.delete(key)
        }
        if (cell.value instanceof Failed) throw new Error(cell.value.reason)
        return { value: cell.value as Value, isNew }
      },
      keep: (keys) => {
        if (cells.size === keys.size) return
        for (const [key, cell] of cells) {
          if (keys.has(key)) continue
          cells.delete(key)
          cell.told = undefined
          outdated.delete(key)
          leave(cell)
        }
      },
      read: () => {
        all.outdated = false
        this.#record(all)
      },
    }
  }

  /** Makes a product and records what it reads; it is current until some of that is another. Throws what `make` throws. */
  produce(name: string, make: () => void): void {
    let node = this.#products.get(name)
    if (!node) this.#products.set(name, (node = new Node('product', name, nothing, identical, nothing)))
    node.outdated = false
    this.#outdated.delete(name)
    this.#during(node, make)
  }

  /** Makes more of a product; what is read for it is beside what was read before. */
  extend(name: string, make: () => void): void {
    const outer = this.#making
    this.#making = this.#products.get(name)
    try {
      make()
    } finally {
      this.#making = outer
    }
  }

  /** Makes a part of a product anew, by itself; its reads are those of this time, beside those of the product. */
  remake(name: string, part: string, make: () => void): void {
    const product = this.#products.get(name)
    if (!product) return
    const parts = (product.parts ??= new Map())
    let node = parts.get(part)
    if (!node) parts.set(part, (node = new Node('cell', part, nothing, identical, () => parts.delete(part))))
    node.outdated = false
    link(product, node)
    this.#during(node, make)
  }

  /** Products that are not current any more. */
  get outdated(): ReadonlySet<string> {
    return this.#outdated
  }

  /** Whether a product was made, and nothing that it read is another. */
  isCurrent(name: string): boolean {
    return this.#products.get(name)?.outdated === false
  }

  /** Turns to another state: asks again what was asked about topics that differ, and works out anew what read something that is another. */
  advance(state: State): void {
    const before = this.#state
    this.#state = state
    for (const [topic, asked] of this.#questions) {
      const [one, other] = [topic.of(before), topic.of(state)]
      if (one === other) continue
      const changed = topic.changed?.(one, other)
      for (const node of changed ? questionsOf(asked, changed) : [...asked.values()])
        this.#settle(
          node,
          contain<unknown>(node.ask, (reason) => new Failed(reason)),
        )
    }
    for (const node of this.#pending) {
      this.#pending.delete(node)
      if (node.outdated && countOf(node.readers) > 0) this.#workOut(node)
    }
  }

  /** Turns to a state that differs only in what no question tells apart. */
  replace(state: State): void {
    this.#state = state
  }

  /** A product is gone, and with it all that only it read. */
  forget(name: string): void {
    const node = this.#products.get(name)
    this.#outdated.delete(name)
    this.#products.delete(name)
    if (node) this.#unread(node, node.reads)
  }

  #valueOf(node: Node): unknown {
    if (node.outdated && node.kind === 'derived') this.#workOut(node)
    this.#record(node)
    if (node.value instanceof Failed) throw new Error(node.value.reason)
    return node.value
  }

  #record(node: Node): void {
    if (!this.#making) return
    link(this.#making, node)
  }

  #workOut(node: Node): void {
    this.#pending.delete(node)
    node.outdated = false
    const value = this.#during(node, () => contain<unknown>(node.ask, (reason) => new Failed(reason)))
    this.#settle(node, value)
  }

  /** Takes an answer over; who read another one is outdated. */
  #settle(node: Node, value: unknown): void {
    const isKnown = node.value !== undefined && !(node.value instanceof Failed) && !(value instanceof Failed)
    const same = node.value === value || (isKnown && value !== undefined && node.alike(node.value, value))
    // A value that is worked out stays the same object while it is alike, for those who compare it in their turn.
    if (!same || countOf(node.reads) === 0) node.value = value
    if (!same) this.#outdate(node.readers)
  }

  #outdate(readers: Nodes): void {
    for (const reader of readers) {
      if (reader.outdated) continue
      reader.outdated = true
      reader.told?.()
      if (reader.kind === 'product') this.#outdated.add(reader.name)
      else if (reader.kind === 'cell') this.#outdate(reader.readers)
      else this.#pending.add(reader)
    }
  }

  /** Does something on behalf of a node; its reads are those of this time. */
  #during<T>(node: Node, work: () => T): T {
    const before = node.reads
    const outer = this.#making
    node.reads = new Set()
    this.#making = node
    try {
      return work()
    } finally {
      this.#making = outer
      node.reads = compact(node.reads)
      for (const read of before) if (!has(node.reads, read)) this.#unread(node, [read])
    }
  }

  #unread(reader: Node, reads: Iterable<Node>): void {
    for (const node of reads) {
      unlink(reader, node)
      if (countOf(node.readers) > 0) continue
      // A cell stays as long as it is kept; it is told of changes only while somebody reads it.
      node.dropped()
      node.outdated = true
      node.told?.()
      this.#unread(node, node.reads)
      node.reads = none
    }
  }
}

/** The questions of some keys, each once. */
function questionsOf(asked: ReadonlyMap<string, Node>, keys: Iterable<string>): ReadonlySet<Node> {
  const found = new Set<Node>()
  for (const key of keys) {
    const node = asked.get(key)
    if (node) found.add(node)
  }
  return found
}
