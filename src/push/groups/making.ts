/** What makers of groups share: the snapshot, the views in it, the memory, and how patches are applied. */
import type { View, ViewKey } from '../../snapshot/view.ts'
import type { Outcome, Problem } from '../../xds/draft.ts'
import type { PatchContext } from '../../xds/envoy-filter/apply.ts'
import { isUsable, type Resource } from '../../xds/slab/resource.ts'
import type { KeyedSums } from '../../xds/slab/sums.ts'
import type { Traits } from '../../xds/traits.ts'
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
    report(object, reason) {
      if (problems.some((problem) => problem.resource === object && problem.reason === reason)) return
      problems.push({ type: 'patch', resource: object, objects: [object], reason, consequence: 'the patch is left out' })
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
