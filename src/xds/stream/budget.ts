/**
 * Limits on the memory that one stream, and all streams of one connection, can make the server hold (docs/xds-protocol.md, "Bounds"). A
 * subscribed name that the configuration has costs almost nothing, since equal lists are interned. A name that it does not have is held for
 * this client alone and is counted.
 */

/** Thrown if a stream exceeds a limit. The message names the limit and its value. */
export class BudgetExceeded extends Error {}

/** The maximum total length in bytes of names on one stream that its configuration does not have. */
export const unknownNameBytes = 65_536

/** The maximum total length in bytes of names of secrets on one stream: 6,000 names of forty characters. */
export const secretNameBytes = 262_144

/** The maximum memory in bytes, counted by {@link memoryOf}, of names on one stream before its configuration is known. */
export const earlyNameBytes = 8 * 1024 * 1024

/** The memory in bytes of an entry of a map or set, besides its text. */
const entryBytes = 100
/** The memory in bytes of a plain value or key, besides its text. */
const valueBytes = 50

/** Returns the memory in bytes of a text as an entry of a set, or of a map with its value. An upper bound. */
export function memoryOf(name: string, value = ''): number {
  return entryBytes + Buffer.byteLength(name) + Buffer.byteLength(value)
}

/**
 * Returns the approximate memory of plain data in bytes: each value and each key counts as its text and 50 bytes more, so that many short
 * ones are not cheap.
 */
export function memoryOfData(value: unknown): number {
  if (typeof value === 'string') return valueBytes + Buffer.byteLength(value)
  if (value instanceof Uint8Array) return valueBytes + value.byteLength
  let bytes = valueBytes
  if (Array.isArray(value)) for (const element of value) bytes += memoryOfData(element)
  else if (typeof value === 'object' && value !== null)
    for (const [key, member] of Object.entries(value)) bytes += memoryOfData(key) + memoryOfData(member)
  return bytes
}

/** A limit on a count, of bytes for one, that all streams of a connection or identity share. */
class Allowance {
  readonly #what: string
  readonly #most: number
  readonly #unit: string
  readonly #whole: Allowance | undefined
  #taken = 0

  /** Whatever is taken from this allowance is also taken from `whole`. */
  constructor(what: string, most: number, unit: string, whole?: Allowance) {
    this.#what = what
    this.#most = most
    this.#unit = unit
    this.#whole = whole
  }

  /** The count that is in use. */
  get taken(): number {
    return this.#taken
  }

  /** Takes a count from the allowance. Throws {@link BudgetExceeded}, and takes nothing, if the limit would be exceeded. */
  take(count: number): void {
    if (this.#taken + count > this.#most) throw new BudgetExceeded(`${this.#what}: more than ${this.#most} ${this.#unit}`)
    this.#whole?.take(count)
    this.#taken += count
  }

  /** Gives back a count that was taken. */
  free(count: number): void {
    this.#taken -= count
    this.#whole?.free(count)
  }
}

/** The limits that the streams of one identity share on one writer. Limits over all writers are kept by the push queue. */
export class IdentityBudget {
  /** The sum of {@link ConnectionBudget.versions}. Enough for 16 proxies with 20,000 resources each that reconnect at once. */
  readonly versions = new Allowance('initial_resource_versions', 64 * 1024 * 1024, 'bytes in memory before they are answered, of one identity')
}

/** The limits that the streams of one identity share on one connection; in plain text, those of all streams of the connection. */
export class ConnectionBudget {
  /** Streams that are sent configuration. Each may need a class of its own with all its resources. An agent or a relay has a few. */
  readonly proxies = new Allowance('streams', 100, 'proxies on one connection')
  /** Nodes of proxies, in bytes of memory. The node of an ordinary proxy takes 10 KB. */
  readonly nodes = new Allowance('nodes', 2 * 1024 * 1024, 'bytes in memory on one connection')
  /**
   * `initial_resource_versions` until they are answered, in bytes of memory, each with a hundred bytes besides its texts: 20,000 of them
   * take 4 MB.
   */
  readonly versions: Allowance

  constructor(identity?: IdentityBudget) {
    const unit = 'bytes in memory before they are answered on one connection'
    this.versions = new Allowance('initial_resource_versions', 16 * 1024 * 1024, unit, identity?.versions)
  }
}

/** The minimum number of bytes that a name counts as. */
const minBytes = 16

/** Returns the bytes that names count as. */
export function bytesOf(names: Iterable<string>): number {
  let bytes = 0
  for (const name of names) bytes += Math.max(minBytes, Buffer.byteLength(name))
  return bytes
}
