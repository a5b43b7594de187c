/** The texts of mesh configuration and networks: apart from their shapes, so that threads that are given what was read do not load the YAML library. */
import { defaultMeshConfig, type MeshConfig, type MeshNetworks, meshShape, networksShape } from './mesh-config.ts'
import type { Report } from './shape.ts'
import { canonicalTrustDomain } from './trust-domain.ts'
import { readDocuments } from './yaml-documents.ts'

/** The parsed value, or the error. */
export type ReadResult<T> = { value: T; warnings: string[] } | { error: string }

/** Why a text cannot be used, and what is used without a part. */
export interface SettingFaults {
  readonly faults: readonly string[]
  readonly warnings: readonly string[]
}

/** Returns what is wrong with a text that was read. */
export const faultsOfSetting = (read: ReadResult<unknown>): SettingFaults =>
  'error' in read ? { faults: [read.error], warnings: [] } : { faults: [], warnings: read.warnings }

/** A text that was read: the value, undefined where it cannot be used, and what is wrong with which field; an empty path is the whole text. */
export interface CheckedSetting<T> extends Pick<Report, 'faults' | 'warnings'> {
  readonly value: T | undefined
}

/** Parses a mesh configuration: top-level fields replace defaults, `defaultConfig` is merged field by field. */
export function checkMeshConfig(content: string): CheckedSetting<MeshConfig> {
  const read = checked(content, meshShape)
  if (!read.value) return { ...read, value: undefined }
  const base = defaultMeshConfig()
  const mesh = { ...base, ...read.value, defaultConfig: { ...base.defaultConfig, ...read.value.defaultConfig } } as MeshConfig
  const canonical = (name: string) => canonicalTrustDomain(name) ?? name
  const value = { ...mesh, trustDomain: canonical(mesh.trustDomain), trustDomainAliases: mesh.trustDomainAliases.map(canonical) }
  return { ...read, value }
}

/** Parses networks. */
export const checkMeshNetworks = (content: string): CheckedSetting<MeshNetworks> => checked(content, networksShape)

/** Parses a mesh configuration ({@link checkMeshConfig}), and says in one text what is wrong with it. */
export const readMeshConfig = (content: string): ReadResult<MeshConfig> => resultOf(checkMeshConfig(content))

/** Parses networks, and says in one text what is wrong with them. */
export const readMeshNetworks = (content: string): ReadResult<MeshNetworks> => resultOf(checkMeshNetworks(content))

function checked<T>(content: string, shape: { read(value: unknown, path: string, report: Report): T | undefined }): CheckedSetting<T> {
  const unusable = (reason: string) => ({ value: undefined, faults: [{ path: '', reason }], warnings: [] })
  // These files are parsed on the thread that watches all other files, where a megabyte of opening brackets would take 3 seconds.
  if (content.length > 1024 * 1024) return unusable('larger than 1 MiB')
  const [document = { value: undefined }, another] = readDocuments(content)
  if (another) return unusable('holds more than one document')
  if ('error' in document) return unusable(document.error)
  const report: Report = { faults: [], warnings: [] }
  const read = shape.read(document.value ?? {}, '', report)
  const { faults, warnings } = report
  return { value: faults.length > 0 ? undefined : read, faults, warnings }
}

function resultOf<T>({ value, faults, warnings }: CheckedSetting<T>): ReadResult<T> {
  const describe = ({ path, reason }: { readonly path: string; readonly reason: string }) => (path === '' ? reason : `field ${path}: ${reason}`)
  return value === undefined ? { error: faults.map(describe).join('; ') } : { value, warnings: warnings.map(describe) }
}
