/**
 * The secrets of one reader (a service account of routers) in a writer: the subscriptions of its streams, the material received from
 * sources, and the encoded resources. They are held in the memory of the writer alone, and cleared when no longer used (docs/resources.md,
 * K8).
 */
import type { SecretMaterial, SecretReader } from '../../../protocols/messages/secrets.ts'
import { addSums, contentVersion, type KeyedSums, subtractSums, sumText, versionOfSum, zeroSum } from '../slab/sums.ts'
import { entryOf } from '../stream/entry.ts'
import { Group, type GroupParts, noneHidden } from '../stream/group.ts'
import type { ReadableSecrets } from '../stream/readable-secrets.ts'
import { nothing, type Subscription, type Subscriptions } from '../stream/subscription.ts'
import { TypeState } from '../stream/type-state.ts'
import { secretType } from '../type-urls.ts'
import { encodeAuthorities, encodePair } from './encode-secret.ts'
import { type NamedSecret, readSecretName, secretsOf } from './secret-names.ts'
import type { SecretPlans } from './secret-plans.ts'

/** A resource that streams subscribed to. */
interface Wanted {
  /** The Secret that it is made from; undefined for a name that cannot denote a resource of this reader. */
  readonly of: NamedSecret | undefined
  /** The number of streams that subscribed to it. */
  uses: number
  /** Whether it is known if the resource exists. */
  isKnown: boolean
  bytes: Buffer | undefined
}

/** A Secret as reported by the sources, and the resources that are made from it. */
interface Known {
  readonly resources: Set<string>
  /** By source its material, or undefined if the source has none; a source that is not in it has not answered. */
  readonly said: Map<string, SecretMaterial | undefined>
}

/** Dependencies that the readers of a writer share. */
export interface ReaderParts {
  /** Those of the writer's catalog, so that serial numbers are unique. */
  readonly groups: GroupParts
  readonly plans: SecretPlans
  readonly subscriptions: Subscriptions
  /** The buffers of encoded secrets. */
  readonly memory: WeakSet<ArrayBufferLike>
  /** The sources that a reader's Secrets come from, in the order of their precedence. */
  sources(reader: SecretReader): readonly string[]
  /** Called when the Secrets that are requested from sources change. */
  wanted(): void
}

/** The secrets of one reader. */
export class ReaderSecrets implements ReadableSecrets {
  readonly reader: SecretReader
  readonly #parts: ReaderParts
  readonly #group: Group
  readonly #wanted = new Map<string, Wanted>()
  readonly #secrets = new Map<string, Known>()
  /** The subscription of each stream. */
  readonly #streams = new Map<object, Subscription>()
  #sum = zeroSum
  #state: TypeState

  constructor(reader: SecretReader, parts: ReaderParts) {
    this.reader = reader
    this.#parts = parts
    this.#group = new Group(JSON.stringify(['secrets', reader.cluster ?? '', reader.namespace, reader.account]), parts.groups)
    this.#state = this.#stateNow()
  }

  /** The names of the Secrets that are requested from sources. */
  get names(): Iterable<string> {
    return this.#secrets.keys()
  }

  get state(): TypeState {
    return this.#state
  }

  get plans(): SecretPlans {
    return this.#parts.plans
  }

  answerable(subscription: Subscription): Subscription {
    const { names, wildcard } = subscription
    const unknown = new Set([...names].filter((name) => this.#wanted.get(name)?.isKnown === false))
    if (unknown.size === 0 && !wildcard) return subscription
    return this.#parts.subscriptions.derive(subscription, nothing.names, [...unknown], false)
  }

  use(stream: object, subscription: Subscription): void {
    const before = this.#streams.get(stream) ?? nothing
    if (before === subscription) return
    let changed = false
    for (const name of subscription.names) if (!before.names.has(name)) changed = this.#add(name) || changed
    for (const name of before.names) if (!subscription.names.has(name)) changed = this.#remove(name) || changed
    if (subscription.names.size > 0) this.#streams.set(stream, subscription)
    else this.#streams.delete(stream)
    this.#state = this.#stateNow()
    if (changed) this.#parts.wanted()
  }

  /**
   * Records the material of a Secret that a source reported, or that it has none. Returns the names of subscribed resources that have
   * become known; their streams are due an answer.
   */
  said(source: string, name: string, material: SecretMaterial | undefined): string[] {
    const known = this.#secrets.get(name)
    if (!known) {
      wipe(material)
      return []
    }
    wipe(known.said.get(source))
    known.said.set(source, material)
    const answered = this.#remakeAll(known.resources)
    this.#state = this.#stateNow()
    return answered
  }

  /**
   * The sources or their order changed. What a source that is asked no longer has said is forgotten. Returns the names of subscribed
   * resources that have become known.
   */
  sourcesChanged(): string[] {
    const sources = new Set(this.#parts.sources(this.reader))
    const answered = [...this.#secrets.values()].flatMap((known) => {
      for (const [source, material] of known.said) {
        if (sources.has(source)) continue
        wipe(material)
        known.said.delete(source)
      }
      return this.#remakeAll(known.resources)
    })
    this.#state = this.#stateNow()
    return answered
  }

  /** Makes resources again. Returns those that have become known. */
  #remakeAll(resources: Iterable<string>): string[] {
    return [...resources].filter((resource) => {
      const wanted = this.#wanted.get(resource)
      return wanted && this.#remake(resource, wanted)
    })
  }

  #add(resource: string): boolean {
    const there = this.#wanted.get(resource)
    if (there) {
      there.uses++
      return false
    }
    const of = readSecretName(resource, this.reader.namespace)
    const wanted: Wanted = { of, uses: 1, isKnown: of === undefined, bytes: undefined }
    this.#wanted.set(resource, wanted)
    if (!of) return false
    let isNew = false
    for (const name of secretsOf(of)) {
      const known = this.#secrets.get(name)
      if (known) known.resources.add(resource)
      else {
        this.#secrets.set(name, { resources: new Set([resource]), said: new Map() })
        isNew = true
      }
    }
    this.#remake(resource, wanted)
    return isNew
  }

  #remove(resource: string): boolean {
    const wanted = this.#wanted.get(resource)
    if (!wanted || --wanted.uses > 0) return false
    this.#wanted.delete(resource)
    this.#put(resource, wanted, undefined)
    let isGone = false
    for (const name of wanted.of ? secretsOf(wanted.of) : []) {
      const known = this.#secrets.get(name)
      known?.resources.delete(resource)
      if (!known || known.resources.size > 0) continue
      for (const material of known.said.values()) wipe(material)
      this.#secrets.delete(name)
      isGone = true
    }
    return isGone
  }

  /** Encodes a resource again from its Secrets. Returns whether it has become known. */
  #remake(resource: string, wanted: Wanted): boolean {
    const { of } = wanted
    if (!of) return false
    let made: Buffer | undefined
    for (const name of secretsOf(of)) {
      const known = this.#secrets.get(name)
      const found = known && this.#materialOf(known)
      // An earlier Secret has precedence.
      if (!found) return false
      made = encoded(resource, of, found.material)
      if (made) break
    }
    const wasKnown = wanted.isKnown
    wanted.isKnown = true
    this.#put(resource, wanted, made)
    return !wasKnown
  }

  /**
   * The material of a Secret: that of the first source which has any. Undefined while a source before it has not answered, or while some have
   * not and none has any; then what was made of the Secret before stays.
   */
  #materialOf({ said }: Known): { readonly material: SecretMaterial | undefined } | undefined {
    const sources = this.#parts.sources(this.reader)
    for (const source of sources) {
      if (!said.has(source)) return undefined
      const material = said.get(source)
      if (material) return { material }
    }
    return sources.length === 0 ? undefined : { material: undefined }
  }

  /** Stores the bytes of a resource in the group, or removes it, and clears the previous bytes. */
  #put(resource: string, wanted: Wanted, bytes: Buffer | undefined): void {
    const before = wanted.bytes
    if (!before && !bytes) return
    wanted.bytes = bytes
    if (bytes) this.#parts.memory.add(bytes.buffer)
    const was = this.#group.numberOf(resource)
    const version = bytes && versionOfSecret(this.#parts.groups.sums, bytes)
    this.#sum = subtractSums(this.#sum, was)
    if (version !== undefined) this.#sum = addSums(this.#sum, this.#parts.groups.sums.of(`${resource}|${version}`))
    const sequence = this.#group.sequence + 1
    this.#group.apply(
      {
        group: this.#group.id,
        base: sequence,
        sequence,
        version: sumText(this.#sum),
        changed: version === undefined ? [] : [{ name: resource, version, slices: [] }],
        removed: version === undefined ? [resource] : [],
      },
      (data) => entryOf(data, bytes ? [bytes] : []),
    )
    before?.fill(0)
  }

  #stateNow(): TypeState {
    return new TypeState(secretType, [this.#group.visible(secretType, noneHidden)])
  }
}

/** Returns the version of a secret: equal for equal content, and a keyed digest, so that it reveals nothing about the content. */
const versionOfSecret = (sums: KeyedSums, bytes: Buffer): string => versionOfSum(sums.of(`secret|${contentVersion(bytes)}`))

function encoded(resource: string, { part }: NamedSecret, material: SecretMaterial | undefined): Buffer | undefined {
  if (part === 'pair') return material?.pair && encodePair(resource, material.pair)
  return material?.authorities && encodeAuthorities(resource, material.authorities)
}

function wipe(material: SecretMaterial | undefined): void {
  for (const bytes of [material?.pair?.chain, material?.pair?.key, material?.authorities]) bytes?.fill(0)
}
