/** Reads configuration files: multi-document YAML or JSON into checked objects, each fault with its document and field. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { GatewaySecret } from '../../protocols/messages/secrets.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { headerOutputsOfText } from './header-outputs.ts'
import { configKey, kinds } from './kinds.ts'
import type { OptOuts, PolicyCheckName } from './opt-outs.ts'
import { PatternChecks } from './patterns.ts'
import { isPolicyKind, meantPolicy, recognise } from './recognise.ts'
import { readSecret } from './secret-document.ts'
import { describe, type Fault, isMapping, type Report, record, text } from './shape.ts'
import { labelsOf } from './shapes/hosts.ts'
import { contest, type StandIn, standIn, strictestAnywhere } from './stand-in.ts'
import { readDocuments } from './yaml-documents.ts'

/** Bytes of one file at most; a larger one is rejected with a clear error before it costs anything. */
export const fileLimits = { bytes: 32 * 1024 * 1024 }

/** What is wrong with a document of a file. */
export interface DocumentFault {
  readonly file: string
  /** 1-based number of the document in its file. */
  readonly document: number
  /** `<Kind>/<namespace>/<name>` when the document got that far, else undefined. */
  readonly key: string | undefined
  readonly path: string
  readonly reason: string
  /**
   * What the document may be instead of its key, or besides it: an object of a certain kind, where namespace or name are not certain, or `anything`.
   * Undefined where its key is certain, and where it is nothing of ours.
   */
  readonly mayBe?: string
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
  /** Documents that are no business of ours, by kind and group, with how many there are. */
  readonly foreign: ReadonlyMap<string, number>
}

/** Why a file of more bytes than {@link fileLimits} is not read. */
export const tooLarge = `the file is larger than ${fileLimits.bytes} bytes`

/** A file that could not be read at all. */
export function faultyFile(file: string, reason: string): ParsedFile {
  const fault = { file, document: 1, key: undefined, path: '', reason, mayBe: 'anything' }
  return { objects: [], secrets: [], faults: [fault], warnings: [], standIns: new Map(), foreign: new Map() }
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
  if (content.length > fileLimits.bytes) return faultyFile(file, tooLarge)
  const reading = new FileReading(file, names, { patterns, optOuts })
  for (const [index, document] of readDocuments(content).entries()) {
    if (patterns.isExhausted) break
    if ('error' in document) reading.unreadable(index + 1, document.error, document.text)
    else reading.document(index + 1, document.value, '')
  }
  return reading.result()
}

/** Faults of one document that are told; of more their number is. */
const mostFaults = 20

/** An object of a file, and the document that it is in. */
interface Defined {
  readonly held: ConfigObject | GatewaySecret
  readonly document: number
}

type Checks = Pick<Report, 'patterns' | 'optOuts'>

/** Collects what the documents of a file say. */
class FileReading {
  readonly #file: string
  readonly #names: MeshNames
  readonly #checks: Checks
  readonly #defined = new Map<string, Defined>()
  readonly #faults: DocumentFault[] = []
  readonly #warnings: DocumentFault[] = []
  readonly #standIns = new Map<string, StandIn>()
  readonly #foreign = new Map<string, number>()

  constructor(file: string, names: MeshNames, checks: Checks) {
    this.#file = file
    this.#names = names
    this.#checks = checks
  }

  #leavesOut(check: PolicyCheckName): boolean {
    return this.#checks.optOuts?.has(check) ?? false
  }

  result(): ParsedFile {
    // A policy that can be used, and one of the same name that cannot, are two definitions of one.
    for (const [key, object] of this.#leavesOut('file-readability') ? [] : this.#standIns) {
      const defined = this.#defined.get(key)
      if (defined && !isSecret(defined.held)) this.#defined.set(key, { ...defined, held: contest([defined.held, object], object.spec.invalid) })
    }
    const held = [...this.#defined.values()].map((defined) => defined.held)
    return {
      objects: held.filter((each): each is ConfigObject => !isSecret(each)),
      secrets: held.filter(isSecret),
      faults: this.#faults,
      warnings: this.#warnings,
      standIns: this.#standIns,
      foreign: this.#foreign,
    }
  }

  /** Takes a document, or one of a list of objects: `at` is then its place in the document. */
  document(number: number, value: unknown, at: string): void {
    if (value === null || value === undefined) return
    const items = itemsOf(value)
    if (items) {
      for (const [index, item] of items.values.entries()) this.document(number, item, `${at}${items.field}[${index}].`)
      return
    }
    const asText = () => this.#recognised(number, at, asJson(value))
    const read = contained(
      () => readObject(value, `${this.#file}#${number}`, this.#names, this.#checks),
      (reason) => asText()([{ path: '', reason }]),
    )
    if (!read) return
    if ('foreign' in read) return void this.#foreign.set(read.foreign, (this.#foreign.get(read.foreign) ?? 0) + 1)
    if ('unknown' in read) return asText()([read.unknown])
    this.#warnings.push(...this.#problems(number, at, read.key, read.report.warnings))
    if (read.report.faults.length > 0) {
      this.#faults.push(...this.#problems(number, at, read.key, read.report.faults, read.isCertain ? undefined : read.kind))
      if (read.object && isPolicyKind(read.kind)) this.#strictest(read.object, value, read.report, number, at)
    } else if (read.object ?? read.secret) this.#define(number, at, read.key, (read.object ?? read.secret) as Defined['held'])
  }

  /**
   * Has a policy with faults stand for the strictest that it could mean. One that lacks nothing but a namespace is judged as it is written: wherever
   * it was meant for, it can only refuse more than without it, or only less.
   */
  #strictest(object: ConfigObject, document: unknown, report: Report, number: number, at: string): void {
    if (object.namespace === '' && this.#leavesOut('policy-namespaces')) return
    const strictest = report.faults.every(({ path }) => path === 'metadata.namespace') ? strictestAnywhere(object, this.#names.domain) : 'stand-in'
    if (strictest === 'as written') this.#define(number, at, configKey(object), object)
    else if (strictest === 'stand-in') this.#standIn(standIn(object, document, report))
  }

  /** Takes a document that is no YAML. */
  unreadable(number: number, reason: string, content: string): void {
    this.#recognised(number, '', content)([{ path: '', reason }])
  }

  /** An object is there. Of a policy that is defined twice and not alike neither counts. */
  #define(number: number, at: string, key: string, held: Defined['held']): void {
    const first = this.#defined.get(key)
    if (!first) return void this.#defined.set(key, { held, document: number })
    const reason = `the same object is already in document ${first.document}`
    const contested =
      !this.#leavesOut('file-readability') && !isSecret(first.held) && !isSecret(held) && isPolicyKind(held.kind)
        ? contest([first.held, held], reason)
        : undefined
    this.#faults.push(...this.#problems(number, at, key, [{ path: 'metadata.name', reason }]))
    if (contested) this.#defined.set(key, { held: contested, document: first.document })
  }

  /** Says what is wrong with a document of which no more is known than what it looks like, and stands in for the policies that it may be. */
  #recognised(number: number, at: string, content: string): (faults: readonly Fault[]) => undefined {
    // Zeros between the characters, as of UTF-16 in a file of UTF-8, do not hide what it is.
    const text = content.replaceAll('\0', '')
    const { objects, others } = recognise(text, this.#names)
    return (faults) => {
      if (objects.length === 0) this.#faults.push(...this.#problems(number, at, undefined, faults, others ? undefined : 'anything'))
      for (const [index, { kind, namespace, name }] of objects.entries()) {
        // A name that no object has.
        const key = { kind, namespace, name: name === '' ? `(${this.#file}#${number}.${index + 1})` : name }
        this.#faults.push(...this.#problems(number, at, configKey(key), faults, kind))
        if (!isPolicyKind(kind) || this.#leavesOut('file-readability')) continue
        const origin = `${this.#file}#${number}`
        const group = `security.${this.#names.domain}`
        const invalid = faults.map(({ reason }) => reason).join('; ')
        this.#standIn({
          ...key,
          group,
          version: '',
          labels: {},
          annotations: {},
          createdAt: 0,
          generation: 1,
          origin,
          spec: { invalid, headers: headerOutputsOfText(text) },
        })
      }
    }
  }

  /** Several that are to stand in for one policy become one. */
  #standIn(object: StandIn): void {
    const key = configKey(object)
    const known = this.#standIns.get(key)
    this.#standIns.set(key, known ? contest([known, object], known.spec.invalid) : object)
  }

  #problems(document: number, at: string, key: string | undefined, faults: readonly Fault[], mayBe?: string): DocumentFault[] {
    const told = faults.slice(0, mostFaults)
    const last = faults[mostFaults]
    if (last) told.push({ path: last.path, reason: `${last.reason}; faults beyond this one: ${faults.length - mostFaults - 1}` })
    return told.map(({ path, reason }) => ({
      file: this.#file,
      document,
      key,
      path: (at + path).replace(/\.$/, ''),
      reason,
      ...(mayBe === undefined ? {} : { mayBe }),
    }))
  }
}

/** A value as text; none where it leads back to itself, as one with aliases may. */
function asJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? ''
  } catch {
    return ''
  }
}

/** The objects of a list: of a kind that ends with `List`, or just written one after the other. Those of a list of one kind need not repeat it. */
function itemsOf(value: unknown): { readonly field: string; readonly values: readonly unknown[] } | undefined {
  if (Array.isArray(value)) return { field: '', values: value }
  if (!isMapping(value) || !Array.isArray(value.items) || typeof value.kind !== 'string' || !value.kind.endsWith('List')) return undefined
  const { kind, apiVersion } = value
  const own = kind === 'List' ? {} : { kind: kind.slice(0, -'List'.length), apiVersion }
  return { field: 'items', values: value.items.map((item: unknown) => (isMapping(item) ? { ...own, ...item } : item)) }
}

/** The one place where reading may fail in a way that nobody thought of: the document is faulty then, and nothing else is lost. */
function contained<T>(read: () => T, failed: (reason: string) => T): T {
  try {
    return read()
  } catch (error) {
    return failed(`cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const isSecret = (held: ConfigObject | GatewaySecret): held is GatewaySecret => held.kind === 'Secret'

/** Labels and annotations of an object; what else its metadata holds is the orchestrator's. */
const metadataShape = record({ labels: labelsOf(text({ what: 'text' })), annotations: labelsOf(text({ max: 262_144 })) })

const nameSyntax = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/

interface ReadObject {
  readonly key: string
  readonly kind: string
  /** Whether the key is that of the object that is meant. */
  readonly isCertain: boolean
  readonly object?: ConfigObject
  readonly secret?: GatewaySecret | undefined
  readonly report: Report
}

/** What a document is: an object of ours, one that is no business of ours, or something unknown. Undefined where there is nothing to say. */
type ReadValue = ReadObject | { readonly foreign: string } | { readonly unknown: Fault } | undefined

function readObject(value: unknown, origin: string, names: MeshNames, checks: Checks): ReadValue {
  // What has no effect is told of the object, whoever it comes from.
  const report: Report = { faults: [], warnings: [], idle: [], ...checks, names }
  if (!isMapping(value)) return { unknown: { path: '', reason: 'expected a mapping with apiVersion, kind, metadata and spec' } }
  const apiVersion = typeof value.apiVersion === 'string' ? value.apiVersion : ''
  const kindName = typeof value.kind === 'string' ? value.kind : ''
  if (apiVersion === 'v1' && kindName === 'Secret') return readSecretObject(value, origin, report)
  const slash = apiVersion.indexOf('/')
  const group = slash < 0 ? '' : names.canonicalGroup(apiVersion.slice(0, slash))
  const version = apiVersion.slice(slash + 1)
  const kind = kinds.get(kindName)
  if (!kind || group !== `${kind.group}.${names.domain}`) return readUnknown(value, kindName, apiVersion, names)
  if (!kind.versions.includes(version))
    report.faults.push({ path: 'apiVersion', reason: `${kindName} has no version ${JSON.stringify(version)}; it has ${kind.versions.join(', ')}` })
  const isPolicy = isPolicyKind(kindName)
  if (isPolicy)
    for (const field of Object.keys(value)) if (!documentFields.has(field)) report.faults.push({ path: field.slice(0, 100), reason: 'unknown field' })
  const { name, namespace, metadata, isCertain } = readMetadata(value, isPolicy, report)
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
  return { key: configKey(object), kind: kindName, isCertain, object, report }
}

/** What a policy document consists of; the status is the orchestrator's. */
const documentFields: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata', 'spec', 'status'])

/** The fields of a mapping that are written like a name, in whatever spelling. */
const spellingsOf = (mapping: Readonly<Record<string, unknown>>, name: string): string[] =>
  Object.keys(mapping).filter((field) => field.length <= 64 && field.toLowerCase().replace(/[_-]/g, '') === name)

/** Name and namespace of an object. A policy needs both: without a namespace it could be meant for any. */
function readMetadata(value: Readonly<Record<string, unknown>>, isPolicy: boolean, report: Report) {
  const metadata = isMapping(value.metadata) ? value.metadata : {}
  const before = report.faults.length
  const read = (field: 'name' | 'namespace', what: string): string => {
    const path = `metadata.${field}`
    const given = metadata[field]
    const spellings = isPolicy ? spellingsOf(metadata, field) : []
    const isMissing = given === undefined || given === null || given === ''
    if (spellings.length > 1) report.faults.push({ path, reason: `given twice, as ${spellings.join(' and ')}` })
    else if (isMissing && (field === 'name' || isPolicy)) report.faults.push({ path, reason: 'required, but missing' })
    else if (!isMissing && typeof given !== 'string') report.faults.push({ path, reason: `expected text, got ${describe(given)}` })
    else if (typeof given === 'string' && !isMissing && (!nameSyntax.test(given) || (isPolicy && field === 'namespace' && /[A-Z]/.test(given))))
      report.faults.push({ path, reason: `not a valid ${what} name` })
    else return isMissing ? '' : (given as string)
    return ''
  }
  const [name, namespace] = [read('name', 'object'), read('namespace', 'namespace')]
  return { name, namespace, metadata, isCertain: report.faults.length === before }
}

/** A document whose kind and group are not known together. */
function readUnknown(value: Readonly<Record<string, unknown>>, kindName: string, apiVersion: string, names: MeshNames): ReadValue {
  const meant = meantPolicy(kindName, apiVersion, names)
  const written = `kind ${JSON.stringify(kindName.slice(0, 100))}, apiVersion ${JSON.stringify(apiVersion.slice(0, 100))}`
  if (meant !== undefined)
    return { unknown: { path: kindName === meant ? 'apiVersion' : 'kind', reason: `there is no ${written}; ${meant} may be meant` } }
  if (kindName !== '' && apiVersion !== '') {
    // A list whose objects cannot be had may hold any.
    if (kindName.endsWith('List') && spellingsOf(value, 'items').length > 0)
      return { unknown: { path: 'items', reason: `expected a list of objects in ${written}` } }
    return { foreign: `${kindName.slice(0, 100)} of ${apiVersion.slice(0, 100)}` }
  }
  const isObject = ['apiversion', 'kind', 'metadata', 'spec', 'items'].some((field) => spellingsOf(value, field).length > 0)
  if (!isObject) return { foreign: 'a document without apiVersion and kind' }
  return { unknown: { path: apiVersion === '' ? 'apiVersion' : 'kind', reason: 'required, but missing' } }
}

/** Reads a Secret, unless it is one that gateways do not use: what is wrong with such a one is nobody's business here. */
function readSecretObject(value: Readonly<Record<string, unknown>>, origin: string, report: Report): ReadObject | undefined {
  const { name, namespace, isCertain } = readMetadata(value, false, report)
  const marks = report.faults.length
  const secret = readSecret(value, { namespace, name, origin }, report)
  if (!secret && report.faults.length === marks) return undefined
  if (namespace === '') report.faults.push({ path: 'metadata.namespace', reason: 'required, but missing' })
  return { key: configKey({ kind: 'Secret', namespace, name }), kind: 'Secret', isCertain: isCertain && namespace !== '', secret, report }
}
