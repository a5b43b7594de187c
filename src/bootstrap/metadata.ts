/** The proxy's node metadata, from the environment, the pod's files and the effective configuration (docs/agent.md, B6 to B8). */
import { agentProgramSize } from '../config/program-bounds.ts'
import { proxyConfigShape } from '../config/proxy-config.ts'
import { anything, isMapping, type Report } from '../config/shape.ts'
import { readVariable } from '../config/variable.ts'
import { canonicalMetadata } from '../names/mesh-names.ts'
import { protoJson } from './proto-json.ts'
import type { ProxyConfig } from './proxy-config.ts'

/** The sources of the metadata. */
export interface MetadataSources {
  /** The version of the agent, `<major>.<minor>.<patch>`. */
  readonly version: string
  /** Variable names are in the mesh form. */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** The labels from the pod's file. */
  readonly labels: Readonly<Record<string, string>>
  readonly addresses: readonly string[]
  /** Whether the kernel has IPv6 beside IPv4, in the network namespace of the workload. */
  readonly hasIpv6: boolean
  readonly config: ProxyConfig
  /** The port of the token service; 0 when there is none. */
  readonly stsPort: number
  /** The ports of the bootstrap's own listeners. The discovery service creates no listeners on them. */
  readonly ports: { readonly PROXY_STATUS_PORT: number; readonly PROXY_PROMETHEUS_PORT: number }
  readonly platform: Readonly<Record<string, string>>
}

/** The Envoy runtime key for the maximum program size of a regular expression. */
export const programSizeKey = 're2.max_program_size.error_level'

/** The maximum size of the metadata in bytes. Envoy sends it with every new stream. */
const maxBytes = 1024 * 1024
/** The maximum nesting depth of a value. Envoy accepts at most a hundred levels in its whole configuration. */
const deepest = 20

/** Entries that the discovery service reads as the text `"true"` or `"false"`. */
const switches = ['DNS_CAPTURE', 'DNS_AUTO_ALLOCATE', 'PROXY_XDS_VIA_AGENT']

/**
 * Returns the metadata: `MESH_META_*` as text, the entries of `MESH_METAJSON_*`, then what the agent itself determines. Later ones replace
 * earlier ones. Throws an Error that names the entry when a boolean entry is invalid, when the pod's ports are not a list, or when the
 * metadata exceeds 1 MiB.
 */
export function nodeMetadata(sources: MetadataSources, warn: (text: string) => void): Readonly<Record<string, unknown>> {
  const { version, environment, addresses, hasIpv6, config, stsPort, ports, platform } = sources
  // Settings that the configuration has fields for. The variables of injected containers take precedence.
  const texts: [string, unknown][] = Object.entries({ INTERCEPTION_MODE: config.interceptionMode, MESH_ID: config.meshId }).filter(
    ([, value]) => value,
  )
  const objects: [string, unknown][] = []
  const labels: [string, unknown][] = []
  for (const [name, value = ''] of Object.entries(environment)) {
    if (name.startsWith('MESH_META_') && name !== 'MESH_META_') texts.push([name.slice('MESH_META_'.length), value.toWellFormed()])
    if (!name.startsWith('MESH_METAJSON_')) continue
    const object = readObject(name, value, warn)
    objects.push(...Object.entries(object))
    if (name === 'MESH_METAJSON_LABELS') labels.push(...Object.entries(object))
  }
  labels.push(...Object.entries(sources.labels))
  const known = {
    NAME: environment.POD_NAME ?? '',
    NAMESPACE: environment.POD_NAMESPACE ?? '',
    SERVICE_ACCOUNT: environment.SERVICE_ACCOUNT ?? '',
    LABELS: Object.fromEntries(labels),
    INSTANCE_IPS: addresses.join(','),
    // Listeners can serve both families, whatever addresses the workload has now or later.
    MESH_DUAL_STACK: hasIpv6 ? 'true' : '',
    PROXY_CONFIG: shownConfig(config),
    PLATFORM_METADATA: platform,
    // The maximum size of regular expressions for this proxy. Without it discovery assumes the limit of a stock Envoy.
    MESH_RE2_MAX_PROGRAM_SIZE: String(config.runtimeValues?.[programSizeKey] ?? agentProgramSize),
    STS_PORT: stsPort > 0 ? String(stsPort) : '',
    ...ports,
  }
  const given = Object.fromEntries([...texts, ...objects, ...Object.entries(known).filter(([, value]) => isGiven(value))])
  return checked({ MESH_VERSION: version, ...canonicalMetadata(given) })
}

/** Returns the effective configuration as the JSON of its message, without secrets, for the discovery service and the log. */
export function shownConfig(config: ProxyConfig): unknown {
  const { lightstep } = config.tracing
  const shown = lightstep?.accessToken ? { ...config, tracing: { ...config.tracing, lightstep: { ...lightstep, accessToken: 'hidden' } } } : config
  return protoJson(proxyConfigShape.form, shown)
}

const isGiven = (value: unknown) => value !== '' && !(isMapping(value) && Object.keys(value).length === 0)

function readObject(name: string, value: string, warn: (text: string) => void): Record<string, unknown> {
  const leftOut = (reason: string) => {
    warn(`environment variable ${name}: ${reason}, left out`)
    return {}
  }
  let read: unknown
  try {
    read = JSON.parse(value)
  } catch (error) {
    return leftOut(`not JSON: ${(error as Error).message.slice(0, 200)}`)
  }
  if (!isMapping(read)) return leftOut('not a JSON object')
  const report: Report = { faults: [], warnings: [] }
  anything.read(read, '', report)
  if (report.faults[0]) return leftOut(report.faults[0].reason)
  return isDeeper(read, deepest) ? leftOut(`nested deeper than ${deepest} levels`) : read
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((entry) => isDeeper(entry, levels - 1))
}

function checked(metadata: Record<string, unknown>): Record<string, unknown> {
  for (const name of switches) {
    if (!Object.hasOwn(metadata, name)) continue
    const read = readVariable({ type: 'boolean', default: false, meaning: '' }, String(metadata[name]))
    if ('expected' in read) throw new Error(`node metadata ${name}: ${JSON.stringify(String(metadata[name]).slice(0, 100))} is not ${read.expected}`)
    metadata[name] = String(read.value)
  }
  const ports = metadata.POD_PORTS
  if (ports !== undefined && !isList(ports))
    throw new Error(`node metadata POD_PORTS: ${JSON.stringify(String(ports).slice(0, 100))} is not a list in JSON`)
  const bytes = Buffer.byteLength(JSON.stringify(metadata))
  if (bytes > maxBytes) throw new Error(`node metadata: ${bytes} bytes, at most ${maxBytes} are allowed (${largest(metadata)} is the largest entry)`)
  return metadata
}

function isList(text: unknown): boolean {
  try {
    return Array.isArray(JSON.parse(String(text)))
  } catch {
    return false
  }
}

function largest(metadata: Readonly<Record<string, unknown>>): string {
  const sizes = Object.entries(metadata).map(([name, value]) => [name, JSON.stringify(value)?.length ?? 0] as const)
  return sizes.reduce((most, entry) => (entry[1] > most[1] ? entry : most))[0].slice(0, 100)
}
