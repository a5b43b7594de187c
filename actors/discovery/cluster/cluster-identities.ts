/** What clusters are known by (docs/operation.md, J11): which ids name the same one, and which id leads to another one than before. */
import type { FaultyKey, RemoteCluster } from '../../../src/orchestrator/remote-secrets.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { pause } from '../../runtime/timers.ts'
import type { ClusterApi } from './cluster-api.ts'
import { clusterUid } from './cluster-uid.ts'

/** After how many milliseconds a cluster that does not say who it is is asked again. */
const againMs = 15_000

/** Reads what a cluster is known by; undefined where it does not say. */
export type UidOf = (api: ClusterApi) => Promise<string | undefined>

/** What the clusters are known by. */
export class ClusterIdentities {
  /** The id of the own cluster. */
  readonly #own: string
  readonly #log: ScopedLogger
  readonly #uidOf: UidOf
  /** By the ids, as long as the clusters are reached by the same text; of the own one without a text. */
  readonly #uids = new Map<string, { readonly text: string; readonly uid: string }>()

  constructor(own: string, log: ScopedLogger, uidOf: UidOf = clusterUid) {
    this.#own = own
    this.#log = log
    this.#uidOf = uidOf
  }

  /** Asks a cluster who it is, as long as it is reached by the same text (`isCurrent`). Returns whether it is another one than its id led to before. */
  async identify(id: string, text: string, api: ClusterApi, isCurrent: () => boolean): Promise<boolean> {
    while (isCurrent()) {
      try {
        const uid = await this.#uidOf(api)
        return uid !== undefined && isCurrent() && this.#isAnother(id, { text, uid })
      } catch (error) {
        this.#log.debug(`what the cluster ${id} is known by cannot be read: ${(error as Error).message}`)
        await pause(againMs)
      }
    }
    return false
  }

  /** Forgets the clusters that are none of some ids; never the own one. */
  keep(ids: ReadonlySet<string>): void {
    for (const id of this.#uids.keys()) if (id !== this.#own && !ids.has(id)) this.#uids.delete(id)
  }

  #isAnother(id: string, known: { readonly text: string; readonly uid: string }): boolean {
    const before = this.#uids.get(id)?.uid
    this.#uids.set(id, known)
    if (before === undefined || before === known.uid) return false
    this.#log.warn(
      `the cluster ${id} is another one than before: the uid of its namespace kube-system is ${known.uid}, it was ${before}; the streams of the proxies of the former one end`,
    )
    return true
  }

  /**
   * What is said of clusters that are followed by another id already: their endpoints would count twice. The id that is followed longest stays, whichever
   * Secret names another one later. The authorities have to be the same too: a server that claims to be another cluster must not keep that out.
   * `followed`: the clusters that are followed, the longest first; `named`: those that Secrets name.
   */
  twins(followed: readonly RemoteCluster[], named: ReadonlyMap<string, RemoteCluster>): ReadonlyMap<string, FaultyKey> {
    const own = this.#uids.get(this.#own)?.uid
    const keyOf = (remote: RemoteCluster) => `${this.#uidIn(remote)} ${remote.access.ca?.trim() ?? ''}`
    const byKey = new Map<string, string>()
    for (const remote of followed) if (!named.has(remote.id)) byKey.set(keyOf(remote), remote.id)
    const twins = new Map<string, FaultyKey>()
    for (const remote of new Set([...followed.flatMap(({ id }) => named.get(id) ?? []), ...named.values()])) {
      const uid = this.#uidIn(remote)
      if (uid === undefined) continue
      const other = uid === own ? this.#own : byKey.get(keyOf(remote))
      if (other === undefined) byKey.set(keyOf(remote), remote.id)
      else {
        const reason = `it is the cluster ${other}, by the uid of its namespace kube-system; it is not followed by a second id`
        twins.set(remote.id, { id: remote.id, secret: remote.secret, reason })
      }
    }
    return twins
  }

  #uidIn({ id, text }: RemoteCluster): string | undefined {
    const known = this.#uids.get(id)
    return known?.text === text ? known.uid : undefined
  }
}
