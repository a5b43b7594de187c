/** What the events of sources are about: one place for the key under which each coalesces and for what a replay withdraws. */
import type { SourceEvent } from '../../protocols/messages/push.ts'
import { monotonicMs } from '../runtime/clock.ts'
import type { Peer } from '../runtime/link.ts'
import type { ObjectRule } from '../runtime/register.ts'

/** Tells the push queue of an event. */
export function tellEvent(queue: Peer<SourceEvent>, event: SourceEvent): void {
  queue.tell(event, 'key' in event ? `${event.type}|${event.key}` : event.type)
}

/** Which objects the events of sources are about. Other messages are about none. */
export const sourceObjects: ObjectRule<{ readonly type: string } | SourceEvent> = {
  objectOf(message) {
    const event = message as SourceEvent
    switch (event.type) {
      case 'ConfigChanged':
        return { key: `config|${event.key}`, there: event.object !== undefined }
      case 'ConfigUnusable':
        return { key: `config|${event.key}`, there: event.standIn ? true : 'unchanged' }
      case 'ServiceChanged':
        return { key: `service|${event.key}`, there: event.service !== undefined }
      case 'EndpointsChanged':
        return { key: `service|${event.key}`, there: true }
      default:
        return undefined
    }
  },
  withdrawal(object) {
    const key = object.slice(object.indexOf('|') + 1)
    const at = monotonicMs()
    return object.startsWith('config|')
      ? { type: 'ConfigChanged', key, object: undefined, at }
      : { type: 'ServiceChanged', key, service: undefined, endpoints: [], at }
  },
}
