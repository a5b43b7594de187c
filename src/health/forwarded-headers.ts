/** Selects the request headers that are forwarded to the application. */
import type { ProbeHeader } from '../../protocols/messages/status.ts'

/** Hop-by-hop headers (RFC 9110, 7.6.1), and headers about a body, which is not forwarded. */
const hopByHop: ReadonlySet<string> = new Set(
  'connection content-length expect host keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade http2-settings'.split(
    ' ',
  ),
)

/** Alternating names and values. */
type RawHeaders = readonly string[]

const lower = (name: string): string => name.toLowerCase()

function* pairs(headers: RawHeaders): Iterable<readonly [name: string, value: string]> {
  for (let index = 0; index + 1 < headers.length; index += 2) yield [headers[index] as string, headers[index + 1] as string]
}

/**
 * Returns the headers of a probe (docs/agent.md, H7): the incoming ones without hop-by-hop headers, and the probe's own, which replace
 * incoming ones of the same name. `host` is the value of `Host` unless the probe sets one, as `Host` or `:authority`.
 */
export function probeHeaders(incoming: RawHeaders, own: readonly ProbeHeader[], host: string): string[] {
  const isHost = (name: string) => lower(name) === 'host' || name === ':authority'
  const connection = [...pairs(incoming)].filter(([name]) => lower(name) === 'connection').flatMap(([, value]) => value.split(','))
  const dropped = new Set([...hopByHop, ...connection.map((name) => lower(name.trim())), ...own.map(({ name }) => lower(name))])
  const headers = ['Host', own.findLast(({ name }) => isHost(name))?.value || host, 'Connection', 'close']
  for (const [name, value] of pairs(incoming)) if (!dropped.has(lower(name))) headers.push(name, value)
  for (const { name, value = '' } of own) if (!isHost(name) && !hopByHop.has(lower(name))) headers.push(name, value)
  return headers
}

/** Matches media ranges that include the text format of metrics. */
const plainRange = /^\s*(text\/(plain|\*)|\*\/\*)\s*(;|$)/i

/**
 * Returns the `Accept` header for one part of a merged page: the requested media ranges that include the text format, because parts in
 * OpenMetrics or protobuf cannot be merged with others (docs/agent.md, H5).
 */
export function textFormats(accept: string | undefined): string {
  const ranges = (accept ?? '').split(',').filter((range) => plainRange.test(range))
  return ranges.length > 0 ? ranges.map((range) => range.trim()).join(',') : 'text/plain;version=0.0.4;q=1,*/*;q=0.1'
}

/** Whether a part with this content type and encoding can be merged with others. A part without a type is assumed to be text. */
export function isMergeable(type: string | undefined, encoding: string | undefined): boolean {
  if (encoding !== undefined && !/^\s*(identity)?\s*$/i.test(encoding)) return false
  return type === undefined || /^\s*(text\/plain|application\/openmetrics-text)\s*(;|$)/i.test(type)
}
