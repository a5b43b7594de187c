/**
 * The objects in the files of a directory, and which definition of each is in force. The last good state is kept per object: an object
 * that cannot be used stays as it was, even if it has moved within its file or to another file. An object that is in no file any more is
 * removed.
 */
import type { ConfigObject } from '../../../../protocols/data.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { GatewaySecret } from '../../../../protocols/messages/secrets.ts'
import { configKey, kindOfKey } from '../../../../src/config/kinds.ts'
import type { OptOuts } from '../../../../src/config/opt-outs.ts'
import { type DocumentFault, isNameless, type ParsedFile } from '../../../../src/config/parse.ts'
import { placeOf } from '../../../../src/config/places.ts'
import { isPolicyKind } from '../../../../src/config/recognise.ts'
import { contest, isStandIn } from '../../../../src/config/stand-in.ts'
import { count } from '../../../../src/model/counts.ts'
import { compare } from '../../../../src/model/order.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import type { Logger, ScopedLogger } from '../../../runtime/logger.ts'
import { Counter, Gauge, type MetricRegistry } from '../../../runtime/metrics.ts'
import type { Content } from './file-content.ts'

/** An object in a file. Secrets are delivered separately from the other objects. */
export type FileObject = ConfigObject | GatewaySecret

/** Callbacks for changes. */
export interface DefinitionListener {
  readonly log: Logger
  /** Called for every object that is added, changed or removed, except Secrets. */
  emit(event: SourceEvent): void
  /** Called for every Secret that is added, changed or removed, with its key `Secret/<namespace>/<name>`. */
  secret(key: string, secret: GatewaySecret | undefined): void
  /** Called for every file that was read, with what is wrong with its documents; undefined: it is gone. */
  read?(file: string, parsed: Pick<ParsedFile, 'faults' | 'warnings'> | undefined): void
}

/** The result of reading and parsing a file. */
export interface Reading {
  /** Path relative to the directory: for messages, and for the precedence of files. */
  readonly name: string
  /** Precedes the name in the precedence of files; 0 if it is not given. */
  readonly rank?: number
  readonly content: Content
  /** Signature of the file when it was read. An audit reads only files whose signature differs, and those that could not be read. */
  readonly signature: string
  readonly parsed: ParsedFile
}

/** The stored state of a file. */
export interface KnownFile extends Omit<Reading, 'parsed'> {
  /** Number of faults in its documents. */
  readonly faults: number
  /** The first faults and warnings of its documents, as they were logged. */
  readonly problems: readonly string[]
  /** What has a fault or a warning: the key of the object, or the place of a document whose object is not known; with the place. */
  readonly faulty: ReadonlyMap<string, string>
  /** Objects by key, including last good states and stand-ins. */
  readonly objects: ReadonlyMap<string, FileObject>
  /** Keys of objects that are defined in the file, cannot be used, and have no last good state here. */
  readonly unusable: ReadonlySet<string>
  /** Whether the file may hold objects that could not be identified. */
  readonly isUnclear: boolean
  /**
   * Why the file may hold objects of unknown kind, if that has been the case since it was first read, so that there is no last good
   * state. Otherwise undefined.
   */
  readonly unknown: string | undefined
  /** Its documents that are not mesh configuration, as text for the log. */
  readonly foreign: string
  /**
   * Objects that cannot be used here and whose last good state came from another file, with their stand-ins, which count for this file if
   * the other one still defines the object.
   */
  readonly borrowed: ReadonlyMap<string, ConfigObject | undefined>
}

/** Maximum number of faults and warnings of a file that are kept for the debug page, and of mended documents that a line names. */
const maxProblems = 100
const mostMended = 10

/** What most files have none of: shared, because an empty set or map takes 230 bytes. */
const none: readonly never[] = []
const noKeys: ReadonlySet<string> = new Set()
const nothingFaulty: ReadonlyMap<string, string> = new Map()
const noObjects: ReadonlyMap<string, ConfigObject | undefined> = new Map()

/** The objects of all files. */
export class DefinedObjects {
  readonly #listener: DefinitionListener
  readonly #optOuts: OptOuts
  readonly #dropsInvalid: boolean
  /** The log of changed objects. */
  readonly #changes: ScopedLogger
  readonly #metrics
  readonly #files = new Map<string, KnownFile>()
  /** For each defined object, the files that define it: one, or several in a set. */
  readonly #definers = new Map<string, string | ReadonlySet<string>>()
  /** The definitions in force, as they were emitted. */
  readonly #inForce = new Map<string, FileObject>()
  /** Objects that disappeared from their file and may turn up in another file that has not been read yet. */
  readonly #leaving = new Set<string>()
  /** Objects that were reported as defined in several files, with the names of the files and whether the definitions conflict. */
  readonly #reportedRepeats = new Map<string, string>()

  /** `dropsInvalid`: whether an object that cannot be used is removed, unless it is a policy, and does not stay as it was. */
  constructor(register: MetricRegistry, optOuts: OptOuts, listener: DefinitionListener, dropsInvalid = false) {
    this.#optOuts = optOuts
    this.#dropsInvalid = dropsInvalid
    this.#listener = listener
    this.#changes = listener.log('resource')
    const registers = [register]
    this.#metrics = {
      rejected: new Counter({
        name: 'pilot_config_documents_rejected_total',
        help: 'configuration documents that could not be used',
        labelNames: ['kind'],
        registers,
      }),
      invalid: new Gauge({ name: 'pilot_config_documents_invalid', help: 'configuration documents that cannot be used at present', registers }),
      events: new Counter({ name: 'pilot_orch_cfg_events', help: 'events from configuration', labelNames: ['type', 'event'], registers }),
    }
  }

  get files(): ReadonlyMap<string, KnownFile> {
    return this.#files
  }

  /**
   * The events of a replay: all objects in force, and `ConfigUnusable` for objects that are defined and cannot be used. Of those, the
   * receiver keeps the state that it may have from before a restart.
   */
  *events(): Generator<SourceEvent> {
    const at = monotonicMs()
    for (const [key, object] of this.#inForce) if (!isSecret(object)) yield eventOf(key, object, at)
    for (const { unusable } of this.#files.values())
      for (const key of unusable)
        if (!this.#inForce.has(key) && !isSecretKey(key) && !this.#isDropped(key)) yield { type: 'ConfigUnusable', key, standIn: undefined, at }
  }

  /** Whether every object of every file could be identified. Otherwise an object that was not emitted may exist all the same. */
  get isComplete(): boolean {
    return this.#leaving.size === 0 && ![...this.#files.values()].some(({ isUnclear }) => isUnclear)
  }

  /** The number of objects in force. */
  get size(): number {
    return this.#inForce.size
  }

  /** Whether any file defines an object, usable or not. */
  has(key: string): boolean {
    return this.#inForce.has(key) || [...this.#files.values()].some(({ unusable }) => unusable.has(key))
  }

  /** Other files that define an object that the given files define too. */
  otherDefiners(readings: ReadonlyMap<string, Reading | undefined>): Set<string> {
    const files = new Set<string>()
    for (const reading of readings.values())
      for (const object of reading?.parsed.objects ?? [])
        for (const file of this.#definersOf(configKey(object))) if (!readings.has(file)) files.add(file)
    return files
  }

  /** Whether the given files no longer define a policy that only they defined. */
  losesPolicy(readings: ReadonlyMap<string, Reading | undefined>): boolean {
    const found = new Set([...readings.values()].flatMap((reading) => reading?.parsed.objects.map(configKey) ?? []))
    const isLost = (key: string) => isPolicyKind(kindOfKey(key)) && !found.has(key) && this.#definersOf(key).every((file) => readings.has(file))
    return [...readings.keys()].some((file) => [...(this.#files.get(file)?.objects.keys() ?? [])].some(isLost))
  }

  /** Policies that cannot be used and have a stand-in, with the reasons. */
  standIns(): { readonly key: string; readonly source: string; readonly place: string; readonly reason: string }[] {
    return [...this.#inForce].flatMap(([key, object]) =>
      !isSecret(object) && isStandIn(object) ? [{ key, source: object.source, place: object.place, reason: object.spec.invalid }] : [],
    )
  }

  /** Stores the new signature of a file whose content did not change. */
  unchanged(file: string, content: Content, signature: string): void {
    const known = this.#files.get(file)
    if (known) this.#files.set(file, { ...known, content, signature })
  }

  /**
   * Applies files that were read together (`undefined` for removed files), and emits the changes. `at` is when they were first seen. If
   * not `isFinal`, other files are still to be read, which may define objects that disappeared here; their removal is emitted by the next
   * final call.
   */
  apply(readings: ReadonlyMap<string, Reading | undefined>, at: number, isFinal: boolean): void {
    const touched = new Set(isFinal ? this.#leaving : [])
    if (isFinal) this.#leaving.clear()
    // Computed for all files first, because an object that is spoilt in one file may have its last good state in another of them.
    const known = [...readings].map(([file, reading]) => [file, reading && this.#known(this.#files.get(file), reading)] as const)
    for (const [file, reading] of readings) this.#listener.read?.(file, reading?.parsed)
    const unusableBefore = new Set<string>()
    for (const [file, now] of known) {
      const before = this.#files.get(file)
      for (const key of before?.unusable ?? []) unusableBefore.add(key)
      for (const key of before?.objects.keys() ?? []) {
        touched.add(key)
        this.#define(
          key,
          this.#definersOf(key).filter((other) => other !== file),
        )
      }
      for (const key of now?.objects.keys() ?? []) {
        touched.add(key)
        this.#define(key, [...this.#definersOf(key), file])
      }
      this.#metrics.invalid.inc((now?.faults ?? 0) - (before?.faults ?? 0))
      if (now) this.#files.set(file, now)
      else this.#files.delete(file)
    }
    for (const key of touched) this.#updateDefinition(key, at, isFinal)
    for (const key of unusableBefore) if (!this.has(key)) this.#emit(key, undefined, at)
  }

  /** The files that define an object. */
  #definersOf(key: string): readonly string[] {
    const definers = this.#definers.get(key)
    return definers === undefined ? [] : typeof definers === 'string' ? [definers] : [...definers]
  }

  /** Stores which files define an object. */
  #define(key: string, files: readonly string[]): void {
    const [first, ...others] = files
    if (first === undefined) this.#definers.delete(key)
    else this.#definers.set(key, others.length === 0 ? first : new Set(files))
  }

  /** Determines the definition in force of one object, and emits it if it changed. */
  #updateDefinition(key: string, at: number, isFinal: boolean): void {
    const files = this.#definersOf(key)
    const before = this.#inForce.get(key)
    const now = this.#effectiveDefinition(key, files)
    if (now === before) return
    if (now === undefined && !isFinal) {
      this.#leaving.add(key)
      return
    }
    if (now) this.#inForce.set(key, now)
    else this.#inForce.delete(key)
    const event = before ? (now ? 'update' : 'delete') : 'add'
    this.#metrics.events.inc({ type: (now ?? before)?.kind ?? '', event })
    this.#changes.debug(`${event} ${key} of ${(now ?? before)?.place}`)
    this.#emit(key, now, at)
  }

  /**
   * The definition in force of an object that some files define: that of the first file by path; for a policy with conflicting
   * definitions, the strictest that they may mean.
   */
  #effectiveDefinition(key: string, files: readonly string[]): FileObject | undefined {
    const defined = files.flatMap((file) => {
      const known = this.#files.get(file)
      const isBorrowed = files.length > 1 && known?.borrowed.has(key)
      const held = isBorrowed ? known?.borrowed.get(key) : known?.objects.get(key)
      return known && held ? [{ name: known.name, rank: known.rank ?? 0, held }] : []
    })
    if (defined.length < 2) {
      this.#reportedRepeats.delete(key)
      return defined[0]?.held
    }
    defined.sort((one, other) => one.rank - other.rank || compare(one.name, other.name))
    const [first, ...others] = defined
    const names = defined.map(({ name }) => name).join(', ')
    const all = defined.map(({ held }) => held).filter((held): held is ConfigObject => !isSecret(held))
    const [one, ...rest] = all
    const counts =
      one && isPolicyKind(one.kind) && !this.#optOuts.has('file-readability')
        ? contest([one, ...rest], `${names} define it differently`)
        : first?.held
    const isContested = counts !== first?.held
    const state = `${isContested ? 'otherwise' : ''} ${names}`
    if (this.#reportedRepeats.get(key) !== state) {
      this.#reportedRepeats.set(key, state)
      for (const { held } of others)
        this.#listener
          .log('validation')
          .warn(
            `${key} in ${held.place} is ignored: ${first?.name} already defines it${isContested ? ' differently; until the definitions agree, the workloads that one of them selects are guarded by the strictest policy that they could mean' : ''}`,
          )
    }
    // Reuses the previous object for equal definitions, so that it is not emitted again.
    const before = this.#inForce.get(key)
    return isContested && before && !isSecret(before) && JSON.stringify(before) === JSON.stringify(counts) ? before : counts
  }

  /** The state of a file after a reading. */
  #known(before: KnownFile | undefined, { parsed, ...reading }: Reading): KnownFile {
    const objects = new Map<string, FileObject>([...parsed.objects, ...parsed.secrets].map((object) => [configKey(object), object]))
    const found = new Set(objects.keys())
    const isUnclear = parsed.faults.some(({ mayBe }) => mayBe !== undefined)
    const { doubtful, unusable } = this.#staying(before, parsed, found)
    const problems: string[] = []
    const faulty = new Map<string, string>()
    const report = (level: 'error' | 'warn', fault: DocumentFault, following?: string) => {
      const place = placeOf(fault.file, fault.document)
      faulty.set(fault.key ?? place, place)
      const text = problemText(fault, following)
      if (problems.length < maxProblems) problems.push(text)
      this.#listener.log('validation')[level](text)
    }
    const borrowed = new Map([...(before?.borrowed ?? [])].filter(([key]) => !found.has(key)))
    for (const [key, object] of doubtful) objects.set(key, object)
    for (const fault of parsed.faults) {
      const { key } = fault
      this.#metrics.rejected.inc({ kind: key === undefined ? 'unknown' : kindOfKey(key) })
      if (key === undefined || found.has(key)) {
        report('error', fault, key === undefined ? unidentified(doubtful.size > 0, 'fault' in reading.content) : overruled(objects.get(key)))
        continue
      }
      const lastGood = this.#lastGood(before, key)
      // Where the name is not certain, the object is one of those of its kind that stay.
      const isKept = !lastGood && fault.mayBe !== undefined && [...doubtful.values()].some(({ kind }) => kind === fault.mayBe)
      const standIn = lastGood || isKept ? undefined : parsed.standIns.get(key)
      for (const kept of [lastGood, standIn]) if (kept) objects.set(key, kept)
      if (lastGood && before?.objects.get(key) !== lastGood) borrowed.set(key, parsed.standIns.get(key))
      if (!isKept) unusable.add(key)
      report('error', fault, isKept ? 'objects of this kind that the file defined before stay in force' : consequence(lastGood, standIn))
    }
    const foreign = foreignIn(parsed)
    if (foreign !== '' && foreign !== before?.foreign)
      this.#listener.log('validation').info(`${reading.name}: ignored, not configuration of this control plane: ${foreign}`)
    for (const warning of parsed.warnings) report('warn', warning)
    for (const key of objects.keys()) unusable.delete(key)
    this.#reportMended(before, reading.name, faulty, parsed)
    const unknown = before && before.unknown === undefined ? undefined : unknownIn(parsed)
    return {
      ...reading,
      faults: parsed.faults.length,
      problems: problems.length > 0 ? problems : none,
      foreign,
      faulty: faulty.size > 0 ? faulty : nothingFaulty,
      objects,
      unusable: unusable.size > 0 ? unusable : noKeys,
      isUnclear,
      unknown,
      borrowed: borrowed.size > 0 ? borrowed : noObjects,
    }
  }

  /** Logs what had a fault or a warning and is there without one now. What is gone from the file is not mended. */
  #reportMended(before: KnownFile | undefined, name: string, faulty: ReadonlyMap<string, string>, parsed: ParsedFile): void {
    if (!before || before.faulty.size === 0) return
    const found = new Set<string>()
    // A document whose object was not known is mended where its place has an object that was not in the file before.
    for (const object of [...parsed.objects, ...parsed.secrets]) {
      const key = configKey(object)
      found.add(key)
      if (!before.objects.has(key)) found.add(object.place)
    }
    const mended = [...before.faulty].filter(([what, place]) => !faulty.has(what) && (found.has(what) || found.has(place)))
    const { info } = this.#listener.log('validation')
    for (const [what, place] of mended.slice(0, mostMended))
      info(`${place}${what === place ? '' : `, ${what}`}: mended, what was wrong with it before is resolved`)
    if (mended.length > mostMended) info(`${name}: ${count(mended.length - mostMended, 'more document')} mended`)
  }

  /**
   * The objects of a file that stay because an unreadable document may define them: of any kind if its kind is unknown, else of its kind
   * if its name is not certain. `unusable` are the unusable ones among them.
   */
  #staying(before: KnownFile | undefined, { faults }: ParsedFile, found: ReadonlySet<string>) {
    const kinds = new Set(faults.flatMap(({ mayBe }) => mayBe ?? []))
    const certain = new Set(faults.flatMap(({ key, mayBe }) => (mayBe === undefined ? (key ?? []) : [])))
    const known = new Set(faults.flatMap(({ key }) => key ?? []))
    const mayStay = (key: string) => !found.has(key) && !certain.has(key) && (kinds.has('anything') || kinds.has(kindOfKey(key)))
    const doubtful = new Map([...(before?.objects ?? [])].filter(([key, object]) => mayStay(key) && !isNameless(object.name)))
    // If every uncertain document has the key of a known object, it is that object and no other of its kind.
    if (
      !kinds.has('anything') &&
      [...faults].every(({ key = '', mayBe }) => mayBe === undefined || before?.objects.has(key) || this.#inForce.has(key))
    )
      for (const key of doubtful.keys()) if (!known.has(key)) doubtful.delete(key)
    return { doubtful, unusable: new Set([...(before?.unusable ?? [])].filter(mayStay)) }
  }

  /** The last good state of an object: in this file, or in the file whose definition is in force. */
  #lastGood(before: KnownFile | undefined, key: string): FileObject | undefined {
    if (this.#isDropped(key)) return undefined
    return [before?.objects.get(key), this.#inForce.get(key)].find((held) => held !== undefined && (isSecret(held) || !isStandIn(held)))
  }

  /** Whether the state that an object had is not kept when it cannot be used any more. Without a policy more would be allowed. */
  #isDropped(key: string): boolean {
    return this.#dropsInvalid && !isPolicyKind(kindOfKey(key))
  }

  /** Emits an object that was added, changed or removed. */
  #emit(key: string, object: FileObject | undefined, at: number): void {
    if (isSecretKey(key)) this.#listener.secret(key, isSecret(object) ? object : undefined)
    else if (!isSecret(object)) this.#listener.emit(eventOf(key, object, at))
  }
}

/** Describes a fault with its consequence, or a warning, whose reason contains the consequence. */
function problemText({ file, document, key, path, reason }: DocumentFault, following: string | undefined): string {
  const object = key === undefined ? '' : `, ${key}`
  const field = path === '' ? '' : `, field ${path}`
  return `${placeOf(file, document)}${object}${field}: ${reason}${following === undefined ? '' : `; ${following}`}`
}

/** Lists the documents of a file that are not mesh configuration. */
function foreignIn({ foreign }: ParsedFile): string {
  const kinds = [...foreign].map(([kind, count]) => `${kind} (${count})`)
  return kinds.slice(0, 20).join(', ') + (kinds.length > 20 ? ` and ${count(kinds.length - 20, 'more kind')}` : '')
}

/** Why a file may hold objects of unknown kind. */
function unknownIn({ faults }: ParsedFile): string | undefined {
  const fault = faults.find(({ mayBe }) => mayBe === 'anything')
  return fault && problemText(fault, undefined)
}

const isSecret = (object: FileObject | undefined): object is GatewaySecret => object?.kind === 'Secret'
const isSecretKey = (key: string): boolean => kindOfKey(key) === 'Secret'

/**
 * The event for an object. A stand-in must not replace a last good state that an earlier incarnation of this actor emitted, unless it
 * stands for conflicting definitions.
 */
function eventOf(key: string, object: ConfigObject | undefined, at: number): SourceEvent {
  const isKept = object && isStandIn(object) && !object.spec.isContested
  return isKept ? { type: 'ConfigUnusable', key, standIn: object, at } : { type: 'ConfigChanged', key, object, at }
}

/**
 * The consequence of a fault of a document whose object is not known. `mayStay`: whether objects of the file stay because of it.
 * `isUnreadable`: the file could not be read.
 */
function unidentified(mayStay: boolean, isUnreadable: boolean): string {
  if (isUnreadable) return mayStay ? 'the objects of the file stay in force' : 'no object of the file is in force'
  return mayStay
    ? 'objects that the file defined before and does not define now stay in force, since this document may define them'
    : 'the document is left out'
}

/** The consequence of a fault of one of several definitions of an object in a file. `counting` is the definition in force. */
function overruled(counting: FileObject | undefined): string {
  return counting && !isSecret(counting) && isStandIn(counting)
    ? 'until the definitions agree, the workloads that one of them selects are guarded by the strictest policy that they could mean'
    : `the definition in ${counting?.place} counts`
}

/** The consequence of a fault of an object. */
function consequence(lastGood: FileObject | undefined, standIn: ConfigObject | undefined): string {
  if (lastGood) return 'its last good state stays'
  return standIn
    ? 'until it is valid, the workloads that it selects are guarded by the strictest policy that it could mean'
    : 'it is left out until it is valid'
}
