/**
 * The clusters that remote secrets name (docs/operation.md, J1 to J3): each key of a Secret with the label is the id of a cluster, its value the
 * configuration of the connection. Which Secret counts does not depend on the order in which they are told.
 */
import type { ClusterAccess } from '../../protocols/messages/orchestrator.ts'
import { isMapping, mapping } from '../config/shape.ts'
import { compare } from '../model/order.ts'
import { longestRemoteConfig, readRemoteAccess } from './remote-access.ts'

/** The largest number of clusters, of keys that are read of a Secret, and of faults that are told at a time. What is left out is told. */
const most = { clusters: 100, keys: 1000, faults: 100 }

/** The names of registries. A cluster of such an id would be taken for them where networks and pages name registries. */
const registries: readonly string[] = ['Orchestrator', 'ServiceEntry', 'Mock']

/** A Secret as it is read: its texts by key. */
export interface RemoteSecret {
  /** Unix milliseconds. */
  readonly createdAt: number
  /** In base64, as the API server has them. */
  readonly data: ReadonlyMap<string, string>
}

/** A cluster that is to be followed. */
export interface RemoteCluster {
  readonly id: string
  /** The Secret that names it: `<namespace>/<name>`. */
  readonly secret: string
  readonly access: ClusterAccess
  /** The text that the access was read from, in base64: another text is another connection. */
  readonly text: string
}

/** A key of a Secret with which something is wrong. */
export interface FaultyKey {
  /** The cluster that it names. */
  readonly id: string
  readonly secret: string
  /** What is wrong, and what follows from it. */
  readonly reason: string
}

/** The sentence about a key, for people. */
export const keyLine = ({ id, secret, reason }: FaultyKey): string => `Secret ${secret}, cluster ${id}: ${reason}`

/** Cuts a Secret to what is read of it. Never throws for any value. */
export function cutRemoteSecret(value: Readonly<Record<string, unknown>>): RemoteSecret {
  const at = Date.parse(String(mapping(value.metadata).creationTimestamp))
  const texts = isMapping(value.data) ? Object.entries(value.data) : []
  const data = texts.flatMap(([key, text]): [string, string][] => (typeof text === 'string' ? [[key, text]] : []))
  return { createdAt: Number.isFinite(at) ? at : 0, data: new Map(data) }
}

/** What a key of a Secret says: how the cluster was last reached well, and what is wrong with the present text. */
interface Entry {
  readonly text: string
  readonly good: { readonly access: ClusterAccess; readonly text: string } | undefined
  readonly fault: string | undefined
}

/** Checks what parsing cannot: whether certificates and keys can be used. Returns the reason, without their content. */
export type AccessCheck = (access: ClusterAccess) => string | undefined

/** A Secret as it was read. */
interface ReadSecret {
  readonly createdAt: number
  readonly entries: ReadonlyMap<string, Entry>
  /** The number of keys that were not read. */
  readonly unread: number
}

/** What the Secrets say: the clusters to follow by id, those whose keys could never be used, and what is wrong. */
export interface SecretsResult {
  readonly clusters: ReadonlyMap<string, RemoteCluster>
  readonly unusable: ReadonlySet<string>
  readonly faulty: readonly FaultyKey[]
  readonly faults: readonly string[]
}

/** Collects the Secrets. A key that becomes unusable keeps its last good state. */
export class RemoteSecrets {
  readonly #own: string
  readonly #check: AccessCheck
  readonly #secrets = new Map<string, ReadSecret>()
  /** The ids of the clusters of the last result: those that come later do not take the place of one that is followed. */
  #followed: ReadonlySet<string> = new Set()

  /** `own`: the id of the cluster of this process, which no Secret may name. */
  constructor(own: string, check: AccessCheck = () => undefined) {
    this.#own = own
    this.#check = check
  }

  /** Adds, replaces or removes a Secret, by `<namespace>/<name>`. */
  set(key: string, secret: RemoteSecret | undefined): void {
    for (const _ of this.steps(key, secret));
  }

  /** Does what {@link set} does, with a step for each text that is read: each may take milliseconds. */
  *steps(key: string, secret: RemoteSecret | undefined): Generator<void, void> {
    if (!secret) return void this.#secrets.delete(key)
    const before = this.#secrets.get(key)?.entries
    const entries = new Map<string, Entry>()
    const rank = (id: string) => (this.#followed.has(id) ? 0 : 1)
    const keys = [...secret.data].sort(([one], [other]) => rank(one) - rank(other) || compare(one, other))
    for (const [id, text] of keys.slice(0, most.keys)) {
      const known = before?.get(id)
      entries.set(id, this.#entryOf(text, known))
      if (known?.text !== text) yield
    }
    this.#secrets.set(key, { createdAt: secret.createdAt, entries, unread: keys.length - entries.size })
  }

  /** The keys of all Secrets. */
  keys(): string[] {
    return [...this.#secrets.keys()]
  }

  /**
   * The clusters to follow by id, and what is wrong, of the first keys and as sentences for people, without anything of the content of Secrets. A key that
   * cannot be used, and never could, takes no cluster from the key of a newer Secret. Clusters that are followed stay where there are too many.
   */
  result(): SecretsResult {
    const usable: RemoteCluster[] = []
    const claims = new Map<string, string>()
    const all: FaultyKey[] = []
    const never: FaultyKey[] = []
    for (const [secret, { entries }] of [...this.#secrets].sort(bySeniority))
      for (const [id, { good, fault }] of [...entries].sort(([one], [other]) => compare(one, other))) {
        const tell = (reason: string) => all.push({ id, secret, reason })
        const claimed = claims.get(id)
        if (registries.includes(id) && id !== this.#own) tell('it is the name of a registry, which no cluster may have; the key is left out')
        else if (id === this.#own) tell('it is the cluster of this process; the key is left out')
        else if (claimed !== undefined) tell(`Secret ${claimed} names it too and is older; the key is left out`)
        else if (good) {
          claims.set(id, secret)
          if (fault !== undefined) tell(`${fault}; its last good state stays`)
          usable.push({ id, secret, ...good })
        } else if (fault !== undefined) never.push({ id, secret, reason: fault })
      }
    for (const key of never) {
      const claimed = claims.get(key.id)
      all.push({ ...key, reason: `${key.reason}; ${claimed === undefined ? 'it is not followed' : `Secret ${claimed} counts`}` })
    }
    usable.sort((one, other) => Number(this.#followed.has(other.id)) - Number(this.#followed.has(one.id)))
    for (const { id, secret } of usable.splice(most.clusters))
      all.push({ id, secret, reason: `there are more than ${most.clusters} clusters; it is left out` })
    this.#followed = new Set(usable.map(({ id }) => id))
    const faulty = all.slice(0, most.faults)
    const more = all.length > most.faults ? [`more than ${most.faults} keys of remote secrets have faults; the others are not told`] : []
    return {
      clusters: new Map(usable.map((cluster) => [cluster.id, cluster])),
      unusable: new Set(never.flatMap(({ id }) => (claims.has(id) ? [] : id))),
      faulty,
      faults: [...this.#unread(), ...faulty.map(keyLine), ...more],
    }
  }

  /** The sentences about Secrets with too many keys. */
  #unread(): string[] {
    return [...this.#secrets].flatMap(([secret, { unread }]) =>
      unread > 0 ? [`Secret ${secret} has more than ${most.keys} keys: ${unread} are not read`] : [],
    )
  }

  #entryOf(text: string, before: Entry | undefined): Entry {
    if (before?.text === text) return before
    // A text that is too long is not decoded before that is found.
    const isLong = text.length > 2 * longestRemoteConfig
    const read = readRemoteAccess(isLong ? text : Buffer.from(text, 'base64').toString('utf8'))
    const faulty = (fault: string): Entry => ({ text, good: before?.good, fault })
    if ('fault' in read) return faulty(read.fault.path === '' ? read.fault.reason : `field ${read.fault.path}: ${read.fault.reason}`)
    const reason = this.#check(read.access)
    return reason === undefined ? { text, good: { access: read.access, text }, fault: undefined } : faulty(reason)
  }
}

/** The oldest first, then by namespace and name. */
function bySeniority(
  [one, { createdAt }]: readonly [string, { readonly createdAt: number }],
  [other, { createdAt: otherAt }]: readonly [string, { readonly createdAt: number }],
): number {
  return createdAt - otherAt || compare(one, other)
}
