/** Actors that announce objects and an actor that keeps what it is told, for tests of actors that come and go. */
import type { ActorDefinition } from '../../../actors/runtime/actor.ts'
import type { Peer, Replay } from '../../../actors/runtime/link.ts'
import { after, every } from '../../../actors/runtime/timers.ts'

/** What an announcing actor does; without objects it keeps what others announce. */
export interface AnnouncingConfig {
  readonly objects?: readonly string[]
  /** The number of objects that it announces before it stops in the middle of its replay; by default it announces all. */
  readonly stopsAfter?: number
  /** Whether it announces its objects again and again. */
  readonly keepsOn?: boolean
  /** How long it takes to end, in milliseconds. */
  readonly endsAfterMs?: number
}

interface Announcement {
  readonly object: string
  readonly isThere: boolean
}

export const actor: ActorDefinition<AnnouncingConfig, Announcement> = {
  kind: 'announcing',
  start({ name, config: { objects = [], stopsAfter = objects.length, keepsOn = false, endsAfterMs = 0 } }) {
    /** The objects that are there, each with the actors that announce it. */
    const held = new Map<string, Set<string>>()
    const events: string[] = []
    return {
      asks: { held: () => [...held.keys()].sort(), events: () => events },
      objects: { objectOf: ({ object, isThere }) => ({ key: object, there: isThere }), withdrawal: (object) => ({ object, isThere: false }) },
      linked(peer: Peer<Announcement>) {
        events.push(`linked ${peer.name}`)
        const replay: Replay = peer.replay()
        const tell = (object: string) => peer.tell({ object, isThere: true }, object)
        objects.slice(0, stopsAfter).forEach(tell)
        if (stopsAfter >= objects.length) replay.finish()
        if (keepsOn) every(1, () => objects.forEach(tell))
      },
      receive({ object, isThere }, from) {
        const by = held.get(object) ?? new Set()
        if (isThere) held.set(object, by.add(from.name))
        else if (by.delete(from.name) && by.size === 0) held.delete(object)
      },
      unlinked: (peer) => void events.push(`unlinked ${peer.name}`),
      synced: (peer) => void events.push(`synced ${peer.name}`),
      forgotten: (peer) => void events.push(`forgotten ${peer.name}`),
      async drain() {
        events.push(`${name} drained`)
        if (endsAfterMs > 0) await new Promise<void>((resolve) => void after(endsAfterMs, resolve))
      },
    }
  },
}
