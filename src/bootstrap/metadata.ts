/** The node metadata of the proxy, from the environment, the files of the pod and the effective configuration (docs/agent.md, B6 to B8). */
import { agentProgramSize } from '../config/program-bounds.ts'
import { proxyConfigShape } from '../config/proxy-config.ts'
import { anything, isMapping, type Report } from '../config/shape.ts'
import { readVariable } from '../config/variable.ts'
import { canonicalMetadata } from '../names/mesh-names.ts'
import { protoJson } from './proto-json.ts'
import type { ProxyConfig } from './proxy-config.ts'

/** What the metadata is made from. */
export interface MetadataSources {
  /** With the names of variables in the mesh form. */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Of the pod, as its file says them. */
  readonly labels: Readonly<Record<string, string>>
  readonly addresses: readonly string[]
  readonly config: ProxyConfig
  /** Port of the token service; 0 for none. */
  readonly stsPort: number
  /** Ports of the listeners of the bootstrap; the discovery service makes none there. */
  readonly ports: { readonly PROXY_STATUS_PORT: number; readonly PROXY_PROMETHEUS_PORT: number }
  readonly platform: Readonly<Record<string, string>>
}

/** The key of Envoy's runtime for the largest program of a regular expression. */
export const programSizeKey = 're2.max_program_size.error_level'

/** More than this the discovery service does not need, and Envoy sends it with every new stream. */
const mostBytes = 1024 * 1024
/** Levels of mappings and lists in a value; Envoy reads at most a hundred levels of its whole configuration. */
const deepest = 20

/** Entries that discovery reads as text `"true"` or `"false"`. */
const switches = ['DNS_CAPTURE', 'DNS_AUTO_ALLOCATE', 'PROXY_XDS_VIA_AGENT']

/**
 * The metadata: `MESH_META_*` as text, the entries of `MESH_METAJSON_*`, then what the agent knows itself, the later winning. Throws an Error that names the
 * entry when a switch is neither true nor false, when the ports of the pod are no list, or when all is larger than 1 MiB.
 */
export function nodeMetadata(sources: MetadataSources, warn: (text: string) => void): Readonly<Record<string, unknown>> {
  const { environment, addresses, config, stsPort, ports, platform } = sources
  // What the configuration has a field for; the metadata of injected containers says it itself.
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
    PROXY_CONFIG: shownConfig(config),
    PLATFORM_METADATA: platform,
    // How large patterns of routes may be; discovery goes by what a stock Envoy takes otherwise.
    MESH_RE2_MAX_PROGRAM_SIZE: String(config.runtimeValues?.[programSizeKey] ?? agentProgramSize),
    STS_PORT: stsPort > 0 ? String(stsPort) : '',
    ...ports,
  }
  const metadata = canonicalMetadata(Object.fromEntries([...texts, ...objects, ...Object.entries(known).filter(([, value]) => isGiven(value))]))
  return checked(metadata)
}

/** The effective configuration as the JSON of its message, for the discovery service and for the log: without what is secret in it. */
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
  if (bytes > mostBytes)
    throw new Error(`node metadata: ${bytes} bytes, at most ${mostBytes} are allowed (${largest(metadata)} is the largest entry)`)
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
