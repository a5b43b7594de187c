/** How long clients wait for an answer, as the headers of their calls say it. */
import type { IncomingHttpHeaders } from 'node:http'

const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 0.001, n: 0.000_001 }

/** The header with the time limit of a call: of the Connect protocol, otherwise of gRPC and gRPC-Web. */
const headerOf = (headers: IncomingHttpHeaders) => ('connect-timeout-ms' in headers ? 'connect-timeout-ms' : 'grpc-timeout')

/**
 * Returns the time limit that a client sets for its call, in milliseconds: infinite without such a header. A string says why the header is
 * invalid.
 */
export function timeLimitOf(headers: IncomingHttpHeaders): number | string {
  const name = headerOf(headers)
  const given = headers[name]
  if (given === undefined) return Number.POSITIVE_INFINITY
  const ms = name === 'grpc-timeout' ? grpcTimeout(String(given)) : connectTimeout(String(given))
  return ms ?? `the header ${name} is invalid`
}

/** At most eight digits and a unit (gRPC over HTTP/2, "Timeout"). */
function grpcTimeout(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits) * (unitMs[unit as string] as number)
}

/** At most ten digits, in milliseconds (Connect, "Timeout-Milliseconds"). */
const connectTimeout = (text: string): number | undefined => (/^\d{1,10}$/.test(text) ? Number(text) : undefined)
