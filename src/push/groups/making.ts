/** What the group makers share: the snapshot, its views, the cache, and the application of patches. */
import type { DescMessage, MessageShape } from '@bufbuild/protobuf'
import { configKey, keyAt } from '../../config/kinds.ts'
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

/** The result of making a group. */
export interface Built {
  readonly outcomes: Iterable<Outcome>
  /** The hosts of the shared group, as `hostOf` names them, that are hidden because of this group; sorted. */
  readonly hide?: readonly string[]
  /** The outcomes are only those that changed since the group was built last. */
  readonly isPart?: boolean
  /** Names of resources that are gone since then; only if `isPart`. */
  readonly gone?: readonly string[]
  /** The names and hosts of which these outcomes are. The faults of all others stay. Undefined: all; only if `isPart`. */
  readonly remade?: ReadonlySet<string>
  /** Called when the outcomes have been stored in the group. */
  stored?(): void
}

/** What a group is, apart from how it is made. */
interface GroupIdentity {
  readonly id: string
  readonly typeUrl: string
  /** The inputs of the group that are not recorded as reads. The group is made again when one of them is another object. */
  readonly given: readonly unknown[]
  /** The id of the group with the class's own resources of the type. Its `hide` applies to this group, and it is made before this one. */
  readonly hiddenBy?: string | undefined
}

/** Makes one group of resources. Each kind of group is a class of its own, with the inputs of the kind. */
export abstract class GroupMaker implements GroupIdentity {
  readonly id: string
  readonly typeUrl: string
  readonly given: readonly unknown[]
  readonly hiddenBy: string | undefined

  constructor({ id, typeUrl, given, hiddenBy }: GroupIdentity) {
    this.id = id
    this.typeUrl = typeUrl
    this.given = given
    this.hiddenBy = hiddenBy
  }

  /** Makes the resources for the present snapshot. */
  abstract make(): Built
}

/** Keys of the objects among a group's `given` inputs. */
export function objectsOf(given: unknown): string[] {
  const { viewKey, gateways } = given as Partial<ProxyClass>
  return [...(viewKey?.sidecar ? [configKey(viewKey.sidecar)] : []), ...(gateways ?? []).map((name) => keyAt('Gateway', name))]
}

/** The state that groups are built from. Reads of it are recorded for the group that is being built. */
export interface Making {
  readonly snapshot: SnapshotReader
  readonly record: Pick<Dependencies<never>, 'collection' | 'read' | 'changedInPlace'>
  /** Returns a named value that all its readers share. The readers are made again when the value differs according to `alike`. */
  derived<Value>(name: string, make: () => Value, alike?: (one: Value, other: Value) => boolean): Value
  readonly memo: Memo
  readonly sums: KeyedSums
  /** A view of the present snapshot. */
  view(key: ViewKey): View
  /** The resources of the group that is being built, as of its last build. */
  lastGood(): ReadonlyMap<string, Resource>
  /** The encoded message of a resource in use. Throws when its bytes have been dropped. */
  valueOf(resource: Resource): Uint8Array
}

/** Makes resources to which patches are applied. Patches that cannot be applied are reported as problems in addition to the resources. */
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

/** Returns problems as outcomes, without duplicates. */
export function problemOutcomes(problems: readonly Problem[]): Outcome[] {
  const unique = new Map(problems.map((problem) => [`${problem.type}|${problem.resource}|${problem.reason}`, problem]))
  return [...unique.values()].map((problem) => ({ problem }))
}

/** Whether the bytes of all resources are still available. */
export function allUsable(outcomes: readonly Outcome[]): boolean {
  return outcomes.every((made) => {
    if ('slices' in made) return isUsable(made)
    return !('problem' in made) || !made.problem.instead || isUsable(made.problem.instead)
  })
}

/**
 * Returns the outcomes together with the resources that patches add, each made separately. An added resource whose name is `taken`, or
 * among the outcomes, is left out and reported, because no response may contain a name twice.
 */
export function withAdded<Schema extends DescMessage>(
  made: readonly Outcome[],
  schema: Schema,
  type: string,
  drafts: readonly Draft<MessageShape<Schema>>[],
  taken: Iterable<string> = [],
): Outcome[] {
  // A resource that could not be made may be replaced by its last good state, so its name counts as taken.
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

/** Names of the resources that patches add to a sidecar outbound. Resources that patches add inbound must not have these names. */
export function addedOutbound<Message extends { name: string }>(
  context: PatchContext,
  drafts: (context: PatchContext) => Draft<Message>[],
): string[] {
  return drafts({ ...context, context: 'SIDECAR_OUTBOUND', report: () => undefined }).flatMap((draft) => draft.make()?.name ?? [])
}
