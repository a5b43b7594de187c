/** The object that each source event is about: determines the key under which events coalesce, and what a replay withdraws. */
import type { RegistryId } from '../../../protocols/data.ts'
import type { SourceEvent } from '../../../protocols/messages/push.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import type { ObjectRule } from '../../runtime/register.ts'

/** The source of which an actor tells, as its events and objects name it: `files` for the actor `source/files`. */
export const sourceOfActor = (actor: string): string => actor.slice(actor.indexOf('/') + 1)

/** Sends an event to the push queue. */
export function sendEvent(queue: Peer<SourceEvent>, event: SourceEvent): void {
  queue.tell(event, coalescingKey(event))
}

/**
 * Returns the key under which a waiting event is replaced by a newer one. A newer event must say everything that the older one says, so a
 * definition without slices replaces none with slices.
 */
export function coalescingKey(event: SourceEvent): string {
  switch (event.type) {
    case 'ConfigChanged':
    case 'ConfigUnusable':
      return `${event.type}|${event.key}`
    case 'ServiceChanged':
      return `${event.type}|${event.service && !event.slices ? 'definition|' : ''}${recordKey(event)}`
    case 'EndpointsChanged':
      return `${event.type}|${recordKey(event)}|${event.part}`
    case 'SettingUnusable':
      return `${event.type}|${event.setting}|${event.source}`
    default:
      return `${event.type}|${event.source}`
  }
}

/** The key of a service within its registry, as text. */
const recordKey = ({ registry: { provider, cluster }, key }: { readonly registry: RegistryId; readonly key: string }): string =>
  JSON.stringify([provider, cluster, key])

/** Maps source events to objects. Other messages are about no object. */
export const sourceObjects: ObjectRule<{ readonly type: string } | SourceEvent> = {
  objectOf(message) {
    const event = message as SourceEvent
    switch (event.type) {
      case 'ConfigChanged':
        return { key: `config|${event.key}`, there: event.object !== undefined }
      case 'ConfigUnusable':
        return { key: `config|${event.key}`, there: true }
      case 'ServiceChanged':
        return { key: `service|${recordKey(event)}`, there: event.service !== undefined, parts: event.slices?.map(({ key }) => key) }
      case 'EndpointsChanged':
        return { key: `service|${recordKey(event)}`, there: event.slice !== undefined, part: event.part }
      case 'MeshChanged':
        return { key: `mesh|${event.source}`, there: event.mesh !== undefined }
      case 'NetworksChanged':
        return { key: `networks|${event.source}`, there: event.networks !== undefined }
      case 'SettingUnusable':
        return { key: `${event.setting}|${event.source}`, there: 'unchanged' }
      default:
        return undefined
    }
  },
  withdrawal(object, part) {
    const key = object.slice(object.indexOf('|') + 1)
    const at = monotonicMs()
    if (object.startsWith('config|')) return { type: 'ConfigChanged', key, object: undefined, at }
    if (object.startsWith('mesh|')) return { type: 'MeshChanged', source: key, place: '', mesh: undefined, at }
    if (object.startsWith('networks|')) return { type: 'NetworksChanged', source: key, place: '', networks: undefined, at }
    const [provider, cluster, service] = JSON.parse(key) as [string, string, string]
    const registry = { provider, cluster }
    if (part !== undefined) return { type: 'EndpointsChanged', registry, key: service, part, slice: undefined, at }
    return { type: 'ServiceChanged', registry, key: service, service: undefined, slices: [], at }
  },
}
