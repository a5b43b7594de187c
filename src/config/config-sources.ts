/** `configSources` of the mesh configuration: the further places that configuration objects are read from (docs/operation.md, F10 to F12). */
import { count } from '../model/counts.ts'
import { canonicalSource, clusterAddress } from '../names/mesh-names.ts'
import { list, type Read, type Report, record, reject, required, type Shape, text } from './shape.ts'
import { tlsMode } from './shapes/tls.ts'

/** Absolute path of a file. */
const file = text({ max: 4096, pattern: /^\//, what: 'an absolute path', examples: ['/etc/mesh/cert.pem'] })

/**
 * How this control plane and another one prove who they are. The other one serves identities of its root namespace only, so a client
 * certificate is needed. The files are read for each connection.
 */
const tlsSettings = record({
  mode: required(tlsMode('MUTUAL')),
  clientCertificate: required(file),
  privateKey: required(file),
  caCertificates: required(file),
  sni: text({ max: 253 }),
  subjectAltNames: list(text({ max: 2048 }), { max: 100 }),
})

/** The TLS settings of another control plane. `subjectAltNames`: names of which its certificate must have one; otherwise its host. */
export type ConfigSourceTls = Read<typeof tlsSettings>

/**
 * A place that configuration objects are read from: `fs:///<directory>`, another control plane, `xds://<host>:<port>`, or the cluster,
 * `orch://`.
 */
export interface ConfigSource {
  readonly address: string
  /** Present for another control plane. */
  readonly tlsSettings?: ConfigSourceTls
}

/** The schemes of directories, with the empty host, and of other control planes. */
const directoryScheme = 'fs://'
const controlPlaneScheme = 'xds://'
/** The maximum number of sources: each has a thread of its own. */
const mostSources = 16

const source = record(
  {
    address: required(text({ max: 4096, check: addressFault, examples: ['fs:///etc/mesh/extra', 'xds://other.example.com:15012', clusterAddress] })),
    tlsSettings,
  },
  ({ address, tlsSettings: tls }, path, report) => {
    if (isControlPlane({ address }) && !tls)
      reject(report, `${path}.tlsSettings`, 'required, but missing: another control plane serves identities of its root namespace only (mode MUTUAL)')
    if (!isControlPlane({ address }) && tls)
      report.warnings.push({ path: `${path}.tlsSettings`, reason: 'has no effect: only other control planes have any' })
  },
)

/** The cluster as a source. */
export const clusterSource: ConfigSource = { address: clusterAddress }

/** Whether a source is the cluster. */
export const isCluster = ({ address }: ConfigSource): boolean => address === clusterAddress

/** Whether a source is a directory. */
export const isDirectory = (source: ConfigSource): boolean => !isCluster(source) && !isControlPlane(source)

/** Whether a source is another control plane. */
export const isControlPlane = ({ address }: ConfigSource): boolean => address.startsWith(controlPlaneScheme)

/** The list. An entry that cannot be used is a warning and is left out; the others are used. */
export const configSourcesShape: Shape<ConfigSource[]> = {
  form: { type: 'list', item: source.form, min: 0, max: mostSources, hasUnused: false },
  read(value, path, report) {
    if (!Array.isArray(value)) {
      report.faults.push({ path, reason: 'expected a list' })
      return undefined
    }
    const leaveOut = (at: string, reason: string) => void report.warnings.push({ path: at, reason: `${reason}; this source is left out` })
    if (value.length > mostSources) leaveOut(`${path}[${mostSources}]`, `more than ${count(mostSources, 'source')}`)
    return value.slice(0, mostSources).flatMap((entry: unknown, index) => {
      const own: Report = { ...report, faults: [] }
      const read = source.read(entry, `${path}[${index}]`, own)
      for (const fault of own.faults) leaveOut(fault.path, fault.reason)
      if (!read || own.faults.length > 0) return []
      const given = { ...read, address: canonicalSource(read.address) }
      if (isCluster(given)) return [clusterSource]
      return isControlPlane(given) ? [given] : [{ address: directoryScheme + directoryOf(given) }]
    })
  },
}

/** Returns why an address cannot be used. */
function addressFault(address: string): string | undefined {
  const shown = JSON.stringify(address.slice(0, 100))
  const scheme = /^([a-z0-9]+):\/\//.exec(address)?.[1]
  if (canonicalSource(address) === clusterAddress) return undefined
  if (scheme === 'k8s' || scheme === 'orch') return `${shown} is not ${clusterAddress}, which is the cluster of this process`
  if (scheme === 'xds') return hostAndPort(address) ? undefined : `${shown} is not xds://<host>:<port>`
  if (scheme !== 'fs') return `${shown} is neither fs:///<directory> nor xds://<host>:<port> nor ${clusterAddress}`
  if (!address.startsWith('fs:///')) return `${shown} names a host or a relative path: three slashes begin an absolute path`
  const parts = address.split('/').slice(3)
  if (parts.some((part) => part === '.' || part === '..')) return `${shown} has a part . or ..`
  return parts.every((part) => part === '') ? `${shown} is the root directory` : undefined
}

/** Returns the directory of a source: an absolute path without empty parts. */
export function directoryOf({ address }: ConfigSource): string {
  const parts = address.slice(directoryScheme.length).split('/')
  return `/${parts.filter((part) => part !== '').join('/')}`
}

/** Returns host and port of the address of another control plane; undefined where that has not this form. An IPv6 address is in brackets. */
export function hostAndPort(address: string): { readonly host: string; readonly port: number } | undefined {
  const [, host = '', port = ''] =
    /^xds:\/\/(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?):([0-9]{1,5})$/.exec(address)?.toSpliced(2, 1) ?? []
  if (host === '' || Number(port) < 1 || Number(port) > 65_535) return undefined
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

/**
 * Returns the name of the actor that reads a source: `source/fs/etc/mesh/extra` for `fs:///etc/mesh/extra`, `source/xds/other:15012` for
 * `xds://other:15012`, `source/orch` for the cluster.
 */
export const actorOfSource = (given: ConfigSource): string =>
  isCluster(given)
    ? 'source/orch'
    : isControlPlane(given)
      ? `source/xds/${given.address.slice(controlPlaneScheme.length)}`
      : `source/fs${directoryOf(given)}`

/**
 * Returns the sources whose directories are read by nobody else, and why the others are left out: a directory that is, or lies within, or
 * contains `--configDir` (an absolute path; empty: there is none) or that of an earlier source, and a control plane or the cluster where it is named twice. Paths
 * and addresses are compared as written.
 */
export function separateSources(sources: readonly ConfigSource[], configDir: string): { usable: ConfigSource[]; faults: string[] } {
  const read = configDir === '' ? [] : [{ name: '--configDir', directory: configDir }]
  const usable: ConfigSource[] = []
  const faults: string[] = []
  for (const each of sources) {
    if (!isDirectory(each)) {
      if (usable.some(({ address }) => address === each.address))
        faults.push(`field configSources: ${each.address} is named twice; this source is left out`)
      else usable.push(each)
      continue
    }
    const directory = directoryOf(each)
    const other = read.find((known) => isWithin(directory, known.directory) || isWithin(known.directory, directory))
    if (!other) {
      read.push({ name: each.address, directory })
      usable.push(each)
      continue
    }
    const relation = directory === other.directory ? 'is the directory of' : isWithin(directory, other.directory) ? 'lies within' : 'contains'
    faults.push(`field configSources: ${each.address} ${relation} ${other.name}, which is read already; this source is left out`)
  }
  return { usable, faults }
}

const isWithin = (path: string, directory: string): boolean => `${path}/`.startsWith(directory.endsWith('/') ? directory : `${directory}/`)
