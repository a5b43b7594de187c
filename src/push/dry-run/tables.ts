/** The resources of a class of proxies, and those in which two classes differ. */
import { compare } from '../../model/order.ts'
import { hostOf } from '../../xds/names.ts'
import type { Resource } from '../../xds/slab/resource.ts'
import { pushOrder } from '../../xds/type-urls.ts'
import type { Planner } from '../planner.ts'

/** The resources of a class: by type, then by name. */
export type Table = ReadonlyMap<string, ReadonlyMap<string, Resource>>

/** A resource that differs between two classes. */
export interface Differing {
  readonly typeUrl: string
  readonly name: string
  readonly before: Resource | undefined
  readonly now: Resource | undefined
}

/** Returns the resources of a class. Of several of one name the first counts. */
export function resourcesOf({ present, groups }: Pick<Planner, 'present' | 'groups'>, classId: string): Table {
  const table = new Map<string, ReadonlyMap<string, Resource>>()
  for (const [typeUrl, uses] of Object.entries(present.manifest(classId)?.groups ?? {})) {
    const found = new Map<string, Resource>()
    for (const { group, hide } of uses) {
      const hidden = new Set(hide)
      for (const [name, resource] of groups.resources(group))
        if (!found.has(name) && !(hidden.size > 0 && hidden.has(hostOf(typeUrl, name)))) found.set(name, resource)
    }
    table.set(typeUrl, found)
  }
  return table
}

const place = (typeUrl: string): number => (pushOrder.includes(typeUrl) ? pushOrder.indexOf(typeUrl) : pushOrder.length)
const none: ReadonlyMap<string, Resource> = new Map()

/** Returns the resources that differ, in the order in which types are sent, then by name. */
export function differing(before: Table, now: Table): Differing[] {
  const found: Differing[] = []
  for (const typeUrl of new Set([...before.keys(), ...now.keys()])) {
    const [old, own] = [before.get(typeUrl) ?? none, now.get(typeUrl) ?? none]
    for (const [name, resource] of old)
      if (resource.version !== own.get(name)?.version) found.push({ typeUrl, name, before: resource, now: own.get(name) })
    for (const [name, resource] of own) if (!old.has(name)) found.push({ typeUrl, name, before: undefined, now: resource })
  }
  return found.sort((one, other) => place(one.typeUrl) - place(other.typeUrl) || compare(one.name, other.name))
}
