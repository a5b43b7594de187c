/** Reads configuration files: multi-document YAML or JSON into checked objects, each fault with its document and field. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { GatewaySecret } from '../../protocols/messages/secrets.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { configKey, kinds } from './kinds.ts'
import type { OptOuts } from './opt-outs.ts'
import { PatternChecks } from './patterns.ts'
import { readSecret } from './secret-document.ts'
import { type Fault, isMapping, type Report, record, text } from './shape.ts'
import { labelsOf } from './shapes/hosts.ts'
import type { StandIn } from './stand-in.ts'
import { readDocuments } from './yaml-documents.ts'

/** Bytes of one file at most; a larger one is rejected with a clear error before it costs anything. */
export const fileLimits = { bytes: 32 * 1024 * 1024 }

/** One document of a file that could not be used. */
export interface DocumentFault {
  readonly file: string
  /** 1-based number of the document in its file. */
  readonly document: number
  /** `<Kind>/<namespace>/<name>` when the document got that far, else undefined. */
  readonly key: string | undefined
  readonly path: string
  readonly reason: string
}

/** What a file holds. */
export interface ParsedFile {
  readonly objects: readonly ConfigObject[]
  /** Secrets for gateways; their keys go where {@link GatewaySecret} says, and nowhere else. */
  readonly secrets: readonly GatewaySecret[]
  readonly faults: readonly DocumentFault[]
  readonly warnings: readonly DocumentFault[]
  /**
   * Policies that cannot be used, by key, as the strictest they could have meant: where there is no last good state, a policy
   * that is left out would let through what it was written to stop.
   */
  readonly standIns: ReadonlyMap<string, StandIn>
}

/** Why a file of more bytes than {@link fileLimits} is not read. */
export const tooLarge = `the file is larger than ${fileLimits.bytes} bytes`

/** A file that could not be read at all. */
export function faultyFile(file: string, reason: string): ParsedFile {
  return { objects: [], secrets: [], faults: [{ file, document: 1, key: undefined, path: '', reason }], warnings: [], standIns: new Map() }
}

/**
 * Parses one file. Never throws: whatever is wrong is in `faults`, and the good documents are in `objects`. What it gives is to be
 * thrown away when `patterns` are exhausted afterwards. `optOuts` are the checks of policies that are left out.
 */
export function parseConfigFile(
  file: string,
  content: string,
  names: MeshNames,
  patterns = new PatternChecks(),
  optOuts: OptOuts = new Set(),
): ParsedFile {
  const objects: ConfigObject[] = []
  const secrets: GatewaySecret[] = []
  const faults: DocumentFault[] = []
  const warnings: DocumentFault[] = []
  const standIns = new Map<string, StandIn>()
  if (content.length > fileLimits.bytes) return faultyFile(file, tooLarge)
  const seen = new Map<string, number>()
  for (const [index, document] of readDocuments(content).entries()) {
    if (patterns.isExhausted) break
    const number = index + 1
    const problem = (key: string | undefined, fault: Fault) => ({ file, document: number, key, path: fault.path, reason: fault.reason })
    if ('error' in document) {
      faults.push(problem(undefined, { path: '', reason: document.error }))
      continue
    }
    if (document.value === null || document.value === undefined) continue
    const read = contained(
      () => readObject(document.value, `${file}#${number}`, names, { patterns, optOuts }),
      (reason) => ({ key: undefined, report: { faults: [{ path: '', reason }], warnings: [] } }),
    )
    if (!read) continue
    warnings.push(...read.report.warnings.map((fault) => problem(read.key, fault)))
    if (read.report.faults.length > 0 || (!read.object && !read.secret)) {
      faults.push(...read.report.faults.map((fault) => problem(read.key, fault)))
      if (read.object && read.key !== undefined && isPolicy(read.object.kind))
        standIns.set(read.key, standIn(read.object, document.value, read.report))
      continue
    }
    const first = seen.get(read.key ?? '')
    if (first !== undefined) {
      faults.push(problem(read.key, { path: 'metadata.name', reason: `the same object is already in document ${first}` }))
      continue
    }
    seen.set(read.key ?? '', number)
    if (read.object) objects.push(read.object)
    if (read.secret) secrets.push(read.secret)
  }
  return { objects, secrets, faults, warnings, standIns }
}

/** The one place where reading may fail in a way that nobody thought of: the document is faulty then, and nothing else is lost. */
function contained<T>(read: () => T, failed: (reason: string) => T): T {
  try {
    return read()
  } catch (error) {
    return failed(`cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const isPolicy = (kind: string): boolean => kinds.get(kind)?.group === 'security'

/** A policy that selects what the document selects, as far as that can be read; else its whole namespace. */
function standIn(object: ConfigObject, document: unknown, report: Report): StandIn {
  const spec = isMapping(document) && isMapping(document.spec) ? document.spec : {}
  const labels = isMapping(spec.selector) && isMapping(spec.selector.matchLabels) ? Object.entries(spec.selector.matchLabels) : []
  const invalid = report.faults.map(({ path, reason }) => `${path}: ${reason}`).join('; ')
  const isReadable = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === 'string' && !entry.join('').includes('*')
  const matchLabels = labels.length > 0 && labels.every(isReadable) ? report.names?.canonicalKeys(Object.fromEntries(labels)) : undefined
  const selector = matchLabels ? { selector: { matchLabels } } : {}
  return { ...object, spec: { ...selector, invalid, given: object.spec } }
}

/** Labels and annotations of an object; what else its metadata holds is the orchestrator's. */
const metadataShape = record({ labels: labelsOf(text({ what: 'text' })), annotations: labelsOf(text({ max: 262_144 })) })

const nameSyntax = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/

interface ReadObject {
  readonly key: string | undefined
  readonly object?: ConfigObject
  readonly secret?: GatewaySecret | undefined
  readonly report: Report
}

function readObject(value: unknown, origin: string, names: MeshNames, checks: Pick<Report, 'patterns' | 'optOuts'>): ReadObject | undefined {
  const report: Report = { faults: [], warnings: [], ...checks, names }
  if (!isMapping(value)) {
    report.faults.push({ path: '', reason: 'expected a mapping with apiVersion, kind, metadata and spec' })
    return { key: undefined, report }
  }
  const apiVersion = typeof value.apiVersion === 'string' ? value.apiVersion : ''
  const kindName = typeof value.kind === 'string' ? value.kind : ''
  if (apiVersion === '' || kindName === '') {
    report.faults.push({ path: apiVersion === '' ? 'apiVersion' : 'kind', reason: 'required, but missing' })
    return { key: undefined, report }
  }
  const slash = apiVersion.indexOf('/')
  const group = slash < 0 ? '' : names.canonicalGroup(apiVersion.slice(0, slash))
  const version = apiVersion.slice(slash + 1)
  const isSecret = apiVersion === 'v1' && kindName === 'Secret'
  const kind = kinds.get(kindName)
  if (!isSecret && (!kind || group !== `${kind.group}.${names.domain}`)) return undefined
  const metadata = isMapping(value.metadata) ? value.metadata : {}
  const name = typeof metadata.name === 'string' ? metadata.name : ''
  const namespace = typeof metadata.namespace === 'string' ? metadata.namespace : ''
  const key = configKey({ kind: kindName, namespace, name })
  if (kind && !kind.versions.includes(version))
    report.faults.push({ path: 'apiVersion', reason: `${kindName} has no version ${JSON.stringify(version)}; it has ${kind.versions.join(', ')}` })
  if (!nameSyntax.test(name)) report.faults.push({ path: 'metadata.name', reason: name === '' ? 'required, but missing' : 'not a valid object name' })
  if (namespace !== '' && !nameSyntax.test(namespace)) report.faults.push({ path: 'metadata.namespace', reason: 'not a valid namespace name' })
  if (!kind) return readSecretObject(value, { key, namespace, name, origin }, report)
  const marks: Report = { ...report, warnings: [] }
  const read = metadataShape.read(metadata, 'metadata', marks) ?? {}
  const created = typeof metadata.creationTimestamp === 'string' ? Date.parse(metadata.creationTimestamp) : Number.NaN
  const spec = kind.spec.read(value.spec ?? {}, 'spec', report)
  const object: ConfigObject = {
    kind: kindName,
    group,
    version,
    namespace,
    name,
    labels: read.labels ?? {},
    annotations: read.annotations ?? {},
    createdAt: Number.isNaN(created) ? 0 : created,
    generation: Number.isSafeInteger(metadata.generation) ? (metadata.generation as number) : 1,
    spec,
    origin,
  }
  if (report.faults.length === 0) report.warnings.push(...(kind.remarks?.(object, names.domain) ?? []))
  return { key, object, report }
}

/** Reads a Secret, unless it is one that gateways do not use: what is wrong with such a one is nobody's business here. */
function readSecretObject(
  value: Readonly<Record<string, unknown>>,
  { key, ...metadata }: { readonly key: string; readonly namespace: string; readonly name: string; readonly origin: string },
  report: Report,
): ReadObject | undefined {
  const marks = report.faults.length
  const secret = readSecret(value, metadata, report)
  if (!secret && report.faults.length === marks) return undefined
  if (metadata.namespace === '') report.faults.push({ path: 'metadata.namespace', reason: 'required, but missing' })
  return { key, secret, report }
}
