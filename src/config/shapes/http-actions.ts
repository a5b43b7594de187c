/** Actions of a route other than forwarding: redirects, direct responses and fault injection. */
import { codeNamed } from '../../model/status-codes.ts'
import { decimal, duration, integer, oneOf, type Report, record, rejectBeside, required, type Shape, text, unused } from '../shape.ts'
import { authorityFault } from './headers.ts'
import { port } from './hosts.ts'

/** A share of requests in percent. */
export const percent = record({ value: decimal(0, 100) })
/** Text for a path or a header, without control characters. */
export const line = text({
  max: 16_384,
  check: (value) => (/[\u0000-\u001f\u007f]/.test(value) ? 'has a control character' : undefined),
  examples: ['/new', ''],
})
/** A host with an optional port, for rewrites and redirects. Empty: none. */
export const authority = text({ check: authorityFault, examples: ['a.example', 'a.example:8080', ''] })
const redirectCodes = new Set([0, 301, 302, 303, 307, 308])
/** A redirect. */
export const redirect = record(
  {
    uri: line,
    prefixRewrite: line,
    authority,
    scheme: text({ check: (value) => (/^(https?)?$/.test(value) ? undefined : 'neither http nor https'), examples: ['http', 'https', ''] }),
    port,
    derivePort: oneOf('FROM_PROTOCOL_DEFAULT', 'FROM_REQUEST_PORT'),
    redirectCode: integer(0, 399, (code) => (redirectCodes.has(code) ? undefined : `${code} is not one of 301, 302, 303, 307, 308`)),
  },
  (value, path, report) => {
    rejectBeside(value, ['uri', 'prefixRewrite'], path, report)
    rejectBeside(value, ['port', 'derivePort'], path, report)
  },
)

/** The maximum size of a direct response in bytes, which is also set in the route configuration. */
export const largestDirectResponse = 1_048_576
const body = text({
  check: (value) => (Buffer.byteLength(value) > largestDirectResponse ? `longer than ${largestDirectResponse} bytes` : undefined),
  max: largestDirectResponse,
})
const base64 = text({
  max: 1_398_104,
  check: (value) => (/^[A-Za-z0-9+/_-]*={0,2}$/.test(value) ? undefined : 'not base64'),
  examples: ['aGVsbG8=', ''],
})
/** A direct response. */
export const directResponse = record({
  status: required(integer(200, 599)),
  body: record({ string: body, bytes: base64 }, (value, path, report) => rejectBeside(value, ['string', 'bytes'], path, report)),
})

/** A gRPC status by its name, `NOT_FOUND`, or by its number; returned as the number. */
const grpcStatus: Shape<number> = (() => {
  const name = text({
    check: (value) => (codeNamed(value) === undefined ? `${JSON.stringify(value.slice(0, 100))} is not a status of gRPC` : undefined),
    examples: ['NOT_FOUND', 'UNAVAILABLE', '14'],
  })
  return {
    form: name.form,
    read(value, path, report) {
      const read = name.read(typeof value === 'number' ? String(value) : value, path, report)
      return read === undefined ? undefined : codeNamed(read)
    },
  }
})()

const withoutEffect = (report: Report, path: string, reason: string) => report.warnings.push({ path, reason: `has no effect: ${reason}` })
const isNone = (value: { percentage?: { value?: number }; percent?: number }) =>
  ((value.percentage ? value.percentage.value : value.percent) ?? 0) === 0
/** Fault injection. A fault without a percentage has no effect. */
export const fault = record({
  delay: record(
    { fixedDelay: duration(1), exponentialDelay: unused(duration()), percentage: percent, percent: integer(0, 100) },
    (value, path, report) => {
      rejectBeside(value, ['fixedDelay', 'exponentialDelay'], path, report)
      if (value.fixedDelay === undefined) withoutEffect(report, path, 'it has no fixedDelay')
      else if (isNone(value)) withoutEffect(report, path, 'without a percentage no request is delayed')
    },
  ),
  abort: record({ httpStatus: integer(200, 599), grpcStatus, http2Error: unused(text()), percentage: percent }, (value, path, report) => {
    rejectBeside(value, ['httpStatus', 'grpcStatus', 'http2Error'], path, report)
    if (value.httpStatus === undefined && value.grpcStatus === undefined) withoutEffect(report, path, 'it has neither httpStatus nor grpcStatus')
    else if (isNone(value)) withoutEffect(report, path, 'without a percentage no request is aborted')
  }),
})
