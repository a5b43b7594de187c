/** Which version of each type each connected proxy has acknowledged, from the reports of the writers. */
import type { ConfigVersion, ProxiesReported, ProxyReport, TypeReport } from '../../../protocols/messages/distribution.ts'

/** A connected proxy as it was reported last. */
export type KnownProxy = Pick<ProxyReport, 'connection' | 'nodeId' | 'namespace' | 'classId' | 'types' | 'owed'>

/** The version of a type that a proxy has. */
export interface AcknowledgedType {
  readonly typeUrl: string
  /** Undefined where nothing of the type was acknowledged yet. */
  readonly version: ConfigVersion | undefined
  /** Whether the last response of the type was refused. */
  readonly isRefused: boolean
}

/** The proxies of one writer. */
interface Share {
  applied: ConfigVersion
  readonly proxies: Map<string, KnownProxy>
}

/** The proxies of all writers. A proxy belongs to the writer that reported it, and is gone with it. */
export class ProxyVersions {
  readonly #shares = new Map<string, Share>()

  /** Takes the report of a writer. Returns the proxies that left with it, as they were reported last. */
  report(writer: string, { isWhole, applied, proxies, gone }: ProxiesReported): KnownProxy[] {
    const left = isWhole ? this.drop(writer) : []
    let share = this.#shares.get(writer)
    if (!share) this.#shares.set(writer, (share = { applied, proxies: new Map() }))
    share.applied = applied
    for (const { connection, nodeId, namespace, classId, types, owed } of proxies)
      share.proxies.set(connection, { connection, nodeId, namespace, classId, types, owed })
    for (const connection of gone) {
      const known = share.proxies.get(connection)
      if (known) left.push(known)
      share.proxies.delete(connection)
    }
    return left
  }

  /** Removes a writer that ended. Returns its proxies. */
  drop(writer: string): KnownProxy[] {
    const known = [...(this.#shares.get(writer)?.proxies.values() ?? [])]
    this.#shares.delete(writer)
    return known
  }

  /** Yields all proxies with what they have acknowledged. */
  *all(): Generator<Omit<KnownProxy, 'types'> & { readonly types: readonly AcknowledgedType[] }> {
    for (const { applied, proxies } of this.#shares.values())
      for (const proxy of proxies.values()) yield { ...proxy, types: proxy.types.map((type) => acknowledgedOf(type, applied)) }
  }
}

/** A proxy that has all that its writer can send has the version that the writer has applied, whichever push changed the type last. */
function acknowledgedOf({ typeUrl, acknowledged = undefined, isRefused }: TypeReport, applied: ConfigVersion): AcknowledgedType {
  const version = acknowledged ?? applied
  return { typeUrl, isRefused, version: version.push === 0 ? undefined : version }
}
