/**
 * Tracks the resources that proxies refused and decides what each proxy is sent instead (docs/resources.md, F7): first its configuration
 * without the patches that are the cause, as far as tries tell; then, if the policies changed together with the refused listener, a listener that denies
 * everything. The decision is made for each proxy separately: other proxies of the class keep their configuration until they refuse it too,
 * so that a client cannot take configuration from others by refusing it.
 */

import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import { configKey } from '../../config/kinds.ts'
import type { ResourceFault } from '../../model/faults.ts'
import { type PatchContext, uncheckedTypes } from '../../xds/envoy-filter/patches.ts'
import { addedName, isNamedIn, mayTouch } from '../../xds/envoy-filter/touching.ts'
import type { ProxyClass } from '../../xds/traits.ts'
import { listenerType } from '../../xds/type-urls.ts'
import { type Fallback, noFallback } from './proxy-class.ts'
import { SuspectSearch } from './suspects.ts'

/** A resource that a proxy refused. */
export interface RefusedResource {
  readonly name: string
  /** The version that the proxy was sent. */
  readonly version: string
  /** The patch context in which the resource was made, if known. */
  readonly context?: PatchContext['context']
}

/** A response that a proxy refused. */
export interface Refusal {
  readonly typeUrl: string
  /** The name of the proxy. */
  readonly proxy: string
  /** The resources that the proxy named in the NACK, with the versions that it was sent. Empty when it named none. */
  readonly resources: readonly RefusedResource[]
  /** The error message of the proxy. */
  readonly detail: string
  /** Whether the policies of the proxy's class have changed since the proxy last acknowledged a response of the type. */
  readonly policiesChanged: boolean
}

/** An object of which patches are withdrawn from a proxy, and what the proxy said. */
export interface WithdrawnFrom {
  readonly key: string
  readonly reason: string
  readonly connection: string
}

/** The state of one resource that a proxy refused. */
interface ResourceState {
  readonly typeUrl: string
  readonly name: string
  /** The patches that may be the cause, and which of them are withdrawn. Undefined: none. */
  search: SuspectSearch | undefined
  /** The versions that the proxy refused. */
  readonly refused: Set<string>
  /**
   * Patches that are not the cause, because the proxy refused the resource without them too. They are applied again, and are not withdrawn
   * while the set stays the same.
   */
  cleared: ReadonlySet<ConfigPatch> | undefined
  /** Refused versions that are replaced by a listener that denies everything. */
  readonly versions: Set<string>
  denied: boolean
  fault: ResourceFault | undefined
}

/** The maximum number of resources of one proxy that are tracked separately. Refusals of further resources are tracked as one. */
const maxResources = 16
/** The maximum number of refused versions that are remembered for one resource. */
const maxVersions = 64
/**
 * The maximum number of different patch sets withdrawn from proxies of one class. Beyond it a proxy is made without all patches of the type
 * that it refuses.
 */
const maxVariants = 16
/** The maximum length, in characters, of a proxy's error message in a fault. */
const maxDetail = 300

/** The refusals of all proxies. */
export class Refusals {
  /** By connection. */
  readonly #states = new Map<string, ResourceState[]>()
  /** For each class without refusals: the sets of withdrawn patches in use, with the connections that have each set. */
  readonly #variants = new Map<string, Map<string, Set<string>>>()
  /** Patches that were found to be the cause of a refusal. Proxies that refuse a resource too are sent it without these first. */
  readonly #culprits = new WeakSet<ConfigPatch>()

  /** Whether a proxy refused any resource. */
  concerns(connection: string): boolean {
    return this.#states.has(connection)
  }

  /** How the configuration of a proxy differs from that of its class. */
  fallback(connection: string): Fallback {
    const states = this.#states.get(connection)
    if (!states) return noFallback
    const denied = states.filter((each) => each.denied).map(({ name, versions }) => [name, versions] as const)
    return { withdrawn: new Set(states.flatMap((each) => [...withdrawnOf(each)])), denied: new Map(denied) }
  }

  /** The faults of the resources that a proxy refused. */
  faults(connection: string): ResourceFault[] {
    return (this.#states.get(connection) ?? []).flatMap(({ fault }) => fault ?? [])
  }

  /** All resources that proxies refused, with the type, and whether another resource was made in place of the refused one. */
  *all(): Iterable<{ readonly connection: string; readonly typeUrl: string; readonly isReplaced: boolean; readonly fault: ResourceFault }> {
    for (const [connection, states] of this.#states)
      for (const each of states) {
        const { typeUrl, denied, fault } = each
        if (fault) yield { connection, typeUrl, isReplaced: withdrawnOf(each).size > 0 || denied, fault }
      }
  }

  /** The objects of which patches are withdrawn, with what the proxy said: each once for each proxy. */
  *withdrawn(): Iterable<WithdrawnFrom> {
    for (const [connection, states] of this.#states) {
      const faults = states.flatMap((each) => (withdrawnOf(each).size > 0 && each.search?.isOver && each.fault) || [])
      const reasons = new Map(faults.flatMap(({ objects, reason }) => objects.map((key) => [key, reason] as const)))
      for (const [key, reason] of reasons) yield { key, reason, connection }
    }
  }

  /** Removes a proxy that disconnected. */
  forget(connection: string): void {
    this.#states.delete(connection)
    for (const [base, variants] of this.#variants) {
      for (const [key, connections] of variants) if (connections.delete(connection) && connections.size === 0) variants.delete(key)
      if (variants.size === 0) this.#variants.delete(base)
    }
  }

  /**
   * Tries the withdrawn patches again when one that was suspected with them was removed or changed. `present` are the patches that the proxy
   * would have without refusals. Called when the class of the proxy is found again. Returns whether faults ended with it.
   */
  prune(connection: string, present: ReadonlySet<ConfigPatch>): boolean {
    let hasEnded = false
    for (const each of this.#states.get(connection) ?? []) {
      if (each.cleared && !sameSet(each.cleared, present)) each.cleared = undefined
      if (!each.search || [...each.search.suspects].every((patch) => present.has(patch))) continue
      const left = [...withdrawnOf(each)].filter((patch) => present.has(patch))
      each.search = left.length > 0 ? SuspectSearch.again(left) : undefined
      if (each.search) continue
      each.fault = undefined
      hasEnded = true
    }
    return hasEnded
  }

  /**
   * Records a refusal of a proxy. `base` is the class that the proxy would have without refusals, `proxyClass` its present class, `objects`
   * finds the objects that a resource is made from. Returns whether the proxy's configuration changes.
   */
  refused(
    connection: string,
    base: ProxyClass,
    proxyClass: ProxyClass,
    refusal: Refusal,
    objects: (resource: RefusedResource) => readonly string[],
  ): boolean {
    const states = this.#states.get(connection) ?? []
    this.#states.set(connection, states)
    const resources: readonly RefusedResource[] = refusal.resources.length > 0 ? refusal.resources : [{ name: '', version: '' }]
    const changed = resources.map((resource) => {
      const { name, version, context } = resource
      const state = stateOf(states, refusal.typeUrl, name)
      if (version !== '') remember(state.refused, version)
      if (state.search?.refused()) return this.#tried(state, base, refusal)
      return this.#withdraws(state, context, base, proxyClass, refusal) || this.#denies(state, version, base, refusal, objects(resource))
    })
    this.#bound(connection, base, states)
    return changed.some(Boolean)
  }

  /**
   * A proxy accepted resources in versions that it has now, after it had refused others. Returns whether its configuration changes: then
   * further withdrawn patches are tried.
   */
  accepted(connection: string, base: ProxyClass, typeUrl: string, resources: readonly RefusedResource[]): boolean {
    const states = this.#states.get(connection) ?? []
    const changed = resources.map(({ name, version }) => {
      const state = states.find((each) => each.typeUrl === typeUrl && each.name === name)
      if (!state || state.denied || state.refused.has(version)) return false
      const { search } = state
      if (!search) {
        state.cleared = undefined
        state.fault = undefined
        return false
      }
      const isChanged = !search.isOver && search.accepted()
      this.#tried(state, base)
      if (search.isOver) for (const patch of search.withdrawn) this.#culprits.add(patch)
      return isChanged
    })
    if (changed.some(Boolean)) this.#bound(connection, base, states)
    return changed.some(Boolean)
  }

  /** Ends a search in which nothing is left to try: the fault names the objects that are withdrawn. Returns true: the resource changes. */
  #tried(state: ResourceState, base: ProxyClass, refusal?: Refusal): true {
    const { search, fault } = state
    if (refusal && fault) state.fault = { ...fault, reason: reasonOf(state, refusal) }
    if (!search?.isOver) return true
    if (search.withdrawn.size === 0) {
      state.search = undefined
      state.fault = undefined
    } else if (state.fault) state.fault = { ...state.fault, ...blameOf(search, base) }
    return true
  }

  /**
   * Withdraws the patches that may be the cause: the one that adds the resource, otherwise those that the error message names, otherwise
   * those whose types are not checked before a push, otherwise all that may have changed the resource; of these only the ones that were the
   * cause for other proxies, if there are any. Returns whether there are any.
   */
  #withdraws(state: ResourceState, context: RefusedResource['context'], base: ProxyClass, { traits }: ProxyClass, refusal: Refusal): boolean {
    if (state.cleared) return false
    const live = traits.filters.flatMap(({ spec }) => spec.configPatches ?? [])
    const touching = live.filter((patch) => mayTouch(patch, state.typeUrl, state.name, context))
    const message = messageAbout(state.name, refusal)
    const adding = touching.filter((patch) => addedName(patch) === state.name)
    const named = touching.filter((patch) => isNamedIn(message, patch))
    const unchecked = touching.filter((patch) => uncheckedTypes(patch).length > 0)
    const suspected = [adding, named, unchecked].find(({ length }) => length > 0) ?? touching
    if (suspected.length === 0) return false
    const known = suspected.filter((patch) => this.#culprits.has(patch))
    const before = withdrawnOf(state)
    const search = new SuspectSearch([...before, ...(known.length > 0 ? known : suspected)], {
      oneByOne: before.size === 0 && !refusal.policiesChanged,
      isAnswered: state.name !== '',
    })
    state.search = search
    state.fault = { ...faultOf(state, refusal, [], ''), ...blameOf(search, base) }
    return true
  }

  /**
   * Handles a resource that is refused without patches too: the patches are applied again, and if the policies changed together with the
   * listener, it is replaced by one that denies everything. Returns whether the proxy's configuration changes.
   */
  #denies(state: ResourceState, version: string, { traits }: ProxyClass, refusal: Refusal, objects: readonly string[]): boolean {
    const restored = withdrawnOf(state).size > 0
    state.search = undefined
    state.cleared = new Set(traits.filters.flatMap(({ spec }) => spec.configPatches ?? []))
    // When the policies are those that the proxy acknowledged last, it may keep the listener that it has.
    const denies = state.typeUrl === listenerType && refusal.policiesChanged
    if (denies && version !== '') remember(state.versions, version)
    state.denied = denies
    state.fault = faultOf(
      state,
      refusal,
      objects,
      state.denied
        ? 'the policies changed with it, so it is replaced by a listener that denies all traffic until it changes'
        : 'the proxy keeps the previous resource',
    )
    return restored || denies
  }

  /** Limits the number of classes that refusals derive from one class, because clients choose what they refuse. */
  #bound(connection: string, { id, traits }: ProxyClass, states: readonly ResourceState[]): void {
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
    if (!variants.has(keyOf()) && variants.size >= maxVariants)
      for (const each of states) {
        const all = patches.filter((patch) => mayTouch(patch, each.typeUrl, ''))
        if (!each.cleared) each.search = new SuspectSearch([...withdrawnOf(each), ...all], { oneByOne: false, isAnswered: false })
      }
    const key = keyOf()
    const connections = variants.get(key)
    if (connections) connections.add(connection)
    else variants.set(key, new Set([connection]))
  }
}

/** Returns the state of a resource, or the common one for all further resources when the limit is reached. */
function stateOf(states: ResourceState[], typeUrl: string, name: string): ResourceState {
  const known = states.find((each) => each.typeUrl === typeUrl && each.name === name)
  if (known) return known
  if (states.length >= maxResources && name !== '') return stateOf(states, typeUrl, '')
  const made: ResourceState = {
    ...{ typeUrl, name, search: undefined, refused: new Set<string>(), cleared: undefined },
    ...{ versions: new Set<string>(), denied: false, fault: undefined },
  }
  states.push(made)
  return made
}

const nothing: ReadonlySet<ConfigPatch> = new Set()

/** The patches that are withdrawn from a resource. */
const withdrawnOf = ({ search }: ResourceState): ReadonlySet<ConfigPatch> => search?.withdrawn ?? nothing

/** Adds a version to those that are remembered. The oldest is forgotten at the limit. */
function remember(versions: Set<string>, version: string): void {
  versions.add(version)
  if (versions.size > maxVersions) versions.delete(versions.values().next().value as string)
}

/** The objects of a fault, and what becomes of their patches: while patches are tried, of all that are suspected. */
function blameOf({ isOver, suspects, withdrawn }: SuspectSearch, { traits }: ProxyClass): Pick<ResourceFault, 'objects' | 'consequence'> {
  const blamed = isOver ? withdrawn : suspects
  const filters = traits.filters.filter(({ spec }) => spec.configPatches?.some((patch) => blamed.has(patch)))
  const kinds = new Set([...blamed].map((patch) => `${patch.applyTo} ${patch.patch.operation}`))
  const consequence = isOver
    ? `patches (${[...kinds].join(', ')}) are withdrawn from proxies that refuse them, until they change`
    : `some of the patches (${[...kinds].join(', ')}) are the cause: it is tried which of them the proxy accepts`
  return { objects: filters.map(configKey), consequence }
}

/** Creates a fault with the resource, the proxy, the objects and the error message of the proxy. */
function faultOf(state: ResourceState, refusal: Refusal, objects: readonly string[], consequence: string): ResourceFault {
  const { name, typeUrl } = state
  const type = typeUrl.slice(typeUrl.lastIndexOf('/') + 1)
  const resource = [type.slice(type.lastIndexOf('.') + 1), name].filter(Boolean).join(' ')
  return { type: 'refused', resource, objects, reason: reasonOf(state, refusal), consequence, proxy: refusal.proxy }
}

/** What the proxy said about a resource. */
function reasonOf({ name }: ResourceState, refusal: Refusal): string {
  const message = messageAbout(name, refusal)
  const cut = message.length > maxDetail ? `${message.slice(0, maxDetail)}...` : message
  return cut.toWellFormed() || 'the proxy gives no reason'
}

/** The beginning of Envoy's error message, before the resources. */
const preamble = /^Error adding\/updating [a-z]+\(s\) /

/**
 * Returns what an error message says about a resource, on one line. Envoy writes `<name>: <reason>` for each refused resource, one after
 * the other. A message that does not name the resource is returned whole.
 */
function messageAbout(name: string, { detail, resources }: Refusal): string {
  const line = detail.replace(/\s+/g, ' ').trim()
  const placeOf = (named: string) => (named === '' ? -1 : ` ${line}`.indexOf(` ${named}: `))
  const own = placeOf(name)
  if (own < 0) return line.replace(preamble, '')
  const next = resources.map((each) => placeOf(each.name)).filter((place) => place > own)
  return line.slice(own + `${name}: `.length, Math.min(line.length, ...next)).replace(/[, ]+$/, '')
}

const sameSet = <T>(one: ReadonlySet<T>, other: ReadonlySet<T>): boolean => one.size === other.size && [...one].every((item) => other.has(item))
