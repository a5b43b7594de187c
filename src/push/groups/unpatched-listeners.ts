/** Outbound listeners before EnvoyFilters apply, made once for all classes that differ only in their filters. */

import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { contain } from '../../model/faults.ts'
import type { Draft, ListenerConflict, Problem } from '../../xds/draft.ts'
import type { outboundListeners } from '../../xds/listeners/outbound.ts'
import { encodeResource, isUsable, type Resource } from '../../xds/slab/resource.ts'

/** Listeners before patches are applied, with the conflicts and problems found while making them. */
export interface Unpatched {
  readonly listeners: readonly Draft<Listener>[]
  readonly conflicts: readonly ListenerConflict[]
  readonly problems: readonly Problem[]
  /** Equal for equal listeners. Undefined when some could not be made. */
  readonly content: string | undefined
}

/** Makes the listeners. One that cannot be made is a draft that fails, as in `outboundListeners`. */
export function unpatchedListeners({ listeners, conflicts, problems }: ReturnType<typeof outboundListeners>): Unpatched {
  const made = listeners.flatMap((draft) => madeOnce(draft) ?? [])
  const isWhole = made.every(({ version }) => version !== undefined)
  return {
    listeners: made.map(({ draft }) => draft),
    conflicts,
    problems,
    content: isWhole
      ? JSON.stringify([made.map(({ version, draft }) => [version, draft.objects(), draft.partialFault]), conflicts, problems])
      : undefined,
  }
}

/** Whether two results are equal to everything that patches them. */
export const sameListeners = (one: Unpatched, other: Unpatched): boolean => one.content !== undefined && one.content === other.content

interface MadeOnce {
  readonly draft: Draft<Listener>
  readonly version: string | undefined
}

/**
 * Makes the message of a draft once. The new draft keeps the message as bytes, from which each copy to patch is decoded. A draft that fails
 * is returned as it is, without a version, and fails again when it is made.
 */
function madeOnce(draft: Draft<Listener>): MadeOnce | undefined {
  const { name, partialFault } = draft
  return contain<MadeOnce | undefined>(
    () => {
      const message = draft.make()
      if (!message) return undefined
      const bytes = toBinary(ListenerSchema, message)
      const objects = draft.objects()
      const read = () => fromBinary(ListenerSchema, bytes)
      let resource: Resource = encodeResource(ListenerSchema, message, name)
      const encoded = () => {
        if (!isUsable(resource)) resource = encodeResource(ListenerSchema, read(), name)
        return resource
      }
      return { draft: { name, partialFault, objects: () => objects, make: read, encoded }, version: `${name} ${resource.version}` }
    },
    () => ({ draft, version: undefined }),
  )
}
