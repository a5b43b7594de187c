/** HTTP/2 frames encoded by hand, for peers whose misbehaviour no library would permit. */
import { adsPath } from './xds-client.ts'

/** Frame types of RFC 9113, section 6. */
export const frameType = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, continuation: 9 }
/** The flag END_HEADERS: no CONTINUATION frame follows. */
export const endHeaders = 4

/** Encodes a frame. */
export function frame(kind: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = kind
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** Encodes a header as a literal without indexing (RFC 7541, section 6.2.2). Names and values have up to 126 bytes. */
export const literal = (name: string, value: string) =>
  Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)])
/** The headers that open a SotW stream of the aggregated discovery service. */
export const requestHeaders = Buffer.concat([
  literal(':method', 'POST'),
  literal(':scheme', 'http'),
  literal(':path', adsPath),
  literal(':authority', 'x'),
  literal('content-type', 'application/grpc'),
])
/** The connection preface of a client. */
export const preface = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(frameType.settings, 0, 0)])
