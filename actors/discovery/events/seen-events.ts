/** The object that each event of a source to the analyzer is about: under its key events coalesce, and a replay withdraws it. */
import type { SeenEvent } from '../../../protocols/messages/analysis.ts'
import type { Said } from '../../runtime/register.ts'

/** The types of the events, in the order of their letters in keys. */
const letters = { ResourceSeen: 'r', SecretsSeen: 's', FaultsSeen: 'f', InjectorSeen: 'i' } as const

/** What an event says of which object. */
export function seenObject(event: SeenEvent): Said {
  const letter = letters[event.type]
  switch (event.type) {
    case 'ResourceSeen':
      return { key: `${letter}${event.key}`, there: event.resource !== undefined }
    case 'SecretsSeen':
      return { key: `${letter}${event.cluster}/${event.namespace}`, there: event.secrets !== undefined }
    case 'FaultsSeen':
      return { key: `${letter}${event.name}`, there: event.faults.length > 0 }
    case 'InjectorSeen':
      return { key: letter, there: event.values !== undefined }
  }
}

/** The event that takes back what was said of an object; undefined: the key is of no such event. */
export function seenWithdrawal(key: string): SeenEvent | undefined {
  const rest = key.slice(1)
  switch (key[0]) {
    case letters.ResourceSeen:
      return { type: 'ResourceSeen', key: rest, resource: undefined }
    case letters.SecretsSeen: {
      const slash = rest.lastIndexOf('/')
      return { type: 'SecretsSeen', cluster: rest.slice(0, slash), namespace: rest.slice(slash + 1), secrets: undefined }
    }
    case letters.FaultsSeen:
      return { type: 'FaultsSeen', name: rest, faults: [] }
    case letters.InjectorSeen:
      return { type: 'InjectorSeen', values: undefined }
  }
  return undefined
}
