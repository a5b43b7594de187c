/**
 * What could not be made. An error of whatever class costs the one thing that was being made: it is recorded here with its
 * objects, the last good state stays where there is one, and everything else goes on.
 */

/** One thing that could not be made, or not as it was asked for. */
export interface ResourceFault {
  /** `cds`, `eds`, `lds`, `rds`, `ecds`; `patch`, `policy`, `gateway`; `group`, `view`, `class`, `index`, `object` ... */
  readonly type: string
  readonly resource: string
  /** Objects it was made from, `<Kind>/<namespace>/<name>`. */
  readonly objects: readonly string[]
  readonly reason: string
  /** What follows, as part of a sentence: `the last good state stays`. */
  readonly consequence: string
}

/** Consequences of a fault for what could not be made. */
export const consequences = { kept: 'the last good state stays', leftOut: 'it is left out', without: 'it is made without that part' } as const

/** Does something, and hands the reason to `failed` when that throws, whatever is thrown. */
export function contain<T>(act: () => T, failed: (reason: string) => T): T {
  try {
    return act()
  } catch (error) {
    return failed(reasonOf(error))
  }
}

/** An error as part of a sentence; those that nobody expected say their class. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.name === 'Error' ? error.message : `${error.name}: ${error.message}`
}

/** Who or what a fault is of. */
export type Subject = Pick<ResourceFault, 'type' | 'resource'> & { readonly objects?: readonly string[] }

/** Present faults by scope. A scope is what is made at one time (a group of resources, say): its faults are replaced when it is made again. */
export class Faults {
  readonly #scopes = new Map<string, readonly ResourceFault[]>()
  /** Each fault once, and in how many scopes it is. */
  readonly #present = new Map<string, { readonly fault: ResourceFault; scopes: number }>()
  readonly #found: (fault: ResourceFault) => void

  /** `found` is told of each fault when it is found, once for as long as it is there in any scope. */
  constructor(found: (fault: ResourceFault) => void = () => undefined) {
    this.#found = found
  }

  /** Makes these the faults of a scope. */
  replace(scope: string, faults: readonly ResourceFault[]): void {
    const before = this.#scopes.get(scope) ?? []
    if (before.length + faults.length === 0) return
    if (faults.length > 0) this.#scopes.set(scope, faults)
    else this.#scopes.delete(scope)
    for (const fault of faults) this.#add(fault)
    for (const fault of before) this.#remove(fault)
  }

  /** Makes these the faults of some resources in a scope; those of others stay. */
  amend(scope: string, resources: ReadonlySet<string>, faults: readonly ResourceFault[]): void {
    const others = (this.#scopes.get(scope) ?? []).filter(({ resource }) => !resources.has(resource))
    this.replace(scope, [...others, ...faults])
  }

  /** Forgets a scope: what it was of is gone, or mended. */
  clear(scope: string): void {
    this.replace(scope, [])
  }

  /** Does something whose failure is the only fault of a scope; `instead` is the result then, and `kept` says whether that is the last good state. */
  attempt<T>(scope: string, subject: Subject, act: () => T, instead: T, kept: boolean): T {
    const faults: ResourceFault[] = []
    const result = contain(act, (reason) => {
      faults.push({ objects: [], ...subject, reason, consequence: kept ? consequences.kept : consequences.leftOut })
      return instead
    })
    this.replace(scope, faults)
    return result
  }

  /** All present faults, each once. */
  all(): ResourceFault[] {
    return [...this.#present.values()].map(({ fault }) => fault)
  }

  #add(fault: ResourceFault): void {
    const key = keyOf(fault)
    const known = this.#present.get(key)
    if (known) {
      known.scopes++
      return
    }
    this.#present.set(key, { fault, scopes: 1 })
    this.#found(fault)
  }

  #remove(fault: ResourceFault): void {
    const key = keyOf(fault)
    const known = this.#present.get(key)
    if (known && --known.scopes === 0) this.#present.delete(key)
  }
}

/** Faults are the same that say the same; whether a last good state stays differs from group to group. */
const keyOf = ({ type, resource, objects, reason }: ResourceFault): string => JSON.stringify([type, resource, objects, reason])
