/** A source of configuration objects that tests tell what to say. */
import type { ActorDefinition } from '../../../actors/runtime/actor.ts'
import { monotonicMs } from '../../../actors/runtime/clock.ts'
import type { Peer } from '../../../actors/runtime/link.ts'
import type { ConfigObject } from '../../../protocols/data.ts'
import type { SourceEvent } from '../../../protocols/messages/push.ts'
import { configKey } from '../../../src/config/kinds.ts'

/** The objects that the source has at its start. */
export interface ConfigSourceConfig {
  readonly objects: readonly ConfigObject[]
}

export const actor: ActorDefinition<ConfigSourceConfig, SourceEvent, SourceEvent> = {
  kind: 'source',
  start({ config }) {
    const objects = new Map(config.objects.map((object) => [configKey(object), object]))
    let queue: Peer<SourceEvent> | undefined
    const say = (key: string, object: ConfigObject | undefined) =>
      queue?.tell({ type: 'ConfigChanged', key, object, at: monotonicMs() }, `ConfigChanged|${key}`)
    return {
      asks: {
        set: (object: ConfigObject) => say(configKey(object), object),
        remove: (key: string) => say(key, undefined),
        spoil: (key: string) => queue?.tell({ type: 'ConfigUnusable', key, standIn: undefined, at: monotonicMs() }, `ConfigUnusable|${key}`),
      },
      linked(peer: Peer<SourceEvent>) {
        queue = peer
        const replay = peer.replay()
        for (const [key, object] of objects) say(key, object)
        replay.finish()
      },
      receive() {},
    }
  },
}
