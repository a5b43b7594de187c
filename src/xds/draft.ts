/** Resources that are yet to be made, and what came of making them. */
import type { DescMessage, MessageShape } from '@bufbuild/protobuf'
import { consequences, contain, type ResourceFault } from '../model/faults.ts'
import { encodeResource, type Resource } from './slab/resource.ts'

/** A resource that is yet to be made: generators decide which there are, and each is made by itself, so that it can fail by itself. */
export interface Draft<Message> {
  readonly name: string
  /** Objects it is made from; asked for when it fails. */
  objects(): readonly string[]
  /** The message, or undefined when there is nothing to make after all. */
  make(): Message | undefined
  /** The resource that the message becomes where no patch changes it, if several make the same of it. */
  readonly encoded?: () => Resource
  /** What went wrong with a part of it; the rest of it is what is made. */
  readonly lacking?: { readonly objects: readonly string[]; readonly reason: string } | undefined
}

/** Two services that want the same listener, or the same chain of it; one has it. */
export interface ListenerConflict {
  readonly kind: 'http_over_current_tcp' | 'tcp_over_current_http' | 'tcp_over_current_tcp' | 'inbound'
  /** Id of the view or of the class that it is in. */
  readonly view: string
  readonly key: string
}

/** Something that went wrong. Without a `consequence` it is the resource that could not be made: then its last good state stays, or else `instead`. With one, `instead` is used if it is there. */
export interface Problem extends Omit<ResourceFault, 'consequence'> {
  readonly consequence?: string
  readonly instead?: Resource | undefined
}

/** What came of making something: a resource, or why there is none, or what else there is to tell. */
export type Outcome = Resource | { readonly problem: Problem } | { readonly conflict: ListenerConflict }

/** Applies patches to a message; the same message comes back where there are none, and undefined where it is removed. */
export interface Patcher<Message> {
  readonly objects: readonly string[]
  apply(message: Message): Message | undefined
}

/**
 * Makes resources, each by itself. One that fails is a problem of its own. One that fails only as patched is made unpatched
 * where there is no last good state of it, and a listener in any case: a patch never spoils the rest.
 */
export function makeAll<Schema extends DescMessage>(
  schema: Schema,
  type: string,
  drafts: Iterable<Draft<MessageShape<Schema>>>,
  patcher?: Patcher<MessageShape<Schema>>,
): Outcome[] {
  const outcomes: Outcome[] = []
  for (const draft of drafts) {
    let plain: MessageShape<Schema> | undefined
    const encode = (message: MessageShape<Schema> | undefined): Resource | undefined =>
      message && (message === plain && draft.encoded ? draft.encoded() : encodeResource(schema, message, nameOf(message) || draft.name))
    const problem = (reason: string, objects: readonly string[], instead?: Resource): Outcome => ({
      problem: { type, resource: draft.name, objects, reason, instead },
    })
    const outcome = contain<Outcome | undefined>(
      () => {
        plain = draft.make()
        const made = encode(plain && patcher ? patcher.apply(plain) : plain)
        return draft.lacking ? problem(draft.lacking.reason, draft.lacking.objects, made) : made
      },
      (reason) => {
        if (!plain || !patcher?.objects.length) return problem(reason, draft.objects())
        const instead = contain(
          () => encode(plain),
          () => undefined,
        )
        return problem(reason, [...(instead ? [] : draft.objects()), ...patcher.objects], instead)
      },
    )
    if (outcome) outcomes.push(outcome)
  }
  return outcomes
}

/** Sorts outcomes for those who keep resources; `lastGood` finds what was made of a name before. */
export function settle(
  outcomes: Iterable<Outcome>,
  lastGood: (name: string) => Resource | undefined,
): { resources: Resource[]; faults: ResourceFault[]; conflicts: ListenerConflict[] } {
  const settled = { resources: [] as Resource[], faults: [] as ResourceFault[], conflicts: [] as ListenerConflict[] }
  for (const outcome of outcomes) {
    if ('conflict' in outcome) settled.conflicts.push(outcome.conflict)
    else if ('problem' in outcome) {
      const { instead, consequence, ...problem } = outcome.problem
      if (consequence !== undefined) {
        if (instead) settled.resources.push(instead)
        settled.faults.push({ ...problem, consequence })
        continue
      }
      // The policies of a listener count as they are now: patches go, and not what came with them.
      const kept = instead && problem.type === 'lds' ? undefined : lastGood(problem.resource)
      const used = kept ?? instead
      if (used) settled.resources.push(used)
      settled.faults.push({ ...problem, consequence: kept ? consequences.kept : instead ? consequences.without : consequences.leftOut })
    } else settled.resources.push(outcome)
  }
  return settled
}

const nameOf = (message: object): string => {
  const { name, clusterName } = message as { name?: unknown; clusterName?: unknown }
  return typeof name === 'string' ? name : typeof clusterName === 'string' ? clusterName : ''
}
