/** HTTP/2 written by hand, for peers that a library would not let be so rude. */
import { adsPath } from './xds-client.ts'

/** Frame types of RFC 9113, section 6. */
export const frameType = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, continuation: 9 }
/** Flag of a HEADERS frame that no CONTINUATION follows. */
export const endHeaders = 4

/** One frame. */
export function frame(kind: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = kind
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** A header as a literal without indexing (RFC 7541, section 6.2.2), names and values up to 126 bytes. */
export const literal = (name: string, value: string) =>
  Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)])
/** The headers that open a stream of the aggregated discovery service, state of the world. */
export const requestHeaders = Buffer.concat([
  literal(':method', 'POST'),
  literal(':scheme', 'http'),
  literal(':path', adsPath),
  literal(':authority', 'x'),
  literal('content-type', 'application/grpc'),
])
/** What a client says first. */
export const preface = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(frameType.settings, 0, 0)])
