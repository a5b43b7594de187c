/** Makes a mesh twice, as it is and with documents applied, and says in which resources its proxies would see a difference. */
import type { JsonValue } from '@bufbuild/protobuf'
import type { ConfigObject, ObjectReference } from '../../../protocols/data.ts'
import type { ChangedProxies, DryRun, DryRunInput, DryRunProxy, DryRunRow, FieldChange, ResourceChange } from '../../../protocols/messages/dry-run.ts'
import type { RegistryService } from '../../../protocols/messages/explain.ts'
import type { PassedSettings } from '../../../protocols/messages/passed-settings.ts'
import type { Features } from '../../config/features.ts'
import { configKey, kinds } from '../../config/kinds.ts'
import type { PolicyCheckName } from '../../config/opt-outs.ts'
import { append } from '../../model/lists.ts'
import { compare } from '../../model/order.ts'
import { nameOfNode } from '../../model/proxy.ts'
import { meshNames } from '../../names/mesh-names.ts'
import { referenceTo } from '../../snapshot/references.ts'
import { changedFields } from '../../xds/changed-fields.ts'
import { plannerOf } from '../passed-mesh.ts'
import type { Planner } from '../planner.ts'
import { type Applied, applied, type ChangedObject } from './applied.ts'
import { mostProxies } from './rows.ts'
import { changedSecrets } from './secrets.ts'
import { type Differing, differing, resourcesOf, type Table } from './tables.ts'

/** What is told at most: objects, sets of proxies, node ids of a set, resources of a set and of all, fields of a resource, characters of a value, faults. */
const most = { objects: 1000, sets: 200, nodeIds: 100, resources: 500, allResources: 3000, fields: 20, value: 2000, faults: 100 }
/** The maximum size of a resource whose fields are compared, in bytes. */
const mostCompared = 4 * 1_048_576

/** How a dry run reads resources, and when it has to end. */
export interface DryRunParts {
  /** Decodes a message to JSON with the names of its schema; undefined: a type within it is not known. */
  readonly decode: (typeUrl: string, message: Uint8Array) => JsonValue | undefined
  /** Whether the time is used up. Then proxies are left out. */
  readonly isOver: () => boolean
  /** Whether an object was made by a control plane of a mesh domain and is in nobody's documents. */
  readonly isMade: (object: ConfigObject, meshDomain: string) => boolean
}

/** Runs. `rows`: the mesh. */
export function dryRun(rows: Iterable<DryRunRow>, order: Omit<DryRunInput, 'pieces'>, parts: DryRunParts): DryRun {
  const mesh = new GivenMesh(rows, order.others)
  const { features, optOuts } = mesh
  const change = applied(order.texts, {
    names: meshNames(features.MESH_DOMAIN),
    optOuts,
    revision: features.REVISION === 'default' ? '' : features.REVISION,
    present: mesh.configuration(),
    namespace: order.namespace || mesh.defaultNamespace(parts.isMade),
    ...{ replace: order.replace, at: order.at, isMade: (object) => parts.isMade(object, features.MESH_DOMAIN) },
  })
  const { before, now } = { before: mesh.planned(undefined), now: mesh.planned(change) }
  const comparison = new Comparison(before, now, parts)
  comparison.compare(mesh.proxies)
  const reference = ({ key, object }: ChangedObject): ObjectReference => referenceTo(key, object, features.MESH_DOMAIN)
  return {
    faults: change.faults.slice(0, most.objects),
    objects: change.objects.slice(0, most.objects).map((each) => ({ reference: reference(each), change: each.change })),
    otherObjects: Math.max(0, change.objects.length - most.objects),
    ...{ sameObjects: change.same, foreign: change.foreign },
    ...comparison.result(),
    leftProxies: comparison.left + mesh.left,
    newFaults: newFaults(before, now),
  }
}

/** The mesh as rows describe it. */
class GivenMesh {
  readonly proxies: DryRunProxy[] = []
  left = 0
  #settings: PassedSettings | undefined
  readonly #objects = new Map<string, ConfigObject>()
  readonly #services: RegistryService[] = []

  constructor(rows: Iterable<DryRunRow>, others: readonly DryRunProxy[]) {
    for (const row of rows)
      if ('settings' in row) this.#settings = row.settings
      else if ('object' in row) this.#objects.set(configKey(row.object), row.object)
      else if ('service' in row) this.#services.push(row.service)
      else if ('proxy' in row) this.proxies.push(row.proxy)
      else this.left += row.left
    const room = mostProxies - this.proxies.length
    this.proxies.push(...others.slice(0, room))
    this.left += Math.max(0, others.length - room)
  }

  get #given(): PassedSettings {
    if (!this.#settings) throw new Error('the settings of the mesh are not known')
    return this.#settings
  }

  get features(): Features {
    return this.#given.features as Features
  }

  get optOuts(): ReadonlySet<PolicyCheckName> {
    return new Set(this.#given.optOuts as PolicyCheckName[])
  }

  /** The objects of kinds of the mesh, by key. */
  configuration(): ReadonlyMap<string, ConfigObject> {
    return new Map([...this.#objects].filter(([, { kind }]) => kinds.has(kind)))
  }

  /** The namespace that objects get where the configuration is, if they name none: that of a cluster's command line; undefined: files give none. */
  defaultNamespace(isMade: DryRunParts['isMade']): string | undefined {
    const objects = [...this.#objects.values()].filter((object) => !isMade(object, this.features.MESH_DOMAIN))
    const configuration = objects.filter(({ kind }) => kinds.has(kind))
    // Without configuration its place is that of what else there is, such as Namespaces.
    return (configuration.length > 0 ? configuration : objects).some(({ uid }) => uid !== '') ? 'default' : undefined
  }

  /** A planner of the mesh with a change, and its proxies connected, each named by its place in the list. */
  planned(change: Applied | undefined): Planner {
    const planner = plannerOf(this.#given, this.#services, 'of a dry run')
    const { state } = planner
    for (const [key, object] of this.#objects) state.setConfig(key, object)
    for (const { key, change: what, object } of change?.objects ?? []) state.setConfig(key, what === 'removed' ? undefined : object)
    for (const [key, standIn] of change?.unusable ?? []) state.keepConfig(key, standIn)
    planner.advance()
    for (const [index, { node }] of this.proxies.entries()) planner.connect(String(index), node)
    return planner
  }
}

/** Compares what proxies are given by two planners. */
class Comparison {
  readonly #before: Planner
  readonly #now: Planner
  readonly #parts: DryRunParts
  readonly #tables = new Map<Planner, Map<string, Table>>()
  readonly #fields = new Map<string, Pick<ResourceChange, 'fields' | 'otherFields'>>()
  /** The proxies that see the same differences, by these. */
  readonly #sets = new Map<
    string,
    { readonly resources: readonly Differing[]; readonly secrets: readonly ResourceChange[]; readonly nodeIds: string[] }
  >()
  #unchanged = 0
  /** The number of proxies for which there was no time. */
  left = 0

  constructor(before: Planner, now: Planner, parts: DryRunParts) {
    this.#before = before
    this.#now = now
    this.#parts = parts
  }

  compare(proxies: readonly DryRunProxy[]): void {
    const pairs = new Map<string, number[]>()
    for (const index of proxies.keys())
      append(pairs, `${this.#before.servedClass(String(index))?.id}\n${this.#now.servedClass(String(index))?.id}`, index)
    for (const indexes of pairs.values()) {
      if (this.#parts.isOver()) {
        this.left += indexes.length
        continue
      }
      const [first = 0] = indexes
      const [before, now] = [this.#table(this.#before, first), this.#table(this.#now, first)]
      const resources = differing(before, now)
      if (resources.length === 0) {
        this.#unchanged += indexes.length
        continue
      }
      const nodeIds = indexes.map((index) => (proxies[index] as DryRunProxy).nodeId)
      const known = resources.map(({ typeUrl, name, before: old, now: own }) => [typeUrl, name, old?.version, own?.version].join(' ')).join('\n')
      const set = this.#sets.get(known)
      if (set) set.nodeIds.push(...nodeIds)
      else
        this.#sets.set(known, {
          ...{ resources, nodeIds },
          secrets: changedSecrets(resources, {
            has: (table, name, isChanged) => this.#mentions(table === 'before' ? [this.#before, before] : [this.#now, now], name, isChanged),
            json: (differs, table) => this.#json(differs, table),
          }),
        })
    }
  }

  result(): Pick<DryRun, 'changed' | 'otherProxies' | 'unchangedProxies'> {
    const sets = this.#told()
    return {
      changed: sets
        .slice(0, most.sets)
        .map(({ nodeIds, ...set }) => ({ ...set, nodeIds: nodeIds.sort(byName).slice(0, most.nodeIds), proxies: nodeIds.length })),
      otherProxies: sets.slice(most.sets).reduce((sum, { nodeIds }) => sum + nodeIds.length, 0),
      unchangedProxies: this.#unchanged,
    }
  }

  /** The sets of proxies, the largest first. Those of which the same is told are one: their resources may differ elsewhere. */
  #told(): (Pick<ChangedProxies, 'resources' | 'otherResources'> & { readonly nodeIds: string[] })[] {
    let room = most.allResources
    const sets = new Map<string, Pick<ChangedProxies, 'resources' | 'otherResources'> & { readonly nodeIds: string[] }>()
    for (const { resources, secrets, nodeIds } of this.#sets.values()) {
      const told = resources.slice(0, Math.min(most.resources, room)).map((each) => this.#changeOf(each))
      const set = { resources: [...told, ...secrets], otherResources: resources.length - told.length }
      const key = JSON.stringify(set)
      const same = sets.get(key)
      if (same) same.nodeIds.push(...nodeIds)
      else {
        room -= told.length
        sets.set(key, { ...set, nodeIds: [...nodeIds] })
      }
    }
    return [...sets.values()].sort((one, other) => other.nodeIds.length - one.nodeIds.length)
  }

  #table(planner: Planner, index: number): Table {
    const known = this.#tables.get(planner) ?? new Map<string, Table>()
    this.#tables.set(planner, known)
    const id = planner.servedClass(String(index))?.id ?? ''
    const table = known.get(id) ?? resourcesOf(planner, id)
    known.set(id, table)
    return table
  }

  #changeOf(differs: Differing): ResourceChange {
    const { typeUrl, name, before, now } = differs
    if (!before || !now) return { typeUrl, name, change: now ? 'added' : 'removed', fields: [], otherFields: 0 }
    const key = [typeUrl, name, before.version, now.version].join(' ')
    const fields = this.#fields.get(key) ?? this.#fieldsOf(differs)
    this.#fields.set(key, fields)
    return { typeUrl, name, change: 'changed', ...fields }
  }

  #fieldsOf(differs: Differing): Pick<ResourceChange, 'fields' | 'otherFields'> {
    const [before, now] = [this.#json(differs, 'before'), this.#json(differs, 'now')]
    if (before === undefined || now === undefined) return { fields: [], otherFields: 0 }
    const { fields, others } = changedFields(before, now, most.fields)
    return {
      fields: fields.map(({ field, before: old, now: own }): FieldChange => ({ field, before: cut(old), now: cut(own) })),
      otherFields: others,
    }
  }

  /** A state of a resource; undefined where there is none, it is too large, or there is no time. */
  #json({ typeUrl, before, now }: Differing, table: 'before' | 'now'): JsonValue | undefined {
    const [planner, resource] = table === 'before' ? [this.#before, before] : [this.#now, now]
    const bytes = resource?.slices.reduce((sum, { length }) => sum + length, 0) ?? 0
    if (!resource || bytes > mostCompared || this.#parts.isOver()) return undefined
    return this.#parts.decode(typeUrl, planner.groups.valueOf(resource))
  }

  /** Whether a resource of a class that does not differ has a text in it. */
  #mentions([planner, table]: readonly [Planner, Table], text: string, isChanged: (typeUrl: string, name: string) => boolean): boolean {
    for (const [typeUrl, resources] of table)
      for (const [name, resource] of resources) if (!isChanged(typeUrl, name) && planner.groups.valueOf(resource).includes(text)) return true
    return false
  }
}

/** A value, or the beginning of its text where that is long. */
function cut(value: JsonValue | undefined): JsonValue | undefined {
  const text = value === undefined ? '' : JSON.stringify(value)
  return text.length > most.value ? `${text.slice(0, most.value)}…` : value
}

const byName = (one: string, other: string): number => compare(nameOfNode(one), nameOfNode(other))

/** The faults of one planner that another does not have. */
function newFaults(before: Planner, now: Planner): DryRun['newFaults'] {
  const said = ({ type, resource, reason }: ReturnType<Planner['faults']['all']>[number]) => [type, resource, reason].join('\n')
  const known = new Set(before.faults.all().map(said))
  return now.faults
    .all()
    .filter((fault) => !known.has(said(fault)))
    .slice(0, most.faults)
    .map(({ type, resource, reason, consequence, isLoss, objects }) => {
      const references = objects.map((key) => now.state.reference(key))
      return { type, resource, reason, consequence, isLoss: isLoss ?? false, references }
    })
}
