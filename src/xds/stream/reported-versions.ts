/**
 * The versions that a proxy reports when it connects again (`DeltaDiscoveryRequest.initial_resource_versions`, docs/xds-protocol.md, D7). They
 * stay the bytes that were received: a proxy reports thousands, and after a restart of discovery all proxies do, with few that differ from
 * what discovery has. They are compared as bytes with the {@link ReportedForm} of that, without a text for each.
 */
import { contentOfField, endOfField, fieldHead, scanFields, type WireField } from '../slab/wire.ts'
import { memoryOf } from './budget.ts'
import { checkName } from './request-limits.ts'

/** The field of a request that has one version. */
const versionsField = 5
/** The tag bytes of that field, and of the name and the version in it. */
const [versionTag, keyTag, valueTag] = [(versionsField << 3) | 2, (1 << 3) | 2, (2 << 3) | 2]

/** The memory in bytes of a version, besides its texts. */
const ownBytes = memoryOf('')

/** Versions as reported. Of a name that is reported more than once, any of its versions may count. */
export class ReportedVersions {
  /** The fields, each in the form of {@link fieldOf}. */
  readonly #fields: Buffer
  readonly size: number
  /** The memory that they count for in budgets, in bytes. */
  readonly memory: number
  /** Names whose versions do not count. */
  readonly #forgotten = new Set<string>()

  constructor(fields: Buffer, size: number, memory: number) {
    this.#fields = fields
    this.size = size
    this.memory = memory
  }

  /** Returns the versions of names. */
  static of(versions: Iterable<readonly [name: string, version: string]>): ReportedVersions {
    const fields = new VersionFields()
    for (const [name, version] of versions) fields.add(name, version)
    return fields.versions()
  }

  /** The proxy may have dropped the resource of a name: its version does not count. */
  forget(name: string): void {
    this.#forgotten.add(name)
  }

  /** Yields names and versions. */
  *[Symbol.iterator](): Generator<[name: string, version: string]> {
    for (let at = 0; at < this.#fields.length; at = this.#end(at)) {
      const texts = this.#textsAt(at)
      if (!this.#forgotten.has(texts[0])) yield texts
    }
  }

  /** Returns the names of a form that are not reported with its version, and what is reported and is not in the form, by name. */
  differencesTo(form: ReportedForm): { readonly unreported: readonly string[]; readonly others: ReadonlyMap<string, string> } {
    const reported = new Uint8Array(form.names.length)
    const others = new Map<string, string>()
    for (let at = 0; at < this.#fields.length; ) {
      const end = this.#end(at)
      const index = form.find(this.#fields, contentOfField(this.#fields, at), end)
      if (index === undefined) others.set(...this.#textsAt(at))
      else reported[index] = 1
      at = end
    }
    for (const name of this.#forgotten) others.delete(name)
    return { unreported: form.names.filter((name, index) => reported[index] === 0 || this.#forgotten.has(name)), others }
  }

  #end(at: number): number {
    return endOfField(this.#fields, at, versionTag) as number
  }

  #textsAt(at: number): [name: string, version: string] {
    const key = contentOfField(this.#fields, at)
    const value = endOfField(this.#fields, key, keyTag) as number
    return [
      this.#fields.toString('utf8', contentOfField(this.#fields, key), value),
      this.#fields.toString('utf8', contentOfField(this.#fields, value), this.#end(at)),
    ]
  }
}

/** The fields of versions in a request while it is read. */
export class VersionFields {
  readonly field = versionsField
  readonly #parts: Buffer[] = []
  #size = 0
  #memory = 0

  /** Takes the fields of versions that follow each other from `first` on. Returns where they end. Throws {@link WireError}. */
  take(message: Buffer, first: WireField): number {
    let at = first.start
    for (let end = this.#count(message, at); end !== undefined; end = this.#count(message, at)) at = end
    if (at > first.start) {
      this.#parts.push(message.subarray(first.start, at))
      return at
    }
    const texts = ['', '', '']
    for (const { field, bytes } of scanFields(first.bytes as Buffer)) if (field < 3 && bytes) texts[field] = bytes.toString()
    this.add(texts[1] as string, texts[2] as string)
    return first.end
  }

  /** Adds a version. Throws {@link WireError} if the name is too long or one too many. */
  add(name: string, version: string): void {
    checkName(Buffer.byteLength(name), this.#size++)
    this.#memory += memoryOf(name, version)
    this.#parts.push(fieldOf(name, version))
  }

  versions(): ReportedVersions {
    return new ReportedVersions(Buffer.concat(this.#parts), this.#size, this.#memory)
  }

  /** Counts the field at an offset, and returns its end, if it has the form of {@link fieldOf}. */
  #count(message: Buffer, at: number): number | undefined {
    const end = endOfField(message, at, versionTag)
    if (end === undefined) return undefined
    const key = contentOfField(message, at)
    const value = endOfField(message, key, keyTag)
    if (value === undefined || value >= end || endOfField(message, value, valueTag) !== end) return undefined
    const name = value - contentOfField(message, key)
    checkName(name, this.#size++)
    this.#memory += ownBytes + name + end - contentOfField(message, value)
    return end
  }
}

/** Returns the field of a version as encoders of maps write it: the name, then the version. It has less than 16 KiB. */
function fieldOf(name: string, version: string): Buffer {
  const content = contentOf(name, version.slice(0, longestVersion))
  return Buffer.concat([fieldHead(versionsField, content.length), content])
}

function contentOf(name: string, version: string): Buffer {
  const [key, value] = [Buffer.from(name), Buffer.from(version)]
  return Buffer.concat([fieldHead(1, key.length), key, fieldHead(2, value.length), value])
}

/** Longer versions are cut: discovery gives none that is as long. */
const longestVersion = 2048

/** The names and versions of a type that a class has, by the bytes of their fields as proxies report them. It holds no resources. */
export class ReportedForm {
  readonly names: readonly string[]
  /** Indexes of names by the content of the field, a character a byte. */
  readonly #indexes = new Map<string, number>()
  /** The memory that it takes, in bytes. */
  readonly bytes: number

  constructor(resources: Iterable<{ readonly name: string; readonly version: string }>) {
    const all = [...resources]
    this.names = all.map(({ name }) => name)
    for (const [index, { name, version }] of all.entries()) this.#indexes.set(contentOf(name, version).toString('latin1'), index)
    this.bytes = all.reduce((sum, { name, version }) => sum + memoryOf(name, version), ownBytes)
  }

  /** Returns the index of the name whose content is that from `start` to `end`. */
  find(bytes: Buffer, start: number, end: number): number | undefined {
    return this.#indexes.get(bytes.toString('latin1', start, end))
  }
}
