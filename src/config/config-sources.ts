/** `configSources` of the mesh configuration: the further places that configuration objects are read from (docs/operation.md, F10 to F12). */
import { count } from '../model/counts.ts'
import { type Report, record, required, type Shape, text } from './shape.ts'

/** A place that configuration objects are read from: `fs:///<directory>`. */
export interface ConfigSource {
  readonly address: string
}

/** The scheme of directories, with the empty host. */
const directoryScheme = 'fs://'
/** The maximum number of sources: each has a thread of its own. */
const mostSources = 16

const source = record({
  address: required(text({ max: 4096, check: addressFault, examples: ['fs:///etc/mesh/extra', 'fs:///srv/teams/shop'] })),
})

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
      return read && own.faults.length === 0 ? [{ address: directoryScheme + directoryOf(read) }] : []
    })
  },
}

/** Returns why an address cannot be used. */
function addressFault(address: string): string | undefined {
  const shown = JSON.stringify(address.slice(0, 100))
  const scheme = /^([a-z0-9]+):\/\//.exec(address)?.[1]
  if (scheme === 'k8s' || scheme === 'orch') return `${shown}: there is no orchestrator client yet`
  if (scheme === 'xds') return `${shown}: there is no client of other control planes yet`
  if (scheme !== 'fs') return `${shown} is not fs:///<directory>`
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

/** Returns the name of the actor that reads a source: `source/fs/etc/mesh/extra` for `fs:///etc/mesh/extra`. */
export const actorOfSource = (given: ConfigSource): string => `source/fs${directoryOf(given)}`

/**
 * Returns the sources whose directories are read by nobody else, and why the others are left out: a directory that is, or lies within, or
 * contains `--configDir` (an absolute path; empty: there is none) or that of an earlier source. Paths are compared as written.
 */
export function separateSources(sources: readonly ConfigSource[], configDir: string): { usable: ConfigSource[]; faults: string[] } {
  const read = configDir === '' ? [] : [{ name: '--configDir', directory: configDir }]
  const usable: ConfigSource[] = []
  const faults: string[] = []
  for (const each of sources) {
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
