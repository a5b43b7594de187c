/**
 * Makes values of a document that the library has composed, as the orchestrator and its command line do: keys are texts, merge keys (`<<`) are
 * replaced by the fields of their mappings, and what JSON cannot express is a mistake.
 */
import { type Document, isAlias, isMap, isScalar, isSeq, type Node, Scalar, type YAMLMap } from 'yaml'
import { isNoNumber, plainScalar } from './plain-scalars.ts'

/** How the library composes: all scalars as texts. Their meaning is that of {@link plainScalar}, and merge keys are replaced here. */
export const composing = { schema: 'failsafe', resolveKnownTags: false, uniqueKeys: false, merge: false, strict: true, logLevel: 'silent' } as const

/** A mistake at an offset of the text. */
export class TreeMistake extends Error {
  readonly offset: number

  constructor(node: Node | null, reason: string) {
    super(reason)
    this.offset = node?.range?.[0] ?? 0
  }
}

/** How many values aliases and merge keys may stand for together, and how many aliases a document may have. */
export interface TreeLimits {
  readonly aliases: number
  readonly shared: number
}

/** Returns the value of a document. Throws a {@link TreeMistake}, or a RangeError where it is nested too deep. */
export const valueOfTree = (document: Document, limits: TreeLimits): unknown => new TreeReader(limits).value(document.contents as Node | null)

/** The text of a mapping's key; undefined: it is none that JSON can have. */
export function keyText(key: unknown): string | undefined {
  if (!isScalar(key)) return undefined
  const value = scalarValue(key)
  if (typeof value !== 'number') return value === null ? undefined : String(value)
  // Other numbers would be written in a form that differs from how they were given.
  const source = String(key.source)
  const text = String(value)
  return (Number.isSafeInteger(value) && !/[.eE]/.test(source)) || (text === source && text.length <= 6) ? text : undefined
}

const tagPrefix = 'tag:yaml.org,2002:'
/** The types of the values that tags ask for. */
const tagged: Readonly<Record<string, (value: unknown) => boolean>> = {
  bool: (value) => typeof value === 'boolean',
  int: (value) => Number.isInteger(value),
  float: (value) => typeof value === 'number',
  null: (value) => value === null,
}

function scalarValue(node: Scalar): unknown {
  const text = String(node.value)
  if (node.tag === undefined) return node.type === Scalar.PLAIN ? plainScalar(text) : text
  if (!node.tag.startsWith(tagPrefix)) return text
  const name = node.tag.slice(tagPrefix.length)
  if (name === 'binary') return bytes(node, text)
  const fits = Object.hasOwn(tagged, name) ? tagged[name] : undefined
  if (!fits) return text
  const value = plainScalar(text)
  if (!fits(value)) throw new TreeMistake(node, `the value is no ${name}, as its tag says`)
  return value
}

function bytes(node: Scalar, text: string): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)))
  } catch {
    throw new TreeMistake(node, 'the value is not in Base64, as its tag says')
  }
}

/** What an anchor stands for. */
interface Anchored {
  readonly node: Node
  value: unknown
  /** The number of values in it; undefined: it is not complete. */
  size: number | undefined
}

const isMerge = (key: unknown): key is Scalar =>
  isScalar(key) && key.value === '<<' && (key.tag === undefined ? key.type === Scalar.PLAIN : key.tag === `${tagPrefix}merge`)

class TreeReader {
  readonly #limits: TreeLimits
  readonly #anchors = new Map<string, Anchored>()
  #aliases = 0
  /** The number of values so far, and how many of them aliases and merge keys stand for. */
  #values = 0
  #shared = 0

  constructor(limits: TreeLimits) {
    this.#limits = limits
  }

  value(node: Node | null): unknown {
    this.#values++
    if (node === null) return null
    if (isAlias(node)) return this.#anchored(node.source, node).value
    const anchored: Anchored = { node, value: undefined, size: undefined }
    const before = this.#values
    // An alias means the last anchor of its name before it.
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, anchored)
    anchored.value = this.#written(node)
    anchored.size = this.#values - before + 1
    return anchored.value
  }

  #written(node: Node): unknown {
    if (isMap(node)) return this.#mapping(node)
    if (isSeq(node)) return node.items.map((item) => this.value(item as Node | null))
    const value = scalarValue(node as Scalar)
    if (isNoNumber(value)) throw new TreeMistake(node, 'an infinite number, or none; in quotes it is a text')
    return value
  }

  /** Returns what an alias stands for, and counts it. */
  #anchored(name: string, alias: Node): Anchored {
    const { aliases } = this.#limits
    if (++this.#aliases > aliases) throw new TreeMistake(alias, `more than ${aliases} aliases`)
    const found = this.#anchors.get(name)
    if (!found) throw new TreeMistake(alias, 'an alias without an anchor before it')
    if (found.size === undefined) throw new TreeMistake(alias, 'an alias within what it stands for')
    this.#share(found.size, alias)
    return found
  }

  #share(count: number, node: Node): void {
    this.#values += count
    this.#shared += count
    const { shared } = this.#limits
    if (this.#shared > shared) throw new TreeMistake(node, `aliases and merge keys that stand for more than ${shared} values`)
  }

  #mapping({ items }: YAMLMap): Record<string, unknown> {
    const mapping: Record<string, unknown> = {}
    const given = new Set<string>()
    for (const { key, value } of items) {
      if (isMerge(key)) {
        this.#merge(mapping, value as Node | null, key)
        continue
      }
      const name = this.#key(key as Node | null)
      if (given.has(name)) throw new TreeMistake(key as Node, `the key ${JSON.stringify(name).slice(0, 100)} is given twice`)
      given.add(name)
      set(mapping, name, this.value(value as Node | null))
    }
    return mapping
  }

  /** Returns the text of a key. Keys are equal when their texts are: 1 and "1", or a name and an alias of it. */
  #key(key: Node | null): string {
    if (key === null) throw new TreeMistake(key, 'a key that is empty; a text is expected')
    this.value(key)
    const name = keyText(isAlias(key) ? this.#anchors.get(key.source)?.node : key)
    if (name === undefined) throw new TreeMistake(key, 'a key that is no text; it must be in quotes')
    return name
  }

  /** Adds the fields of a merge key. They replace fields before them, and are replaced by fields after them. */
  #merge(mapping: Record<string, unknown>, value: Node | null, key: Scalar): void {
    // Of several mappings the first counts.
    const sources = isSeq(value) ? (value.items as Node[]).toReversed() : [value]
    for (const source of sources) {
      const node = isAlias(source) ? this.#anchors.get(source.source)?.node : source
      const merged = this.value(source)
      if (!isMap(node)) throw new TreeMistake(key, 'a merge key (<<) takes a mapping, or a list of mappings')
      const fields = Object.entries(merged as Record<string, unknown>)
      this.#share(fields.length, key)
      for (const [name, field] of fields) set(mapping, name, field)
    }
  }
}

function set(mapping: Record<string, unknown>, name: string, value: unknown): void {
  // An assignment to `__proto__` would change the prototype.
  if (name in mapping) Object.defineProperty(mapping, name, { value, writable: true, enumerable: true, configurable: true })
  else mapping[name] = value
}
