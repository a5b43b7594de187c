/**
 * The part of a cluster's watcher that follows configuration objects (docs/operation.md, F18 to F21): the CustomResourceDefinitions of the
 * mesh's kinds, and of each the objects, as the files of a directory are: what is wrong costs its own object only.
 */
import type { ConfigObject } from '../../../../protocols/data.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import { kinds } from '../../../../src/config/kinds.ts'
import type { OptOuts } from '../../../../src/config/opt-outs.ts'
import { type ParsedFile, parseConfigDocument } from '../../../../src/config/parse.ts'
import { PatternChecks, refusedPatterns } from '../../../../src/config/patterns.ts'
import { isMapping, mapping, type Report, textOf } from '../../../../src/config/shape.ts'
import { count } from '../../../../src/model/counts.ts'
import type { MeshNames } from '../../../../src/names/mesh-names.ts'
import { type MeshDefinition, meshDefinition } from '../../../../src/orchestrator/mesh-definitions.ts'
import { groupResource, type Resource } from '../../../../src/orchestrator/resources.ts'
import { keyAndVersion } from '../../../../src/orchestrator/responses.ts'
import { monotonicMs, threadCpuMs } from '../../../runtime/clock.ts'
import type { Peer } from '../../../runtime/link.ts'
import type { Logger } from '../../../runtime/logger.ts'
import { Counter, gaugesOf, type MetricRegistry } from '../../../runtime/metrics.ts'
import { after, type Timer } from '../../../runtime/timers.ts'
import { DefinedObjects, type Reading } from '../files/defined-objects.ts'
import type { FilesPage } from '../files/file-watcher.ts'
import { ValidationMetrics } from '../files/validation-metrics.ts'
import type { SeenReports } from '../seen-reports.ts'
import { measureSource } from '../source-metrics.ts'
import { ObjectReports, type SeenObject, seenObject } from './object-reports.ts'
import { RegistrationReports } from './registration-reports.ts'
import { SlowObjects } from './slow-objects.ts'
import type { Follower, WatcherPart, Watching } from './watcher-part.ts'

/** Maximum number of faults and warnings on the page. */
const maxProblems = 1000
/**
 * An object whose regular expressions take longer to check is parsed on the pool; how long one may take there, and how long a start waits for all
 * of those, in milliseconds.
 */
export const slow = { patternsMs: 10, deadlineMs: 10_000, startMs: 60_000 }

/** Dependencies and settings of {@link ConfigPart}. */
export interface ConfigPartSettings {
  readonly names: MeshNames
  readonly optOuts: OptOuts
  readonly revision: string
  /** Whether workloads register themselves, so that the registrar is told of their groups and entries. */
  readonly registers: boolean
  /** Whether an object that cannot be used is removed, unless it is a policy (`PILOT_ENABLE_CRD_VALIDATION`). */
  readonly dropsInvalid: boolean
  /** Whether the process becomes ready without objects that cannot be listed. */
  readonly allowUnreadable: boolean
  /** The source as objects name it, and the id of its cluster. */
  readonly source: string
  readonly cluster: string
  /** Whether a status writer may be linked, which is told of the objects (`PILOT_ENABLE_STATUS`, `PILOT_ENABLE_ANALYSIS`). */
  readonly hasStatus: boolean
  /** Tells the analyzer what cannot be used; undefined: there is none (`PILOT_ENABLE_ANALYSIS`). */
  readonly seen?: SeenReports | undefined
  readonly log: Logger
  readonly metrics: MetricRegistry
  readonly send: (event: SourceEvent) => void
  readonly following: Watching
  /** How long the regular expressions of an object may take on the pool, and a start may wait for them, in milliseconds, if not {@link slow}. */
  readonly slowMs?: number
  readonly startMs?: number
}

type Mapping = Readonly<Record<string, unknown>>

/** The kinds of which the registrar is told. */
const registrationKinds: ReadonlySet<string> = new Set(['WorkloadEntry', 'WorkloadGroup'])

/** An object that was parsed (`content`: what the faults follow from, where there are any; {@link contentOf}), or that takes too long to be parsed on this thread. */
type Read = { readonly seen: SeenObject | undefined; readonly value: Mapping | undefined } & (
  | { readonly parsed: ParsedFile; readonly content: string | undefined }
  | { readonly slow: Mapping }
)

/** A kind that is followed. */
interface FollowedObjects {
  readonly definition: MeshDefinition
  readonly resource: Resource
  /** Its objects by key, as {@link DefinedObjects} names what they come from. */
  readonly objects: Map<string, string>
  /** The keys of the objects that the first list has told of so far; undefined: it is complete. */
  mentioned: Set<string> | undefined
}

/** Follows the configuration of a cluster. */
export class ConfigPart implements WatcherPart {
  readonly followers: readonly Follower[]
  readonly #settings: ConfigPartSettings
  readonly #defined: DefinedObjects
  readonly #validation: ValidationMetrics
  readonly #slow: SlowObjects
  /** Undefined: nobody is told of the objects, and nothing is kept for it. */
  readonly #reports: ObjectReports | undefined
  readonly #registrations: RegistrationReports
  /** The objects that cannot be used, by name: what their faults follow from ({@link contentOf}), and what was read of it. */
  readonly #refused = new Map<string, { readonly content: string; readonly parsed: ParsedFile }>()
  #overdue: Timer | undefined
  #isOverdue = false
  /** By the key of the definition. */
  readonly #kinds = new Map<string, FollowedObjects>()
  /** What was logged of objects of other revisions, and of definitions, which is said once. */
  readonly #said = new Set<string>()
  readonly #metrics

  constructor(settings: ConfigPartSettings) {
    const { names, optOuts, metrics, log, send, source } = settings
    this.#settings = settings
    this.#defined = new DefinedObjects(metrics, optOuts, { log, emit: send, secret: () => undefined }, settings.dropsInvalid)
    this.#reports = settings.hasStatus ? new ObjectReports(log('status')) : undefined
    this.#registrations = new RegistrationReports(settings.registers ? names.domain : undefined)
    this.#validation = new ValidationMetrics(metrics, names.domain)
    this.#slow = new SlowObjects(() => settings.following.mayBeComplete(), settings.slowMs ?? slow.deadlineMs)
    const counter = (name: string, help: string) => new Counter({ name, help, registers: [metrics] })
    this.#metrics = {
      converted: counter('galley_source_orch_dynamic_converter_success_total', 'configuration objects of the orchestrator that were read'),
      failed: counter('galley_source_orch_dynamic_converter_failure_total', 'configuration objects of the orchestrator that cannot be used'),
      errors: counter('pilot_total_orch_object_errors', 'the same'),
    }
    gaugesOf(metrics)('pilot_orch_object_errors', 'configuration objects of the orchestrator that cannot be used at present', () => this.#unusable)
    measureSource(source, { size: () => this.#defined.files.size, isComplete: () => this.#isComplete }, metrics)
    this.followers = [
      {
        resource: groupResource('CustomResourceDefinition', 'apiextensions.k8s.io', 'v1', 'customresourcedefinitions'),
        ...this.#awaited,
        cut: (value) => ({ object: meshDefinition(value, names), faults: [] }),
        set: (key, definition) => this.#define(key, definition as MeshDefinition | undefined),
        listed: () => this.#sayAbsent(),
      },
    ]
  }

  get #awaited() {
    return { isAwaited: true, mayBeUnread: this.#settings.allowUnreadable }
  }

  replay(): void {
    for (const event of this.#defined.events()) this.#settings.send(event)
  }

  settled(): void {
    if (!this.#settings.following.isListed) return
    this.#reports?.listed()
    this.#settings.seen?.complete()
    this.#registrations.listed()
  }

  linked(peer: Peer): void {
    this.#reports?.linked(peer)
    this.#settings.seen?.linked(peer)
    this.#registrations.linked(peer)
  }

  unlinked(peer: Peer): void {
    this.#reports?.unlinked(peer)
    this.#settings.seen?.unlinked(peer)
    this.#registrations.unlinked(peer)
  }

  /** Nothing is served before it is known what each object means: it may be a policy. */
  waitsFor(): readonly string[] {
    const { size } = this.#slow
    return size > 0 && !this.#isOverdue
      ? [`cluster ${this.#settings.cluster}: regular expressions of ${count(size, 'object')} are being checked`]
      : []
  }

  close(): void {
    this.#slow.close()
    this.#overdue?.cancel()
  }

  /** Objects of one namespace must not keep the process from being ready: those that are not parsed yet count as invalid until they are. */
  #goOn(): void {
    this.#isOverdue = true
    this.#slow.refuse()
    this.#settings.following.mayBeComplete()
  }

  /** What the pages say of this source. */
  page(): FilesPage {
    const { source, following } = this.#settings
    const problems = this.#defined.files
    return {
      waiting: following.isListed ? [] : following.troubles,
      unreadable: following.troubles.map((reason) => ({ path: source, reason })),
      problems: [...problems.values()].flatMap((known) => known.problems).slice(0, maxProblems),
      sources: [{ source, directory: '', files: this.#defined.files.size, isComplete: this.#isComplete }],
      standIns: this.#defined.standIns(),
    }
  }

  get #isComplete(): boolean {
    const { isListed, troubles } = this.#settings.following
    return isListed && troubles.length === 0
  }

  get #unusable(): number {
    let count = 0
    for (const { faults } of this.#defined.files.values()) if (faults > 0) count++
    return count
  }

  #say(level: 'info' | 'warn', line: string): void {
    const text = `cluster ${this.#settings.cluster}: ${line}`
    if (this.#said.has(text)) return
    this.#said.add(text)
    this.#settings.log('source')[level](text)
  }

  /** A definition of a kind of the mesh was added, changed or removed. */
  #define(key: string, definition: MeshDefinition | undefined): void {
    const followed = this.#kinds.get(key)
    if (!definition) {
      if (followed) this.#end(key, followed)
      return
    }
    const { kind, group, plural, version, fault } = definition
    if (version === undefined || fault !== undefined) {
      // Objects that are followed are still there: what ends is at most that they can be read.
      if (!followed && fault !== 'it is not established') this.#say('warn', `${plural}.${group} is not read: ${fault}`)
      return
    }
    const resource = groupResource(kind.name, group, version, plural)
    if (followed?.resource.path === resource.path) return
    if (followed) this.#settings.following.unfollow(followed.resource.path)
    const now: FollowedObjects = { definition, resource, objects: followed?.objects ?? new Map(), mentioned: new Set() }
    this.#kinds.set(key, now)
    this.#settings.following.follow({
      resource,
      ...this.#awaited,
      cut: (value) => ({ object: this.#read(now, value), faults: [] }),
      set: (object, read) => this.#set(now, object, read as Read | undefined),
      listed: () => this.#listed(now),
    })
  }

  /** The definition is gone, and with it, on the server, all objects. */
  #end(key: string, { resource, objects }: FollowedObjects): void {
    const { cluster, following, log } = this.#settings
    this.#kinds.delete(key)
    following.unfollow(resource.path)
    log('source').info(`cluster ${cluster}: ${resource.name} is no longer defined: its objects are removed`)
    for (const name of objects.values()) {
      this.#slow.drop(name)
      this.#gone(name)
    }
    this.#defined.apply(new Map([...objects.values()].map((name) => [name, undefined])), monotonicMs(), true)
  }

  /** The first list of a kind is complete: what an earlier version of it had and this list has not is gone. */
  #listed(followed: FollowedObjects): void {
    const { mentioned, objects } = followed
    if (!mentioned) return
    followed.mentioned = undefined
    for (const key of [...objects.keys()]) if (!mentioned.has(key)) this.#set(followed, key, undefined)
  }

  #sayAbsent(): void {
    const defined = new Set([...this.#kinds.values()].map(({ definition }) => definition.kind.name))
    const absent = [...kinds.values()].filter(({ name }) => !defined.has(name)).map(({ name }) => name)
    const none = defined.size === 0
    if (absent.length > 0)
      this.#say(
        none ? 'warn' : 'info',
        `${none ? 'no kind of the mesh is defined' : `not defined, and not read: ${absent.join(', ')}`} (manifests/crds)`,
      )
  }

  /** Reads an object, within a limit on the time for its regular expressions. */
  #read(followed: FollowedObjects, value: Mapping): Read {
    const isRegistered = this.#settings.registers && registrationKinds.has(followed.definition.kind.name)
    const read = { seen: this.#reports && seenObject(value), value: isRegistered ? value : undefined }
    const [key] = keyAndVersion(value) ?? ['']
    const refused = this.#refused.get(nameOf(followed, key))
    if (refused && refused.content === contentOf(value)) return { ...read, ...refused }
    const patterns = new PatternChecks(slow.patternsMs, threadCpuMs)
    const parsed = this.#parse(followed, value, patterns)
    if (patterns.isExhausted) return { ...read, slow: value }
    return { ...read, parsed, content: parsed.faults.length > 0 ? contentOf(value) : undefined }
  }

  #parse(followed: FollowedObjects, value: Mapping, patterns: NonNullable<Report['patterns']>): ParsedFile {
    const { names, optOuts, revision, source } = this.#settings
    const { place, document } = this.#documentOf(followed, value)
    return this.#ofCluster(value, parseConfigDocument(place, document, names, { patterns, optOuts, revision, source }))
  }

  /** The place of an object, and the object as the document of a file would have it. */
  #documentOf({ definition: { group, version, kind, isAlias }, resource }: FollowedObjects, value: Mapping) {
    const { cluster } = this.#settings
    const { annotations, ...metadata } = isMapping(value.metadata) ? value.metadata : {}
    const own = { ...metadata, ...(annotations === undefined ? {} : { annotations: withoutCopy(annotations) }) }
    const document = { ...value, apiVersion: `${group}/${version}`, kind: kind.name, metadata: own }
    return { place: isAlias ? `cluster ${cluster}, ${resource.name}` : `cluster ${cluster}`, document }
  }

  /** What an object is of in its cluster becomes part of it. */
  #ofCluster(value: Mapping, parsed: ParsedFile): ParsedFile {
    const { uid, resourceVersion } = isMapping(value.metadata) ? value.metadata : {}
    const origin = { cluster: this.#settings.cluster, uid: textOf(uid), resourceVersion: textOf(resourceVersion) }
    const here = <T extends ConfigObject>(object: T): T => ({ ...object, ...origin })
    return { ...parsed, objects: parsed.objects.map(here), standIns: new Map([...parsed.standIns].map(([key, object]) => [key, here(object)])) }
  }

  /** An object was added, changed or removed. */
  #set(followed: FollowedObjects, key: string, read: Read | undefined): void {
    const { objects, mentioned } = followed
    const name = nameOf(followed, key)
    if (!read) {
      objects.delete(key)
      this.#slow.drop(name)
      this.#gone(name)
      return this.#defined.apply(new Map([[name, undefined]]), monotonicMs(), true)
    }
    mentioned?.add(key)
    objects.set(key, name)
    if ('parsed' in read) {
      this.#slow.drop(name)
      return this.#take(followed, name, read, read.parsed, read.content)
    }
    const { names, optOuts, revision, source } = this.#settings
    const { place, document } = this.#documentOf(followed, read.slow)
    this.#overdue ??= after(this.#settings.startMs ?? slow.startMs, () => this.#goOn()).unref()
    this.#slow.add(name, {
      task: { name: place, content: { document }, domain: names.domain, optOuts: [...optOuts].join(','), revision, source },
      refused: (reason) => this.#parse(followed, read.slow, refusedPatterns(reason)),
      parsed: (parsed) => this.#take(followed, name, read, this.#ofCluster(read.slow, parsed), contentOf(read.slow)),
    })
  }

  #gone(name: string): void {
    this.#refused.delete(name)
    this.#settings.seen?.read(name, undefined)
    this.#reports?.removed(name)
    this.#registrations.removed(name)
  }

  /** An object has been parsed. One that cannot be used and of which only the status differs, which is written from here, is not told again. */
  #take({ definition }: FollowedObjects, name: string, { seen, value }: Read, parsed: ParsedFile, content: string | undefined): void {
    if (seen) this.#reports?.read(name, definition, seen, parsed)
    if (this.#refused.get(name)?.parsed === parsed) return
    if (content !== undefined && parsed.faults.length > 0) this.#refused.set(name, { content, parsed })
    else this.#refused.delete(name)
    this.#count(parsed)
    this.#settings.seen?.read(name, parsed)
    if (value) this.#registrations.read(name, definition, value, parsed)
    for (const foreign of parsed.foreign.keys()) this.#say('info', `left out, since it is for another control plane: ${foreign}`)
    const reading: Reading = {
      name,
      // The own form of a group comes before the alias.
      rank: definition.isAlias ? 1 : 0,
      ...{ content: { text: '' }, signature: '' },
      parsed: { ...parsed, foreign: new Map() },
    }
    this.#defined.apply(new Map([[name, reading]]), monotonicMs(), true)
  }

  #count(parsed: ParsedFile): void {
    this.#validation.checked(parsed)
    if (parsed.faults.length === 0) return this.#metrics.converted.inc()
    this.#metrics.failed.inc()
    this.#metrics.errors.inc()
  }
}

/** What an object comes from, for {@link DefinedObjects}. */
const nameOf = ({ resource }: FollowedObjects, key: string): string => `${resource.name} ${key}`

/** What the faults of an object follow from: all but its status, and what the server says of the last write. */
function contentOf({ status: _status, metadata, ...content }: Mapping): string {
  const { resourceVersion: _version, managedFields: _fields, ...own } = mapping(metadata)
  return JSON.stringify({ ...content, metadata: own })
}

/** The annotation in which kubectl keeps a copy of what was applied. It would make equal objects of two groups differ. */
const appliedCopy = 'kubectl.kubernetes.io/last-applied-configuration'

function withoutCopy(annotations: unknown): unknown {
  if (!isMapping(annotations)) return annotations
  const { [appliedCopy]: _copy, ...others } = annotations
  return others
}
