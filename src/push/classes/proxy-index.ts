/** The connected proxies, indexed by what changes affect them by. Only a change that concerns all proxies iterates over all of them. */

import type { ConfigObject, ProxyNode } from '../../../protocols/data.ts'
import { kindId, kinds } from '../../config/kinds.ts'
import { contain } from '../../model/faults.ts'
import { LabelIndex } from '../../model/label-index.ts'
import { addTo } from '../../model/lists.ts'
import { labelsMatch } from '../../model/match.ts'
import { isMeshWide } from '../../snapshot/policies.ts'
import type { Changes } from '../../snapshot/snapshot.ts'
import { type ClassInputs, concernedBy } from './class-inputs.ts'
import type { ServedClass } from './served-class.ts'

const rows = Object.values(concernedBy)
const selectingKinds = new Map(rows.flatMap((concerned) => ('selectedBy' in concerned ? concerned.selectedBy.map((kind) => [kind.name, kind]) : [])))

/** A connected proxy. */
export interface Connected {
  readonly node: ProxyNode
  /** The class that it is assigned to. Undefined while none has been found. */
  served: ServedClass | undefined
}

/** Connections with their proxies. */
export class ProxyIndex {
  readonly #proxies = new Map<string, Connected>()
  readonly #byAddress = new Map<string, Set<string>>()
  readonly #byNamespace = new Map<string, Set<string>>()
  readonly #routers = new Set<string>()
  readonly #labels = new LabelIndex()

  add(connection: string, node: ProxyNode): void {
    this.#proxies.set(connection, { node, served: undefined })
    for (const address of node.addresses) addTo(this.#byAddress, address, connection)
    addTo(this.#byNamespace, node.namespace, connection)
    if (node.type === 'router') this.#routers.add(connection)
  }

  /** Removes a connection. Returns its proxy. */
  delete(connection: string): Connected | undefined {
    const proxy = this.#proxies.get(connection)
    if (!proxy) return undefined
    this.#proxies.delete(connection)
    this.#routers.delete(connection)
    for (const address of proxy.node.addresses) deleteFrom(this.#byAddress, address, connection)
    deleteFrom(this.#byNamespace, proxy.node.namespace, connection)
    this.#labels.delete(connection)
    return proxy
  }

  /** Sets the labels by which selectors match a proxy. */
  label(connection: string, labels: Readonly<Record<string, string>>): void {
    this.#labels.set(connection, labels)
  }

  get(connection: string): Connected | undefined {
    return this.#proxies.get(connection)
  }

  entries(): Iterable<[connection: string, proxy: Connected]> {
    return this.#proxies.entries()
  }

  /** Connections of the proxies at an address. */
  at(address: string): Iterable<string> {
    return this.#byAddress.get(address) ?? []
  }

  /** The connections whose class may have changed between two snapshots. */
  reclassified(before: ClassInputs, now: ClassInputs, { objects }: Pick<Changes, 'objects'>): Iterable<string> {
    const found = new Set<string>()
    const take = (connections: Iterable<string> = []) => {
      for (const connection of connections) found.add(connection)
    }
    for (const concerned of rows) {
      if ('allIf' in concerned && concerned.allIf(before, now)) return this.#proxies.keys()
      if ('inNamespaces' in concerned) for (const namespace of concerned.inNamespaces(before, now)) take(this.#byNamespace.get(namespace))
    }
    for (const { before: old, now: object } of objects) for (const each of [old, object]) if (each) take(this.#selected(each, now.mesh.rootNamespace))
    return found
  }

  /** The connections of the proxies that an object selects; all connections when the kind of the object is not declared. */
  #selected(object: ConfigObject, rootNamespace: string): Iterable<string> {
    const { namespace, spec } = object
    const kind = kindId(object)
    if (!kinds.has(kind)) return this.#proxies.keys()
    const selecting = selectingKinds.get(kind)
    if (!selecting) return []
    const { scope, selects } = selecting
    // An object whose selector cannot be read is treated as if it selected any proxy.
    const labels = contain(
      () => selects.labels(spec as never) ?? {},
      () => ({}),
    )
    const isOfType = (connection: string) => selects.proxies === 'all' || this.#routers.has(connection) === (selects.proxies === 'routers')
    if (scope === 'namespace' || (scope === 'namespace or mesh' && !isMeshWide(namespace, rootNamespace)))
      return [...(this.#byNamespace.get(namespace) ?? [])].filter(
        (connection) => isOfType(connection) && labelsMatch(labels, this.#labels.of(connection)),
      )
    if (Object.keys(labels).length > 0) return this.#labels.having(labels).filter(isOfType)
    return selects.proxies === 'routers' ? this.#routers : [...this.#proxies.keys()].filter(isOfType)
  }
}

function deleteFrom(sets: Map<string, Set<string>>, key: string, item: string): void {
  const set = sets.get(key)
  set?.delete(item)
  if (set?.size === 0) sets.delete(key)
}
