/**
 * What the files of a directory hold, and what of it counts. The last good state goes by object: one that cannot be used stays as it was, in
 * whichever file and at whichever place it stands now. An object that is gone from all files is gone.
 */
import type { ConfigObject } from '../../../../protocols/data.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { GatewaySecret } from '../../../../protocols/messages/secrets.ts'
import { configKey } from '../../../../src/config/kinds.ts'
import type { OptOuts } from '../../../../src/config/opt-outs.ts'
import type { DocumentFault, ParsedFile } from '../../../../src/config/parse.ts'
import { isPolicyKind } from '../../../../src/config/recognise.ts'
import { contest, isStandIn } from '../../../../src/config/stand-in.ts'
import { compare } from '../../../../src/model/order.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import type { Logger } from '../../../runtime/logger.ts'
import { Counter, Gauge, type Registry } from '../../../runtime/metrics.ts'
import type { Content } from './file-content.ts'

/** What a file may hold. Secrets are told to those who deliver them, and not with the objects. */
export type Held = ConfigObject | GatewaySecret

/** Who hears of what the files hold. */
export interface HeldListener {
  readonly log: Logger
  /** Hears of every object that comes, changes or goes, except Secrets. */
  tell(event: SourceEvent): void
  /** Hears of every Secret that comes, changes or goes, `Secret/<namespace>/<name>`. */
  secret(key: string, secret: GatewaySecret | undefined): void
}

/** A file that was read. */
export interface Reading {
  /** Its path below the directory, for messages and for the order in which files count. */
  readonly name: string
  readonly content: Content
  /** Of the file when it was read; an audit reads only files of which it differs, and those that could not be read. */
  readonly signature: string
  readonly parsed: ParsedFile
}

/** What is known of a file. */
export interface KnownFile extends Omit<Reading, 'parsed'> {
  /** Of its documents. */
  readonly faults: number
  /** By key, with what stays of earlier readings and what stands in. */
  readonly objects: ReadonlyMap<string, Held>
  /** Objects that are there, cannot be used and have no last good state that is known here. */
  readonly unusable: ReadonlySet<string>
  /** Whether it may hold objects that cannot be told. */
  readonly isUnclear: boolean
  /** Why it may hold what nobody can tell the kind of, if it has been so since it was first read: then nothing is known that could stay. */
  readonly unknown: string | undefined
  /** Its documents that are no business of ours, for the log. */
  readonly foreign: string
  /** Objects that cannot be used here and whose last good state another file defined, with what stands in for them where it still does. */
  readonly borrowed: ReadonlyMap<string, ConfigObject | undefined>
}

/** The objects of all files. */
export class HeldObjects {
  readonly #listener: HeldListener
  readonly #optOuts: OptOuts
  readonly #metrics
  readonly #files = new Map<string, KnownFile>()
  /** Which files define an object, for each that is defined. */
  readonly #definers = new Map<string, Set<string>>()
  /** What counts, as it was told. */
  readonly #told = new Map<string, Held>()
  /** Objects that are gone from the file that defined them, of which it is not known yet whether another file defines them now. */
  readonly #leaving = new Set<string>()
  /** Objects of which it was said that several files define them, with the files and whether they disagree. */
  readonly #repeated = new Map<string, string>()

  constructor(register: Registry, optOuts: OptOuts, listener: HeldListener) {
    this.#optOuts = optOuts
    this.#listener = listener
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

  /** All objects, as they were told, and those that are there and cannot be used: whoever heard of those before me keeps them. */
  *events(): Generator<SourceEvent> {
    const at = monotonicMs()
    for (const [key, object] of this.#told) if (!isSecret(object)) yield eventOf(key, object, at)
    for (const { unusable } of this.#files.values())
      for (const key of unusable) if (!this.#told.has(key) && !isSecretKey(key)) yield { type: 'ConfigUnusable', key, standIn: undefined, at }
  }

  /** Whether every object of every file can be told; otherwise one that was not told may be there all the same. */
  get isComplete(): boolean {
    return this.#leaving.size === 0 && ![...this.#files.values()].some(({ isUnclear }) => isUnclear)
  }

  /** Whether some file has an object, usable or not. */
  has(key: string): boolean {
    return this.#told.has(key) || [...this.#files.values()].some(({ unusable }) => unusable.has(key))
  }

  /** Files, others than those that were read, that define objects which those define too. */
  sharers(readings: ReadonlyMap<string, Reading | undefined>): Set<string> {
    const files = new Set<string>()
    for (const reading of readings.values())
      for (const object of reading?.parsed.objects ?? [])
        for (const file of this.#definers.get(configKey(object)) ?? []) if (!readings.has(file)) files.add(file)
    return files
  }

  /** Whether a policy is in none of the files any more that defined it, as far as these were read. */
  losesPolicy(readings: ReadonlyMap<string, Reading | undefined>): boolean {
    const found = new Set([...readings.values()].flatMap((reading) => reading?.parsed.objects.map(configKey) ?? []))
    const isLost = (key: string) =>
      isPolicyKind(key.slice(0, key.indexOf('/'))) && !found.has(key) && [...(this.#definers.get(key) ?? [])].every((file) => readings.has(file))
    return [...readings.keys()].some((file) => [...(this.#files.get(file)?.objects.keys() ?? [])].some(isLost))
  }

  /** Policies that cannot be used and are stood in for, with the reasons. */
  standIns(): { readonly key: string; readonly origin: string; readonly reason: string }[] {
    return [...this.#told].flatMap(([key, object]) =>
      !isSecret(object) && isStandIn(object) ? [{ key, origin: object.origin, reason: object.spec.invalid }] : [],
    )
  }

  /** A file was read and holds what it held. */
  unchanged(file: string, content: Content, signature: string): void {
    const known = this.#files.get(file)
    if (known) this.#files.set(file, { ...known, content, signature })
  }

  /**
   * Files were read at one time, `undefined` of those that are gone; tells what changed since `at`. Unless it is final, another file may yet define what is
   * gone, and that it is gone is told by the next call that is.
   */
  apply(readings: ReadonlyMap<string, Reading | undefined>, at: number, isFinal: boolean): void {
    const touched = new Set(isFinal ? this.#leaving : [])
    if (isFinal) this.#leaving.clear()
    // Before one of them takes effect: what was good in one file may be spoilt in another.
    const known = [...readings].map(([file, reading]) => [file, reading && this.#known(this.#files.get(file), reading)] as const)
    const unusableBefore = new Set<string>()
    for (const [file, now] of known) {
      const before = this.#files.get(file)
      for (const key of before?.unusable ?? []) unusableBefore.add(key)
      for (const key of before?.objects.keys() ?? []) {
        touched.add(key)
        this.#definers.get(key)?.delete(file)
      }
      for (const key of now?.objects.keys() ?? []) {
        touched.add(key)
        const definers = this.#definers.get(key)
        if (definers) definers.add(file)
        else this.#definers.set(key, new Set([file]))
      }
      this.#metrics.invalid.inc((now?.faults ?? 0) - (before?.faults ?? 0))
      if (now) this.#files.set(file, now)
      else this.#files.delete(file)
    }
    for (const key of touched) this.#settle(key, at, isFinal)
    for (const key of unusableBefore) if (!this.has(key)) this.#tell(key, undefined, at)
  }

  /** Works out what counts of an object, and tells it. */
  #settle(key: string, at: number, isFinal: boolean): void {
    const files = [...(this.#definers.get(key) ?? [])]
    if (files.length === 0) this.#definers.delete(key)
    const before = this.#told.get(key)
    const now = this.#counting(key, files)
    if (now === before) return
    if (now === undefined && !isFinal) {
      this.#leaving.add(key)
      return
    }
    if (now) this.#told.set(key, now)
    else this.#told.delete(key)
    this.#metrics.events.inc({ type: (now ?? before)?.kind ?? '', event: before ? (now ? 'update' : 'delete') : 'add' })
    this.#tell(key, now, at)
  }

  /** What counts of an object that some files define: the first file by path, unless it is a policy and they disagree. */
  #counting(key: string, files: readonly string[]): Held | undefined {
    const defined = files.flatMap((file) => {
      const known = this.#files.get(file)
      const isBorrowed = files.length > 1 && known?.borrowed.has(key)
      const held = isBorrowed ? known?.borrowed.get(key) : known?.objects.get(key)
      return known && held ? [{ name: known.name, held }] : []
    })
    if (defined.length < 2) {
      this.#repeated.delete(key)
      return defined[0]?.held
    }
    defined.sort((one, other) => compare(one.name, other.name))
    const [first, ...others] = defined
    const names = defined.map(({ name }) => name).join(', ')
    const all = defined.map(({ held }) => held).filter((held): held is ConfigObject => !isSecret(held))
    const [one, ...rest] = all
    const counts =
      one && isPolicyKind(one.kind) && !this.#optOuts.has('file-readability')
        ? contest([one, ...rest], `${names} define it, and not alike`)
        : first?.held
    const isContested = counts !== first?.held
    const state = `${isContested ? 'otherwise' : ''} ${names}`
    if (this.#repeated.get(key) !== state) {
      this.#repeated.set(key, state)
      for (const { held } of others)
        this.#listener
          .log('validation')
          .warn(
            `${key} in ${held.origin} is left out: ${first?.name} already defines it${isContested ? ', otherwise; as long as they disagree, the workloads that one of them selects are guarded by the strictest they could mean' : ''}`,
          )
    }
    // The same object for the same definitions, so that it is not told again.
    const before = this.#told.get(key)
    return isContested && before && !isSecret(before) && JSON.stringify(before) === JSON.stringify(counts) ? before : counts
  }

  /** What is known of a file after a reading. */
  #known(before: KnownFile | undefined, { parsed, ...reading }: Reading): KnownFile {
    const objects = new Map<string, Held>([...parsed.objects, ...parsed.secrets].map((object) => [configKey(object), object]))
    const found = new Set(objects.keys())
    const isUnclear = parsed.faults.some(({ mayBe }) => mayBe !== undefined)
    const { doubtful, unusable } = this.#staying(before, parsed, found)
    const borrowed = new Map([...(before?.borrowed ?? [])].filter(([key]) => !found.has(key)))
    for (const [key, object] of doubtful) objects.set(key, object)
    for (const fault of parsed.faults) {
      const { key } = fault
      this.#metrics.rejected.inc({ kind: key?.split('/')[0] ?? 'unknown' })
      if (key === undefined || found.has(key)) {
        const stays = key === undefined && doubtful.size > 0 ? '; what the file said before stays, except where it says otherwise' : ''
        this.#report('error', fault, stays)
        continue
      }
      const lastGood = this.#lastGood(before, key)
      // Where the name is not certain, the objects that stay are those that it may be of.
      const isKept = !lastGood && fault.mayBe !== undefined && [...doubtful.values()].some(({ kind }) => kind === fault.mayBe)
      const standIn = lastGood || isKept ? undefined : parsed.standIns.get(key)
      for (const kept of [lastGood, standIn]) if (kept) objects.set(key, kept)
      if (lastGood && before?.objects.get(key) !== lastGood) borrowed.set(key, parsed.standIns.get(key))
      if (!isKept) unusable.add(key)
      this.#report('error', fault, isKept ? '; what the file said before of this kind stays' : consequence(lastGood, standIn))
    }
    const foreign = foreignIn(parsed)
    if (foreign !== '' && foreign !== before?.foreign) this.#listener.log('validation').info(`${reading.name}: left alone: ${foreign}`)
    for (const warning of parsed.warnings) this.#report('warn', warning, '')
    for (const key of objects.keys()) unusable.delete(key)
    const unknown = before && before.unknown === undefined ? undefined : unknownIn(parsed)
    return { ...reading, faults: parsed.faults.length, foreign, objects, unusable, isUnclear, unknown, borrowed }
  }

  /** What stays of a file because a document of it may be it: of any kind, or of those that were recognised without a certain name. */
  #staying(before: KnownFile | undefined, { faults }: ParsedFile, found: ReadonlySet<string>) {
    const kinds = new Set(faults.flatMap(({ mayBe }) => mayBe ?? []))
    const certain = new Set(faults.flatMap(({ key, mayBe }) => (mayBe === undefined ? (key ?? []) : [])))
    const known = new Set(faults.flatMap(({ key }) => key ?? []))
    const mayStay = (key: string) => !found.has(key) && !certain.has(key) && (kinds.has('anything') || kinds.has(key.slice(0, key.indexOf('/'))))
    const doubtful = new Map([...(before?.objects ?? [])].filter(([key, object]) => mayStay(key) && !isNameless(object)))
    // A document whose key was recognised and is known is that object, and not another one of its kind.
    if (!kinds.has('anything') && [...faults].every(({ key = '', mayBe }) => mayBe === undefined || before?.objects.has(key) || this.#told.has(key)))
      for (const key of doubtful.keys()) if (!known.has(key)) doubtful.delete(key)
    return { doubtful, unusable: new Set([...(before?.unusable ?? [])].filter(mayStay)) }
  }

  /** The last good state of an object: in this file, or in whichever file it counts until now. */
  #lastGood(before: KnownFile | undefined, key: string): Held | undefined {
    return [before?.objects.get(key), this.#told.get(key)].find((held) => held !== undefined && (isSecret(held) || !isStandIn(held)))
  }

  /** Tells of an object that is there now as said, or gone. */
  #tell(key: string, object: Held | undefined, at: number): void {
    if (isSecretKey(key)) this.#listener.secret(key, isSecret(object) ? object : undefined)
    else if (!isSecret(object)) this.#listener.tell(eventOf(key, object, at))
  }

  #report(level: 'error' | 'warn', fault: DocumentFault, suffix: string): void {
    const field = fault.path === '' ? '' : `, field ${fault.path}`
    const key = fault.key === undefined ? '' : `, ${fault.key}`
    this.#listener.log('validation')[level](`${fault.file}, document ${fault.document}${key}${field}: ${fault.reason}${suffix}`)
  }
}

/** Which documents of a file are no business of ours. */
function foreignIn({ foreign }: ParsedFile): string {
  const kinds = [...foreign].map(([kind, count]) => `${kind} (${count})`)
  return kinds.slice(0, 20).join(', ') + (kinds.length > 20 ? ` and ${kinds.length - 20} more kinds` : '')
}

/** Why a file may hold what nobody can tell the kind of. */
function unknownIn({ faults }: ParsedFile): string | undefined {
  const fault = faults.find(({ mayBe }) => mayBe === 'anything')
  return fault && `${fault.file}, document ${fault.document}: ${fault.reason}`
}

const isSecret = (object: Held | undefined): object is GatewaySecret => object?.kind === 'Secret'
const isSecretKey = (key: string): boolean => key.startsWith('Secret/')
/** Whether a stand-in was given its name by its place. */
const isNameless = ({ name }: Held): boolean => name.startsWith('(')

/** What is told of an object; a stand-in must not take the place of a last good state that was told by another incarnation, unless two contest it. */
function eventOf(key: string, object: ConfigObject | undefined, at: number): SourceEvent {
  const isKept = object && isStandIn(object) && !object.spec.isContested
  return isKept ? { type: 'ConfigUnusable', key, standIn: object, at } : { type: 'ConfigChanged', key, object, at }
}

/** What follows from a fault, for the log. */
function consequence(lastGood: Held | undefined, standIn: ConfigObject | undefined): string {
  if (lastGood) return '; its last good state stays'
  return standIn ? '; until it is valid, the workloads that it selects are guarded by the strictest it could mean' : ''
}
