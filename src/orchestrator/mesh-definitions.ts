/** Which CustomResourceDefinitions of a cluster are those of kinds of the mesh, and in which version their objects are read. */
import type { Kind } from '../config/kinds/kind.ts'
import { type KindName, kinds } from '../config/kinds.ts'
import { isMapping, mapping } from '../config/shape.ts'
import type { MeshNames } from '../names/mesh-names.ts'

type Mapping = Readonly<Record<string, unknown>>

/** The definition of a kind of the mesh, in its own group or in that of the alias. */
export interface MeshDefinition {
  readonly kind: Kind<KindName>
  /** As it is written. */
  readonly group: string
  readonly plural: string
  readonly isAlias: boolean
  /** The newest version that is known here and served there; undefined: there is none. */
  readonly version: string | undefined
  /** Why its objects cannot be read; undefined if they can be. */
  readonly fault: string | undefined
}

/** The parts of the path of a resource. */
const label = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/

/** Reads a CustomResourceDefinition. Undefined for kinds that are not the mesh's, whatever their names are. */
export function meshDefinition(value: Mapping, names: MeshNames): MeshDefinition | undefined {
  const spec = mapping(value.spec)
  const named = mapping(spec.names)
  const { group } = spec
  const { kind: name, plural } = named
  if (typeof group !== 'string' || typeof name !== 'string' || typeof plural !== 'string' || !label.test(group) || !label.test(plural))
    return undefined
  const kind = kinds.get(name)
  if (!kind || names.canonicalGroup(group) !== `${kind.group}.${names.domain}`) return undefined
  const served = new Set(list(spec.versions).flatMap((version) => (version.served === true ? [version.name] : [])))
  const version = kind.versions.findLast((each) => served.has(each))
  const conditions = list(mapping(value.status).conditions)
  const isEstablished = conditions.some(({ type, status }) => type === 'Established' && status === 'True')
  const fault =
    plural !== kind.plural
      ? `its plural is not ${kind.plural}`
      : spec.scope !== 'Namespaced'
        ? 'its scope is not Namespaced'
        : version === undefined
          ? `it serves none of the versions ${kind.versions.join(', ')}`
          : isEstablished
            ? undefined
            : 'it is not established'
  return { kind, group, plural, isAlias: names.canonicalGroup(group) !== group, version, fault }
}

const list = (value: unknown): readonly Mapping[] => (Array.isArray(value) ? value.filter(isMapping) : [])
