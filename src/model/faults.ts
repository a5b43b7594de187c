/**
 * Faults: resources that could not be made. An error of any kind affects only the one resource that was being made: it is recorded here
 * with the objects it came from, the last good state stays if there is one, and everything else goes on.
 */

/** A resource that could not be made, or not as configured. */
export interface ResourceFault {
  /** `cds`, `eds`, `lds`, `rds`, `ecds`; `patch`, `policy`, `gateway`; `group`, `view`, `class`, `index`, `object` ... */
  readonly type: string
  readonly resource: string
  /** Keys of the objects that the resource was made from, `<Kind>/<namespace>/<name>`. */
  readonly objects: readonly string[]
  readonly reason: string
  /** The consequence, as a clause of the log line: `the last good state stays`. */
  readonly consequence: string
  /**
   * Whether a rule keeps something valid from some proxies, so that nothing is wrong: a loss. It is told like a fault, with its object, but
   * is no error.
   */
  readonly isLoss?: true
  /** A proxy that refused the resource, if the fault is that proxies refused it. */
  readonly proxy?: string
  /** The number of other proxies that refused the resource for the same reason. */
  readonly otherProxies?: number
}

/** Standard consequences of a fault. */
export const consequences = { kept: 'the last good state stays', leftOut: 'it is left out', without: 'it is made without that part' } as const

/** Calls `act` and returns its result. When `act` throws anything, returns the result of `failed` with the reason. */
export function contain<T>(act: () => T, failed: (reason: string) => T): T {
  try {
    return act()
  } catch (error) {
    return failed(reasonOf(error))
  }
}

/** Returns an error as a clause. Errors of other classes than Error are prefixed with the class name. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.name === 'Error' ? error.message : `${error.name}: ${error.message}`
}

/** The resource that a fault is about. */
export type Subject = Pick<ResourceFault, 'type' | 'resource'> & { readonly objects?: readonly string[] }

/**
 * The present faults by scope. A scope is a unit that is made as a whole, such as a group of resources; its faults are replaced when it is
 * made again.
 */
export class Faults {
  readonly #scopes = new Map<string, readonly ResourceFault[]>()
  /** Each fault once, as it was found last, with the number of scopes that have it. */
  readonly #present = new Map<string, { fault: ResourceFault; scopes: number }>()
  readonly #found: (fault: ResourceFault) => void

  /**
   * `found` is called with each fault that was not present in any scope before, and again when the number of proxies that refused a
   * resource for the same reason reaches a power of ten.
   */
  constructor(found: (fault: ResourceFault) => void = () => undefined) {
    this.#found = found
  }

  /** Replaces the faults of a scope. */
  replace(scope: string, faults: readonly ResourceFault[]): void {
    const before = this.#scopes.get(scope) ?? []
    if (before.length + faults.length === 0) return
    if (faults.length > 0) this.#scopes.set(scope, faults)
    else this.#scopes.delete(scope)
    const [now, then] = [byKey(faults), byKey(before)]
    for (const [key, fault] of now) this.#add(key, fault, !then.has(key))
    for (const key of then.keys()) if (!now.has(key)) this.#remove(key)
  }

  /** Replaces the faults of some resources in a scope. The faults of its other resources stay. */
  amend(scope: string, resources: ReadonlySet<string>, faults: readonly ResourceFault[]): void {
    const others = (this.#scopes.get(scope) ?? []).filter(({ resource }) => !resources.has(resource))
    this.replace(scope, [...others, ...faults])
  }

  /** Removes a scope whose subject was removed or is valid again. */
  clear(scope: string): void {
    this.replace(scope, [])
  }

  /**
   * Calls `act` and returns its result. If it throws, that is recorded as the only fault of the scope, and `instead` is returned. `kept`:
   * whether `instead` is the last good state.
   */
  attempt<T>(scope: string, subject: Subject, act: () => T, instead: T, kept: boolean): T {
    const faults: ResourceFault[] = []
    const result = contain(act, (reason) => {
      faults.push({ objects: [], ...subject, reason, consequence: kept ? consequences.kept : consequences.leftOut })
      return instead
    })
    this.replace(scope, faults)
    return result
  }

  /** All present faults without duplicates. */
  all(): ResourceFault[] {
    const proxies = new Map<string, string>()
    for (const faults of this.#scopes.values())
      for (const fault of faults) if (fault.proxy !== undefined && !proxies.has(keyOf(fault))) proxies.set(keyOf(fault), fault.proxy)
    return [...this.#present].map(([key, { fault, scopes }]) => {
      const proxy = proxies.get(key)
      return proxy === undefined ? fault : { ...fault, proxy, otherProxies: scopes - 1 }
    })
  }

  #add(key: string, fault: ResourceFault, isNew: boolean): void {
    const known = this.#present.get(key) ?? { fault, scopes: 0 }
    this.#present.set(key, known)
    known.fault = fault
    if (!isNew) return
    known.scopes++
    if (known.scopes === 1) this.#found(fault)
    else if (fault.proxy !== undefined && Number.isInteger(Math.log10(known.scopes))) this.#found({ ...fault, otherProxies: known.scopes - 1 })
  }

  #remove(key: string): void {
    const known = this.#present.get(key)
    if (known && --known.scopes === 0) this.#present.delete(key)
  }
}

const byKey = (faults: readonly ResourceFault[]): Map<string, ResourceFault> => new Map(faults.map((fault) => [keyOf(fault), fault]))

/**
 * Two faults are the same if these fields are equal. The consequence is not compared, because it differs from group to group, and neither
 * is the proxy.
 */
const keyOf = ({ type, resource, objects, reason }: ResourceFault): string => JSON.stringify([type, resource, objects, reason])
