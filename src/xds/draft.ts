/** Resources before they are made, and the outcomes of making them. */
import type { DescMessage, MessageShape } from '@bufbuild/protobuf'
import { consequences, contain, type ResourceFault } from '../model/faults.ts'
import { encodeResource, type Resource } from './slab/resource.ts'

/**
 * A resource that is not made yet. Generators return drafts, and each draft is made separately, so that a failure affects one resource
 * only.
 */
export interface Draft<Message> {
  readonly name: string
  /** Returns the objects that the resource is made from; called if making it fails. */
  objects(): readonly string[]
  /** Returns the message, or undefined if there is no resource after all. An error becomes a problem of this resource. */
  make(): Message | undefined
  /** Returns the encoded resource for the unpatched message, if several drafts share it. */
  readonly encoded?: () => Resource
  /** A fault of a part of the resource; the resource is made without this part. */
  readonly partialFault?: { readonly objects: readonly string[]; readonly reason: string } | undefined
}

/** Two services that claim the same listener, or the same filter chain of it. One of them gets it. */
export interface ListenerConflict {
  readonly kind: 'http_over_current_tcp' | 'tcp_over_current_http' | 'tcp_over_current_tcp' | 'inbound'
  /** Id of the view or class in which the conflict occurs. */
  readonly view: string
  /** The listener, or what of it both claim. */
  readonly key: string
  /** Name of the listener. */
  readonly listener: string
  /** The service that does not get it, and the id of its object. */
  readonly host: string
  readonly object: string
  /** Whether the service itself claimed it before, by another route. */
  readonly isOwn?: boolean
}

/** What a service loses by a conflict (docs/resources.md, L4). */
const lost: Readonly<Record<ListenerConflict['kind'], { readonly reason: string; readonly consequence: string }>> = {
  http_over_current_tcp: {
    reason: 'is HTTP, and the listener belongs to a service whose protocol does not share it',
    consequence: 'it gets no listener there',
  },
  tcp_over_current_http: {
    reason: 'has a protocol that does not share the listener with HTTP of another service',
    consequence: 'it gets no listener there',
  },
  tcp_over_current_tcp: {
    reason: 'claims addresses or server names there that another service has',
    consequence: 'connections to them lead to that service',
  },
  inbound: {
    reason: 'has another protocol on a port of the workload than a service before it',
    consequence: 'the port is served with the protocol of that service',
  },
}

function lossOf({ kind, listener, host, object }: ListenerConflict): ResourceFault {
  const { reason, consequence } = lost[kind]
  return { type: 'lds', resource: listener, objects: [object], reason: `${host} ${reason} (L4 in docs/resources.md)`, consequence, isLoss: true }
}

/**
 * A fault. Without a `consequence` the resource could not be made: its last good state is used, or else `instead`. With a `consequence`,
 * `instead` is used if it is set.
 */
export interface Problem extends Omit<ResourceFault, 'consequence'> {
  readonly consequence?: string
  readonly instead?: Resource | undefined
}

/** The outcome of a draft: a resource, a problem, or a conflict to report. */
export type Outcome = Resource | { readonly problem: Problem } | { readonly conflict: ListenerConflict }

/** Applies patches to a message. Returns the same message if no patch applies to it, and undefined if a patch removes it. */
export interface Patcher<Message> {
  readonly objects: readonly string[]
  apply(message: Message): Message | undefined
}

/**
 * Makes resources, each separately. A failure becomes a problem of that resource. If only the patched resource fails, the problem offers
 * the unpatched one: {@link divideOutcomes} uses it if there is no last good state, and for a listener always, so that a patch cannot hold back
 * other changes.
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
        return draft.partialFault ? problem(draft.partialFault.reason, draft.partialFault.objects, made) : made
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

/** Makes resources that are encoded by their makers, each separately. A failure becomes a problem of that resource. */
export function makeEncoded(type: string, drafts: Iterable<Pick<Draft<Resource>, 'name' | 'objects'> & { make(): Resource }>): Outcome[] {
  return Array.from(drafts, ({ name, objects, make }) =>
    contain<Outcome>(make, (reason) => ({ problem: { type, resource: name, objects: objects(), reason } })),
  )
}

/** Divides outcomes into resources, faults and conflicts, which are faults as well: losses. `lastGood` returns the last good resource of a name. */
export function divideOutcomes(
  outcomes: Iterable<Outcome>,
  lastGood: (name: string) => Resource | undefined,
): { resources: Resource[]; faults: ResourceFault[]; conflicts: ListenerConflict[] } {
  const divided = { resources: [] as Resource[], faults: [] as ResourceFault[], conflicts: [] as ListenerConflict[] }
  for (const outcome of outcomes) {
    if ('conflict' in outcome) {
      divided.conflicts.push(outcome.conflict)
      if (!outcome.conflict.isOwn) divided.faults.push(lossOf(outcome.conflict))
    } else if ('problem' in outcome) {
      const { instead, consequence, ...problem } = outcome.problem
      if (consequence !== undefined) {
        if (instead) divided.resources.push(instead)
        divided.faults.push({ ...problem, consequence })
        continue
      }
      // The policies of a listener must be current: its patches are dropped rather than its changes.
      const kept = instead && problem.type === 'lds' ? undefined : lastGood(problem.resource)
      const used = kept ?? instead
      if (used) divided.resources.push(used)
      divided.faults.push({ ...problem, consequence: kept ? consequences.kept : instead ? consequences.without : consequences.leftOut })
    } else divided.resources.push(outcome)
  }
  return divided
}

const nameOf = (message: object): string => {
  const { name, clusterName } = message as { name?: unknown; clusterName?: unknown }
  return typeof name === 'string' ? name : typeof clusterName === 'string' ? clusterName : ''
}
