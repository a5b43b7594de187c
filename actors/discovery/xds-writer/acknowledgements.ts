/**
 * Reports to the actor `distribution` which version of each type each proxy has acknowledged, refused or still owes (`ProxiesReported`).
 * Facts are noted when they happen and told ten times a second, once for each proxy that they concern; while the last report was not taken,
 * they wait here, so that a slow recipient costs no more than one entry for each proxy.
 */
import type { ConfigVersion, ProxiesReported, ProxyReport, RefusalReport, TypeReport } from '../../../protocols/messages/distribution.ts'
import type { PushInfo } from '../../../protocols/messages/push.ts'
import type { Refused, Response, XdsSession } from '../../../src/xds/stream/session.ts'
import type { Watch } from '../../../src/xds/stream/watch.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import type { Connection } from './connection.ts'
import { isCurrent } from './connection-debug.ts'

/** The least time between two reports, in milliseconds. */
const reportMs = 100
/** Maximum number of unanswered pushes, of acknowledged ones and of refusals of a proxy until they are reported; older ones are dropped. */
const maxNoted = 100
/** Maximum number of characters of the reason of a refusal. */
const longestReason = 300
/** Maximum number of resources that a refusal names. */
const mostNamed = 16

/** A push that changed something for a proxy. */
type Owed = Pick<PushInfo, 'id' | 'startedAt'>

/** What is noted of a proxy. */
interface Noted {
  /** By type the version in which the last response was made, and the one that was acknowledged last. */
  readonly types: Map<string, { made: ConfigVersion; acknowledged: ConfigVersion }>
  /** The pushes that the proxy has not answered, the oldest first. */
  owed: Owed[]
  acknowledged: [push: number, ms: number][]
  refused: RefusalReport[]
  sent: [push: number, bytes: number][]
  /** Whether nothing was outstanding when this was last determined, and nothing is refused: then the proxy has all that there is for it. */
  isSettled: boolean
  /** What the last report said: the class, whether the proxy was settled, the number of its types, and of pushes owed. */
  told: { readonly classId: string; readonly isSettled: boolean; readonly types: number; readonly owed: number } | undefined
}

const never: ConfigVersion = { push: 0, ledger: '' }

/** The notes of a writer about its proxies. */
export class Acknowledgements {
  readonly #connections: ReadonlyMap<string, Connection>
  readonly #noted = new Map<Connection, Noted>()
  #applied: ConfigVersion = never
  #peer: Peer<ProxiesReported> | undefined
  #isWhole = false
  /** Whether the last report was not taken yet. */
  #isAway = false
  #isAppliedTold = true
  #timer: Timer | undefined
  readonly #changed = new Set<Connection>()
  #gone: string[] = []

  /** `connections`: the identified connections of the writer. */
  constructor(connections: ReadonlyMap<string, Connection>) {
    this.#connections = connections
  }

  /** A recipient that knows nothing yet: everything is reported to it. */
  linked(peer: Peer<ProxiesReported>): void {
    this.#peer = peer
    this.#isWhole = true
    this.#isAway = false
    this.#reportLater()
  }

  /** Nothing is reported until there is a recipient again. */
  unlinked(): void {
    this.#peer = undefined
    this.#gone = []
  }

  /** The recipient has taken the last report. */
  taken(): void {
    this.#isAway = false
    if (this.#changed.size > 0 || this.#gone.length > 0 || !this.#isAppliedTold || this.#isWhole) this.#reportLater()
  }

  /** The writer has applied a version. Returns whether it is a push of changes, which proxies are to acknowledge. */
  applied({ id, ledger }: PushInfo): boolean {
    const isNew = id !== this.#applied.push
    if (!isNew && ledger === this.#applied.ledger) return false
    this.#applied = { push: id, ledger }
    this.#isAppliedTold = false
    this.#reportLater()
    return isNew
  }

  /** A push of changes has made something due for a proxy. */
  owes(connection: Connection, { id, startedAt }: PushInfo): void {
    const noted = this.#of(connection)
    if (noted.owed.at(-1)?.id === id) return
    noted.isSettled = false
    noted.owed.push({ id, startedAt })
    if (noted.owed.length > maxNoted) noted.owed.shift()
    this.#changed.add(connection)
  }

  /** A response is being sent. */
  sent(connection: Connection, { typeUrl, plan }: Response): void {
    const noted = this.#of(connection)
    const of = noted.types.get(typeUrl)
    if (of) of.made = this.#applied
    else noted.types.set(typeUrl, { made: this.#applied, acknowledged: never })
    const push = noted.owed.at(-1)?.id
    if (push === undefined) return
    const last = noted.sent.at(-1)
    if (last?.[0] === push) last[1] += plan.length
    else note(noted.sent, [push, plan.length])
  }

  /** A proxy has answered a response of a type, or changed its subscription. */
  answered(connection: Connection, typeUrl: string): void {
    const of = this.#noted.get(connection)?.types.get(typeUrl)
    const watch = connection.session.watches.get(typeUrl)
    if (of && watch && watch.nonceAcked === watch.nonce) of.acknowledged = of.made
    this.#settle(connection, this.#of(connection))
  }

  /** A proxy has refused a response of a type. The pushes that the response was made for are settled by that. */
  refused(connection: Connection, { typeUrl, resources, detail }: Refused): void {
    const noted = this.#of(connection)
    const made = noted.types.get(typeUrl)?.made.push ?? 0
    const reason = detail.length > longestReason ? `${detail.slice(0, longestReason)}...` : detail
    const refusal = { typeUrl, resources: resources.slice(0, mostNamed).map(({ name }) => name), reason: reason.toWellFormed() }
    for (const { id } of noted.owed) if (id <= made) note(noted.refused, { push: id, ...refusal })
    noted.owed = noted.owed.filter(({ id }) => id > made)
    noted.isSettled = false
    this.#tell(connection)
  }

  /** Nothing is left to send to a proxy for now. If no answer is outstanding either, its pushes are settled. */
  settled(connection: Connection): void {
    const noted = this.#noted.get(connection)
    if (!noted || (noted.owed.length === 0 && noted.isSettled)) return
    for (const watch of connection.session.watches.values()) if (!isAnswered(watch)) return
    this.#settle(connection, noted)
  }

  #settle(connection: Connection, noted: Noted): void {
    const taken = this.#takenUpTo(connection, noted)
    while (noted.owed[0] && noted.owed[0].id <= taken) {
      const { id, startedAt } = noted.owed.shift() as Owed
      note(noted.acknowledged, [id, Math.max(0, monotonicMs() - startedAt)])
    }
    noted.isSettled = taken === Number.POSITIVE_INFINITY && ![...connection.session.watches.values()].some(isRefused)
    this.#tell(connection)
  }

  /** A connection is closed. */
  gone(connection: Connection): void {
    this.#noted.delete(connection)
    this.#changed.delete(connection)
    if (!this.#peer || connection.id === '') return
    this.#gone.push(connection.id)
    this.#reportLater()
  }

  #of(connection: Connection): Noted {
    let noted = this.#noted.get(connection)
    if (!noted)
      this.#noted.set(
        connection,
        (noted = { types: new Map(), owed: [], acknowledged: [], refused: [], sent: [], isSettled: false, told: undefined }),
      )
    return noted
  }

  #tell(connection: Connection): void {
    this.#changed.add(connection)
    this.#reportLater()
  }

  /**
   * The last push of which a proxy has everything. A type for which something is outstanding counts with the version that was acknowledged
   * last, so that a push may count as acknowledged somewhat late where the next one overtakes it.
   */
  #takenUpTo({ session }: Connection, { types }: Noted): number {
    const isDue = session.isDue()
    let taken = Number.POSITIVE_INFINITY
    for (const watch of session.watches.values()) {
      if (isAnswered(watch) && (!isDue || isCurrent(watch, session.versionOf(watch)))) continue
      taken = Math.min(taken, types.get(watch.typeUrl)?.acknowledged.push ?? 0)
    }
    return isDue && taken === Number.POSITIVE_INFINITY ? 0 : taken
  }

  #reportLater(): void {
    if (!this.#peer || this.#isAway) return
    this.#timer ??= after(reportMs, () => {
      this.#timer = undefined
      this.#report()
    }).unref()
  }

  #report(): void {
    if (!this.#peer || this.#isAway) return
    const concerned = this.#isWhole ? this.#connections.values() : this.#changed
    const proxies = Array.from(concerned, (connection) => this.#reportOf(connection))
    this.#peer.tell({ type: 'ProxiesReported', isWhole: this.#isWhole, applied: this.#applied, proxies, gone: this.#gone }, 'proxies')
    this.#isAway = true
    this.#isWhole = false
    this.#isAppliedTold = true
    this.#changed.clear()
    this.#gone = []
  }

  /** What of a proxy is not told yet. Mostly that it has acknowledged a push, so the rest is left out where it is as it was. */
  #reportOf(connection: Connection): ProxyReport {
    const { id, node, session } = connection
    const noted = this.#of(connection)
    const { owed, acknowledged, refused, sent, isSettled } = noted
    const told = this.#isWhole ? undefined : noted.told
    const { classId, watches } = session
    const isAsTold = told && isSettled && told.isSettled && told.types === watches.size
    const report: Writable<ProxyReport> = { connection: id }
    if (told?.classId !== classId) report.proxy = { nodeId: node?.id ?? '', namespace: node?.namespace ?? '', classId }
    if (!isAsTold) report.types = [...watches.values()].map((watch) => this.#typeOf(session, watch, noted))
    if (owed.length > 0 || told?.owed !== 0) report.owed = owed.map(({ id: push }) => push)
    if (acknowledged.length > 0) report.acknowledged = acknowledged
    if (refused.length > 0) report.refused = refused
    if (sent.length > 0) report.sent = sent
    const said = { classId, isSettled, types: watches.size, owed: owed.length }
    Object.assign(noted, { acknowledged: [], refused: [], sent: [], told: said } satisfies Partial<Noted>)
    return report
  }

  #typeOf(session: XdsSession, watch: Watch, { types }: Noted): TypeReport {
    const { typeUrl } = watch
    if (isCurrent(watch, session.versionOf(watch))) return { typeUrl, isRefused: false }
    return { typeUrl, isRefused: isRefused(watch), acknowledged: types.get(typeUrl)?.acknowledged ?? never }
  }
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] }

/** Whether the last response of a type was acknowledged or refused. */
const isAnswered = (watch: Watch): boolean => watch.nonce === watch.nonceAcked || isRefused(watch)

/** Whether the last response of a type was refused. */
const isRefused = ({ nonce, lastError }: Watch): boolean => lastError !== undefined && lastError.nonce === nonce

function note<T>(list: T[], item: T): void {
  list.push(item)
  if (list.length > maxNoted) list.shift()
}
