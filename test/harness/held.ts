/** Computes the resources that a proxy would hold from the planner's state. */
import type { Planner } from '../../src/push/planner.ts'
import { hostOf } from '../../src/xds/names.ts'
import type { Resource } from '../../src/xds/slab/resource.ts'

/**
 * Returns the resources of a connection's class by type: without groups that the class only keeps, without hidden ones, and without those that are being removed from a group while
 * another group has a resource of the same name. Throws when a name still occurs twice.
 */
export function resourcesOf(planner: Planner, connection: string): Map<string, Resource[]> {
  const uses = Map.groupBy(planner.servedClass(connection)?.uses ?? [], ({ group }) => group.typeUrl)
  return new Map(
    [...uses].map(([typeUrl, groups]) => {
      const visible = groups.flatMap(({ group: { id }, hide }) => {
        const hidden = new Set(hide)
        const shown = [...planner.groups.resources(id).values()].filter(({ name }) => !hidden.has(hostOf(typeUrl, name)))
        return shown.map((resource) => ({ resource, isLeaving: planner.groups.isLeaving(id, resource.name) }))
      })
      const staying = visible.flatMap(({ resource, isLeaving }) => (isLeaving ? [] : [resource]))
      const names = new Set(staying.map(({ name }) => name))
      if (names.size < staying.length) {
        const twice = staying.map(({ name }) => name).filter((name, index, all) => all.indexOf(name) !== index)
        throw new Error(`${connection} has ${twice.join()} of ${typeUrl} twice`)
      }
      const leaving = new Map<string, Resource>()
      for (const { resource, isLeaving } of visible)
        if (isLeaving && !names.has(resource.name) && !leaving.has(resource.name)) leaving.set(resource.name, resource)
      return [typeUrl, [...staying, ...leaving.values()]]
    }),
  )
}
