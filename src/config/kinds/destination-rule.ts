/** DestinationRule: traffic policies and subsets of a host. */
import {
  anything,
  decimal,
  duration,
  type Fault,
  flag,
  integer,
  list,
  oneOf,
  type Read,
  type Report,
  record,
  reject,
  rejectBeside,
  required,
  text,
  unused,
} from '../shape.ts'
import { connectionPool, localityLbShape } from '../shapes/connections.ts'
import { exportList } from '../shapes/export-list.ts'
import { host, labels, largestUint32, portSelector } from '../shapes/hosts.ts'
import { credentialName, needsAuthorities, tlsMode } from '../shapes/tls.ts'
import { type Kind, networkingVersions } from './kind.ts'

const tlsSettings = record({
  mode: tlsMode('DISABLE', 'SIMPLE', 'MUTUAL', 'MESH_MUTUAL'),
  clientCertificate: text(),
  privateKey: text(),
  caCertificates: text(),
  credentialName,
  subjectAltNames: list(text()),
  sni: text(),
  insecureSkipVerify: flag,
  caCrl: text(),
})

/** An attribute of a cookie that Envoy sets, such as `SameSite=Strict` (RFC 6265, section 4.1.1). */
const cookieAttribute = record({
  name: required(text({ max: 256, pattern: /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, what: 'the name of a cookie attribute', examples: ['SameSite'] })),
  value: text({ max: 1024, pattern: /^[\x20-\x3A\x3C-\x7E]*$/, what: 'the value of a cookie attribute', examples: ['Strict', ''] }),
})

/** Whether a number is prime. Envoy refuses Maglev tables of other sizes. */
function isPrime(value: number): boolean {
  for (let factor = 2; factor * factor <= value; factor++) if (value % factor === 0) return false
  return value > 1
}

const trafficFields = {
  loadBalancer: record({
    simple: oneOf('UNSPECIFIED', 'LEAST_CONN', 'RANDOM', 'PASSTHROUGH', 'ROUND_ROBIN', 'LEAST_REQUEST'),
    consistentHash: record({
      httpHeaderName: text(),
      httpCookie: record({
        name: required(text()),
        path: text(),
        ttl: duration(),
        attributes: list(cookieAttribute, { max: 100 }),
      }),
      useSourceIp: flag,
      httpQueryParameterName: text(),
      minimumRingSize: integer(0, 8_388_608),
      ringHash: record({ minimumRingSize: integer(0, 8_388_608) }),
      maglev: record({ tableSize: integer(2, 5_000_011, (size) => (isPrime(size) ? undefined : `${size} is not a prime number`)) }),
    }),
    localityLbSetting: localityLbShape,
    zoneAwareLbSetting: unused(anything, 'load is balanced by weight; the zone of the caller is not considered'),
    warmupDurationSecs: duration(1),
    warmup: record({ duration: required(duration(1)), minimumPercent: decimal(0, 100), aggression: decimal(0.001, 1000) }),
  }),
  connectionPool,
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
    outlierDetectionHttpErrorCodes: unused(list(anything), 'status codes 500 and above count as errors'),
  }),
  tls: tlsSettings,
}
const portPolicy = record({ port: required(portSelector), ...trafficFields })
const trafficPolicy = record({
  ...trafficFields,
  portLevelSettings: list(portPolicy, { max: 4096 }),
  tunnel: unused(anything, 'connections are not tunnelled'),
  proxyProtocol: record({ version: oneOf('V1', 'V2') }),
  retryBudget: record({
    percent: decimal(0, 100),
    minRetryConcurrency: integer(0, largestUint32),
    budgetInterval: unused(duration(), 'the budget is a share of the requests that are active at the moment'),
  }),
})

const spec = record(
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
    exportTo: exportList,
    workloadSelector: unused(record({ matchLabels: labels }), 'the rule applies to all workloads that see it'),
  },
  (value, path, report) => {
    checkPolicy(value.trafficPolicy, `${path}.trafficPolicy`, report)
    for (const [index, subset] of (value.subsets ?? []).entries())
      checkPolicy(subset.trafficPolicy, `${path}.subsets[${index}].trafficPolicy`, report)
  },
)

/** Checks a policy and those of its ports. */
function checkPolicy(policy: TrafficPolicy | undefined, path: string, report: Report): void {
  if (!policy) return
  if (Object.keys(policy).length === 0) reject(report, path, 'needs at least one field')
  rejectBeside(policy, ['tunnel', 'proxyProtocol'], path, report)
  checkSettings(policy, path, report)
  for (const [index, settings] of (policy.portLevelSettings ?? []).entries()) checkSettings(settings, `${path}.portLevelSettings[${index}]`, report)
}

function checkSettings({ tls, loadBalancer, connectionPool: pool }: TrafficPolicy | PortPolicy, path: string, report: Report): void {
  if (tls?.mode === 'MUTUAL' && !tls.credentialName && !(tls.clientCertificate && tls.privateKey))
    reject(report, `${path}.tls`, 'MUTUAL needs clientCertificate and privateKey, or credentialName')
  if (tls?.credentialName && (tls.clientCertificate || tls.privateKey || tls.caCertificates))
    reject(report, `${path}.tls.credentialName`, 'excludes clientCertificate, privateKey and caCertificates')
  if (pool && Object.keys(pool).length === 0) reject(report, `${path}.connectionPool`, 'needs tcp or http')
  if (loadBalancer) checkBalancer(loadBalancer, `${path}.loadBalancer`, report)
  const cookie = loadBalancer?.consistentHash?.httpCookie
  const at = `${path}.loadBalancer.consistentHash.httpCookie`
  if (cookie?.name === '') reject(report, `${at}.name`, 'required, but empty')
  if (cookie && cookie.ttl === undefined) reject(report, `${at}.ttl`, 'required, but missing')
}

/** Rejects settings of load balancing that exclude each other. */
function checkBalancer(balancer: NonNullable<TrafficPolicy['loadBalancer']>, path: string, report: Report): void {
  rejectBeside(balancer, ['simple', 'consistentHash'], path, report)
  const { consistentHash: hash } = balancer
  if (!hash) return
  rejectBeside(hash, ['httpHeaderName', 'httpCookie', 'useSourceIp', 'httpQueryParameterName'], `${path}.consistentHash`, report)
  rejectBeside(hash, ['ringHash', 'maglev'], `${path}.consistentHash`, report)
  for (const table of ['ringHash', 'maglev'])
    if (hash.minimumRingSize !== 0) rejectBeside(hash, [table, 'minimumRingSize'], `${path}.consistentHash`, report)
}

/** The maximum number of ports that are listed in a report. */
const maxPorts = 10

/**
 * Reports settings of a policy that other settings replace (docs/resources.md, C5, C6): those of the policy itself on the ports that its
 * `portLevelSettings` name, and `maxRetries` where there is a retry budget. `rule`: the policy of the whole rule.
 */
function replacedAt(path: string, policy: TrafficPolicy | undefined, rule: TrafficPolicy | undefined): Fault[] {
  const entries = policy?.portLevelSettings ?? []
  const ports = [...new Set(entries.map(({ port }) => port.number))]
  const listed = ports.slice(0, maxPorts).join(', ') + (ports.length > maxPorts ? ` and ${ports.length - maxPorts} more` : '')
  const unused = (['proxyProtocol', 'retryBudget'] as const).filter((field) => ports.length > 0 && policy?.[field] !== undefined)
  const hasRuleBudget = (port: number) =>
    policy !== rule && rule?.retryBudget !== undefined && !rule.portLevelSettings?.some((entry) => entry.port.number === port)
  const retries = [
    { at: path, settings: policy, hasBudget: (policy?.retryBudget ?? rule?.retryBudget) !== undefined },
    ...entries.map((entry, index) => ({ at: `${path}.portLevelSettings[${index}]`, settings: entry, hasBudget: hasRuleBudget(entry.port.number) })),
  ].filter(({ settings, hasBudget }) => hasBudget && settings?.connectionPool?.http?.maxRetries !== undefined)
  return [
    ...unused.map((field) => ({ path: `${path}.${field}`, reason: `has no effect on ports that portLevelSettings name: ${listed}` })),
    ...retries.map(({ at }) => ({ path: `${at}.connectionPool.http.maxRetries`, reason: 'has no effect: retryBudget takes its place' })),
  ]
}

/** Reports `caCrl` of a policy and its ports where no authorities from a file verify the peer (docs/resources.md, C9). */
function idleRevocations(path: string, policy: TrafficPolicy | undefined): Fault[] {
  const entries = [policy, ...(policy?.portLevelSettings ?? [])].map((settings, index) => ({
    at: index === 0 ? path : `${path}.portLevelSettings[${index - 1}]`,
    tls: settings?.tls,
  }))
  return entries.flatMap(({ at, tls = {} }) => {
    const verifies = (tls.mode === 'SIMPLE' || tls.mode === 'MUTUAL') && tls.caCertificates && !tls.insecureSkipVerify
    return tls.caCrl && !verifies ? [{ path: `${at}.tls.caCrl`, reason: needsAuthorities }] : []
  })
}

/** The kind DestinationRule. */
export const destinationRule = {
  name: 'DestinationRule',
  plural: 'destinationrules',
  group: 'networking',
  versions: networkingVersions,
  spec,
  scope: 'exported',
  remarks: ({ spec: { trafficPolicy: rule, subsets = [] } }) => [
    ...replacedAt('spec.trafficPolicy', rule, rule),
    ...idleRevocations('spec.trafficPolicy', rule),
    ...subsets.flatMap(({ trafficPolicy: policy }, index) => {
      const at = `spec.subsets[${index}].trafficPolicy`
      return [...replacedAt(at, policy, rule), ...idleRevocations(at, policy)]
    }),
  ],
  selects: undefined,
} satisfies Kind<'DestinationRule', DestinationRuleSpec>

export type DestinationRuleSpec = Read<typeof spec>
export type TrafficPolicy = Read<typeof trafficPolicy>
export type PortPolicy = Read<typeof portPolicy>
export type TlsSettings = Read<typeof tlsSettings>
