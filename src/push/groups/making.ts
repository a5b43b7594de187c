/** What makers of groups share: the snapshot, the views in it, the memory, and how patches are applied. */
import type { DescMessage, MessageShape } from '@bufbuild/protobuf'
import { configKey } from '../../config/kinds.ts'
import { consequences } from '../../model/faults.ts'
import type { View, ViewKey } from '../../snapshot/view.ts'
import { type Draft, makeAll, type Outcome, type Problem } from '../../xds/draft.ts'
import type { PatchContext } from '../../xds/envoy-filter/patches.ts'
import { isUsable, type Resource } from '../../xds/slab/resource.ts'
import type { KeyedSums } from '../../xds/slab/sums.ts'
import type { ProxyClass, Traits } from '../../xds/traits.ts'
import type { Dependencies } from '../dependencies/dependencies.ts'
import type { Memo } from '../dependencies/memo.ts'
import type { SnapshotReader } from '../dependencies/snapshot-reader.ts'

/** What came of making a group. */
export interface Built {
  readonly outcomes: Iterable<Outcome>
  /** What of the group that all share is hidden by this one, as `hostOf` names it; sorted. */
  readonly hide?: readonly string[]
  /** The outcomes are only what differs from when it was made last; nothing went. */
  readonly isPart?: boolean
  /** Called when the outcomes are in the group. */
  settled?(): void
}

/** A group of resources that a class has, and how it is made. */
export interface GroupSpec {
  readonly id: string
  readonly typeUrl: string
  /** What it is made from beside what it reads: it is made again when one of these is another object. */
  readonly given: readonly unknown[]
  /** The group with what the class has of its own of this type: it says what is hidden here. It comes before this one. */
  readonly hiddenBy?: string
  build(): Built
}

/** Objects among what a group was given. */
export function objectsOf(given: unknown): string[] {
  const { viewKey, gateways } = given as Partial<ProxyClass>
  return [...(viewKey?.sidecar ? [configKey(viewKey.sidecar)] : []), ...(gateways ?? []).map((name) => `Gateway/${name}`)]
}

/** The present state of everything that groups are made from. What is read of it is recorded for the group that is being built. */
export interface Making {
  readonly snapshot: SnapshotReader
  readonly record: Pick<Dependencies<never>, 'collection'>
  /** A value under a name that all who read it share; who reads it is made again when it is another, as `alike` has it. */
  derived<Value>(name: string, make: () => Value, alike?: (one: Value, other: Value) => boolean): Value
  readonly memo: Memo
  readonly sums: KeyedSums
  /** A view in the present snapshot. */
  view(key: ViewKey): View
  /** Resources of the group that is being built, as it was made last. */
  lastGood(): ReadonlyMap<string, Resource>
  /** The message of a resource that is in use. Throws when its bytes are gone. */
  valueOf(resource: Resource): Uint8Array
}

/** Makes something to which patches are applied; patches that could not be are problems beside what was made. */
export function patched(traits: Traits, context: PatchContext['context'], make: (context: PatchContext) => readonly Outcome[]): Outcome[] {
  const problems: Problem[] = []
  const made = make({
    context,
    traits,
    report(object, reason, consequence = 'the patch is left out') {
      if (problems.some((problem) => problem.resource === object && problem.reason === reason)) return
      problems.push({ type: 'patch', resource: object, objects: [object], reason, consequence })
    },
  })
  return [...made, ...problems.map((problem): Outcome => ({ problem }))]
}

/** Problems as outcomes, each once. */
export function told(problems: readonly Problem[]): Outcome[] {
  const unique = new Map(problems.map((problem) => [`${problem.type}|${problem.resource}|${problem.reason}`, problem]))
  return [...unique.values()].map((problem) => ({ problem }))
}

/** Whether the bytes of all that was made are still there. */
export function allUsable(outcomes: readonly Outcome[]): boolean {
  return outcomes.every((made) => {
    if ('slices' in made) return isUsable(made)
    return !('problem' in made) || !made.problem.instead || isUsable(made.problem.instead)
  })
}

/**
 * What was made, and what patches add to it, each by itself. An added resource whose name is `taken`, or there already, is left out and told: no
 * response may have a name twice.
 */
export function withAdded<Schema extends DescMessage>(
  made: readonly Outcome[],
  schema: Schema,
  type: string,
  drafts: readonly Draft<MessageShape<Schema>>[],
  taken: Iterable<string> = [],
): Outcome[] {
  // What could not be made may have its last good state, under its name.
  const nameOf = (outcome: Outcome) => ('slices' in outcome ? outcome.name : 'problem' in outcome ? outcome.problem.resource : [])
  const names = new Set([...taken, ...made.flatMap(nameOf)])
  const added = drafts.flatMap((draft) =>
    makeAll(schema, type, [draft]).map((outcome): Outcome => {
      if (!('slices' in outcome)) return outcome
      const { name } = outcome
      if (!names.has(name)) {
        names.add(name)
        return outcome
      }
      return { problem: { type, resource: name, objects: draft.objects(), reason: `${name} is there already`, consequence: consequences.leftOut } }
    }),
  )
  return [...made, ...added]
}

/** Names of what a sidecar has beside what is outbound by patches: what they add inbound may not have them. */
export function addedOutbound<Message extends { name: string }>(
  context: PatchContext,
  drafts: (context: PatchContext) => Draft<Message>[],
): string[] {
  return drafts({ ...context, context: 'SIDECAR_OUTBOUND', report: () => undefined }).flatMap((draft) => draft.make()?.name ?? [])
}
