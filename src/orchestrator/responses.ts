/** Reads what an API server sends: events of a watch, pages of a list, refusals. */
import { isMapping, mapping } from '../config/shape.ts'
import { parseBounded } from '../model/bounded-json.ts'
import type { Refusal } from './list-watch.ts'

type Mapping = Readonly<Record<string, unknown>>

/** An event of a watch. */
export interface ReadEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: Mapping
}

const types: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'])

/** The bounds of an object. Only texts that are longer than one value in each character may exceed them, and are looked through for it. */
const mostOfObject = { depth: 1000, values: 1_000_000 }

/** Parses the text of an object, or of an event with one. Throws an Error when it is no JSON, or has more than any object. */
export function readJson(text: string): unknown {
  if (text.length <= mostOfObject.values) return JSON.parse(text)
  try {
    return parseBounded(text, mostOfObject)
  } catch (error) {
    throw new Error(`an object of the server cannot be read: ${(error as Error).message}`)
  }
}

/** Throws an Error when a server sends another kind than it was asked for. Undefined, or no text: nothing is said of the kind. */
export function checkKind(found: unknown, wanted: string | undefined): void {
  if (wanted !== undefined && typeof found === 'string' && found !== '' && found !== wanted)
    throw new Error(`the server was asked for ${wanted} and sent ${found.slice(0, 100)}`)
}

/** The kind of a list of objects. */
export const listKind = (kind: string | undefined): string | undefined => kind && `${kind}List`

/** Returns a value of a watch as an event. Throws an Error when it is none. */
export function eventOf(value: unknown): ReadEvent {
  if (!isMapping(value) || !types.has(value.type) || !isMapping(value.object)) throw new Error('the watch has something that is no event')
  return value as unknown as ReadEvent
}

/** A page of a list, without its objects. */
export interface Page {
  readonly version: string
  /** The token of the next page; empty: it is the last one. */
  readonly next: string
}

/** Reads a page of a list. Throws an Error when it is none. */
export function readPage(text: string): Page {
  const value: unknown = JSON.parse(text)
  if (!isMapping(value) || !(Array.isArray(value.items) || value.items === null)) throw new Error('there are no items')
  return pageOf(mapping(value.metadata))
}

/** Reads the metadata of a page. Throws an Error when it has no version. */
export function pageOf({ resourceVersion, continue: next }: Mapping): Page {
  if (typeof resourceVersion !== 'string') throw new Error('the list has no resource version')
  return { version: resourceVersion, next: typeof next === 'string' ? next : '' }
}

/** Reads an object of a list. Throws an Error when it is none. */
export function objectOf(text: string): Mapping {
  const value = readJson(text)
  if (!isMapping(value)) throw new Error('the list has an item that is no object')
  return value
}

/** The key of an object and its resource version; undefined where it has no name. */
export function keyAndVersion(object: Mapping): [key: string, version: string] | undefined {
  const { namespace, name, resourceVersion } = mapping(object.metadata)
  if (typeof name !== 'string' || name === '') return undefined
  return [`${typeof namespace === 'string' ? namespace : ''}/${name}`, typeof resourceVersion === 'string' ? resourceVersion : '']
}

/** The annotation of the bookmark that follows the last object of a streamed list. */
const endOfList = 'k8s.io/initial-events-end'

/** Reads the object of a bookmark. */
export function bookmarkOf(object: Mapping): { readonly version: string; readonly endsList: boolean } {
  const { resourceVersion, annotations } = mapping(object.metadata)
  return { version: typeof resourceVersion === 'string' ? resourceVersion : '', endsList: mapping(annotations)[endOfList] === 'true' }
}

/** Reads the object of an `ERROR` event, a `Status`. */
export function codeOf({ code, message }: Mapping): Refusal {
  return { code: typeof code === 'number' ? code : 0, reason: reasonOf(message, 'no reason given'), askedMs: 0 }
}

/** Reads an answer whose status is no success. `message`: that of the `Status` that is its body, as {@link ObjectFormat.messageIn} returns it. */
export function refusalOf(status: number, message: unknown, retryAfter: string | undefined): Refusal {
  const seconds = Number(retryAfter)
  return { code: status, reason: reasonOf(message, `status ${status}`), askedMs: seconds > 0 && seconds < 3600 ? seconds * 1000 : 0 }
}

const reasonOf = (message: unknown, otherwise: string): string =>
  typeof message === 'string' && message.trim() !== '' ? message.trim().slice(0, 500) : otherwise
