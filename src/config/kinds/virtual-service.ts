/** VirtualService: how requests to hosts are routed (docs/resources.md, R1 to R12). */
import { codeNamed } from '../../model/status-codes.ts'
import { regexFault } from '../patterns.ts'
import {
  decimal,
  duration,
  flag,
  integer,
  list,
  map,
  oneOf,
  type Read,
  type Report,
  record,
  reject,
  required,
  type Shape,
  text,
  unused,
} from '../shape.ts'
import { authorityFault, headerNameFault, headers } from '../shapes/headers.ts'
import { destination, host, labels, largestUint32, port, subnets } from '../shapes/hosts.ts'
import { type Kind, networkingVersions } from './kind.ts'

/** What is wrong with a regular expression: the empty one is none to Envoy. */
const patternFault = (value: string, report: Report) => (value === '' ? 'required, but empty' : regexFault(value, report))
/** A user's regular expression, at most 1,024 characters. */
const regex = text({ max: 1024, check: patternFault, examples: ['a.*', '*', '.*', '[a-z]+(x|y)?'] })

const oneStringMatch = (value: { exact?: string; prefix?: string; regex?: string }, path: string, report: Report) => {
  if ([value.exact, value.prefix, value.regex].filter((part) => part !== undefined).length > 1)
    reject(report, path, 'only one of exact, prefix and regex may be set')
}
const stringMatch = record({ exact: text(), prefix: text(), regex }, oneStringMatch)
/** Of something that may be missing: the regular expression `*` means that it is there. */
const presence = text({ max: 1024, check: (value, report) => (value === '*' ? undefined : patternFault(value, report)), examples: ['*', 'a.*'] })
const optionalMatch = record({ exact: text(), prefix: text(), regex: presence }, oneStringMatch)
const percent = record({ value: decimal(0, 100) })
/** Text that goes into a path or a header. */
const line = text({
  max: 16_384,
  check: (value) => (/[\u0000-\u001f\u007f]/.test(value) ? 'has a control character' : undefined),
  examples: ['/new', ''],
})
const authority = text({ check: authorityFault, examples: ['a.example', 'a.example:8080', ''] })
/** The name of a header, or `*`. */
const headerName = text({ check: (value) => (value === '*' ? undefined : headerNameFault(value)), examples: ['x-name', '*'] })

const matchFields = {
  name: text(),
  uri: stringMatch,
  ignoreUriCase: flag,
  scheme: stringMatch,
  method: stringMatch,
  authority: stringMatch,
  headers: map(optionalMatch),
  withoutHeaders: map(optionalMatch),
  queryParams: map(optionalMatch),
  port,
  sourceLabels: labels,
  sourceNamespace: text(),
  gateways: list(text()),
  statPrefix: text({ max: 1024 }),
}
const pseudoHeaders = new Set([':method', ':scheme', ':authority', ':path'])
const httpMatch = record(matchFields, (value, path, report) => {
  for (const field of ['headers', 'withoutHeaders'] as const)
    for (const name of Object.keys(value[field] ?? {})) {
      const reason = pseudoHeaders.has(name) ? undefined : headerNameFault(name)
      if (reason) reject(report, `${path}.${field}[${name.slice(0, 100)}]`, reason)
    }
  for (const name of Object.keys(value.queryParams ?? {}))
    if (name === '' || Buffer.byteLength(name) > 1024)
      reject(report, `${path}.queryParams[${name.slice(0, 100)}]`, 'a parameter has a name of 1 to 1024 bytes')
})

const routeDestination = record({ destination: required(destination), weight: integer(0, 1_000_000), headers })

const retryConditions = new Set(
  '5xx gateway-error reset reset-before-request connect-failure envoy-ratelimited retriable-4xx refused-stream retriable-status-codes retriable-headers http3-post-connect-failure cancelled deadline-exceeded internal resource-exhausted unavailable'.split(
    ' ',
  ),
)
const retryOn = text({
  check(value) {
    const unknown = value
      .split(',')
      .map((condition) => condition.trim())
      .find((name) => name !== '' && !retryConditions.has(name) && !/^[1-5]\d\d$/.test(name))
    return unknown === undefined ? undefined : `${JSON.stringify(unknown.slice(0, 100))} is not a retry condition`
  },
  examples: ['5xx', 'connect-failure, 503', ''],
})

const redirectCodes = new Set([0, 301, 302, 303, 307, 308])
const redirect = record(
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
    if (value.uri && value.prefixRewrite) reject(report, path, 'only one of uri and prefixRewrite may be set')
    if (value.port !== undefined && value.derivePort !== undefined) reject(report, path, 'only one of port and derivePort may be set')
  },
)

/** Bytes of a direct response at most, as proxies are told with the route configuration. */
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
const directResponse = record({
  status: required(integer(200, 599)),
  body: record({ string: body, bytes: base64 }, (value, path, report) => {
    if (value.string !== undefined && value.bytes !== undefined) reject(report, path, 'only one of string and bytes may be set')
  }),
})

/** A status of gRPC by its name, `NOT_FOUND`, or by its number; read as the number. */
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
const fault = record({
  delay: record(
    { fixedDelay: duration(1), exponentialDelay: unused(duration()), percentage: percent, percent: integer(0, 100) },
    (value, path, report) => {
      if (value.fixedDelay === undefined) withoutEffect(report, path, 'it has no fixedDelay')
      else if (isNone(value)) withoutEffect(report, path, 'without a percentage no request is delayed')
    },
  ),
  abort: record({ httpStatus: integer(200, 599), grpcStatus, http2Error: unused(text()), percentage: percent }, (value, path, report) => {
    if (value.httpStatus !== undefined && value.grpcStatus !== undefined) reject(report, path, 'only one of httpStatus and grpcStatus may be set')
    if (value.httpStatus === undefined && value.grpcStatus === undefined) withoutEffect(report, path, 'it has neither httpStatus nor grpcStatus')
    else if (isNone(value)) withoutEffect(report, path, 'without a percentage no request is aborted')
  }),
})

const httpRoute = record(
  {
    name: text(),
    match: list(httpMatch),
    route: list(routeDestination),
    redirect,
    directResponse,
    delegate: record({ name: text(), namespace: text() }),
    rewrite: record({ uri: line, authority, uriRegexRewrite: record({ match: required(regex), rewrite: required(line) }) }),
    timeout: duration(),
    retries: record({
      attempts: integer(0, 1000),
      perTryTimeout: duration(),
      retryOn,
      retryRemoteLocalities: flag,
      retryIgnorePreviousHosts: flag,
      backoff: duration(1),
    }),
    fault,
    mirror: destination,
    mirrorPercentage: percent,
    mirrorPercent: integer(0, 100),
    mirrors: list(record({ destination: required(destination), percentage: percent })),
    corsPolicy: record({
      allowOrigin: list(line),
      allowOrigins: list(stringMatch),
      allowMethods: list(headerName),
      allowHeaders: list(headerName),
      exposeHeaders: list(headerName),
      maxAge: duration(),
      allowCredentials: flag,
      unmatchedPreflights: oneOf('UNSPECIFIED', 'FORWARD', 'IGNORE'),
    }),
    headers,
  },
  (value, path, report) => {
    const actions = [
      value.route?.length ? 'route' : '',
      value.redirect ? 'redirect' : '',
      value.directResponse ? 'directResponse' : '',
      value.delegate ? 'delegate' : '',
    ].filter(Boolean)
    if (actions.length === 0) reject(report, path, 'needs one of route, redirect, directResponse, delegate')
    if (actions.length > 1) reject(report, path, `${actions.join(' and ')} exclude each other`)
    if (value.redirect?.prefixRewrite && value.match?.some(({ uri }) => uri && uri.prefix === undefined))
      reject(report, `${path}.redirect.prefixRewrite`, 'the uri of every match must be a prefix')
    checkWeights(value.route, path, report)
  },
)

/** Weights are a share of their sum, which Envoy holds in 32 bits. */
function checkWeights(routes: readonly { weight?: number }[] | undefined, path: string, report: Report): void {
  if (!routes || routes.length < 2) return
  const sum = routes.reduce((total, entry) => total + (entry.weight ?? 0), 0)
  if (sum === 0) reject(report, `${path}.route`, 'the weights of several destinations may not all be 0')
  if (sum > largestUint32) reject(report, `${path}.route`, `the weights add up to ${sum}, more than ${largestUint32}`)
}

const l4Fields = { destinationSubnets: subnets, port, sourceLabels: labels, sourceNamespace: text(), gateways: list(text()) }
const checkL4 = ({ route }: { route: { weight?: number }[] }, path: string, report: Report) => checkWeights(route, path, report)
const tlsRoute = record(
  {
    match: required(list(record({ ...l4Fields, sniHosts: required(list(host, { min: 1 })) }), { min: 1 })),
    route: required(list(routeDestination, { min: 1 })),
  },
  checkL4,
)
const tcpRoute = record({ match: list(record(l4Fields)), route: required(list(routeDestination, { min: 1 })) }, checkL4)

const spec = record(
  { hosts: list(host), gateways: list(text()), http: list(httpRoute), tls: list(tlsRoute), tcp: list(tcpRoute), exportTo: list(text()) },
  (value, path, report) => {
    const isDelegate = !value.hosts?.length
    if (isDelegate && (value.gateways?.length || value.tls?.length || value.tcp?.length))
      reject(report, `${path}.hosts`, 'required unless the object is a delegate (http routes only, no gateways)')
    if (isDelegate && !value.http?.length) reject(report, `${path}.hosts`, 'required, but missing')
    if (!isDelegate && !value.http?.length && !value.tls?.length && !value.tcp?.length) reject(report, path, 'needs one of http, tls, tcp')
    const mesh = !value.gateways?.length || value.gateways.includes('mesh')
    if (mesh && value.hosts?.includes('*')) reject(report, `${path}.hosts`, 'the host * is only allowed with gateways other than mesh')
    const seen = new Set<string>()
    for (const [index, name] of (value.hosts ?? []).entries()) {
      if (seen.has(name)) reject(report, `${path}.hosts[${index}]`, `${name} is listed twice`)
      seen.add(name)
    }
  },
)

/** The kind VirtualService. */
export const virtualService = {
  name: 'VirtualService',
  plural: 'virtualservices',
  group: 'networking',
  versions: networkingVersions,
  spec,
  scope: 'exported',
  selects: undefined,
} satisfies Kind<'VirtualService', VirtualServiceSpec>

export type VirtualServiceSpec = Read<typeof spec>
export type HttpRoute = Read<typeof httpRoute>
export type HttpMatch = Read<typeof httpMatch>
export type StringMatch = Read<typeof stringMatch>
export type RouteDestination = Read<typeof routeDestination>
export type TlsRoute = Read<typeof tlsRoute>
export type TcpRoute = Read<typeof tcpRoute>
