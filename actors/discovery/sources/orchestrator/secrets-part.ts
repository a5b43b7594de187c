/**
 * The part of a cluster's watcher that follows Secrets for gateways (docs/resources.md, K3 to K12): begun when the first gateway wants one, and
 * keeping those of namespaces in which gateways want some. Their content goes to the writers that subscribed to it, and nowhere else.
 */
import type { GatewaySecret, SecretCommand, SecretEvent, SecretReader } from '../../../../protocols/messages/secrets.ts'
import { configKey } from '../../../../src/config/kinds.ts'
import { accountsAnnotation, readSecret } from '../../../../src/config/secret-document.ts'
import type { Fault, Report } from '../../../../src/config/shape.ts'
import { mayReadSecret } from '../../../../src/identity/access.ts'
import type { MeshNames } from '../../../../src/names/mesh-names.ts'
import { coreResource, inNamespaces } from '../../../../src/orchestrator/resources.ts'
import { monotonicMs, wallClockMs } from '../../../runtime/clock.ts'
import type { Peer } from '../../../runtime/link.ts'
import type { Logger } from '../../../runtime/logger.ts'
import type { MetricRegistry } from '../../../runtime/metrics.ts'
import { after, type Timer } from '../../../runtime/timers.ts'
import { SecretDelivery, type SecretSummary } from '../secret-delivery.ts'
import { SecretReaders } from './secret-readers.ts'
import type { Follower, Following, WatcherPart } from './watcher-part.ts'

/** What the part is made of. */
export interface SecretsParts {
  readonly names: MeshNames
  readonly cluster: string
  /** The namespaces whose objects are followed; empty: all. */
  readonly namespaces: readonly string[]
  readonly following: Following
  readonly metrics: MetricRegistry
  readonly log: Logger
  /** Asks the API server whether a service account may list the Secrets of its namespace. Rejects when it cannot decide. */
  mayList(reader: SecretReader): Promise<boolean>
}

/** Types of Secrets that are many, or are credentials of other programs, and that gateways never use. */
const unusedTypes = ['kubernetes.io/service-account-token', 'kubernetes.io/dockerconfigjson', 'helm.sh/release.v1', 'bootstrap.kubernetes.io/token']
const selected = new URLSearchParams({ fieldSelector: unusedTypes.map((type) => `type!=${type}`).join(',') })
const resource = { ...coreResource('Secret', `secrets?${selected}`), name: 'secrets' }
/** The shortest time between two times that everything is listed, for namespaces that were not kept before, in milliseconds. */
const listMs = 2000
/** The number of requests for Secrets that cannot be read which are told in the log, until they can. */
const mostTold = 100

/** A Secret of which nothing is kept: gateways do not use it, or none of its namespace wants any. */
const unkept = Symbol('unkept')
type Kept = GatewaySecret | typeof unkept

/** Follows the Secrets that gateways want. */
export class SecretsPart implements WatcherPart {
  readonly followers = []
  readonly #parts: SecretsParts
  readonly #delivery: SecretDelivery
  readonly #readers: SecretReaders
  /** One for all namespaces, or one for each that is followed. */
  readonly #follows: readonly Follower<Kept>[]
  /** What each writer wants. */
  readonly #wanted = new Map<Peer<SecretEvent>, SecretCommand['wanted']>()
  /** The namespaces whose Secrets are kept, and those of them that have been listed since. */
  #kept: ReadonlySet<string> = new Set()
  readonly #listed = new Set<string>()
  /** The Secrets told by the list under way. */
  readonly #seen = new Set<string>()
  /** Secrets that exist and cannot be used. */
  readonly #faulty = new Set<string>()
  /** Why Secrets cannot be read at present, by namespace; empty: those of all. */
  readonly #troubles = new Map<string, string>()
  readonly #told = new Set<string>()
  #begunAt = Number.NEGATIVE_INFINITY
  #beginning: Timer | undefined

  constructor(parts: SecretsParts) {
    this.#parts = parts
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
    )
    this.#follows = inNamespaces(resource, parts.namespaces).map((each) => ({
      resource: each,
      isAwaited: false,
      cut: (value) => this.#cut(value),
      set: (key, secret) => this.#set(key, secret),
      listed: () => this.#allListed(each.namespace),
      failed: (reason) => this.#failed(each.namespace, reason),
      recovered: () => this.#recovered(each.namespace),
    }))
  }

  replay(): void {}

  settled(): void {}

  /** All Secrets that are kept, for debug pages. */
  summaries(): SecretSummary[] {
    return this.#delivery.summaries()
  }

  /** A writer wants these Secrets. */
  wanted(writer: Peer<SecretEvent>, command: SecretCommand): void {
    this.#wanted.set(writer, command.wanted)
    this.#delivery.wanted(writer, command)
    this.#tellUnread()
    if (this.#namespaces().some((namespace) => !this.#kept.has(namespace))) this.#beginSoon()
  }

  /** A writer is gone. */
  unlinked(writer: Peer): void {
    this.#wanted.delete(writer as Peer<SecretEvent>)
    this.#delivery.unlinked(writer)
  }

  close(): void {
    this.#beginning?.cancel()
    this.#readers.close()
  }

  /** Lists everything again, in a while. */
  #beginSoon(): void {
    this.#beginning ??= after(Math.max(0, this.#begunAt + listMs - monotonicMs()), () => {
      this.#beginning = undefined
      this.#begunAt = monotonicMs()
      this.#kept = new Set(this.#namespaces())
      this.#listed.clear()
      this.#seen.clear()
      this.#faulty.clear()
      this.#troubles.clear()
      for (const follower of this.#follows) {
        this.#parts.following.unfollow(follower.resource.path)
        this.#parts.following.follow(follower as Follower)
      }
    })
  }

  #namespaces(): string[] {
    return [...this.#wanted.values()].flatMap((wanted) => wanted.flatMap(({ reader, names }) => (names.length > 0 ? [reader.namespace] : [])))
  }

  #isWanted({ namespace, account }: SecretReader): boolean {
    return [...this.#wanted.values()].some((wanted) =>
      wanted.some(({ reader, names }) => reader.namespace === namespace && reader.account === account && names.length > 0),
    )
  }

  /** Reads a Secret. One that cannot be used keeps its last good state, and is not absent. */
  #cut(value: Readonly<Record<string, unknown>>): { readonly object: Kept | undefined; readonly faults: readonly Fault[] } {
    const { namespace, name } = value.metadata as { readonly namespace: string; readonly name: string }
    if (!this.#kept.has(namespace)) return { object: unkept, faults: [] }
    const report: Report = { faults: [], warnings: [], names: this.#parts.names, optOuts: new Set(['secret-accounts']) }
    const secret = readSecret(value, { namespace, name, place: `cluster ${this.#parts.cluster}` }, report)
    const key = configKey({ kind: 'Secret', namespace, name })
    this.#seen.add(key)
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

  #set(key: string, secret: Kept | undefined): void {
    const at = `Secret/${key}`
    if (secret === undefined) {
      this.#faulty.delete(at)
      this.#seen.delete(at)
    }
    if (secret !== undefined && secret !== unkept) this.#delivery.set(at, secret)
    else if (secret === unkept || this.#isAbsent(at)) this.#delivery.set(at, undefined)
  }

  /** Everything has been told: what was not has been removed meanwhile, or is not wanted any more. */
  #allListed(namespace: string | undefined): void {
    for (const each of namespace === undefined ? this.#kept : [namespace]) this.#listed.add(each)
    this.#withdrawUnseen()
  }

  #withdrawUnseen(): void {
    for (const key of [...this.#delivery.keys()]) {
      const isListed = this.#isListed(namespaceOf(key)) || !this.#kept.has(namespaceOf(key))
      if (isListed && !this.#seen.has(key)) this.#delivery.set(key, undefined)
    }
    this.#delivery.answerPending()
  }

  #isListed(namespace: string): boolean {
    return this.#troubleOf(namespace) === undefined && this.#listed.has(namespace)
  }

  #isAbsent(key: string): boolean {
    return this.#isListed(namespaceOf(key)) && !this.#faulty.has(key)
  }

  #troubleOf(namespace: string): string | undefined {
    const { namespaces } = this.#parts
    if (namespaces.length > 0 && !namespaces.includes(namespace)) return 'its namespace is none of --appNamespace'
    return this.#troubles.get(namespace) ?? this.#troubles.get('')
  }

  #failed(namespace = '', reason: string): void {
    this.#troubles.set(namespace, reason)
    this.#tellUnread()
  }

  #recovered(namespace = ''): void {
    this.#troubles.delete(namespace)
    this.#told.clear()
    this.#withdrawUnseen()
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
