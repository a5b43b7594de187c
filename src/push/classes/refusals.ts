/**
 * What proxies refused, and what each is given instead (docs/resources.md, F7): first its configuration without the patches that may be to blame, then, where
 * policies changed with what was refused, a listener that lets nothing through. A proxy decides for itself alone: others of its class keep what they
 * have until they refuse it too, so that nobody can take anything from others by refusing.
 */
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import type { ResourceFault } from '../../model/faults.ts'
import { type PatchContext, uncheckedTypes } from '../../xds/envoy-filter/patches.ts'
import { isNamedIn, mayTouch } from '../../xds/envoy-filter/touching.ts'
import type { ProxyClass } from '../../xds/traits.ts'
import { listenerType } from '../../xds/type-urls.ts'
import { type Fallback, noFallback } from './proxy-class.ts'

/** A resource that a proxy refused. */
export interface RefusedResource {
  readonly name: string
  /** The version that it was sent. */
  readonly version: string
  /** The context of patches that it was made in, where that is known. */
  readonly context?: PatchContext['context']
}

/** A response that a proxy refused. */
export interface Refusal {
  readonly typeUrl: string
  /** The resources that it named, with the versions that it was sent; none when it named none. */
  readonly resources: readonly RefusedResource[]
  /** What the proxy said. */
  readonly detail: string
  /** Whether the policies of its class are others than when it last took a response of the type. */
  readonly policiesChanged: boolean
}

/** What became of one resource that a proxy refused. */
interface Case {
  readonly typeUrl: string
  readonly name: string
  withdrawn: ReadonlySet<ConfigPatch>
  /** The patches with which it was found that it is refused without any of them too: they are not to blame, and are there again. */
  innocent: ReadonlySet<ConfigPatch> | undefined
  /** Versions in whose place a listener stands that lets nothing through. */
  readonly versions: Set<string>
  denied: boolean
  fault: ResourceFault | undefined
}

/** Resources of one proxy that are told apart; refusals of more count as one. */
const mostCases = 16
/** Versions of one resource that are remembered as refused. */
const mostVersions = 16
/** Sets of patches that proxies of one class are made without; beyond it one is made without all patches of the type that it refuses. */
const mostVariants = 16
/** Characters of what a proxy said that a fault has. */
const mostDetail = 300

/** Refusals of all proxies. */
export class Refusals {
  readonly #cases = new Map<string, Case[]>()
  /** Sets of patches in use, by the class that proxies would be of otherwise, with the connections that have them. */
  readonly #variants = new Map<string, Map<string, Set<string>>>()

  /** Whether a proxy refused anything. */
  concerns(connection: string): boolean {
    return this.#cases.has(connection)
  }

  /** What a proxy is given otherwise than its class. */
  fallback(connection: string): Fallback {
    const cases = this.#cases.get(connection)
    if (!cases) return noFallback
    const denied = cases.filter((each) => each.denied).map(({ name, versions }) => [name, versions] as const)
    return { withdrawn: new Set(cases.flatMap(({ withdrawn }) => [...withdrawn])), denied: new Map(denied) }
  }

  /** Faults of what a proxy refused. */
  faults(connection: string): ResourceFault[] {
    return (this.#cases.get(connection) ?? []).flatMap(({ fault }) => fault ?? [])
  }

  /** A proxy is gone. */
  forget(connection: string): void {
    this.#cases.delete(connection)
    for (const [base, variants] of this.#variants) {
      for (const [key, connections] of variants) if (connections.delete(connection) && connections.size === 0) variants.delete(key)
      if (variants.size === 0) this.#variants.delete(base)
    }
  }

  /** Patches that are no more, or others now, are not withdrawn: `filters` are those that the proxy would have. Called when its class is looked for anew. */
  prune(connection: string, present: ReadonlySet<ConfigPatch>): void {
    for (const each of this.#cases.get(connection) ?? []) {
      if (each.innocent && !sameSet(each.innocent, present)) each.innocent = undefined
      const left = new Set([...each.withdrawn].filter((patch) => present.has(patch)))
      if (left.size === each.withdrawn.size) continue
      each.withdrawn = left
      each.fault = undefined
    }
  }

  /**
   * Takes a refusal of a proxy; `base` is the class that it would be of had it refused nothing, `proxyClass` the one that it is of, `objects` are what that is made from. Returns
   * whether it is given something else now.
   */
  refused(connection: string, base: ProxyClass, proxyClass: ProxyClass, refusal: Refusal, objects: readonly string[]): boolean {
    const cases = this.#cases.get(connection) ?? []
    this.#cases.set(connection, cases)
    const resources: readonly RefusedResource[] = refusal.resources.length > 0 ? refusal.resources : [{ name: '', version: '' }]
    const changed = resources.map(({ name, version, context }) => {
      const of = caseOf(cases, refusal.typeUrl, name)
      return this.#withdraws(of, context, proxyClass, refusal) || this.#denies(of, version, base, refusal, objects)
    })
    this.#bound(connection, base, cases)
    return changed.some(Boolean)
  }

  /** Withdraws patches that may be to blame: those that the proxy names, else those that nobody checked, else all that may have touched it. Returns whether there are any. */
  #withdraws(of: Case, context: RefusedResource['context'], { traits }: ProxyClass, refusal: Refusal): boolean {
    if (of.innocent) return false
    const live = traits.filters.flatMap((filter) => (filter.spec.configPatches ?? []).map((patch) => ({ patch, filter })))
    const touching = live.filter(({ patch }) => mayTouch(patch, of.typeUrl, of.name, context))
    const named = touching.filter(({ patch }) => isNamedIn(refusal.detail, patch))
    const unchecked = touching.filter(({ patch }) => uncheckedTypes(patch).length > 0)
    const blamed = named.length > 0 ? named : unchecked.length > 0 ? unchecked : touching
    if (blamed.length === 0) return false
    of.withdrawn = new Set([...of.withdrawn, ...blamed.map(({ patch }) => patch)])
    const filters = new Set(blamed.map(({ filter }) => `EnvoyFilter/${filter.namespace}/${filter.name}`))
    const kinds = new Set(blamed.map(({ patch }) => `${patch.applyTo} ${patch.patch.operation}`))
    of.fault = faultOf(
      of,
      refusal,
      [...filters],
      `patches of it (${[...kinds].join(', ')}) are withdrawn from proxies that refuse them, until they change`,
    )
    return true
  }

  /** It is refused without patches as well: they are there again, and where policies changed with it, nothing is let through. Returns whether that is something else. */
  #denies(of: Case, version: string, { traits }: ProxyClass, refusal: Refusal, objects: readonly string[]): boolean {
    const restored = of.withdrawn.size > 0
    of.withdrawn = new Set()
    of.innocent = new Set(traits.filters.flatMap(({ spec }) => spec.configPatches ?? []))
    // With the policies that it took last the proxy may keep what it has.
    const denies = of.typeUrl === listenerType && refusal.policiesChanged
    if (denies && version !== '') of.versions.add(version)
    if (of.versions.size > mostVersions) of.versions.delete(of.versions.values().next().value as string)
    of.denied = denies
    of.fault = faultOf(
      of,
      refusal,
      objects,
      of.denied ? 'policies changed with it, so it lets nothing through until it is another' : 'the proxy keeps what it had',
    )
    return restored || denies
  }

  /** Bounds the classes that refusals make of one class: clients choose what they refuse. */
  #bound(connection: string, { id, traits }: ProxyClass, cases: readonly Case[]): void {
    const variants = this.#variants.get(id) ?? new Map<string, Set<string>>()
    this.#variants.set(id, variants)
    for (const connections of variants.values()) connections.delete(connection)
    for (const [key, connections] of variants) if (connections.size === 0) variants.delete(key)
    const patches = traits.filters.flatMap((filter) => filter.spec.configPatches ?? [])
    const keyOf = () => {
      const { withdrawn, denied } = this.fallback(connection)
      return JSON.stringify([
        patches.flatMap((patch, index) => (withdrawn.has(patch) ? index : [])),
        [...denied].map(([name, versions]) => [name, ...versions]),
      ])
    }
    if (!variants.has(keyOf()) && variants.size >= mostVariants)
      for (const each of cases) {
        const all = patches.filter((patch) => mayTouch(patch, each.typeUrl, ''))
        if (!each.innocent) each.withdrawn = new Set([...each.withdrawn, ...all])
      }
    const key = keyOf()
    const connections = variants.get(key)
    if (connections) connections.add(connection)
    else variants.set(key, new Set([connection]))
  }
}

/** The case of a resource; when there are too many, that of all others. */
function caseOf(cases: Case[], typeUrl: string, name: string): Case {
  const known = cases.find((each) => each.typeUrl === typeUrl && each.name === name)
  if (known) return known
  if (cases.length >= mostCases && name !== '') return caseOf(cases, typeUrl, '')
  const made: Case = { typeUrl, name, withdrawn: new Set(), innocent: undefined, versions: new Set(), denied: false, fault: undefined }
  cases.push(made)
  return made
}

/** A fault of what was refused: it names the resource, the objects and what the proxy said. */
function faultOf({ name, typeUrl }: Case, { detail }: Refusal, objects: readonly string[], consequence: string): ResourceFault {
  const resource = name || typeUrl.slice(typeUrl.lastIndexOf('/') + 1)
  return { type: 'refused', resource, objects, reason: `a proxy refused it: ${detail.slice(0, mostDetail).toWellFormed()}`, consequence }
}

const sameSet = <T>(one: ReadonlySet<T>, other: ReadonlySet<T>): boolean => one.size === other.size && [...one].every((item) => other.has(item))
