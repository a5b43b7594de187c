/** An actor of the service, named in the query of this module's URL, that fails in the requested way. */
import type { ActorDefinition, Behaviour } from '../../../actors/runtime/actor.ts'
import type { Peer } from '../../../actors/runtime/link.ts'
import { after } from '../../../actors/runtime/timers.ts'

const name = new URL(import.meta.url).search.slice(1)
const { actor: real } = (await import(`../../../actors/discovery/${name}.ts`)) as { actor: ActorDefinition<unknown, unknown> }

/** How the actor fails: at once, in an endless loop, on receiving a message, or on sending a message. */
export type Break = 'throw' | 'hang' | { readonly atReceived: number } | { readonly atSent: number }

export const actor: ActorDefinition<unknown, unknown> = {
  kind: real.kind,
  async start(context) {
    const behaviour = await real.start(context)
    let received = Number.POSITIVE_INFINITY
    let sendable = Number.POSITIVE_INFINITY
    /** A peer that accepts a limited number of messages. */
    const fragile = (peer: Peer): Peer => ({
      name: peer.name,
      kind: peer.kind,
      replay: () => peer.replay(),
      tell(message, key) {
        if (--sendable < 0) throw new Error('broke while it sent')
        peer.tell(message, key)
      },
    })
    const broken: Behaviour<unknown> = {
      asks: {
        ...behaviour.asks,
        break(way: Break) {
          if (way === 'throw') after(0, () => fail())
          else if (way === 'hang') after(0, () => hang())
          else if ('atReceived' in way) received = way.atReceived
          else sendable = way.atSent
        },
      },
      receive(message, from) {
        if (--received < 0) throw new Error('broke at a message')
        behaviour.receive(message, from)
      },
      linked: (peer) => behaviour.linked?.(fragile(peer)),
      unlinked: (peer) => behaviour.unlinked?.(peer),
      synced: (peer) => behaviour.synced?.(peer),
      drain: async () => behaviour.drain?.(),
      ...(behaviour.objects ? { objects: behaviour.objects } : {}),
    }
    return broken
  },
}

function fail(): never {
  throw new Error('broke')
}

function hang(): never {
  for (;;);
}
