/**
 * Applies patches of EnvoyFilters (docs/resources.md, F2 to F6). A patch that cannot be applied is reported and skipped; the others are
 * applied.
 */
import { clone, type DescMessage, type MessageShape } from '@bufbuild/protobuf'
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import { configKey } from '../../config/kinds.ts'
import { contain } from '../../model/faults.ts'
import type { Draft } from '../draft.ts'
import { checkMessage } from '../resource-check.ts'
import type { Traits } from '../traits.ts'
import { type Lists, mergeInto } from './merge.ts'
import { checkPacked, type ReadValue, readValue } from './packed.ts'
import { enforcedOtherwise, policySettings } from './policy-filters.ts'
import { matchesProxy } from './selection.ts'

/** The context in which patches are applied, and the callback for reports. */
export interface PatchContext {
  readonly context: 'SIDECAR_INBOUND' | 'SIDECAR_OUTBOUND' | 'GATEWAY' | 'extensions'
  readonly traits: Traits
  /**
   * Reports a patch that could not be applied. `object` is `EnvoyFilter/<namespace>/<name>`; without a `consequence` the patch is skipped.
   */
  report(object: string, reason: string, consequence?: string): void
}

/** A patch and the object that contains it. */
export interface Patch {
  readonly patch: ConfigPatch
  readonly operation: Operation
  readonly object: string
  /** Namespace of the EnvoyFilter. */
  readonly namespace: string
}

type AppliesTo = ConfigPatch['applyTo']
type Operation = ConfigPatch['patch']['operation']

/** Lists in which items have a position; in all others an insertion appends. */
const ordered: ReadonlySet<AppliesTo> = new Set(['LISTENER_FILTER', 'NETWORK_FILTER', 'HTTP_FILTER', 'HTTP_ROUTE'])

const operationOf = ({ applyTo, patch: { operation } }: ConfigPatch): Operation =>
  operation.startsWith('INSERT_') && !ordered.has(applyTo) ? 'ADD' : operation

/** Returns the patches of one kind that apply in a context. */
export function patchesOf({ context, traits }: Pick<PatchContext, 'context' | 'traits'>, applyTo: AppliesTo): Patch[] {
  if (traits.filters.length === 0) return []
  return traits.filters.flatMap((filter) =>
    (filter.spec.configPatches ?? [])
      .filter((patch) => {
        const wanted = patch.match?.context ?? 'ANY'
        return patch.applyTo === applyTo && (wanted === 'ANY' || wanted === context || context === 'extensions') && matchesProxy(patch, traits)
      })
      .map((patch) => ({ patch, operation: operationOf(patch), object: configKey(filter), namespace: filter.namespace })),
  )
}

/** The decoded values of patches, or the reason why decoding failed. */
const values = new WeakMap<ConfigPatch['patch'], ReadValue<unknown> | { readonly reason: string }>()

/** Returns the types in a decoded patch that no schema here describes; only Envoy can validate them. */
export function uncheckedTypes({ patch }: ConfigPatch): readonly string[] {
  const known = values.get(patch)
  return known && 'unchecked' in known ? known.unchecked : []
}

/** Decodes the value of a patch, which is a `part` of a message where it is merged. Throws an Error with the reason why it cannot be used. */
export function decodePatch<Schema extends DescMessage>(schema: Schema, value: unknown, part: boolean): ReadValue<MessageShape<Schema>> {
  const read = readValue(schema, value, part)
  if (!part) {
    checkComplete(read.message)
    checkMessage(schema, read.message)
  }
  return read
}

/** Returns a copy of the decoded value of a patch. Returns undefined, and reports the reason, if it cannot be decoded. */
export function readPatch<Schema extends DescMessage>(schema: Schema, entry: Patch, context: PatchContext): MessageShape<Schema> | undefined {
  const { patch, object, operation } = entry
  let known = values.get(patch.patch)
  if (!known) {
    known = contain<ReadValue<unknown> | { reason: string }>(
      () => decodePatch(schema, patch.patch.value, isMerge(entry)),
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

/**
 * Throws if a filter has no typed configuration: Envoy refuses it, since it finds filters by the type of their configuration and not by
 * name.
 */
function checkComplete(message: object): void {
  const { name, configType } = message as { name?: string; configType?: { case: string | undefined } }
  if (configType && configType.case === undefined) throw new Error(`filter ${name} has no typed_config: Envoy finds filters by the type of it`)
}

/** Whether a patch merges a value into existing items. */
export const isMerge = ({ operation }: Patch): boolean => operation === 'MERGE' || operation === 'MERGE_AND_REPLACE_LIST'

/** Whether a patch adds a resource or an item. */
export const adds = ({ operation }: Patch): boolean => operation === 'ADD' || operation.startsWith('INSERT_')

/** Returns the ids of the objects of patches, without repetitions. */
export const objectsOf = (patches: readonly Patch[]): string[] => [...new Set(patches.map(({ object }) => object))]

/** Describes a list of messages that patches change. */
export interface PatchedList<Schema extends DescMessage> {
  readonly schema: Schema
  /** Whether a patch matches an item; a patch that names no item matches all. */
  matches(item: MessageShape<Schema>, patch: ConfigPatch): boolean
  /** Whether a patch names an item. */
  names(patch: ConfigPatch): boolean
  /** Whether a patch must name an item to remove or replace it, and replaces the first match only; true for lists of filters. */
  readonly byNameOnly: boolean
  /** The order of operations: one turn after the other, and within a turn the order of the patches. */
  readonly turns: readonly ReadonlySet<Operation>[]
  /** Merges a value into an item; {@link mergeInto} if not given. */
  merge?(item: MessageShape<Schema>, value: MessageShape<Schema>, lists: Lists): void
  /** Returns the index of an item that is added without a position; the end if not given. */
  place?(list: readonly MessageShape<Schema>[], patch: ConfigPatch): number
}

const insertions = ['ADD', 'INSERT_BEFORE', 'INSERT_AFTER', 'INSERT_FIRST'] as const
const changes = ['MERGE', 'MERGE_AND_REPLACE_LIST', 'REMOVE', 'REPLACE'] as const

/**
 * Orders of operations: `changesFirst` changes existing items and then adds, `mergesLast` adds, removes and replaces and then merges,
 * `inOrder` keeps the order of the patches.
 */
export const turns = {
  changesFirst: [new Set<Operation>(changes), new Set<Operation>(insertions)],
  mergesLast: [new Set<Operation>([...insertions, 'REMOVE', 'REPLACE']), new Set<Operation>(['MERGE', 'MERGE_AND_REPLACE_LIST'])],
  inOrder: [new Set<Operation>([...insertions, ...changes])],
} as const

/** Applies patches to a copy of a list of messages. */
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

/**
 * Inserts an item into a list. If a patch with a position names an item that is not in the list, nothing is inserted; if it names none, the
 * item goes to the start or the end.
 */
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

/**
 * Returns a copy of a message with the value of a patch merged into it. If that fails, reports the reason and returns the message itself.
 */
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

/** Returns a patched message after checking its packed messages. Throws InvalidResource if one violates Envoy's validation rules. */
export function checked<Schema extends DescMessage>(
  schema: Schema,
  original: MessageShape<Schema>,
  patched: MessageShape<Schema> | undefined,
): MessageShape<Schema> | undefined {
  if (patched && patched !== original) checkPacked(schema, patched)
  return patched
}

/**
 * Whether a patch adds a resource in this context. A sidecar gets an added resource once: with its outbound resources, unless the patch
 * matches inbound only.
 */
const addsIn = (entry: Patch, { context }: PatchContext): boolean =>
  adds(entry) && (context !== 'SIDECAR_INBOUND' || entry.patch.match?.context === context)

/** Returns drafts of the resources that patches add. A value that cannot be decoded is reported when its draft is made. */
export function added<Schema extends DescMessage>(schema: Schema, patches: readonly Patch[], context: PatchContext): Draft<MessageShape<Schema>>[] {
  return patches
    .filter((patch) => addsIn(patch, context))
    .map((patch) => ({
      name: `${patch.object} ${patch.patch.applyTo}`,
      objects: () => [patch.object],
      make: () => readPatch(schema, patch, context),
    }))
}
