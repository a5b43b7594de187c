/** Status and retry delay of a gRPC call, from its trailers. */
import { scanFields, WireError } from '../xds/slab/wire.ts'

/** Headers or trailers of a call. */
type Headers = Readonly<Record<string, string | readonly string[] | number | boolean | undefined>>

/**
 * The end of a call: gRPC status code (0 = OK), message, and the minimum delay before a retry that the server asks for, in milliseconds.
 */
export interface CallEnd {
  readonly code: number
  readonly message: string
  readonly retryAfterMs: number
}

const unknownCode = 2
const longestMessage = 1000

/** Reads the end of a call from its trailers. Without a status the code is `Unknown`. */
export function callEnd(trailers: Headers): CallEnd {
  const status = text(trailers['grpc-status'])
  return {
    code: /^\d{1,3}$/.test(status) ? Number(status) : unknownCode,
    message: percentDecoded(text(trailers['grpc-message'])).slice(0, longestMessage),
    retryAfterMs: Math.max(pushback(text(trailers['grpc-retry-pushback-ms'])), retryDelay(text(trailers['grpc-status-details-bin']))),
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/**
 * Parses `grpc-retry-pushback-ms` (gRPC proposal A6). A negative value forbids retries; it is read as 0, because an agent without a
 * certificate has to retry.
 */
const pushback = (value: string): number => (/^\d{1,12}$/.test(value) ? Number(value) : 0)

const retryInfo = 'type.googleapis.com/google.rpc.RetryInfo'

/** Returns the delay of a `google.rpc.RetryInfo` in a base64-encoded `google.rpc.Status`, in milliseconds; 0 without one. */
function retryDelay(details: string): number {
  try {
    for (const { field, bytes } of scanFields(Buffer.from(details, 'base64'))) {
      if (field !== 3 || !bytes) continue
      const { 1: type, 2: value } = messageFields(bytes)
      if (type?.toString() !== retryInfo || !value) continue
      const delay = messageFields(value)[1]
      if (delay) return durationMs(delay)
    }
  } catch (error) {
    if (!(error instanceof WireError)) throw error
  }
  return 0
}

const messageFields = (message: Buffer): Readonly<Record<number, Buffer | undefined>> =>
  Object.fromEntries([...scanFields(message)].map(({ field, bytes }) => [field, bytes]))

/** Decodes a `google.protobuf.Duration` to milliseconds. A negative or too large one is 0. */
function durationMs(message: Buffer): number {
  let ms = 0
  for (const { field, bytes, value } of scanFields(message)) {
    if (bytes) continue
    if (field === 1) ms += value * 1000
    if (field === 2) ms += value / 1e6
  }
  return ms < Number.MAX_SAFE_INTEGER ? ms : 0
}

/** Decodes a percent-encoded status message (gRPC over HTTP/2, Responses). Invalid escapes are kept as they are. */
function percentDecoded(message: string): string {
  const bytes = message.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}
