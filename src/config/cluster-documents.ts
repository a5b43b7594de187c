/** Documents of clusters (docs/resources.md, O1 to O5): `v1` Namespaces, Nodes and Pods, cut to what the mesh needs of them. */
import type { PodSpec, Readiness } from '../../protocols/data.ts'
import { canonicalAddress, isIp } from './addresses.ts'
import { isMapping, type Report, record, text } from './shape.ts'
import { labelsOf } from './shapes/hosts.ts'

type Mapping = Readonly<Record<string, unknown>>

const metadataShape = record({ labels: labelsOf(text({ what: 'text' })) })

/** Reads the labels of an object; undefined when they are not valid. Its other metadata is not read. */
export function readLabels(metadata: Mapping, report: Report): Readonly<Record<string, string>> | undefined {
  const { labels = {} } = metadata
  // What the API server has accepted is valid: it is examined closely only where it might not be.
  if (isPlain(labels)) return report.names?.canonicalKeys(labels) ?? labels
  const read = metadataShape.read({ labels: labels ?? {} }, 'metadata', report)
  return read && (read.labels ?? {})
}

/** The characters of the names and values of labels. */
const plainText = /^[\w./-]*$/
const mostPlain = { labels: 100, characters: 400 }

/** Whether a value is a mapping of labels as the orchestrator permits them, a few and with plain names and values. */
function isPlain(value: unknown): value is Readonly<Record<string, string>> {
  if (!isMapping(value)) return false
  const names = Object.keys(value)
  if (names.length > mostPlain.labels) return false
  for (const name of names) {
    const text = value[name]
    if (name === '__proto__' || typeof text !== 'string' || name.length + text.length > mostPlain.characters) return false
    if (!plainText.test(name) || !plainText.test(text)) return false
  }
  return true
}

/**
 * Reads the parts of an object of a kind that describes a cluster. Namespaces and Nodes have none. Fields that the mesh does not need are not
 * read, since the orchestrator sets many of them.
 */
export function readClusterSpec(kind: string, value: Mapping, metadata: Mapping, report: Report): PodSpec | Readonly<Record<never, never>> {
  return kind === 'Pod' ? podSpec(value, metadata, report) : {}
}

function podSpec(value: Mapping, metadata: Mapping, report: Report): PodSpec {
  const [spec, status] = [mappingAt(value, 'spec', report), mappingAt(value, 'status', report)]
  const addresses = addressesOf(status, report)
  // The addresses of a pod whose programs have ended may be those of another one.
  const hasEnded = status.phase === 'Failed' || status.phase === 'Succeeded'
  return {
    addresses: hasEnded ? [] : addresses,
    node: textAt(spec, 'spec', 'nodeName', report),
    serviceAccount: textAt(spec, 'spec', 'serviceAccountName', report) || 'default',
    hostNetwork: spec.hostNetwork === true,
    readiness: readinessOf(status, metadata),
    ...namedPorts(spec),
  }
}

/** The TCP ports with a name of the containers, and of the init containers that go on running beside them. The first of a name counts. */
function namedPorts({ containers, initContainers }: Mapping): Pick<PodSpec, 'ports'> {
  const all = (value: unknown): readonly Mapping[] => (Array.isArray(value) ? value.filter(isMapping) : [])
  const running = [...all(containers), ...all(initContainers).filter(({ restartPolicy }) => restartPolicy === 'Always')]
  const found = new Map<string, number>()
  for (const { name, containerPort, protocol } of running.flatMap(({ ports }) => all(ports)))
    if (typeof name === 'string' && isPort(containerPort) && (protocol ?? 'TCP') === 'TCP' && !found.has(name)) found.set(name, containerPort)
  return found.size > 0 ? { ports: Object.fromEntries(found) } : {}
}

const isPort = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 65_535

/** The addresses of a pod: `podIPs`, and `podIP`, which is the first of them. */
function addressesOf(status: Mapping, report: Report): string[] {
  const listed: readonly unknown[] = Array.isArray(status.podIPs) ? status.podIPs : []
  const given: [path: string, address: unknown][] = [
    ['status.podIP', status.podIP],
    ...listed.map((item, index): [string, unknown] => [`status.podIPs[${index}].ip`, isMapping(item) ? item.ip : item]),
  ]
  const found = new Set<string>()
  for (const [path, address] of given) {
    if (address === undefined || address === null || address === '') continue
    if (typeof address === 'string' && isIp(address)) found.add(canonicalAddress(address))
    else report.faults.push({ path, reason: `${shown(address)} is not an IP address` })
  }
  return [...found]
}

/** A pod without conditions is ready: a file that describes a pod need not say more than its address. */
function readinessOf({ conditions }: Mapping, { deletionTimestamp }: Mapping): Readiness {
  const all: readonly unknown[] = Array.isArray(conditions) ? conditions : []
  const ready = all.filter(isMapping).find(({ type }) => type === 'Ready')
  if (ready && ready.status !== 'True') return 'unready'
  return deletionTimestamp === undefined || deletionTimestamp === null ? 'ready' : 'terminating'
}

function mappingAt(value: Mapping, field: string, report: Report): Mapping {
  const found = value[field] ?? {}
  if (isMapping(found)) return found
  report.faults.push({ path: field, reason: `expected a mapping, got ${shown(found)}` })
  return {}
}

function textAt(value: Mapping, path: string, field: string, report: Report): string {
  const found = value[field] ?? ''
  if (typeof found === 'string' && found.length <= 253) return found
  report.faults.push({ path: `${path}.${field}`, reason: `expected text of at most 253 characters, got ${shown(found)}` })
  return ''
}

const shown = (value: unknown): string => (typeof value === 'string' ? JSON.stringify(value.slice(0, 100)) : typeof value)
