/**
 * The part of a cluster's watcher that follows Secrets for gateways (docs/resources.md, K3 to K12): those of namespaces in which gateways want
 * some, each by a list and watch of its own as long as they are not many. Their content goes to the writers that subscribed to it, and nowhere else.
 */
import type { GatewaySecret, SecretCommand, SecretEvent, SecretReader } from '../../../../protocols/messages/secrets.ts'
import { configKey } from '../../../../src/config/kinds.ts'
import { accountsAnnotation, secretLength, secretSteps } from '../../../../src/config/secret-document.ts'
import type { Fault, Report } from '../../../../src/config/shape.ts'
import { mayReadSecret } from '../../../../src/identity/access.ts'
import type { MeshNames } from '../../../../src/names/mesh-names.ts'
import { coreResource, inNamespaces, type Resource } from '../../../../src/orchestrator/resources.ts'
import { monotonicMs, wallClockMs } from '../../../runtime/clock.ts'
import type { Peer } from '../../../runtime/link.ts'
import type { Logger } from '../../../runtime/logger.ts'
import type { MetricRegistry } from '../../../runtime/metrics.ts'
import { after, type Timer } from '../../../runtime/timers.ts'
import { SecretDelivery, type SecretSummary } from '../secret-delivery.ts'
import type { SeenReports } from '../seen-reports.ts'
import { SecretReaders } from './secret-readers.ts'
import { SeenSecrets } from './seen-secrets.ts'
import { SlowSecrets } from './slow-secrets.ts'
import type { Follower, Following, WatcherPart } from './watcher-part.ts'

/** What the part is made of. */
export interface SecretsParts {
  readonly names: MeshNames
  readonly cluster: string
  /** Whether it is another cluster, whose Secrets are for gateways of that cluster alone. */
  readonly isRemote?: boolean | undefined
  /** The namespaces whose objects are followed; empty: all. */
  readonly namespaces: readonly string[]
  readonly following: Following
  readonly metrics: MetricRegistry
  readonly log: Logger
  /** Tells the analyzer what is there; undefined: there is none (`PILOT_ENABLE_ANALYSIS`). */
  readonly seen?: SeenReports | undefined
  /** Asks the API server whether a service account may list the Secrets of its namespace. Rejects when it cannot decide. */
  mayList(reader: SecretReader): Promise<boolean>
  /** How long a namespace is followed in which no gateway wants Secrets any more, if not {@link lingerMs}. */
  readonly lingerMs?: number
}

/** Types of Secrets that are many, or are credentials of other programs, and that gateways never use. */
const unusedTypes = ['kubernetes.io/service-account-token', 'kubernetes.io/dockerconfigjson', 'helm.sh/release.v1', 'bootstrap.kubernetes.io/token']
const selected = new URLSearchParams({ fieldSelector: unusedTypes.map((type) => `type!=${type}`).join(',') })
const resource = { ...coreResource('Secret', `secrets?${selected}`), name: 'secrets' }
/** The number of namespaces that are followed each by its own list and watch: requests of one connection, of which servers permit a hundred. */
export const mostOwn = 64
/** How long a namespace is followed in which no gateway wants Secrets any more, in milliseconds: gateways connect again. */
const lingerMs = 60_000
/** The shortest time between two times that all namespaces are listed, where more than {@link mostOwn} want some, in milliseconds. */
const listMs = 2000
/** The longest values of a Secret that is read at once, as they are written: some twenty certificates. */
const longestAtOnce = 32_768
/** The number of requests for Secrets that cannot be read which are told in the log, until they can. */
const mostTold = 100

/** A Secret of which nothing is kept: gateways do not use it, or none of its namespace wants any. */
const unkept = Symbol('unkept')
type Kept = GatewaySecret | typeof unkept
type Mapping = Readonly<Record<string, unknown>>

/** A Secret that is read in turns. */
class LateSecret {
  readonly value: Mapping
  constructor(value: Mapping) {
    this.value = value
  }
}

/** What came of reading a Secret: undefined: it cannot be used. */
interface Read {
  readonly object: Kept | undefined
  readonly faults: readonly Fault[]
}

/** Follows the Secrets that gateways want. */
export class SecretsPart implements WatcherPart {
  readonly followers = []
  readonly #parts: SecretsParts
  readonly #delivery: SecretDelivery
  readonly #readers: SecretReaders
  readonly #seenSecrets: SeenSecrets | undefined
  /** What is followed, by namespace; with an empty one: those of all. */
  readonly #follows = new Map<string, Follower<Kept | LateSecret>>()
  /** Whether the Secrets of all namespaces are followed, since many want some. */
  #isOfAll = false
  /** The namespaces that nobody wants Secrets of any more, and that are followed for a while. */
  readonly #ending = new Map<string, Timer>()
  /** What each writer wants. */
  readonly #wanted = new Map<Peer<SecretEvent>, SecretCommand['wanted']>()
  /** The namespaces whose Secrets are kept, and those of them that have been listed since. */
  readonly #kept = new Set<string>()
  readonly #listed = new Set<string>()
  /** The Secrets told since the list was begun, by namespace. */
  readonly #seen = new Map<string, Set<string>>()
  /** Those that are read in turns. */
  readonly #slow = new SlowSecrets<Read>()
  /** Secrets that exist and cannot be used. */
  readonly #faulty = new Set<string>()
  /** Why Secrets cannot be read at present, by namespace; empty: those of all. */
  readonly #troubles = new Map<string, string>()
  readonly #told = new Set<string>()
  #begunAt = Number.NEGATIVE_INFINITY
  #beginning: Timer | undefined

  constructor(parts: SecretsParts) {
    this.#parts = parts
    this.#seenSecrets = parts.seen && new SeenSecrets(parts.seen, parts.cluster)
    this.#readers = new SecretReaders({
      mayList: (reader) => parts.mayList(reader),
      isWanted: (reader) => this.#isWanted(reader),
      changed: (reader) => this.#delivery.accessChanged(reader),
    })
    this.#delivery = new SecretDelivery(
      (key) => this.#isAbsent(key),
      // The annotation, where a Secret has one, names those whom it is for among those who may.
      (reader, secret) => mayReadSecret(reader, secret, true) && this.#readers.may(reader),
      (reader, secret) => parts.log('orch').warn(this.#refusedLine(reader, secret)),
      parts.metrics,
      parts.isRemote ? parts.cluster : undefined,
    )
  }

  replay(): void {}

  settled(): void {
    this.#tellSeen()
  }

  #tellSeen(): void {
    this.#seenSecrets?.settled(this.#kept, (namespace) => this.#isListed(namespace))
  }

  /** All Secrets that are kept, for debug pages. */
  summaries(): SecretSummary[] {
    return this.#delivery.summaries()
  }

  /** A writer wants these Secrets. */
  wanted(writer: Peer<SecretEvent>, command: SecretCommand): void {
    this.#wanted.set(writer, command.wanted)
    this.#delivery.wanted(writer, command)
    this.#tellUnread()
    this.#adjust()
  }

  /** A writer is gone. */
  unlinked(writer: Peer): void {
    this.#wanted.delete(writer as Peer<SecretEvent>)
    this.#delivery.unlinked(writer)
    this.#adjust()
  }

  close(): void {
    this.#beginning?.cancel()
    for (const timer of this.#ending.values()) timer.cancel()
    this.#slow.close()
    this.#readers.close()
  }

  /** Follows the namespaces in which gateways want Secrets. */
  #adjust(): void {
    const wanted = this.#namespaces()
    const isOfAll = wanted.size > (this.#isOfAll ? mostOwn / 2 : mostOwn)
    if (isOfAll) {
      if (!this.#isOfAll || [...wanted].some((namespace) => !this.#kept.has(namespace))) this.#followAllSoon()
      return
    }
    if (this.#isOfAll) this.#endAll()
    for (const namespace of this.#kept) if (!wanted.has(namespace)) this.#endSoon(namespace)
    for (const namespace of wanted) {
      this.#ending.get(namespace)?.cancel()
      this.#ending.delete(namespace)
      if (!this.#kept.has(namespace)) this.#followOwn(namespace)
    }
  }

  /** Lists and watches the Secrets of a namespace. */
  #followOwn(namespace: string): void {
    if (this.#kept.size >= mostOwn) for (const other of [...this.#ending.keys()]) this.#end(other)
    this.#kept.add(namespace)
    for (const each of inNamespaces(resource, [namespace])) this.#follow(each)
  }

  #endSoon(namespace: string): void {
    if (this.#ending.has(namespace)) return
    this.#ending.set(namespace, after(this.#parts.lingerMs ?? lingerMs, () => this.#end(namespace)).unref())
  }

  /** Follows a namespace no more, and keeps nothing of it. */
  #end(namespace: string): void {
    this.#ending.get(namespace)?.cancel()
    this.#ending.delete(namespace)
    this.#unfollow(namespace)
    this.#kept.delete(namespace)
    this.#forget(namespace)
    this.#slow.dropAll(namespace)
    for (const key of [...this.#delivery.keys()]) if (namespaceOf(key) === namespace) this.#delivery.set(key, undefined)
  }

  /** Lists everything again, in a while. What is known stays until it has been listed. */
  #followAllSoon(): void {
    this.#isOfAll = true
    this.#beginning ??= after(Math.max(0, this.#begunAt + listMs - monotonicMs()), () => {
      this.#beginning = undefined
      this.#begunAt = monotonicMs()
      const wanted = this.#namespaces()
      for (const timer of this.#ending.values()) timer.cancel()
      this.#ending.clear()
      for (const namespace of [...this.#follows.keys()]) this.#unfollow(namespace)
      for (const namespace of this.#kept) {
        this.#forget(namespace)
        if (!wanted.has(namespace)) this.#slow.dropAll(namespace)
      }
      this.#kept.clear()
      for (const namespace of wanted) this.#kept.add(namespace)
      for (const each of inNamespaces(resource, this.#parts.namespaces)) this.#follow(each)
    })
  }

  /** Few namespaces want Secrets again: what is known of them stays until they have been listed. */
  #endAll(): void {
    this.#isOfAll = false
    this.#beginning?.cancel()
    this.#beginning = undefined
    const wanted = this.#namespaces()
    for (const namespace of [...this.#follows.keys()]) this.#unfollow(namespace)
    for (const namespace of [...this.#kept])
      if (wanted.has(namespace)) {
        this.#forget(namespace)
        this.#kept.delete(namespace)
      } else this.#end(namespace)
  }

  /** Nothing counts as listed of a namespace. */
  #forget(namespace: string): void {
    this.#seenSecrets?.forget(namespace)
    this.#listed.delete(namespace)
    this.#seen.delete(namespace)
    for (const key of this.#faulty) if (namespaceOf(key) === namespace) this.#faulty.delete(key)
  }

  #follow(each: Resource): void {
    const follower: Follower<Kept | LateSecret> = {
      resource: each,
      isAwaited: false,
      cut: (value) => this.#cut(value),
      set: (key, secret) => this.#set(each, key, secret),
      listed: () => this.#allListed(each.namespace),
      failed: (reason) => this.#failed(each.namespace, reason),
      recovered: () => this.#recovered(each.namespace),
    }
    this.#follows.set(each.namespace ?? '', follower)
    this.#parts.following.follow(follower as Follower)
  }

  #unfollow(namespace: string): void {
    const follower = this.#follows.get(namespace)
    if (!follower) return
    this.#follows.delete(namespace)
    this.#troubles.delete(namespace)
    this.#parts.following.unfollow(follower.resource.path)
  }

  /** The namespaces in which gateways want Secrets that can be read. */
  #namespaces(): ReadonlySet<string> {
    const { namespaces } = this.#parts
    const wanted = [...this.#wanted.values()].flatMap((each) => each.flatMap(({ reader, names }) => (names.length > 0 ? [reader.namespace] : [])))
    return new Set(namespaces.length === 0 ? wanted : wanted.filter((namespace) => namespaces.includes(namespace)))
  }

  #isWanted({ namespace, account }: SecretReader): boolean {
    return [...this.#wanted.values()].some((wanted) =>
      wanted.some(({ reader, names }) => reader.namespace === namespace && reader.account === account && names.length > 0),
    )
  }

  /** Reads a Secret, or leaves it for later. One that cannot be used keeps its last good state, and is not absent. */
  #cut(value: Mapping): { readonly object: Kept | LateSecret | undefined; readonly faults: readonly Fault[]; readonly isLate?: boolean } {
    const { namespace, name } = value.metadata as { readonly namespace: string; readonly name: string }
    if (!this.#kept.has(namespace)) return { object: unkept, faults: [] }
    this.#seenSecrets?.read(namespace, name, value)
    const seen = this.#seen.get(namespace) ?? new Set()
    this.#seen.set(namespace, seen.add(configKey({ kind: 'Secret', namespace, name })))
    if (secretLength(value) > longestAtOnce) return { object: new LateSecret(value), faults: [], isLate: true }
    const steps = this.#read(value)
    for (;;) {
      const { done, value: read } = steps.next()
      if (done) return read
    }
  }

  /** Reads a Secret in steps. */
  *#read(value: Mapping): Generator<void, Read, void> {
    const { namespace, name } = value.metadata as { readonly namespace: string; readonly name: string }
    const report: Report = { faults: [], warnings: [], names: this.#parts.names, optOuts: new Set(['secret-accounts']) }
    const secret = yield* secretSteps(value, { namespace, name, place: `cluster ${this.#parts.cluster}` }, report)
    const key = configKey({ kind: 'Secret', namespace, name })
    if (report.faults.length > 0) {
      this.#faulty.add(key)
      return { object: undefined, faults: report.faults }
    }
    this.#faulty.delete(key)
    this.#warnOfAge(key, secret)
    return { object: secret ?? unkept, faults: report.warnings }
  }

  #warnOfAge(key: string, secret: GatewaySecret | undefined): void {
    const until = secret?.validity.pair?.notAfter
    if (until !== undefined && until < wallClockMs())
      this.#parts
        .log('orch')
        .warn(`${key} of ${secret?.place}: its certificate has expired on ${new Date(until).toISOString()}; clients will refuse it`)
  }

  #set(of: Resource, key: string, secret: Kept | LateSecret | undefined): void {
    const at = `Secret/${key}`
    const namespace = namespaceOf(at)
    if (secret instanceof LateSecret) {
      const done = ({ object, faults }: Read) => {
        this.#parts.following.tellFaults(of, key, faults, object !== undefined)
        if (object !== undefined) this.#setRead(at, object)
      }
      return this.#slow.add(namespace, at, { begin: () => this.#read(secret.value), done })
    }
    this.#slow.drop(namespace, at)
    if (secret === undefined) {
      this.#faulty.delete(at)
      this.#seen.get(namespace)?.delete(at)
      this.#seenSecrets?.removed(namespace, key.slice(key.indexOf('/') + 1))
    }
    this.#setRead(at, secret)
  }

  #setRead(at: string, secret: Kept | undefined): void {
    if (secret !== undefined && secret !== unkept) this.#delivery.set(at, secret)
    else if (secret === unkept || this.#isAbsent(at)) this.#delivery.set(at, undefined)
  }

  /** Everything has been told: what was not has been removed meanwhile, or is not wanted any more. */
  #allListed(namespace: string | undefined): void {
    for (const each of namespace === undefined ? this.#kept : [namespace]) this.#listed.add(each)
    this.#withdrawUnseen()
    this.#tellSeen()
  }

  #withdrawUnseen(): void {
    for (const key of [...this.#delivery.keys()]) {
      const namespace = namespaceOf(key)
      const isListed = this.#isListed(namespace) || !this.#kept.has(namespace)
      if (isListed && !this.#seen.get(namespace)?.has(key)) this.#delivery.set(key, undefined)
    }
    this.#delivery.answerPending()
  }

  #isListed(namespace: string): boolean {
    return this.#troubleOf(namespace) === undefined && this.#listed.has(namespace)
  }

  #isAbsent(key: string): boolean {
    return this.#isListed(namespaceOf(key)) && !this.#faulty.has(key) && !this.#slow.has(namespaceOf(key), key)
  }

  #troubleOf(namespace: string): string | undefined {
    const { namespaces } = this.#parts
    if (namespaces.length > 0 && !namespaces.includes(namespace)) return 'its namespace is none of --appNamespace'
    return this.#troubles.get(namespace) ?? this.#troubles.get('')
  }

  #failed(namespace = '', reason: string): void {
    this.#troubles.set(namespace, reason)
    this.#tellUnread()
    this.#tellSeen()
  }

  #recovered(namespace = ''): void {
    this.#troubles.delete(namespace)
    this.#told.clear()
    this.#withdrawUnseen()
    this.#tellSeen()
  }

  /** Tells of the gateways that request Secrets which cannot be read: nothing is said to them. */
  #tellUnread(): void {
    for (const wanted of this.#wanted.values())
      for (const { reader, names } of wanted) {
        const trouble = this.#troubleOf(reader.namespace)
        for (const name of trouble === undefined ? [] : names) {
          const what = `${reader.namespace}/${reader.account}/${name}`
          if (this.#told.has(what) || this.#told.size >= mostTold || this.#delivery.has(reader.namespace, name)) continue
          this.#told.add(what)
          const secret = configKey({ kind: 'Secret', namespace: reader.namespace, name })
          this.#parts
            .log('orch')
            .warn(`gateways of the service account ${reader.account} request ${secret}, which cannot be read at present, and wait for it: ${trouble}`)
        }
      }
  }

  #refusedLine({ account }: SecretReader, { namespace, name, serviceAccounts }: GatewaySecret): string {
    const isNamed = serviceAccounts === undefined || serviceAccounts.includes(account)
    const reason = isNamed
      ? `its role does not permit "list" of "secrets" in the namespace ${namespace}`
      : `its annotation ${accountsAnnotation(this.#parts.names.domain)} names others only`
    return `${configKey({ kind: 'Secret', namespace, name })} of cluster ${this.#parts.cluster} is not given to gateways of the service account ${account}, which request it: ${reason}; listeners and clusters that need it refuse connections (docs/resources.md, K11)`
  }
}

const namespaceOf = (key: string): string => key.split('/')[1] ?? ''
