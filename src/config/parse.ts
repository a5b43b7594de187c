/** Parses configuration files: multi-document YAML or JSON into checked objects, each fault with its document and field. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { GatewaySecret } from '../../protocols/messages/secrets.ts'
import { suggestion } from '../model/edit-distance.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { isObjectName } from '../names/object-names.ts'
import { readClusterSpec, readLabels } from './cluster-documents.ts'
import { undecodedLines } from './file-text.ts'
import { headerOutputsOfText } from './header-outputs.ts'
import { clusterKinds, configKey, kinds } from './kinds.ts'
import { isOfTool, itemsOf, noObject, spellingsOf, unreadList } from './lists.ts'
import { assumedNamespace, metadataRemarks } from './metadata.ts'
import { inAssumedNamespace, inNamespace, isWithoutNamespace } from './namespaces.ts'
import type { OptOuts, PolicyCheckName } from './opt-outs.ts'
import { PatternChecks } from './patterns.ts'
import { placeOf } from './places.ts'
import { isPolicyKind, meantKind, meantPolicy, meantText, recognise } from './recognise.ts'
import { readSecret } from './secret-document.ts'
import { describe, type Fault, isMapping, isMissing, mapping, noText, type Report, record, text } from './shape.ts'
import { labelsOf } from './shapes/hosts.ts'
import { contest, type StandIn, standIn, strictestAnywhere } from './stand-in.ts'
import { readDocuments, tooManyDocuments } from './yaml-documents.ts'

/** The maximum size of a file in bytes. A larger file is rejected before it is parsed. */
export const fileLimits = { bytes: 32 * 1024 * 1024 }

/** A fault in a document of a file. */
export interface DocumentFault {
  readonly file: string
  /** 1-based number of the document in its file; 0 for one of a source without files. */
  readonly document: number
  /** `<Kind>/<namespace>/<name>` if the kind could be read, otherwise undefined. The name may be a substitute ({@link isNameless}). */
  readonly key: string | undefined
  readonly path: string
  readonly reason: string
  /**
   * The kind of the object that the document may contain, if its namespace or name is uncertain, or `anything`. Undefined when the key is
   * certain, and for documents that are not mesh configuration.
   */
  readonly mayBe?: string
}

/** The contents of a file. */
export interface ParsedFile {
  readonly objects: readonly ConfigObject[]
  /** Secrets for gateways. Their private keys are only in {@link GatewaySecret}. */
  readonly secrets: readonly GatewaySecret[]
  readonly faults: readonly DocumentFault[]
  readonly warnings: readonly DocumentFault[]
  /**
   * Stand-ins for invalid policies, by key: the strictest policies that these could have meant. They are used when there is no last valid
   * version, because leaving a policy out would allow what it was meant to deny.
   */
  readonly standIns: ReadonlyMap<string, StandIn>
  /** The number of documents that are not configuration of this control plane, by kind, and group or revision. */
  readonly foreign: ReadonlyMap<string, number>
}

/** The reason why a file with more bytes than {@link fileLimits} is rejected. */
export const tooLarge = `the file is larger than ${fileLimits.bytes} bytes`

/** The group of the orchestrator's gateway API, which is not served. */
const gatewayApiGroup = 'gateway.networking.k8s.io'

/** What a document that is no object counts as among the foreign ones. */
export const withoutKind = 'a document without apiVersion and kind'

/** The result for a file that could not be read at all. */
export function faultyFile(file: string, reason: string): ParsedFile {
  const fault = { file, document: 1, key: undefined, path: '', reason, mayBe: 'anything' }
  return { objects: [], secrets: [], faults: [fault], warnings: [], standIns: new Map(), foreign: new Map() }
}

/**
 * Parses one file. Never throws: errors are in `faults`, and the valid documents are in `objects`. The result must be discarded if
 * `patterns` are exhausted afterwards. `optOuts`: disabled checks of policies. `revision`: that of this control plane; objects labelled with
 * another one are left out. `source`: the name of the source that has the file. `reader`: what a command does besides.
 */
export function parseConfigFile(
  file: string,
  content: string,
  names: MeshNames,
  patterns = new PatternChecks(),
  optOuts: OptOuts = new Set(),
  revision = '',
  source = 'files',
  { seen, namespace, isGuessed = namespace === undefined }: Reader = {},
): ParsedFile {
  if (content.length > fileLimits.bytes) return faultyFile(file, tooLarge)
  const documents = readDocuments(content)
  // Each of them may hold any object, and none is searched.
  if (documents[0] && 'error' in documents[0] && documents[0].error === tooManyDocuments) return faultyFile(file, tooManyDocuments)
  const checks = { patterns, optOuts, revision, source, namespace, assumesNamespaces: isGuessed }
  const reading = new FileReading(file, names, checks, seen, undecodedLines(content))
  for (const [index, document] of documents.entries()) {
    if (patterns.isExhausted) break
    if ('error' in document) reading.unreadable(index + 1, document.error, document.text)
    else reading.document(index + 1, document.value, '')
  }
  return reading.result()
}

/** Parses one document of a source that has objects without files. `where` stands for the file in messages. Never throws. */
export function parseConfigDocument(
  where: string,
  value: unknown,
  names: MeshNames,
  { patterns = new PatternChecks(), optOuts = new Set(), revision = '', source = where }: Partial<Checks>,
): ParsedFile {
  const reading = new FileReading(where, names, { patterns, optOuts, revision, source })
  reading.document(0, value, '')
  return reading.result()
}

/** The maximum number of faults of a document that are listed. The last one contains the number of further faults. */
const maxFaults = 20

/** An object of a file, and the number of its document. */
interface Defined {
  readonly held: ConfigObject | GatewaySecret
  readonly document: number
}

interface Checks extends Pick<Report, 'patterns' | 'optOuts'> {
  readonly revision: string
  readonly source: string
  readonly namespace?: string | undefined
  /** Whether objects of the mesh that name no namespace are in {@link assumedNamespace}, which is told. */
  readonly assumesNamespaces?: boolean
}

/** What a command that reads files does, and a source does not. */
export interface Reader {
  /** Is called with each object that is not one of a kind of the mesh, and the number of its document. */
  readonly seen?: Seen
  /** The namespace that objects without one are applied to; undefined: they are read as a source reads them. */
  readonly namespace?: string | undefined
  /** Whether nobody named that namespace: objects of the mesh are read as a source reads them, and only others are applied to it. */
  readonly isGuessed?: boolean
}

/** Told of an object that is not one of a kind of the mesh. */
export type Seen = (value: Readonly<Record<string, unknown>>, document: number) => void

/** Collects the objects and faults of a file's documents. */
class FileReading {
  readonly #file: string
  readonly #names: MeshNames
  readonly #checks: Checks
  readonly #defined = new Map<string, Defined>()
  readonly #faults: DocumentFault[] = []
  readonly #warnings: DocumentFault[] = []
  readonly #standIns = new Map<string, StandIn>()
  readonly #foreign = new Map<string, number>()

  readonly #seen: Seen | undefined
  /** The lines of documents that are not text of the file's encoding, by number. */
  readonly #undecoded: ReadonlyMap<number, number>

  constructor(file: string, names: MeshNames, checks: Checks, seen?: Seen, undecoded: ReadonlyMap<number, number> = new Map()) {
    this.#seen = seen
    this.#undecoded = undecoded
    this.#file = file
    this.#names = names
    this.#checks = checks
  }

  #leavesOut(check: PolicyCheckName): boolean {
    return this.#checks.optOuts?.has(check) ?? false
  }

  result(): ParsedFile {
    const faulty = new Set(this.#faults.map(({ document }) => document))
    for (const [document, line] of this.#undecoded)
      if (!faulty.has(document)) this.#warnings.push(...this.#listed(document, '', undefined, [{ path: '', reason: notUtf8(line) }]))
    // A valid policy and an invalid one of the same name are conflicting definitions of the same policy.
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

  /** Processes a document, or an item of a list of objects. `at`: the path of the item in the document. */
  document(number: number, given: unknown, at: string): void {
    if (given === null || given === undefined) return
    const items = itemsOf(given)
    const isAssumed = this.#checks.assumesNamespaces === true && !items && isWithoutNamespace(given)
    const value = items ? given : isAssumed ? inAssumedNamespace(given, this.#names) : inNamespace(given, this.#checks.namespace)
    if (items) {
      for (const [index, item] of items.values.entries()) this.document(number, item, `${at}${items.field}[${index}].`)
      return
    }
    if (this.#seen && isMapping(value) && !kinds.has(String(value.kind))) this.#seen(value, number)
    const position = `${this.#file}#${number}`
    const asText = () => this.#recognised(number, at, asJson(value))
    const read = contained(
      () => readObject(value, placeOf(this.#file, number), at === '' ? position : `${position} ${at.slice(0, -1)}`, this.#names, this.#checks),
      (reason) => asText()([{ path: '', reason }]),
    )
    if (!read) return
    if ('foreign' in read) return this.#leaveOut(read.foreign, value, number, at)
    if ('unknown' in read) return asText()([read.unknown])
    const told =
      isAssumed && value !== given
        ? [{ path: 'metadata.namespace', reason: `missing, so the object counts in the namespace ${assumedNamespace}` }]
        : []
    this.#warnings.push(...this.#listed(number, at, read.key, [...read.report.warnings, ...told]))
    if (read.report.faults.length > 0) {
      this.#faults.push(...this.#problems(number, at, read.key, read.report.faults, read.isCertain ? undefined : read.kind))
      if (read.object && isPolicyKind(read.kind)) this.#strictest(read.object, value, read.report, number, at)
    } else if (read.object ?? read.secret) this.#define(number, at, read.key, (read.object ?? read.secret) as Defined['held'])
  }

  /** Counts a document that is not configuration of this control plane. Of each kind of the orchestrator's gateway API the first one is warned of. */
  #leaveOut(what: string, value: unknown, number: number, at: string): void {
    const count = this.#foreign.get(what) ?? 0
    this.#foreign.set(what, count + 1)
    const { apiVersion, kind, metadata } = mapping(value)
    if (what === withoutKind && !isOfTool(this.#file) && this.#warnings.length < maxFaults)
      this.#warnings.push(...this.#problems(number, at, undefined, [{ path: '', reason: noObject }]))
    if (count > 0 || !String(apiVersion).startsWith(`${gatewayApiGroup}/`)) return
    const name = String(mapping(metadata).name ?? '').slice(0, 253)
    const reason = `the ${[String(kind).slice(0, 100), name].filter(Boolean).join(' ')} has no effect, and neither has any other ${String(kind).slice(0, 100)} of ${gatewayApiGroup} in the file: that API is not served; write a Gateway and VirtualServices of networking.${this.#names.domain}`
    this.#warnings.push(...this.#problems(number, at, undefined, [{ path: 'apiVersion', reason }]))
  }

  /**
   * Adds the strictest interpretation of a policy with faults. A policy whose only fault is the missing namespace is used as written if, in
   * whichever namespace it was meant for, it can only deny more; if it can only allow more, it is left out.
   */
  #strictest(object: ConfigObject, document: unknown, report: Report, number: number, at: string): void {
    if (object.namespace === '' && this.#leavesOut('policy-namespaces')) return
    const isSpecKnown = !isNameless(object.name) && report.faults.every(({ path }) => path === 'metadata.namespace')
    const inNamespace = object.namespace === '' ? strictestAnywhere(object, this.#names.domain) : 'as written'
    const strictest = isSpecKnown ? inNamespace : 'stand-in'
    if (strictest === 'as written') this.#define(number, at, configKey(object), object)
    else if (strictest === 'stand-in') this.#standIn(standIn(object, document, report))
  }

  /** Processes a document that is not valid YAML. */
  unreadable(number: number, reason: string, content: string): void {
    this.#recognised(number, '', content)([{ path: '', reason }])
  }

  /** Adds an object. When a policy is defined twice with different content, neither definition is used. */
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

  /** Reports faults of a document that could only be searched for field names, and adds stand-ins for the policies that it may contain. */
  #recognised(number: number, at: string, content: string): (faults: readonly Fault[]) => undefined {
    // Zero bytes between the characters, as of UTF-16 within a file of UTF-8, must not hide the field names.
    const text = content.replaceAll('\0', '')
    const { objects, others } = recognise(text, this.#names)
    return (faults) => {
      if (objects.length === 0) this.#faults.push(...this.#problems(number, at, undefined, faults, others ? undefined : 'anything'))
      for (const [index, { kind, namespace, name }] of objects.entries()) {
        const key = { kind, namespace, name: name === '' ? substitute(`${this.#file}#${number}.${index + 1}`) : name }
        this.#faults.push(...this.#problems(number, at, configKey(key), faults, kind))
        if (!isPolicyKind(kind) || this.#leavesOut('file-readability')) continue
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
          spec: { invalid, headers: headerOutputsOfText(text) },
          ...inFile(this.#checks.source, placeOf(this.#file, number)),
        })
      }
    }
  }

  /** Adds a stand-in. Several for the same policy are merged. */
  #standIn(object: StandIn): void {
    const key = configKey(object)
    const known = this.#standIns.get(key)
    this.#standIns.set(key, known ? contest([known, object], known.spec.invalid) : object)
  }

  #problems(document: number, at: string, key: string | undefined, given: readonly Fault[], mayBe?: string): DocumentFault[] {
    const line = this.#undecoded.get(document)
    // What else is wrong in such a document follows from it.
    const faults = line === undefined || given.length === 0 ? given : [{ path: '', reason: notUtf8(line) }]
    return this.#listed(document, at, key, faults, mayBe)
  }

  #listed(document: number, at: string, key: string | undefined, faults: readonly Fault[], mayBe?: string): DocumentFault[] {
    const reported = faults.slice(0, maxFaults)
    const last = faults[maxFaults]
    if (last) reported.push({ path: last.path, reason: `${last.reason}; faults beyond this one: ${faults.length - maxFaults - 1}` })
    return reported.map(({ path, reason }) => ({
      file: this.#file,
      document,
      key,
      path: (at + path).replace(/\.$/, ''),
      reason,
      ...(mayBe === undefined ? {} : { mayBe }),
    }))
  }
}

const notUtf8 = (line: number): string => `not UTF-8, line ${line}: it has bytes that are no characters; save the file as UTF-8`

/** Converts a value to text. Empty for a cyclic value, which aliases can create. */
function asJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? ''
  } catch {
    return ''
  }
}

/** Contains unexpected errors of parsing: only the one document is faulty. */
function contained<T>(read: () => T, failed: (reason: string) => T): T {
  try {
    return read()
  } catch (error) {
    return failed(`cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/**
 * The origin of an object in a file. What a file says about uid and resource version is left aside: these are of the orchestrator from which
 * the object was copied, and stay the same when the file is edited.
 */
const inFile = (source: string, place: string) => ({ source, cluster: '', uid: '', resourceVersion: '', place })

const isSecret = (held: ConfigObject | GatewaySecret): held is GatewaySecret => held.kind === 'Secret'

/** The name, in keys and stand-ins, of an object whose own name is missing or invalid. No valid name begins with a parenthesis. */
const substitute = (text: string): string => `(${text})`

/** Whether a name is a substitute for one that is missing or invalid. */
export const isNameless = (name: string): boolean => name.startsWith('(')

/** The labels and annotations of an object. Other metadata is not checked, because the orchestrator sets it. */
const metadataShape = record({ labels: labelsOf(text({ what: 'text' })), annotations: labelsOf(text({ max: 262_144 })) })

interface ReadObject {
  readonly key: string
  readonly kind: string
  /** Whether the key is certainly that of the object. */
  readonly isCertain: boolean
  readonly object?: ConfigObject
  readonly secret?: GatewaySecret | undefined
  readonly report: Report
}

/**
 * The content of a document: an object, a document that is not mesh configuration, or one of an unknown kind. Undefined: the document has
 * neither an object nor a fault.
 */
type ReadValue = ReadObject | { readonly foreign: string } | { readonly unknown: Fault } | undefined

/** Reads a document or an item of a list at a place. `position` names it where its own name is missing. */
function readObject(value: unknown, place: string, position: string, names: MeshNames, { revision, source, ...checks }: Checks): ReadValue {
  // Fields without effect are reported for all objects in one place (`without-effect.ts`), so they are not among the warnings here.
  const report: Report = { faults: [], warnings: [], idle: [], ...checks, names }
  if (!isMapping(value)) return { unknown: { path: '', reason: 'expected a mapping with apiVersion, kind, metadata and spec' } }
  const apiVersion = typeof value.apiVersion === 'string' ? value.apiVersion : ''
  const kindName = typeof value.kind === 'string' ? value.kind : ''
  if (apiVersion === 'v1' && kindName === 'Secret') return readSecretObject(value, place, position, report)
  if (apiVersion === 'v1' && clusterKinds.has(kindName)) return readClusterObject(kindName, value, { source, place, position }, report)
  const slash = apiVersion.indexOf('/')
  const group = slash < 0 ? '' : names.canonicalGroup(apiVersion.slice(0, slash))
  const version = apiVersion.slice(slash + 1)
  const kind = kinds.get(kindName)
  if (!kind || group !== `${kind.group}.${names.domain}`) return readUnknown(value, kindName, apiVersion, position, names)
  const meantFor = revisionOf(value.metadata, names)
  if (meantFor !== undefined && meantFor !== revision) return { foreign: `${kindName} of revision ${JSON.stringify(meantFor.slice(0, 100))}` }
  if (!kind.versions.includes(version))
    report.faults.push({ path: 'apiVersion', reason: `${kindName} has no version ${JSON.stringify(version)}; it has ${kind.versions.join(', ')}` })
  const isPolicy = isPolicyKind(kindName)
  for (const field of Object.keys(value)) if (!documentFields.has(field)) tellUnknown(field, isPolicy, report)
  const { name, namespace, metadata, isOpen, isCertain } = readMetadata(value, isPolicy, position, report)
  report.warnings.push(...metadataRemarks(metadata))
  const marks: Report = { ...report, warnings: [] }
  const read = metadataShape.read(metadata, 'metadata', marks) ?? {}
  const spec = kind.spec.read(value.spec ?? {}, 'spec', isOpen && isMissing(value.spec) ? { ...report, faults: [] } : report)
  const object: ConfigObject = {
    kind: kindName,
    group,
    version,
    namespace,
    name,
    labels: read.labels ?? {},
    annotations: read.annotations ?? {},
    createdAt: createdAt(metadata),
    generation: Number.isSafeInteger(metadata.generation) ? (metadata.generation as number) : 1,
    spec,
    ...(kindName === 'WorkloadEntry' ? healthOf(value.status) : {}),
    ...inFile(source, place),
  }
  return { key: configKey(object), kind: kindName, isCertain, object, report }
}

/**
 * Reads an object of a kind that describes a cluster. It is valid without a spec. A manifest that leaves its name or the namespace of a Pod to
 * the orchestrator describes no object that is there.
 */
function readClusterObject(
  kind: string,
  value: Readonly<Record<string, unknown>>,
  { source, place, position }: { readonly source: string; readonly place: string; readonly position: string },
  report: Report,
): ReadValue {
  const isPod = kind === 'Pod'
  const { metadata: named } = value
  if (isMapping(named) && (isMissing(named.name) || (isPod && isMissing(named.namespace))))
    return { foreign: `${kind} of v1 without a ${isMissing(named.name) ? 'name' : 'namespace'}` }
  const { metadata, isOpen, isCertain, ...given } = readMetadata(value, false, position, report)
  report.warnings.push(...metadataRemarks(metadata))
  const namespace = isPod ? given.namespace : ''
  if (isPod && namespace === '' && !isOpen) report.faults.push({ path: 'metadata.namespace', reason: 'required, but missing' })
  const labels = readLabels(metadata, report) ?? {}
  const spec = readClusterSpec(kind, value, metadata, report)
  const parts = { labels, annotations: {}, createdAt: createdAt(metadata), generation: 1, spec }
  const object: ConfigObject = { kind, group: '', version: 'v1', namespace, name: given.name, ...parts, ...inFile(source, place) }
  return { key: configKey(object), kind, isCertain: isCertain && (!isPod || namespace !== ''), object, report }
}

/** What the status of a WorkloadEntry says of its health. */
function healthOf(status: unknown): Pick<ConfigObject, 'healthy' | 'healthMessage'> {
  const conditions: readonly unknown[] = isMapping(status) && Array.isArray(status.conditions) ? status.conditions : []
  const condition = conditions.filter(isMapping).find(({ type }) => type === 'Healthy')
  if (!condition) return {}
  const { status: said, message } = condition
  const isTold = typeof message === 'string' && message !== ''
  return { healthy: said === 'True', ...(isTold && { healthMessage: message.slice(0, longestMessage).toWellFormed() }) }
}

/** The longest message of a condition that is kept, in characters. */
const longestMessage = 1000

/** The time of creation in the metadata, in Unix milliseconds; 0 without one. */
function createdAt({ creationTimestamp }: Readonly<Record<string, unknown>>): number {
  const created = typeof creationTimestamp === 'string' ? Date.parse(creationTimestamp) : Number.NaN
  return Number.isNaN(created) ? 0 : created
}

/** Returns the revision of the control plane that an object is meant for, by its label `mesh.io/rev`. Undefined: for every one. */
function revisionOf(metadata: unknown, names: MeshNames): string | undefined {
  if (!isMapping(metadata) || !isMapping(metadata.labels)) return undefined
  const revision = names.canonicalKeys(metadata.labels as Readonly<Record<string, string>>)[`${names.domain}/rev`]
  return typeof revision === 'string' ? revision : undefined
}

/** Reports a field beside the spec. In a policy it may be what makes it strict. */
function tellUnknown(field: string, isPolicy: boolean, { faults, warnings }: Report): void {
  const path = field.slice(0, 100).toWellFormed()
  if (isPolicy) faults.push({ path, reason: 'unknown field' })
  else if (warnings.length < maxFaults)
    warnings.push({ path, reason: `unknown field, left out${field.length <= 64 ? suggestion(field, documentFields) : ''}` })
}

/** The top-level fields of a document. The status is set by the orchestrator. */
const documentFields: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata', 'spec', 'status'])

/** The reason why a name is rejected, with at most 100 characters of the name and the accepted form. */
function invalidName(given: string, what: string, isLowerCase: boolean): string {
  const letters = isLowerCase ? 'lower-case letters' : 'letters'
  return `${JSON.stringify(given.slice(0, 100))} is not a valid ${what} name: expected at most 253 ${letters}, digits, "-", "_" and ".", beginning and ending with a letter or digit`
}

/**
 * Reads the name and namespace of an object. A policy needs both: without a namespace it could be meant for any. A name that is missing or
 * invalid is replaced by a substitute with the given text, or with `position` if there is none. `isOpen`: whether the
 * metadata is no mapping; fields missing in it are not reported. `isCertain`: whether name and namespace are
 * those that the object was given.
 */
function readMetadata(value: Readonly<Record<string, unknown>>, isPolicy: boolean, position: string, report: Report) {
  const isOpen = !isMissing(value.metadata) && !isMapping(value.metadata)
  if (isOpen) report.faults.push({ path: 'metadata', reason: `expected a mapping, got ${describe(value.metadata)}` })
  const metadata = mapping(value.metadata)
  const before = report.faults.length
  const read = (field: 'name' | 'namespace', what: string): string => {
    const path = `metadata.${field}`
    const given = metadata[field]
    const spellings = isPolicy ? spellingsOf(metadata, field) : []
    if (spellings.length > 1) report.faults.push({ path, reason: `given twice, as ${spellings.join(' and ')}` })
    else if (isMissing(given) && !isOpen && (field === 'name' || isPolicy)) report.faults.push({ path, reason: 'required, but missing' })
    else if (!isMissing(given) && typeof given !== 'string') report.faults.push({ path, reason: noText(given) })
    else if (typeof given === 'string' && !isMissing(given) && (!isObjectName(given) || (isPolicy && field === 'namespace' && /[A-Z]/.test(given))))
      report.faults.push({ path, reason: invalidName(given, what, isPolicy && field === 'namespace') })
    else return isMissing(given) ? '' : (given as string)
    return ''
  }
  const [name, namespace] = [read('name', 'object'), read('namespace', 'namespace')]
  const { name: given } = metadata
  const shown = isMissing(given) ? position : typeof given === 'string' ? JSON.stringify(given.slice(0, 100)) : describe(given)
  return {
    name: name === '' ? substitute(shown) : name,
    namespace,
    metadata,
    isOpen,
    isCertain: report.faults.length === before && !(isOpen && (name === '' || namespace === '')),
  }
}

/** Handles a document whose combination of kind and group is unknown. */
function readUnknown(value: Readonly<Record<string, unknown>>, kindName: string, apiVersion: string, position: string, names: MeshNames): ReadValue {
  for (const field of ['apiVersion', 'kind'])
    if (!isMissing(value[field]) && typeof value[field] !== 'string') return { unknown: { path: field, reason: noText(value[field]) } }
  const meant = meantPolicy(kindName, apiVersion, names)
  const written = `kind ${JSON.stringify(kindName.slice(0, 100))}, apiVersion ${JSON.stringify(apiVersion.slice(0, 100))}`
  if (meant !== undefined)
    return {
      unknown: {
        path: kindName === meant ? 'apiVersion' : 'kind',
        reason: `unknown ${written}: ${meantText(meant, apiVersion, names)}`,
      },
    }
  if (kindName !== '' && apiVersion !== '') {
    const list = unreadList(value, kindName, apiVersion)
    if (list) return { unknown: list }
    const near = meantKind(kindName, apiVersion, names)
    if (near !== undefined) return readUnknownKind(value, written, near === 'none' ? { written: kindName.slice(0, 100) } : { near }, position, names)
    return { foreign: `${kindName.slice(0, 100)} of ${apiVersion.slice(0, 100)}` }
  }
  const isObject = ['apiversion', 'kind', 'metadata', 'spec', 'items'].some((field) => spellingsOf(value, field).length > 0)
  if (!isObject) return { foreign: withoutKind }
  return { unknown: { path: apiVersion === '' ? 'apiVersion' : 'kind', reason: 'required, but missing' } }
}

/**
 * Reports a document of the mesh whose kind is unknown and is not a policy: as a fault of the object that it probably means (`near`), whose
 * last good state stays, otherwise as a warning (docs/operation.md, F7).
 */
function readUnknownKind(
  value: Readonly<Record<string, unknown>>,
  what: string,
  kind: { readonly near: string } | { readonly written: string },
  position: string,
  names: MeshNames,
): ReadObject {
  const report: Report = { faults: [], warnings: [], names }
  const { name, namespace, isCertain } = readMetadata(value, false, position, report)
  const kindName = 'near' in kind ? kind.near : kind.written
  if ('near' in kind)
    report.faults.unshift({
      path: value.kind === kindName ? 'apiVersion' : 'kind',
      reason: `unknown ${what}: ${meantText(kindName, String(value.apiVersion), names)}`,
    })
  else report.faults.length = 0
  if ('written' in kind) report.warnings.push({ path: 'kind', reason: `unknown ${what}; the document is left out` })
  return { key: configKey({ kind: kindName, namespace, name }), kind: kindName, isCertain, report }
}

/** Reads a Secret. Undefined for a Secret that gateways do not use, whose faults are not reported. */
function readSecretObject(value: Readonly<Record<string, unknown>>, place: string, position: string, report: Report): ReadObject | undefined {
  const { name, namespace, isOpen, isCertain } = readMetadata(value, false, position, report)
  const marks = report.faults.length
  const secret = readSecret(value, { namespace, name, place }, report)
  if (!secret && report.faults.length === marks) return undefined
  if (namespace === '' && !isOpen) report.faults.push({ path: 'metadata.namespace', reason: 'required, but missing' })
  return { key: configKey({ kind: 'Secret', namespace, name }), kind: 'Secret', isCertain: isCertain && namespace !== '', secret, report }
}
