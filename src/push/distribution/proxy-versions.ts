/** Which version of each type each connected proxy has acknowledged, from the reports of the writers. */
import type { ConfigVersion, ProxiesReported, ProxyReport, ReportedProxy, TypeReport } from '../../../protocols/messages/distribution.ts'

/** A connected proxy as it was reported last. */
export interface KnownProxy extends ReportedProxy {
  readonly connection: string
  readonly number: number
  readonly types: readonly TypeReport[]
  readonly owed: readonly number[]
}

/** A proxy that was reported now, and what happened since its last report. */
export type ReportedNow = KnownProxy & Required<Pick<ProxyReport, 'acknowledged' | 'refused' | 'sent'>>

/** The version of a type that a proxy has. */
export interface AcknowledgedType {
  readonly typeUrl: string
  /** Undefined where nothing of the type was acknowledged yet. */
  readonly version: ConfigVersion | undefined
  /** Whether the last response of the type was refused. */
  readonly isRefused: boolean
}

const none: readonly never[] = []

/** The proxies of one writer. */
interface Share {
  applied: ConfigVersion
  readonly proxies: Map<string, KnownProxy>
  /** Connections by the numbers that the writer gave them. */
  readonly byNumber: Map<number, string>
}

/** The proxies of all writers. A proxy belongs to the writer that reported it, and is gone with it. */
export class ProxyVersions {
  readonly #shares = new Map<string, Share>()

  /** Takes the report of a writer. Returns the reported proxies, and those that left with it, as they were reported last. */
  report(writer: string, { isWhole, applied, proxies, answered, gone }: ProxiesReported): { reported: ReportedNow[]; left: KnownProxy[] } {
    const left = isWhole ? this.drop(writer) : []
    let share = this.#shares.get(writer)
    if (!share) this.#shares.set(writer, (share = { applied, proxies: new Map(), byNumber: new Map() }))
    share.applied = applied
    const { proxies: known, byNumber } = share
    const reported: ReportedNow[] = proxies.flatMap((report) => {
      const { connection, proxy, acknowledged = none, refused = none, sent = none } = report
      const before = known.get(connection)
      const who = proxy ?? before
      // A proxy that was never introduced.
      if (!who) return []
      const { nodeId, namespace, classId } = who
      const now = {
        connection,
        number: report.number,
        nodeId,
        namespace,
        classId,
        types: report.types ?? before?.types ?? none,
        owed: report.owed ?? before?.owed ?? none,
      }
      known.set(connection, now)
      byNumber.set(report.number, connection)
      return [{ ...now, acknowledged, refused, sent }]
    })
    for (let at = 0; at + 3 < answered.length; at += 4) {
      const [number, push, ms, bytes] = answered.subarray(at, at + 4) as unknown as [number, number, number, number]
      const before = known.get(byNumber.get(number) ?? '')
      if (!before) continue
      const now = before.owed.length > 0 ? { ...before, owed: none } : before
      known.set(now.connection, now)
      reported.push({ ...now, acknowledged: [[push, ms]], refused: none, sent: bytes > 0 ? [[push, bytes]] : none })
    }
    for (const connection of gone) {
      const there = known.get(connection)
      if (there) {
        left.push(there)
        byNumber.delete(there.number)
      }
      known.delete(connection)
    }
    return { reported, left }
  }

  /** Removes a writer that ended. Returns its proxies. */
  drop(writer: string): KnownProxy[] {
    const known = [...(this.#shares.get(writer)?.proxies.values() ?? [])]
    this.#shares.delete(writer)
    return known
  }

  /**
   * Returns how many proxies have how late a push: pairs of the number of a push and the number of proxies that have all types of it, or what came
   * later of them, and not of a later push; sorted by the push. A proxy without types asks for nothing, and is not counted.
   */
  reached(): Float64Array {
    return pairsOf(this.#pushes())
  }

  /** The same of the proxies of each of these sets of connections ({@link connectionName}). */
  reachedBy(sets: readonly (readonly string[])[]): Float64Array[] {
    const known = new Map<string, number>()
    if (sets.length > 0) for (const { writer, connection, push } of this.#pushes()) known.set(connectionName(writer, connection), push)
    return sets.map((names) => pairsOf(names.flatMap((name) => (known.has(name) ? { push: known.get(name) as number } : []))))
  }

  *#pushes(): Generator<{ readonly writer: string; readonly connection: string; readonly push: number }> {
    for (const [writer, { applied, proxies }] of this.#shares)
      for (const [connection, { types }] of proxies) {
        if (types.length === 0) continue
        let push = Number.POSITIVE_INFINITY
        for (const { acknowledged = applied } of types) if (acknowledged.push < push) push = acknowledged.push
        yield { writer, connection, push }
      }
  }

  /** The number of proxies. */
  get size(): number {
    return [...this.#shares.values()].reduce((sum, { proxies }) => sum + proxies.size, 0)
  }

  /** The number of the last push that all writers that have reported have applied. */
  get appliedByAll(): number {
    return Math.min(...Array.from(this.#shares.values(), ({ applied }) => applied.push))
  }

  /** Yields all proxies with what they have acknowledged. */
  *all(): Generator<Omit<KnownProxy, 'types'> & { readonly types: readonly AcknowledgedType[] }> {
    for (const { applied, proxies } of this.#shares.values())
      for (const proxy of proxies.values()) yield { ...proxy, types: proxy.types.map((type) => acknowledgedOf(type, applied)) }
  }
}

/** The name of a connection among those of all writers, also in the planner: its id is unique for its writer only. */
export const connectionName = (writer: string, connection: string): string => `${writer}/${connection}`

/** How often each push occurs: pairs, sorted by the push. */
function pairsOf(pushes: Iterable<{ readonly push: number }>): Float64Array {
  const counts = new Map<number, number>()
  for (const { push } of pushes) counts.set(push, (counts.get(push) ?? 0) + 1)
  return Float64Array.from([...counts].sort(([one], [other]) => one - other).flat())
}

/** A proxy that has all that its writer can send has the version that the writer has applied, whichever push changed the type last. */
function acknowledgedOf({ typeUrl, acknowledged = undefined, isRefused }: TypeReport, applied: ConfigVersion): AcknowledgedType {
  const version = acknowledged ?? applied
  return { typeUrl, isRefused, version: version.push === 0 ? undefined : version }
}
