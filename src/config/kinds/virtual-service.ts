/** VirtualService: how requests to hosts are routed (docs/resources.md, R1 to R12). */
import { regexFault } from '../patterns.ts'
import { duration, flag, integer, list, map, oneOf, type Read, type Report, record, reject, rejectBeside, required, text, unused } from '../shape.ts'
import { exportList } from '../shapes/export-list.ts'
import { claimPath, headerNameFault, headers } from '../shapes/headers.ts'
import { destination, host, labels, largestUint32, port, subnets } from '../shapes/hosts.ts'
import { authority, directResponse, fault, line, percent, redirect } from '../shapes/http-actions.ts'
import { type Kind, networkingVersions } from './kind.ts'

/** Returns why a regular expression is not valid. Envoy refuses an empty one. */
const patternFault = (value: string, report: Report) => (value === '' ? 'required, but empty' : regexFault(value, report))
/** A user's regular expression, at most 1,024 characters. */
const regex = text({ max: 1024, check: patternFault, examples: ['a.*', '*', '.*', '[a-z]+(x|y)?'] })

const oneStringMatch = (value: { exact?: string; prefix?: string; regex?: string }, path: string, report: Report) => {
  const [first, ...others] = Object.keys(value)
  for (const field of others) reject(report, `${path}.${field}`, `excluded by ${first}`)
}
const stringMatch = record({ exact: text(), prefix: text(), regex }, oneStringMatch)
/** A regular expression for an optional value. `*` matches any present value. */
const presence = text({ max: 1024, check: (value, report) => (value === '*' ? undefined : patternFault(value, report)), examples: ['*', 'a.*'] })
const optionalMatch = record({ exact: text(), prefix: text(), regex: presence }, oneStringMatch)
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
      const reason = pseudoHeaders.has(name) || claimPath(name) ? undefined : headerNameFault(name)
      if (reason) reject(report, `${path}.${field}[${name.slice(0, 100)}]`, reason)
    }
  for (const name of Object.keys(value.queryParams ?? {}))
    if (name === '' || Buffer.byteLength(name) > 1024)
      reject(report, `${path}.queryParams[${name.slice(0, 100)}]`, 'a parameter has a name of 1 to 1024 bytes')
})

const weighted = { destination: required(destination), weight: integer(0, 1_000_000) }
const routeDestination = record({ ...weighted, headers })
/** A destination of connections, which have no headers. */
const connectionDestination = record({ ...weighted, headers: unused(headers, 'connections have no headers') })

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

const httpRoute = record(
  {
    name: text(),
    match: list(httpMatch),
    route: list(routeDestination),
    redirect,
    directResponse,
    delegate: record({ name: text(), namespace: text() }),
    rewrite: record({ uri: line, authority, uriRegexRewrite: record({ match: required(regex), rewrite: required(line) }) }, (value, path, report) =>
      rejectBeside(value, ['uri', 'uriRegexRewrite'], path, report),
    ),
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
    // Requests that are answered at once are neither delayed nor rewritten.
    for (const field of ['fault', 'rewrite']) rejectBeside(value, [value.redirect ? 'redirect' : 'directResponse', field], path, report)
    rejectBeside(value, ['mirror', 'mirrors'], path, report)
    if (value.redirect?.prefixRewrite && value.match?.some(({ uri }) => uri && uri.prefix === undefined))
      reject(report, `${path}.redirect.prefixRewrite`, 'the uri of every match must be a prefix')
    checkWeights(value.route, path, report)
  },
)

/** Checks the weights of destinations. Envoy stores their sum in 32 bits. */
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
    route: required(list(connectionDestination, { min: 1 })),
  },
  checkL4,
)
const tcpRoute = record({ match: list(record(l4Fields)), route: required(list(connectionDestination, { min: 1 })) }, checkL4)

const spec = record(
  { hosts: list(host), gateways: list(text()), http: list(httpRoute), tls: list(tlsRoute), tcp: list(tcpRoute), exportTo: exportList },
  (value, path, report) => {
    const isDelegate = !value.hosts?.length
    if (isDelegate && (value.gateways?.length || value.tls?.length || value.tcp?.length))
      reject(report, `${path}.hosts`, 'required unless the object is a delegate (http routes only, no gateways)')
    if (isDelegate && !value.http?.length) reject(report, `${path}.hosts`, 'required, but missing')
    if (!isDelegate && !value.http?.length && !value.tls?.length && !value.tcp?.length) reject(report, path, 'needs one of http, tls, tcp')
    const mesh = !value.gateways?.length || value.gateways.includes('mesh')
    if (mesh && value.hosts?.includes('*')) reject(report, `${path}.hosts`, 'the host * is only allowed with gateways other than mesh')
    for (const [index, { match }] of (value.tls ?? []).entries())
      for (const [at, { sniHosts }] of match.entries()) {
        const other = sniHosts.findIndex((name) => !value.hosts?.some((known) => isWithin(name, known)))
        const reason = `${sniHosts[other]} is not among the hosts of the object, by which others find it`
        if (other >= 0) report.warnings.push({ path: `${path}.tls[${index}].match[${at}].sniHosts[${other}]`, reason })
      }
    const seen = new Set<string>()
    for (const [index, name] of (value.hosts ?? []).entries()) {
      if (seen.has(name)) reject(report, `${path}.hosts[${index}]`, `${name} is listed twice`)
      seen.add(name)
    }
  },
)

/** Whether all names of a host are among those of another one, of which each may be a wildcard. */
function isWithin(name: string, known: string): boolean {
  const [one, other] = [name.toLowerCase(), known.toLowerCase()]
  return one === other || other === '*' || (other.startsWith('*.') && one.endsWith(other.slice(1)))
}

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
