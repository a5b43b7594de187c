/** The encodings in which an API server sends objects. */
import { isMapping } from '../config/shape.ts'
import { Lines } from './lines.ts'
import { ListItems } from './list-items.ts'
import type { MessageFields } from './protobuf-messages.ts'
import { ProtobufList, ProtobufWatch, protobufStatus } from './protobuf-responses.ts'
import { checkKind, eventOf, objectOf, type Page, type ReadEvent, readJson } from './responses.ts'

/** Reads the response of a watch. */
export interface WatchReader {
  /** Returns the events that end in these bytes. An event is read when it is asked for. Throws an Error when the bytes are no events. */
  take(bytes: Uint8Array): Iterable<ReadEvent>
}

/** Reads the response of a list. */
export interface ListReader {
  /** Returns the objects that end in these bytes. An object is read when it is asked for. Throws an Error when the bytes are no list. */
  take(bytes: Uint8Array): Iterable<Readonly<Record<string, unknown>>>
  /** Returns the page without its objects. Throws an Error when the bytes were no page of a list. */
  end(): Page
}

/** An encoding. `most`: the length of the longest object in bytes. `kind`: that of the objects; what says that it is of another is an Error; undefined: any. */
export interface ObjectFormat {
  watch(most: number, kind?: string): WatchReader
  list(most: number, kind?: string): ListReader
  /** The message of the `Status` that is the body of a refusal. */
  messageIn(body: Uint8Array): unknown
}

const json: ObjectFormat = {
  watch: (most, kind) => {
    const lines = new Lines(most)
    return {
      *take(bytes) {
        for (const line of lines.take(bytes)) {
          const event = eventOf(readJson(line))
          if (event.type !== 'BOOKMARK' && event.type !== 'ERROR') checkKind(event.object.kind, kind)
          yield event
        }
      },
    }
  },
  list: (most, kind) => {
    const items = new ListItems(most, kind)
    return {
      *take(bytes) {
        for (const text of items.take(bytes)) yield objectOf(text)
      },
      end: () => items.end(),
    }
  },
  messageIn: (body) => {
    const text = Buffer.from(body).toString('utf8')
    try {
      const value: unknown = JSON.parse(text)
      return isMapping(value) ? value.message : undefined
    } catch {
      return text
    }
  },
}

const protobuf = (fields: MessageFields): ObjectFormat => ({
  watch: (most, kind) => new ProtobufWatch(most, fields, kind),
  list: (most, kind) => new ProtobufList(most, fields, kind),
  messageIn: protobufStatus,
})

const protobufType = 'application/vnd.kubernetes.protobuf'

/** The media types that are accepted of a resource whose `fields` are known in protobuf: that, and JSON, which is the only one of others. */
export function acceptedTypes(fields: MessageFields | undefined, isWatch: boolean): string {
  return fields ? `${protobufType}${isWatch ? ';stream=watch' : ''},application/json` : 'application/json'
}

/** The encoding of a response with a content type. */
export const formatOf = (contentType: string | undefined, fields: MessageFields | undefined): ObjectFormat =>
  fields && contentType?.startsWith(protobufType) ? protobuf(fields) : json
