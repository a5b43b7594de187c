/** What a proxy would hold, by the planner alone. */
import type { Planner } from '../../src/push/planner.ts'
import { hostOf } from '../../src/xds/names.ts'
import type { Resource } from '../../src/xds/slab/resource.ts'

/** The resources of a connection's class by type, hidden ones left out. Throws where a type has a name twice. */
export function resourcesOf(planner: Planner, connection: string): Map<string, Resource[]> {
  const proxy = planner.proxies().find((known) => known.connection === connection)?.proxyClass
  const uses = proxy ? planner.generation.groupsFor(proxy) : {}
  return new Map(
    Object.entries(uses).map(([typeUrl, groups]) => {
      const visible = groups.flatMap(({ group, hide }) => {
        const hidden = new Set(hide)
        return [...planner.groups.resources(group).values()].filter(({ name }) => !hidden.has(hostOf(typeUrl, name)))
      })
      const names = visible.map(({ name }) => name)
      const twice = names.filter((name, index) => names.indexOf(name) !== index)
      if (names.length < 5000 && twice.length > 0) throw new Error(`${connection} has ${twice.join()} of ${typeUrl} twice`)
      return [typeUrl, visible]
    }),
  )
}
