/** The effective configuration of the proxy: layers over defaults, checked (docs/agent.md, B3 and B4). */
import { isIp } from '../config/addresses.ts'
import { type GivenProxyConfig, proxyConfigShape, proxyDefaults } from '../config/proxy-config.ts'
import type { Report } from '../config/shape.ts'

type Frozen<T> = T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T

/** The fields that always have a value. */
type Defaulted = Extract<keyof typeof proxyDefaults, keyof GivenProxyConfig>

/** The effective configuration of the proxy: field names of the API, durations in milliseconds. Plain data. */
export type ProxyConfig = Frozen<Omit<GivenProxyConfig, Defaulted> & Required<Pick<GivenProxyConfig, Defaulted>>>

/** What one source says of the configuration: JSON values, fields as the API names them. */
export interface ConfigLayer {
  /** Where it comes from, as errors name it: `environment variable PROXY_CONFIG`, say. */
  readonly source: string
  readonly document: unknown
}

/**
 * Layers over the defaults, the last one wins: a field that a layer has replaces the one before it whole, null leaves it. Unknown fields cost a
 * warning. Throws an Error that names source, field and reason when a value cannot be read.
 */
export function mergeProxyConfig(layers: readonly ConfigLayer[], warn: (text: string) => void): ProxyConfig {
  let merged: ProxyConfig = proxyDefaults
  for (const { source, document } of layers) {
    const report: Report = { faults: [], warnings: [] }
    const read = proxyConfigShape.read(document ?? {}, '', report)
    const describe = ({ path, reason }: { path: string; reason: string }) =>
      path === '' ? `${source}: ${reason}` : `${source}: field ${path}: ${reason}`
    if (report.faults.length > 0) throw new Error(report.faults.map(describe).join('; '))
    for (const warning of report.warnings) warn(describe(warning))
    merged = { ...merged, ...read }
  }
  return merged
}

/** Envoy's command line takes whole seconds; more than an hour is a mistake. */
const longestDrainMs = 3_600_000

/** Checks what shapes cannot tell: addresses, ports and durations that depend on each other. Throws an Error that names every field at fault. */
export function checkProxyConfig(config: ProxyConfig): void {
  const faults: string[] = []
  const fault = (field: string, reason: string) => faults.push(`field ${field}: ${reason}`)
  for (const field of ['configPath', 'binaryPath', 'serviceCluster', 'discoveryAddress'] as const)
    if (config[field] === '') fault(field, 'must not be empty')
  for (const [field, address] of Object.entries(addressesOf(config))) {
    if (address && !splitAddress(address))
      fault(field, `${JSON.stringify(address.slice(0, 200))} is not <host>:<port> with a DNS name or an IP address, and a port from 1 to 65535`)
  }
  for (const field of ['envoyMetricsService', 'envoyAccessLogService'] as const)
    if (config[field] && !config[field].address) fault(`${field}.address`, 'required, but missing')
  if (config.proxyAdminPort < 1) fault('proxyAdminPort', `${config.proxyAdminPort} is outside 1..65535`)
  for (const field of ['drainDuration', 'parentShutdownDuration'] as const) {
    const ms = config[field]
    if (ms < 1 || ms > longestDrainMs || ms % 1000 !== 0) fault(field, `${ms} ms is not a whole number of seconds from 1 to 3600`)
  }
  if (config.parentShutdownDuration <= config.drainDuration) fault('parentShutdownDuration', 'must be longer than drainDuration')
  if (faults.length > 0) throw new Error(`proxy configuration: ${faults.join('; ')}`)
}

function addressesOf({
  discoveryAddress,
  tracing,
  statsdUdpAddress,
  envoyMetricsService,
  envoyAccessLogService,
}: ProxyConfig): Record<string, string | undefined> {
  return {
    discoveryAddress,
    'tracing.zipkin.address': tracing.zipkin?.address,
    'tracing.lightstep.address': tracing.lightstep?.address,
    'tracing.datadog.address': tracing.datadog?.address,
    'tracing.openCensusAgent.address': tracing.openCensusAgent?.address,
    statsdUdpAddress,
    'envoyMetricsService.address': envoyMetricsService?.address,
    'envoyAccessLogService.address': envoyAccessLogService?.address,
  }
}

/** The parts of `<host>:<port>`, an IPv6 host with or without brackets around it given back without them. Undefined when it is none. */
export function splitAddress(address: string): { readonly host: string; readonly port: number } | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(address) ?? []
  const port = Number(digits)
  const host = bracketed ?? plain
  if (host === undefined || !(port >= 1 && port <= 65_535)) return undefined
  if (bracketed !== undefined) return isIp(bracketed) && bracketed.includes(':') ? { host, port } : undefined
  return isIp(host) || isDnsName(host) ? { host, port } : undefined
}

/** A DNS name (RFC 1123; underscores are taken too, as resolvers do), at most 255 characters. */
function isDnsName(name: string): boolean {
  return name.length <= 255 && !/^[\d.]+$/.test(name) && /^[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*\.?$/.test(name)
}
