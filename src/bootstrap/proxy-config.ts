/** The proxy's effective configuration: layers over defaults, validated (docs/agent.md, B3 and B4). */
import { isIp } from '../config/addresses.ts'
import { type GivenProxyConfig, proxyConfigShape, proxyDefaults } from '../config/proxy-config.ts'
import type { Report } from '../config/shape.ts'
import type { Role } from './node.ts'

type Frozen<T> = T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T

/** The fields that have a default. */
type Defaulted = Extract<keyof typeof proxyDefaults, keyof GivenProxyConfig>

/** The proxy's effective configuration, with the field names of the API and durations in milliseconds. Plain data. */
export type ProxyConfig = Frozen<Omit<GivenProxyConfig, Defaulted> & Required<Pick<GivenProxyConfig, Defaulted>>>

/** One source of the configuration: JSON values, with the field names of the API. */
export interface ConfigLayer {
  /** The source's name in errors, for example `environment variable PROXY_CONFIG`. */
  readonly source: string
  readonly document: unknown
}

/**
 * Merges layers over the defaults; later layers take precedence. A field of a layer replaces the whole earlier value, and null keeps it.
 * Unknown fields are reported as warnings. Throws an Error that names source, field and reason of an invalid value.
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

/** The maximum duration in milliseconds: longer than an hour is presumed to be a mistake. Envoy's flags accept whole seconds only. */
const longestDrainMs = 3_600_000

/**
 * Validates what shapes cannot express: addresses, ports, and durations that depend on each other. Throws an Error that names every invalid
 * field.
 */
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
    statsdUdpAddress,
    'envoyMetricsService.address': envoyMetricsService?.address,
    'envoyAccessLogService.address': envoyAccessLogService?.address,
  }
}

/** Splits `<host>:<port>`. The brackets of an IPv6 host are removed. Undefined when the text has another form. */
export function splitAddress(address: string): { readonly host: string; readonly port: number } | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(address) ?? []
  const port = Number(digits)
  const host = bracketed ?? plain
  if (host === undefined || !(port >= 1 && port <= 65_535)) return undefined
  if (bracketed !== undefined) return isIp(bracketed) && bracketed.includes(':') ? { host, port } : undefined
  return isIp(host) || isDnsName(host) ? { host, port } : undefined
}

/** Whether a text is a DNS name (RFC 1123) of at most 255 characters. Underscores are accepted, as resolvers accept them. */
function isDnsName(name: string): boolean {
  return name.length <= 255 && !/^[\d.]+$/.test(name) && /^[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*\.?$/.test(name)
}

/** The placeholder that `HOST_IP` replaces in addresses. */
const hostVariable = '$(HOST_IP)'

/**
 * Returns the configuration with `$(HOST_IP)` replaced in all addresses. Throws an Error that names the field when the placeholder is used
 * and `HOST_IP` is not an IP address.
 */
export function withHostAddress(config: ProxyConfig, hostIp: string): ProxyConfig {
  const replace = (field: string, address: string | undefined): string | undefined => {
    if (!address?.startsWith(`${hostVariable}:`)) return address
    if (!isIp(hostIp))
      throw new Error(
        `proxy configuration: field ${field}: uses ${hostVariable}, but the environment variable HOST_IP is ${hostIp ? 'no IP address' : 'not set'}`,
      )
    return (hostIp.includes(':') ? `[${hostIp}]` : hostIp) + address.slice(hostVariable.length)
  }
  const within = <T extends { readonly address?: string | undefined }>(field: string, service: T | undefined): T | undefined =>
    service && { ...service, address: replace(`${field}.address`, service.address) }
  const { tracing, envoyMetricsService, envoyAccessLogService, statsdUdpAddress } = config
  return {
    ...config,
    tracing: {
      ...tracing,
      ...given({
        zipkin: within('tracing.zipkin', tracing.zipkin),
        lightstep: within('tracing.lightstep', tracing.lightstep),
        datadog: within('tracing.datadog', tracing.datadog),
      }),
    },
    ...given({
      envoyMetricsService: within('envoyMetricsService', envoyMetricsService),
      envoyAccessLogService: within('envoyAccessLogService', envoyAccessLogService),
      statsdUdpAddress: replace('statsdUdpAddress', statsdUdpAddress),
    }),
  }
}

/** Returns the fields whose values are not undefined. */
function given<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: NonNullable<T[K]> }
}

/** The sources of the proxy's number of worker threads. */
export interface ConcurrencySources {
  readonly role: Role
  /** `--concurrency`; 0 when it is not given. */
  readonly flag: number
  /** From the merged configuration. */
  readonly configured: number
  /** The contents of the files with the container's CPU limit and request in millicores. Empty without a file. */
  readonly cpuLimit: string
  readonly cpuRequest: string
}

/** Returns the number of worker threads; 0 means one per processor (docs/agent.md, B10). */
export function concurrencyOf({ role, flag, configured, cpuLimit, cpuRequest }: ConcurrencySources): number {
  if (flag > 0) return flag
  if (role === 'router') return 0
  const millicores = [cpuLimit, cpuRequest].map(readMillicores).find((value) => value > 0)
  return millicores === undefined ? configured : Math.ceil(millicores / 1000)
}

const readMillicores = (content: string): number => (/^\d{1,9}$/.test(content.trim()) ? Number(content.trim()) : 0)

/** The proxy's configuration in the workload's annotations. */
export interface AnnotatedConfig {
  /** A whole configuration in YAML or JSON. */
  readonly config: string | undefined
  /** Single fields, which take precedence over `config`. */
  readonly fields: ConfigLayer
}

/** Reads the annotations, whose keys are in the mesh form. An invalid status port is reported as an error and ignored. */
export function annotatedConfig(annotations: Readonly<Record<string, string>>, domain: string, error: (text: string) => void): AnnotatedConfig {
  const get = (key: string) => (Object.hasOwn(annotations, key) ? annotations[key] : undefined)
  const statusKey = `status.sidecar.${domain}/port`
  const port = get(statusKey)
  const isPort = port !== undefined && /^\d{1,5}$/.test(port) && Number(port) <= 65_535
  if (port !== undefined && !isPort)
    error(`annotation ${statusKey}: ${JSON.stringify(port.slice(0, 100))} is not a port from 0 to 65535; the status port stays as it is`)
  const fields = given({ discoveryAddress: get(`sidecar.${domain}/discoveryAddress`), statusPort: isPort ? Number(port) : undefined })
  return { config: get(`proxy.${domain}/config`), fields: { source: 'annotations', document: fields } }
}
