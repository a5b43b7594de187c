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

/** What is noted of a proxy. */
interface Noted {
  /** By type the version in which the last response was made, and the one that was acknowledged last. */
  readonly types: Map<string, { made: ConfigVersion; acknowledged: ConfigVersion }>
  /** The pushes that the proxy has not answered, the oldest first. */
  owed: PushInfo[]
  /** Whether a response was sent that is not answered. */
  awaits: boolean
  /** The number of the connection in reports. */
  readonly number: number
  acknowledged: [push: number, ms: number][]
  refused: RefusalReport[]
  sent: [push: number, bytes: number][]
  /** Whether nothing was outstanding when this was last determined, and nothing is refused: then the proxy has all that there is for it. */
  isSettled: boolean
  told: Told | undefined
}

/** What the last report said of a proxy: its class, whether it was settled, the number of its types, and of pushes that it owed. */
interface Told {
  readonly classId: string
  readonly isSettled: boolean
  readonly types: number
  readonly owed: number
}

const never: ConfigVersion = { push: 0, digest: '' }

/** The notes of a writer about its proxies. */
export class Acknowledgements {
  readonly #connections: ReadonlyMap<string, Connection>
  readonly #noted = new Map<Connection, Noted>()
  #numbered = 0
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
  applied({ id, digest }: PushInfo): boolean {
    const isNew = id !== this.#applied.push
    if (!isNew && digest === this.#applied.digest) return false
    this.#applied = { push: id, digest }
    this.#isAppliedTold = false
    this.#reportLater()
    return isNew
  }

  /** A push of changes has made something due for a proxy. */
  owes(connection: Connection, push: PushInfo): void {
    const noted = this.#of(connection)
    if (noted.owed.at(-1)?.id === push.id) return
    noted.isSettled = false
    noted.owed.push(push)
    if (noted.owed.length > maxNoted) noted.owed.shift()
    this.#changed.add(connection)
  }

  /** A response is being sent. */
  sent(connection: Connection, { typeUrl, plan }: Response): void {
    const noted = this.#of(connection)
    noted.awaits = true
    const of = noted.types.get(typeUrl)
    if (of) of.made = this.#applied
    else noted.types.set(typeUrl, { made: this.#applied, acknowledged: never })
    const push = noted.owed.at(-1)?.id
    if (push === undefined) return
    const last = noted.sent.at(-1)
    if (last?.[0] === push) last[1] += plan.length
    else note(noted.sent, [push, plan.length])
  }

  /** A proxy has answered a response of a type, or changed its subscription. `isDue`: whether something is to be sent to it now. */
  answered(connection: Connection, typeUrl: string, isDue: boolean): void {
    const noted = this.#of(connection)
    const of = noted.types.get(typeUrl)
    const watch = connection.session.watches.get(typeUrl)
    if (of && watch && watch.nonceAcked === watch.nonce) of.acknowledged = of.made
    noted.awaits = false
    this.#settle(connection, noted, isDue)
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
    if (noted && !noted.awaits && !noted.isSettled) this.#settle(connection, noted, connection.session.isDue())
  }

  #settle(connection: Connection, noted: Noted, isDue: boolean): void {
    const taken = this.#takenUpTo(connection, noted, isDue)
    while (noted.owed[0] && noted.owed[0].id <= taken) {
      const { id, startedAt } = noted.owed.shift() as PushInfo
      note(noted.acknowledged, [id, Math.max(0, monotonicMs() - startedAt)])
    }
    noted.isSettled = taken === Number.POSITIVE_INFINITY && !hasRefused(connection.session)
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
    if (!noted) this.#noted.set(connection, (noted = emptyNotes(++this.#numbered)))
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
  #takenUpTo({ session }: Connection, { types }: Noted, isDue: boolean): number {
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
    const proxies: ProxyReport[] = []
    const answered: number[] = []
    for (const connection of this.#isWhole ? this.#connections.values() : this.#changed) {
      const noted = this.#of(connection)
      if (this.#isWhole || !hasOnlyAnswered(connection, noted)) proxies.push(this.#reportOf(connection, noted))
      else {
        for (const [push, ms] of noted.acknowledged) answered.push(noted.number, push, ms, noted.sent.find(([of]) => of === push)?.[1] ?? 0)
        noted.told = { ...(noted.told as Told), owed: 0 }
      }
      if (noted.acknowledged.length > 0) noted.acknowledged = []
      if (noted.refused.length > 0) noted.refused = []
      if (noted.sent.length > 0) noted.sent = []
    }
    const report = { isWhole: this.#isWhole, applied: this.#applied, proxies, answered: Float64Array.from(answered), gone: this.#gone }
    this.#peer.tell({ type: 'ProxiesReported', ...report }, 'proxies')
    this.#isAway = true
    this.#isWhole = false
    this.#isAppliedTold = true
    this.#changed.clear()
    this.#gone = []
  }

  /** What of a proxy is not told yet. */
  #reportOf({ id, node, session }: Connection, noted: Noted): ProxyReport {
    const { number, owed, acknowledged, refused, sent } = noted
    const isSettled = noted.isSettled && !noted.awaits
    const told = this.#isWhole ? undefined : noted.told
    const { classId, watches } = session
    noted.told = { classId, isSettled, types: watches.size, owed: owed.length }
    return {
      ...{ connection: id, number, acknowledged, refused, sent, owed: owed.map(({ id: push }) => push) },
      ...(told?.classId === classId ? {} : { proxy: { nodeId: node?.id ?? '', namespace: node?.namespace ?? '', classId } }),
      ...(isAsTold(noted, told, watches.size) ? {} : { types: [...watches.values()].map((watch) => this.#typeOf(session, watch, noted, isSettled)) }),
    }
  }

  /**
   * `isSettled`: nothing is outstanding for the proxy. It then has all of each type, also of one whose version has changed by resources that it does
   * not ask for; later reports say no more of its types while that is so.
   */
  #typeOf(session: XdsSession, watch: Watch, { types }: Noted, isSettled: boolean): TypeReport {
    const { typeUrl } = watch
    if (isSettled || isCurrent(watch, session.versionOf(watch))) return { typeUrl, isRefused: false }
    return { typeUrl, isRefused: isRefused(watch), acknowledged: types.get(typeUrl)?.acknowledged ?? never }
  }
}

const emptyNotes = (number: number): Noted => ({
  ...{ number, types: new Map(), owed: [], acknowledged: [], refused: [], sent: [] },
  ...{ awaits: false, isSettled: false, told: undefined },
})

/** Whether all types of a proxy are as the last report said: it had everything then, and has everything now. */
const isAsTold = ({ isSettled, awaits }: Noted, told: Told | undefined, types: number): boolean =>
  told !== undefined && isSettled && !awaits && told.isSettled && told.types === types

/** Whether there is nothing to say of a proxy but which pushes it has acknowledged. */
const hasOnlyAnswered = ({ session }: Connection, noted: Noted): boolean =>
  isAsTold(noted, noted.told, session.watches.size) &&
  noted.told?.classId === session.classId &&
  noted.owed.length + noted.refused.length === 0 &&
  (noted.acknowledged.length > 0 || noted.told.owed === 0)

function hasRefused({ watches }: XdsSession): boolean {
  for (const watch of watches.values()) if (isRefused(watch)) return true
  return false
}

/** Whether the last response of a type was acknowledged or refused. */
const isAnswered = (watch: Watch): boolean => watch.nonce === watch.nonceAcked || isRefused(watch)

/** Whether the last response of a type was refused. */
const isRefused = ({ nonce, lastError }: Watch): boolean => lastError !== undefined && lastError.nonce === nonce

function note<T>(list: T[], item: T): void {
  list.push(item)
  if (list.length > maxNoted) list.shift()
}
