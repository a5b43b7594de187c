/** The documents that route traffic: VirtualService, DestinationRule, Gateway, Sidecar. Fields as users of `networking.*` know them. */
import { isIp, isIpOrCidr } from './addresses.ts'
import { regexFault } from './patterns.ts'
import {
  anything,
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
  text,
  unused,
} from './shape.ts'

const largestUint32 = 4_294_967_295
const port = integer(1, 65_535)
const labels = map(text({ max: 1024 }))
const host = text({ max: 253, pattern: /^(\*|(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|[0-9A-Fa-f:.]+)$/, what: 'a host name' })

/** A user's regular expression, at most 1,024 characters. */
const regex = text({ max: 1024, check: regexFault, examples: ['a.*', '*', '.*', '[a-z]+(x|y)?'] })
/** Addresses that are matched. */
const subnets = list(
  text({
    check: (value) => (isIpOrCidr(value) ? undefined : `${JSON.stringify(value.slice(0, 100))} is not an IP address or CIDR`),
    examples: ['10.0.0.0/8', '::/0', '1.2.3.4'],
  }),
)
const ip = text({
  check: (value) => (value === '' || isIp(value) ? undefined : `${JSON.stringify(value.slice(0, 100))} is not an IP address`),
  examples: ['0.0.0.0', '::', '10.1.2.3', ''],
})

const oneStringMatch = (value: { exact?: string; prefix?: string; regex?: string }, path: string, report: Report) => {
  if ([value.exact, value.prefix, value.regex].filter((part) => part !== undefined).length > 1)
    reject(report, path, 'only one of exact, prefix and regex may be set')
}
const stringMatch = record({ exact: text(), prefix: text(), regex }, oneStringMatch)
/** Of something that may be missing: the regular expression `*` means that it is there. */
const presence = text({ max: 1024, check: (value, report) => (value === '*' ? undefined : regexFault(value, report)), examples: ['*', 'a.*'] })
const optionalMatch = record({ exact: text(), prefix: text(), regex: presence }, oneStringMatch)
const portSelector = record({ number: required(port) })
const destination = record({ host: required(host), subset: text({ max: 253 }), port: portSelector })
const headerOperations = record({ set: map(text()), add: map(text()), remove: list(text()) })
const headers = record({ request: headerOperations, response: headerOperations })
const percent = record({ value: decimal(0, 100) })

const httpMatch = record({
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

const httpRoute = record(
  {
    name: text(),
    match: list(httpMatch),
    route: list(routeDestination),
    redirect: record({
      uri: text(),
      authority: text(),
      scheme: text(),
      port,
      derivePort: unused(oneOf('FROM_PROTOCOL_DEFAULT', 'FROM_REQUEST_PORT')),
      redirectCode: integer(300, 399),
    }),
    directResponse: record({
      status: required(integer(200, 599)),
      body: record({ string: text({ max: 1_048_576 }), bytes: text({ max: 1_048_576 }) }),
    }),
    delegate: record({ name: text(), namespace: text() }),
    rewrite: record({ uri: text(), authority: text(), uriRegexRewrite: record({ match: required(regex), rewrite: required(text()) }) }),
    timeout: duration(),
    retries: record({ attempts: integer(0, 1000), perTryTimeout: duration(), retryOn, retryRemoteLocalities: flag }),
    fault: record({
      delay: record({ fixedDelay: required(duration(1)), percentage: percent, percent: integer(0, 100) }),
      abort: record({ httpStatus: integer(200, 599), percentage: percent }),
    }),
    mirror: destination,
    mirrorPercentage: percent,
    mirrorPercent: integer(0, 100),
    mirrors: list(record({ destination: required(destination), percentage: percent })),
    corsPolicy: record({
      allowOrigin: list(text()),
      allowOrigins: list(stringMatch),
      allowMethods: list(text()),
      allowHeaders: list(text()),
      exposeHeaders: list(text()),
      maxAge: duration(),
      allowCredentials: flag,
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

/** Shape of a VirtualService's spec. */
export const virtualServiceSpec = record(
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

const tlsSettings = record({
  mode: oneOf('DISABLE', 'SIMPLE', 'MUTUAL', 'ISTIO_MUTUAL'),
  clientCertificate: text(),
  privateKey: text(),
  caCertificates: text(),
  credentialName: text(),
  subjectAltNames: list(text()),
  sni: text(),
  insecureSkipVerify: flag,
})

const localityLb = record({
  distribute: list(record({ from: required(text()), to: required(map(integer(0, 100))) })),
  failover: list(record({ from: required(text()), to: required(text()) })),
  failoverPriority: unused(list(text())),
  enabled: flag,
})

/** Shape of `tcpKeepalive`, in a rule and in the mesh configuration. Envoy counts in whole seconds of 32 bits. */
export const tcpKeepaliveShape = record({
  probes: integer(0, largestUint32),
  time: duration(0, largestUint32 * 1000),
  interval: duration(0, largestUint32 * 1000),
})

/** Envoy fills a table for consistent hashing evenly only if its size is prime, and refuses others. */
function isPrime(value: number): boolean {
  for (let factor = 2; factor * factor <= value; factor++) if (value % factor === 0) return false
  return value > 1
}

const trafficFields = {
  loadBalancer: record({
    simple: oneOf('UNSPECIFIED', 'LEAST_CONN', 'RANDOM', 'PASSTHROUGH', 'ROUND_ROBIN', 'LEAST_REQUEST'),
    consistentHash: record({
      httpHeaderName: text(),
      httpCookie: record({ name: required(text()), path: text(), ttl: duration() }),
      useSourceIp: flag,
      httpQueryParameterName: text(),
      minimumRingSize: integer(0, 8_388_608),
      ringHash: record({ minimumRingSize: integer(0, 8_388_608) }),
      maglev: record({ tableSize: integer(2, 5_000_011, (size) => (isPrime(size) ? undefined : `${size} is not a prime number`)) }),
    }),
    localityLbSetting: localityLb,
    warmupDurationSecs: unused(duration()),
  }),
  connectionPool: record({
    tcp: record({
      maxConnections: integer(1, 2_147_483_647),
      connectTimeout: duration(1),
      tcpKeepalive: tcpKeepaliveShape,
      maxConnectionDuration: unused(duration()),
      idleTimeout: duration(),
    }),
    http: record({
      http1MaxPendingRequests: integer(1, 2_147_483_647),
      http2MaxRequests: integer(1, 2_147_483_647),
      maxRequestsPerConnection: integer(0, 536_870_912),
      maxRetries: integer(0, 2_147_483_647),
      idleTimeout: duration(),
      h2UpgradePolicy: oneOf('DEFAULT', 'DO_NOT_UPGRADE', 'UPGRADE'),
      useClientProtocol: flag,
      maxConcurrentStreams: integer(1, 2_147_483_647),
    }),
  }),
  outlierDetection: record({
    consecutiveErrors: integer(0, largestUint32),
    consecutive5xxErrors: integer(0, largestUint32),
    consecutiveGatewayErrors: integer(0, largestUint32),
    splitExternalLocalOriginErrors: flag,
    consecutiveLocalOriginFailures: integer(0, largestUint32),
    interval: duration(1),
    baseEjectionTime: duration(1),
    maxEjectionPercent: integer(0, 100),
    minHealthPercent: integer(0, 100),
  }),
  tls: tlsSettings,
}
const portPolicy = record({ port: required(portSelector), ...trafficFields })
const trafficPolicy = record({
  ...trafficFields,
  portLevelSettings: list(portPolicy, { max: 4096 }),
  tunnel: unused(anything),
  proxyProtocol: unused(anything),
})

/** Shape of a DestinationRule's spec. */
export const destinationRuleSpec = record(
  {
    host: required(host),
    trafficPolicy,
    subsets: list(
      record({
        name: required(text({ max: 63, pattern: /^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$/, what: 'a subset name' })),
        labels,
        trafficPolicy,
      }),
    ),
    exportTo: list(text()),
    workloadSelector: record({ matchLabels: labels }),
  },
  (value, path, report) => {
    const policies = [value.trafficPolicy, ...(value.subsets ?? []).map((subset) => subset.trafficPolicy)]
    for (const policy of policies) {
      for (const settings of [policy?.tls, ...(policy?.portLevelSettings ?? []).map((entry) => entry.tls)]) {
        if (settings?.mode === 'MUTUAL' && !settings.credentialName && !(settings.clientCertificate && settings.privateKey)) {
          reject(report, `${path}.trafficPolicy.tls`, 'MUTUAL needs clientCertificate and privateKey, or credentialName')
        }
      }
      const hash = policy?.loadBalancer?.consistentHash
      if (hash?.httpCookie && hash.httpCookie.ttl === undefined)
        reject(report, `${path}.trafficPolicy.loadBalancer.consistentHash.httpCookie.ttl`, 'required, but missing')
    }
  },
)

const serverTls = record({
  mode: oneOf('PASSTHROUGH', 'SIMPLE', 'MUTUAL', 'AUTO_PASSTHROUGH', 'ISTIO_MUTUAL', 'OPTIONAL_MUTUAL'),
  httpsRedirect: flag,
  serverCertificate: text(),
  privateKey: text(),
  caCertificates: text(),
  credentialName: text(),
  subjectAltNames: list(text()),
  verifyCertificateSpki: list(text()),
  verifyCertificateHash: list(text()),
  minProtocolVersion: oneOf('TLS_AUTO', 'TLSV1_0', 'TLSV1_1', 'TLSV1_2', 'TLSV1_3'),
  maxProtocolVersion: oneOf('TLS_AUTO', 'TLSV1_0', 'TLSV1_1', 'TLSV1_2', 'TLSV1_3'),
  cipherSuites: list(text()),
})

const gatewayServer = record(
  {
    port: required(record({ number: required(port), protocol: required(text()), name: required(text()), targetPort: integer(0, 65_535) })),
    bind: ip,
    hosts: required(list(text(), { min: 1 })),
    tls: serverTls,
    name: text(),
    defaultEndpoint: text(),
  },
  (value, path, report) => {
    const protocol = value.port.protocol.toUpperCase()
    const secure = protocol === 'HTTPS' || protocol === 'TLS'
    if (secure && !value.tls) reject(report, `${path}.tls`, `required for protocol ${protocol}`)
    if (!secure && value.tls && !(protocol === 'HTTP' && value.tls.httpsRedirect && Object.keys(value.tls).length === 1))
      reject(report, `${path}.tls`, `not allowed for protocol ${protocol}`)
    const mode = value.tls?.mode ?? 'PASSTHROUGH'
    if (secure && (mode === 'SIMPLE' || mode === 'MUTUAL') && !value.tls?.credentialName && !(value.tls?.serverCertificate && value.tls.privateKey)) {
      reject(report, `${path}.tls`, `${mode} needs serverCertificate and privateKey, or credentialName`)
    }
    if (secure && mode === 'MUTUAL' && !value.tls?.credentialName && !value.tls?.caCertificates)
      reject(report, `${path}.tls.caCertificates`, 'required for MUTUAL')
    if (secure && mode === 'ISTIO_MUTUAL' && (value.tls?.serverCertificate || value.tls?.credentialName))
      reject(report, `${path}.tls`, 'ISTIO_MUTUAL takes no certificates')
  },
)

/** Shape of a Gateway's spec. */
export const gatewaySpec = record({ servers: required(list(gatewayServer, { min: 1 })), selector: labels }, (value, path, report) => {
  const names = new Set<string>()
  for (const [index, server] of value.servers.entries()) {
    if (names.has(server.port.name)) reject(report, `${path}.servers[${index}].port.name`, `${server.port.name} is used twice`)
    names.add(server.port.name)
  }
})

const listenerPort = record({ number: integer(0, 65_535), protocol: text(), name: text(), targetPort: integer(0, 65_535) })
const captureMode = oneOf('DEFAULT', 'IPTABLES', 'NONE')
const egressHost = text({ max: 512, pattern: /^(\.|\*|~|[a-z0-9-]+)\/.+$/, what: 'namespace/host' })

const bind = text({
  check: (value) =>
    value === '' || isIp(value) || /^unix:\/\/./.test(value)
      ? undefined
      : `${JSON.stringify(value.slice(0, 100))} is neither an IP address nor unix://path`,
  examples: ['', '127.0.0.1', 'unix:///tmp/x'],
})

/** Shape of a Sidecar's spec. */
export const sidecarSpec = record(
  {
    workloadSelector: record({ labels, matchLabels: labels }),
    ingress: list(
      record({
        port: required(listenerPort),
        bind: ip,
        captureMode,
        defaultEndpoint: text({
          pattern: /^(127\.0\.0\.1:\d+|0\.0\.0\.0:\d+|\[::1?\]:\d+|unix:\/\/.+)$/,
          what: '127.0.0.1:port, 0.0.0.0:port or unix://path',
          check: (value) => (!value.startsWith('unix:') && Number(/\d+$/.exec(value)?.[0]) > 65_535 ? 'the port is above 65535' : undefined),
          examples: ['127.0.0.1:80', 'unix:///tmp/x', '[::1]:65535', '0.0.0.0:0'],
        }),
        tls: serverTls,
      }),
    ),
    egress: list(record({ port: listenerPort, bind, captureMode, hosts: required(list(egressHost, { min: 1 })) })),
    outboundTrafficPolicy: record({ mode: oneOf('REGISTRY_ONLY', 'ALLOW_ANY'), egressProxy: destination }),
  },
  (value, path, report) => {
    for (const [index, entry] of (value.egress ?? []).entries()) {
      if (!entry.port && index !== (value.egress?.length ?? 0) - 1)
        reject(report, `${path}.egress[${index}]`, 'the entry without a port must be the last')
    }
    for (const [index, entry] of (value.ingress ?? []).entries()) {
      if (!entry.port.number) reject(report, `${path}.ingress[${index}].port.number`, 'required, but missing')
    }
  },
)

export type VirtualServiceSpec = Read<typeof virtualServiceSpec>
export type HttpRoute = Read<typeof httpRoute>
export type HttpMatch = Read<typeof httpMatch>
export type StringMatch = Read<typeof stringMatch>
export type RouteDestination = Read<typeof routeDestination>
export type Destination = Read<typeof destination>
export type TlsRoute = Read<typeof tlsRoute>
export type TcpRoute = Read<typeof tcpRoute>
export type HeaderOperations = Read<typeof headerOperations>
export type DestinationRuleSpec = Read<typeof destinationRuleSpec>
export type TrafficPolicy = Read<typeof trafficPolicy>
export type PortPolicy = Read<typeof portPolicy>
export type TlsSettings = Read<typeof tlsSettings>
export type LocalityLb = Read<typeof localityLb>
export type GatewaySpec = Read<typeof gatewaySpec>
export type GatewayServer = Read<typeof gatewayServer>
export type SidecarSpec = Read<typeof sidecarSpec>
/** Shape of `localityLbSetting`, in a rule and in the mesh configuration. */
export const localityLbShape = localityLb
