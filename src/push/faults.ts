/** Resources that could not be made or that Envoy would refuse: counted and reported, while the last good state is served. */

/** One such resource. */
export interface ResourceFault {
  /** `cds`, `eds` ... */
  readonly type: string
  readonly resource: string
  /** Objects it was made from, `<Kind>/<namespace>/<name>`. */
  readonly objects: readonly string[]
  readonly reason: string
}

/** Collects faults by resource. */
export class Faults {
  readonly #faults = new Map<string, ResourceFault>()
  #unreported: ResourceFault[] = []

  add(fault: ResourceFault): void {
    const key = `${fault.type}|${fault.resource}`
    const before = this.#faults.get(key)
    this.#faults.set(key, fault)
    if (before?.reason !== fault.reason) this.#unreported.push(fault)
  }

  clear(type: string, resource: string): void {
    this.#faults.delete(`${type}|${resource}`)
  }

  /** Faults that were not there, or differed, at the last call. */
  takeNew(): ResourceFault[] {
    return this.#unreported.splice(0)
  }

  /** All present faults. */
  all(): ResourceFault[] {
    return [...this.#faults.values()]
  }
}
