/** Which headers of a request go on to the application. */
import type { ProbeHeader } from '../../protocols/messages/status.ts'

/** Headers of one connection (RFC 9110, 7.6.1), and those that tell of a body, which is not sent on. */
const hopByHop: ReadonlySet<string> = new Set(
  'connection content-length expect host keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade http2-settings'.split(
    ' ',
  ),
)

/** Name and value by turns. */
type RawHeaders = readonly string[]

const lower = (name: string): string => name.toLowerCase()

function* pairs(headers: RawHeaders): Iterable<readonly [name: string, value: string]> {
  for (let index = 0; index + 1 < headers.length; index += 2) yield [headers[index] as string, headers[index + 1] as string]
}

/**
 * The headers of a probe (docs/agent.md, H7): those that came, without what belongs to the connection, each replaced by those of the same
 * name that the probe has itself. `host` is the header `Host` unless the probe has one, as `Host` or `:authority`.
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

/** Formats of metrics that may stand beside each other in one text: media ranges that a page of metrics may be asked for in. */
const plainRange = /^\s*(text\/(plain|\*)|\*\/\*)\s*(;|$)/i

/**
 * The header `Accept` for a part of a merged page: of the media ranges that were asked for, those that mean the text format, since parts in
 * OpenMetrics or protocol buffers cannot be put together with others (docs/agent.md, H5).
 */
export function textFormats(accept: string | undefined): string {
  const ranges = (accept ?? '').split(',').filter((range) => plainRange.test(range))
  return ranges.length > 0 ? ranges.map((range) => range.trim()).join(',') : 'text/plain;version=0.0.4;q=1,*/*;q=0.1'
}

/** Whether a part of this type and encoding can be put together with others. A part without a type is taken for text. */
export function isMergeable(type: string | undefined, encoding: string | undefined): boolean {
  if (encoding !== undefined && !/^\s*(identity)?\s*$/i.test(encoding)) return false
  return type === undefined || /^\s*(text\/plain|application\/openmetrics-text)\s*(;|$)/i.test(type)
}
