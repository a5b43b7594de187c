/** The connected proxies, indexed by what changes affect them by. Only a change that concerns all proxies iterates over all of them. */

import type { ConfigObject, ProxyNode } from '../../../protocols/data.ts'
import { kinds } from '../../config/kinds.ts'
import { contain } from '../../model/faults.ts'
import { addTo } from '../../model/lists.ts'
import { labelsMatch } from '../../model/match.ts'
import { isMeshWide } from '../../snapshot/policies.ts'
import type { Changes, MeshSnapshot } from '../../snapshot/snapshot.ts'
import { LabelIndex } from './label-index.ts'

/** A connected proxy. */
export interface Connected {
  readonly node: ProxyNode
  /** Empty while no class has been found. */
  classId: string
}

/** Connections with their proxies. */
export class ProxyIndex {
  readonly #proxies = new Map<string, Connected>()
  readonly #byAddress = new Map<string, Set<string>>()
  readonly #byNamespace = new Map<string, Set<string>>()
  readonly #routers = new Set<string>()
  readonly #labels = new LabelIndex()

  add(connection: string, node: ProxyNode): void {
    this.#proxies.set(connection, { node, classId: '' })
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

  /**
   * The connections whose class may have changed between two snapshots: those of proxies that changed objects select, and of namespaces
   * whose visibility became different from the common one or ceased to be.
   */
  reclassified(before: MeshSnapshot, now: MeshSnapshot, changes: Changes): Iterable<string> {
    const labels = (snapshot: MeshSnapshot) => [...snapshot.virtualServices.byCallerLabel.keys()].sort().join()
    if (labels(before) !== labels(now) || before.mesh !== now.mesh) return this.#proxies.keys()
    const found = new Set<string>()
    const take = (connections: Iterable<string> = []) => {
      for (const connection of connections) found.add(connection)
    }
    for (const { before: old, now: object } of changes.objects)
      for (const each of [old, object]) if (each) take(this.#selected(each, now.mesh.rootNamespace))
    for (const namespace of this.#namespacesWithOtherVisibility(before, now)) take(this.#byNamespace.get(namespace))
    return found
  }

  /** The connections of the proxies that an object selects; all connections when the kind of the object declares no selection. */
  #selected({ kind, namespace, spec }: ConfigObject, rootNamespace: string): Iterable<string> {
    const declared = kinds.get(kind)
    if (!declared) return this.#proxies.keys()
    const { scope, selects } = declared
    if (!selects) return []
    // An object whose selector cannot be read is treated as if it selected any proxy.
    const labels = contain(
      () => selects.labels(spec) ?? {},
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

  /** Namespaces that have a visibility difference in only one of the two snapshots. */
  *#namespacesWithOtherVisibility({ visibility: before }: MeshSnapshot, { visibility: now }: MeshSnapshot): Generator<string> {
    if (before === now) return
    for (const namespace of before.differences.keys()) if (!now.differences.has(namespace)) yield namespace
    for (const namespace of now.differences.keys()) if (!before.differences.has(namespace)) yield namespace
  }
}

function deleteFrom(sets: Map<string, Set<string>>, key: string, item: string): void {
  const set = sets.get(key)
  set?.delete(item)
  if (set?.size === 0) sets.delete(key)
}
