/**
 * What one stream, and all streams of one connection, can make the server keep (docs/xds-protocol.md, "Bounds"). A name that the configuration has costs next to
 * nothing: equal lists are one object. A name that it does not have is the client's own invention, and is counted.
 */

/** The stream asks the server to keep more than one client may; the message says what, and how much is allowed. */
export class BudgetExceeded extends Error {}

/** Bytes of names that one stream may be subscribed to although its configuration does not have them. */
export const unknownNameBytes = 65_536

/** Bytes of names of secrets that one stream may be subscribed to: 6,000 names of forty characters. */
export const secretNameBytes = 262_144

/** Bytes of names that one stream may name before it is known what configuration it gets, each as {@link memoryOf} counts it. */
export const earlyNameBytes = 8 * 1024 * 1024

/** What a text in a map, or a set, takes beside its own bytes. */
const entryBytes = 100
/** What a value of plain data, or a key, takes beside its text. */
const valueBytes = 50

/** Bytes that a text takes in memory as an entry of a set, or of a map with its value; never fewer than it does. */
export function memoryOf(name: string, value = ''): number {
  return entryBytes + Buffer.byteLength(name) + Buffer.byteLength(value)
}

/** Bytes that plain data takes in memory, about: each value and each key counts for its text and 50 more, so that many short ones are not cheap. */
export function memoryOfData(value: unknown): number {
  if (typeof value === 'string') return valueBytes + Buffer.byteLength(value)
  let bytes = valueBytes
  if (Array.isArray(value)) for (const element of value) bytes += memoryOfData(element)
  else if (typeof value === 'object' && value !== null)
    for (const [key, member] of Object.entries(value)) bytes += memoryOfData(key) + memoryOfData(member)
  return bytes
}

/** A number of things, bytes for one, that all streams of a connection, or of an identity, may have together. */
class Allowance {
  readonly #what: string
  readonly #most: number
  readonly #unit: string
  readonly #whole: Allowance | undefined
  #taken = 0

  /** What is taken of it is taken of the `whole` as well. */
  constructor(what: string, most: number, unit: string, whole?: Allowance) {
    this.#what = what
    this.#most = most
    this.#unit = unit
    this.#whole = whole
  }

  /** How many are taken. */
  get taken(): number {
    return this.#taken
  }

  /** Takes some more. Throws {@link BudgetExceeded} when they would be too many; then it takes none. */
  take(count: number): void {
    if (this.#taken + count > this.#most) throw new BudgetExceeded(`${this.#what}: more than ${this.#most} ${this.#unit}`)
    this.#whole?.take(count)
    this.#taken += count
  }

  /** Gives back what was taken. */
  free(count: number): void {
    this.#taken -= count
    this.#whole?.free(count)
  }
}

/** What the streams of one identity have together on one writer; what they have on all writers is counted by the push queue. */
export class IdentityBudget {
  /** As {@link ConnectionBudget.versions}: those of 16 proxies of 20,000 resources each that come back at once. */
  readonly versions = new Allowance('initial_resource_versions', 64 * 1024 * 1024, 'bytes in memory before they are answered, of one identity')
}

/** What the streams of one identity have together on one connection. Where nobody is authenticated, these are all streams of the connection. */
export class ConnectionBudget {
  /** Streams that are sent configuration: each can be a class of its own, of which everything is made. An agent or a relay has a few. */
  readonly proxies = new Allowance('streams', 100, 'proxies on one connection')
  /** Nodes of proxies, in bytes of memory. That of an ordinary proxy takes 10 KB. */
  readonly nodes = new Allowance('nodes', 2 * 1024 * 1024, 'bytes in memory on one connection')
  /** Versions that clients say they have, in bytes of memory, until they are answered. A hundred bytes beside its texts for each: 20,000 of them take 4 MB. */
  readonly versions: Allowance

  constructor(identity?: IdentityBudget) {
    const unit = 'bytes in memory before they are answered on one connection'
    this.versions = new Allowance('initial_resource_versions', 16 * 1024 * 1024, unit, identity?.versions)
  }
}

/** A short name costs as much as one of so many bytes. */
const leastBytes = 16

/** What names count for. */
export function bytesOf(names: Iterable<string>): number {
  let bytes = 0
  for (const name of names) bytes += Math.max(leastBytes, Buffer.byteLength(name))
  return bytes
}
