/** Patches of EnvoyFilters as they are applied (docs/resources.md, F2 to F6). One that cannot be applied is reported and left out; it never spoils the rest. */
import { clone, type DescMessage, type MessageShape } from '@bufbuild/protobuf'
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import { contain } from '../../model/faults.ts'
import type { EnvoyFilter } from '../../snapshot/objects.ts'
import type { Draft } from '../draft.ts'
import { checkMessage } from '../resource-check.ts'
import type { Traits } from '../traits.ts'
import { type Lists, mergeInto } from './merge.ts'
import { checkPacked, type ReadValue, readValue } from './packed.ts'
import { enforcedOtherwise, policySettings } from './policy-filters.ts'
import { matchesProxy } from './selection.ts'

/** Where patches are applied, and to whom they report what they could not do. */
export interface PatchContext {
  readonly context: 'SIDECAR_INBOUND' | 'SIDECAR_OUTBOUND' | 'GATEWAY' | 'extensions'
  readonly traits: Traits
  /** Called with `EnvoyFilter/<namespace>/<name>` and the reason; `consequence` is what follows, that the patch is left out where nothing else is said. */
  report(object: string, reason: string, consequence?: string): void
}

/** A patch with the object that it comes from. */
export interface Patch {
  readonly patch: ConfigPatch
  readonly operation: Operation
  readonly object: string
  /** Namespace of the EnvoyFilter. */
  readonly namespace: string
}

type AppliesTo = ConfigPatch['applyTo']
type Operation = ConfigPatch['patch']['operation']

/** Lists into which something can be inserted at a place; for all others an insertion adds. */
const ordered: ReadonlySet<AppliesTo> = new Set(['LISTENER_FILTER', 'NETWORK_FILTER', 'HTTP_FILTER', 'HTTP_ROUTE'])

const operationOf = ({ applyTo, patch: { operation } }: ConfigPatch): Operation =>
  operation.startsWith('INSERT_') && !ordered.has(applyTo) ? 'ADD' : operation

/** The object of an EnvoyFilter, as faults name it. */
const objectOf = ({ namespace, name }: EnvoyFilter): string => `EnvoyFilter/${namespace}/${name}`

/** The patches of one kind that hold in a context. */
export function patchesOf({ context, traits }: PatchContext, applyTo: AppliesTo): Patch[] {
  if (traits.filters.length === 0) return []
  return traits.filters.flatMap((filter) =>
    (filter.spec.configPatches ?? [])
      .filter((patch) => {
        const wanted = patch.match?.context ?? 'ANY'
        return patch.applyTo === applyTo && (wanted === 'ANY' || wanted === context || context === 'extensions') && matchesProxy(patch, traits)
      })
      .map((patch) => ({ patch, operation: operationOf(patch), object: objectOf(filter), namespace: filter.namespace })),
  )
}

/** What patches were read as, and why those that could not be read were not. */
const values = new WeakMap<ConfigPatch['patch'], ReadValue<unknown> | { readonly reason: string }>()

/** The types of a patch that no schema here describes, of one that was read; Envoy alone can judge them. */
export function uncheckedTypes({ patch }: ConfigPatch): readonly string[] {
  const known = values.get(patch)
  return known && 'unchecked' in known ? known.unchecked : []
}

/** The value of a patch as a message; each reading is a copy. Undefined, and reported, when it cannot be read. */
export function readPatch<Schema extends DescMessage>(schema: Schema, entry: Patch, context: PatchContext): MessageShape<Schema> | undefined {
  const { patch, object, operation } = entry
  let known = values.get(patch.patch)
  if (!known) {
    const isPart = isMerge(entry)
    known = contain<ReadValue<unknown> | { reason: string }>(
      () => {
        const read = readValue(schema, patch.patch.value, isPart)
        if (!isPart) {
          checkComplete(read.message)
          checkMessage(schema, read.message)
        }
        return read
      },
      (reason) => ({ reason }),
    )
    values.set(patch.patch, known)
  }
  const what = `${patch.applyTo} ${operation}`
  if ('reason' in known) {
    context.report(object, `${what}: ${known.reason}`)
    return undefined
  }
  if (known.leftOut !== undefined) context.report(object, `${what}: ${known.leftOut}`, 'the field is left out')
  const message = known.message as MessageShape<Schema>
  for (const name of policySettings(message as object)) context.report(object, `${what} sets ${name} for routes`, enforcedOtherwise)
  return clone(schema, message)
}

/** A filter without configuration is refused by Envoy, which finds filters by the type of that, not by name. Throws then. */
function checkComplete(message: object): void {
  const { name, configType } = message as { name?: string; configType?: { case: string | undefined } }
  if (configType && configType.case === undefined) throw new Error(`filter ${name} has no typed_config: Envoy finds filters by the type of it`)
}

/** Whether a patch changes what is there by merging. */
export const isMerge = ({ operation }: Patch): boolean => operation === 'MERGE' || operation === 'MERGE_AND_REPLACE_LIST'

/** Whether a patch adds a resource, or an item somewhere. */
export const adds = ({ operation }: Patch): boolean => operation === 'ADD' || operation.startsWith('INSERT_')

/** Objects of patches, each once. */
export const objectsOf = (patches: readonly Patch[]): string[] => [...new Set(patches.map(({ object }) => object))]

/** A list of messages that patches change. */
export interface PatchedList<Schema extends DescMessage> {
  readonly schema: Schema
  /** Whether a patch is about an item; of a patch that names none, every item. */
  matches(item: MessageShape<Schema>, patch: ConfigPatch): boolean
  /** Whether a patch names an item. */
  names(patch: ConfigPatch): boolean
  /** Whether only patches that name an item may take it away or replace it, and only one is replaced: so it is with filters. */
  readonly byNameOnly: boolean
  /** Operations that are done in turns, each turn in the order of the patches. */
  readonly turns: readonly ReadonlySet<Operation>[]
  /** Merges a value into an item. The usual merging where it is not given. */
  merge?(item: MessageShape<Schema>, value: MessageShape<Schema>, lists: Lists): void
  /** Where an item goes that is added without a place. Behind all others where it is not given. */
  place?(list: readonly MessageShape<Schema>[], patch: ConfigPatch): number
}

const insertions = ['ADD', 'INSERT_BEFORE', 'INSERT_AFTER', 'INSERT_FIRST'] as const
const changes = ['MERGE', 'MERGE_AND_REPLACE_LIST', 'REMOVE', 'REPLACE'] as const

/** Orders in which operations are done: what is there is changed and then added to; or added to and then merged into; or all in the order of the patches. */
export const turns = {
  changesFirst: [new Set<Operation>(changes), new Set<Operation>(insertions)],
  mergesLast: [new Set<Operation>([...insertions, 'REMOVE', 'REPLACE']), new Set<Operation>(['MERGE', 'MERGE_AND_REPLACE_LIST'])],
  inOrder: [new Set<Operation>([...insertions, ...changes])],
} as const

/** Applies patches to a list of messages. The list that is given stays as it is. */
export function patchList<Schema extends DescMessage>(
  of: PatchedList<Schema>,
  items: readonly MessageShape<Schema>[],
  patches: readonly Patch[],
  context: PatchContext,
): MessageShape<Schema>[] {
  let list = [...items]
  for (const turn of of.turns) for (const entry of patches) if (turn.has(entry.operation)) list = applied(of, list, entry, context)
  return list
}

function applied<Schema extends DescMessage>(
  of: PatchedList<Schema>,
  list: MessageShape<Schema>[],
  entry: Patch,
  context: PatchContext,
): MessageShape<Schema>[] {
  const { patch, operation } = entry
  const matches = (item: MessageShape<Schema>) => of.matches(item, patch)
  if (of.byNameOnly && (operation === 'REMOVE' || operation === 'REPLACE') && !of.names(patch)) return list
  if (operation === 'REMOVE') return list.filter((item) => !matches(item))
  const value = readPatch(of.schema, entry, context)
  if (!value) return list
  if (isMerge(entry)) return list.map((item) => (matches(item) ? merged(of.schema, item, value, entry, context, of.merge) : item))
  if (operation === 'REPLACE') {
    const first = list.findIndex(matches)
    return list.map((item, index) => (matches(item) && (!of.byNameOnly || index === first) ? clone(of.schema, value) : item))
  }
  return inserted(of, list, value, entry)
}

/** Puts an item into a list. Before or after a match that is not there means nowhere; without a match, first or last. */
function inserted<Schema extends DescMessage>(
  of: PatchedList<Schema>,
  list: readonly MessageShape<Schema>[],
  item: MessageShape<Schema>,
  { patch, operation }: Patch,
): MessageShape<Schema>[] {
  const named = of.names(patch)
  const found = named ? list.findIndex((other) => of.matches(other, patch)) : -1
  const isPlaced = operation === 'INSERT_BEFORE' || operation === 'INSERT_AFTER' || (operation === 'INSERT_FIRST' && !of.byNameOnly)
  if (named && found < 0 && isPlaced) return [...list]
  const places: Partial<Record<Operation, number>> = {
    ADD: of.place?.(list, patch) ?? list.length,
    INSERT_FIRST: 0,
    INSERT_BEFORE: named ? found : 0,
    INSERT_AFTER: named ? found + 1 : list.length,
  }
  return list.toSpliced(places[operation] ?? list.length, 0, item)
}

/** A message with the value of a patch merged into it; the message itself, and a report, where that fails. */
export function merged<Schema extends DescMessage>(
  schema: Schema,
  item: MessageShape<Schema>,
  value: MessageShape<Schema>,
  entry: Patch,
  context: PatchContext,
  merge: (item: MessageShape<Schema>, value: MessageShape<Schema>, lists: Lists) => void = (into, from, lists) =>
    mergeInto(schema, into, from, lists),
): MessageShape<Schema> {
  const copy = clone(schema, item)
  return contain(
    () => {
      merge(copy, clone(schema, value), entry.operation === 'MERGE_AND_REPLACE_LIST' ? 'replaced' : 'grow')
      checkMessage(schema, copy)
      checkPacked(schema, copy)
      return copy
    },
    (reason) => {
      context.report(entry.object, `${entry.patch.applyTo} ${entry.operation}: ${reason}`)
      return item
    },
  )
}

/** A message after its patches. Throws InvalidResource when they put something into it that Envoy would refuse. */
export function checked<Schema extends DescMessage>(
  schema: Schema,
  original: MessageShape<Schema>,
  patched: MessageShape<Schema> | undefined,
): MessageShape<Schema> | undefined {
  if (patched && patched !== original) checkPacked(schema, patched)
  return patched
}

/** Whether a patch adds a resource here. A sidecar has what is added in any context once: beside what is outbound. */
const addsIn = (entry: Patch, { context }: PatchContext): boolean =>
  adds(entry) && (context !== 'SIDECAR_INBOUND' || entry.patch.match?.context === context)

/** What patches add to the resources of a type, each as a draft; a value that cannot be read is reported when it is made. */
export function added<Schema extends DescMessage>(schema: Schema, patches: readonly Patch[], context: PatchContext): Draft<MessageShape<Schema>>[] {
  return patches
    .filter((patch) => addsIn(patch, context))
    .map((patch) => ({
      name: `${patch.object} ${patch.patch.applyTo}`,
      objects: () => [patch.object],
      make: () => readPatch(schema, patch, context),
    }))
}
