/** The connected proxies, found by what changes may touch them by: no change makes a pass over all of them unless it concerns all. */

import type { ConfigObject, ProxyNode } from '../../../protocols/data.ts'
import { kinds } from '../../config/kinds.ts'
import { addTo } from '../../model/lists.ts'
import type { Changes, MeshSnapshot } from '../../snapshot/snapshot.ts'

/** A connected proxy. */
export interface Connected {
  readonly node: ProxyNode
  /** Empty until a class was found. */
  classId: string
}

/** Connections with their proxies. */
export class ProxyIndex {
  readonly #proxies = new Map<string, Connected>()
  readonly #byAddress = new Map<string, Set<string>>()
  readonly #byNamespace = new Map<string, Set<string>>()
  readonly #routers = new Set<string>()

  add(connection: string, node: ProxyNode): void {
    this.#proxies.set(connection, { node, classId: '' })
    for (const address of node.addresses) addTo(this.#byAddress, address, connection)
    addTo(this.#byNamespace, node.namespace, connection)
    if (node.type === 'router') this.#routers.add(connection)
  }

  /** Forgets a connection; returns the proxy that it was of. */
  delete(connection: string): Connected | undefined {
    const proxy = this.#proxies.get(connection)
    if (!proxy) return undefined
    this.#proxies.delete(connection)
    this.#routers.delete(connection)
    for (const address of proxy.node.addresses) deleteFrom(this.#byAddress, address, connection)
    deleteFrom(this.#byNamespace, proxy.node.namespace, connection)
    return proxy
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

  /** Connections whose class may be another since a snapshot: of proxies that changed objects select, or whose namespace sees otherwise than before. */
  reclassified(before: MeshSnapshot, now: MeshSnapshot, changes: Changes): Iterable<string> {
    const labels = (snapshot: MeshSnapshot) => [...snapshot.virtualServices.byCallerLabel.keys()].sort().join()
    if (labels(before) !== labels(now) || before.mesh !== now.mesh) return this.#proxies.keys()
    const found = new Set<string>()
    const take = (connections: Iterable<string> = []) => {
      for (const connection of connections) found.add(connection)
    }
    for (const { before: old, now: object } of changes.objects.values())
      for (const each of [old, object]) if (each) take(this.#selected(each, now.mesh.rootNamespace))
    for (const namespace of this.#differently(before, now)) take(this.#byNamespace.get(namespace))
    return found
  }

  /** Connections of the proxies that an object may select; all where nobody declared whom its kind selects. */
  #selected({ kind, namespace }: ConfigObject, rootNamespace: string): Iterable<string> {
    const declared = kinds.get(kind)
    if (!declared) return this.#proxies.keys()
    const { scope, selects } = declared
    if (!selects) return []
    const everywhere = scope === 'mesh' || scope === 'exported' || (scope === 'namespace or mesh' && namespace === rootNamespace)
    const reached = everywhere ? this.#proxies.keys() : (this.#byNamespace.get(namespace) ?? [])
    if (selects.proxies === 'routers') return everywhere ? this.#routers : [...reached].filter((connection) => this.#routers.has(connection))
    return selects.proxies === 'sidecars' ? [...reached].filter((connection) => !this.#routers.has(connection)) : reached
  }

  /** Namespaces that came to differ from the others, or ceased to. */
  *#differently({ visibility: before }: MeshSnapshot, { visibility: now }: MeshSnapshot): Generator<string> {
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
