/**
 * The ledger of the certificate authority: which workloads hold which certificates until when, which proxies are connected, and which of
 * them would fail if a rotation advanced to its next stage now (docs/certificates.md, R9 to R13). A certificate is held until it has expired,
 * or until another one was requested with it. The ledger is no source of trust: no permission depends on it.
 */
import type { ConnectedProxy } from '../../protocols/messages/replicas.ts'

/** A certificate that was issued to a workload. */
export interface IssuedCertificate {
  /** SPIFFE ids in the certificate. */
  readonly identities: readonly string[]
  /** Hexadecimal. */
  readonly serial: string
  /** SHA-256 fingerprint of the root at the end of its chain. */
  readonly root: string
  /** Unix milliseconds. */
  readonly issuedAt: number
  readonly notAfter: number
  /** Address of the client that requested the certificate, with or without a port. */
  readonly peer: string
  /** Serial number of the certificate with which the client requested this one; undefined: it presented none. */
  readonly renews?: string | undefined
}

/** A serving certificate that was issued to a server of this process. */
export type ServingRecord = Pick<IssuedCertificate, 'serial' | 'root' | 'issuedAt' | 'notAfter'>

/** The current stage of a rotation, as the ledger needs it. */
export interface LedgerStage {
  /** The number of the stage. */
  readonly epoch: number
  /**
   * Fingerprint of the root that signs at this stage. A certificate of this root that was presented in this stage counts as one of the stage.
   * Undefined: no client certificate does.
   */
  readonly provenBy: string | undefined
}

/** A reason why a rotation cannot advance yet. */
export interface Blocker {
  readonly identity: string
  /** Nodes of the proxies that block, at most ten. */
  readonly proxies: readonly string[]
  readonly why: 'not issued since' | 'not connected' | 'not known'
  /** The reason as part of a sentence whose subject is the identity. */
  readonly reason: string
  /** When the reason expires by itself, in Unix milliseconds. */
  readonly until: number | undefined
}

/** All entries of the ledger for one identity. */
export interface LedgerRow {
  readonly identity: string
  readonly proxies: readonly string[]
  /** In order of issue, last issued first. */
  readonly certificates: readonly HeldCertificate[]
}

/** A certificate that somebody holds. */
export interface HeldCertificate {
  /** The address from which it was requested, or, of one whose issue is not recorded, that of the proxy that presented it. */
  readonly address: string
  readonly serial: string
  readonly root: string
  readonly issuedAt: number
  readonly notAfter: number
  /** Serial number of the certificate that it replaced. */
  readonly renews?: string | undefined
  /** The number of the stage in which the certificate was issued, or counts as issued ({@link LedgerStage.provenBy}). */
  readonly epoch: number
}

/** An identity with certificates of a root: the addresses that they were issued to, and the nodes of its proxies that presented one (ten). */
export interface RootHolder {
  readonly identity: string
  readonly addresses: readonly string[]
  readonly proxies: readonly string[]
}

/** Limits of the ledger. */
export interface LedgerBounds {
  /** The maximum number of certificates, over all identities. */
  readonly holders: number
  /** The maximum number of identities of one certificate or connection that are recorded. */
  readonly identities: number
}

export const ledgerBounds: LedgerBounds = { holders: 100_000, identities: 8 }
/** The maximum numbers of serving certificates, of proxies named in one blocker, and of stages and roots with evicted certificates. */
const most = { serving: 64, proxies: 10, evictions: 32 }

/** The stage of certificates whose issue is not recorded. A rotation has no stage with this number. */
const beforeAnyStage = 0

interface Entry {
  /** By serial number. */
  readonly holders: Map<string, HeldCertificate>
  /** The serial numbers of the certificates that were replaced by one of `holders`. */
  readonly renewed: Set<string>
  readonly connections: Map<string, Connection>
}

interface Connection extends ConnectedProxy {
  readonly address: string
}

/** The streams of other replicas. */
interface Elsewhere {
  /** By identity. */
  readonly connections: ReadonlyMap<string, readonly Connection[]>
  /** The nodes on the plaintext port. */
  readonly plaintext: readonly string[]
  /** Whether all replicas have told theirs. */
  readonly isComplete: boolean
}

/** What is known of an identity, its connections to all replicas included. */
interface Known extends Pick<Entry, 'holders'> {
  readonly identity: string
  readonly connections: readonly Connection[]
}

/** The evicted certificates of one stage and root. */
export interface Evictions {
  readonly epoch: number
  /** SHA-256 fingerprint of the root; empty: any root. */
  readonly root: string
  /** When the last of them expires, in Unix milliseconds. */
  readonly until: number
}

/** The part of the ledger that is stored besides the certificates of workloads. */
export interface LedgerHead {
  readonly format: 1
  /** The time since which the ledger records every issued certificate, in Unix milliseconds. */
  readonly completeSince: number
  /** The longest lifetime of any issued certificate, in milliseconds. */
  readonly longestLife: number
  /** Whether every certificate is recorded: earlier versions recorded the last one of each identity and address. */
  readonly hasAll: boolean
  readonly evictions: readonly Evictions[]
  readonly serving: readonly ServingRecord[]
}

/** A stored certificate: the identity that it was issued to, and the ledger's record of it. */
export type KeptHolder = readonly [identity: string, held: HeldCertificate]

export class Ledger {
  readonly #bounds: LedgerBounds
  /** In order of issue: the identity whose last certificate is the oldest comes first. */
  readonly #identities = new Map<string, Entry>()
  readonly #plaintext = new Map<string, string>()
  readonly #connections = new Map<string, Connection>()
  #elsewhere: Elsewhere = { connections: new Map(), plaintext: [], isComplete: true }
  #serving: ServingRecord[] = []
  #holders = 0
  #completeSince: number
  #longestLife: number
  #evictions: readonly Evictions[] = []

  /**
   * `completeSince` is the time since which no issued certificate is missing, in Unix milliseconds. `longestLife` is the maximum lifetime
   * of certificates issued before that, in milliseconds.
   */
  constructor(completeSince: number, longestLife: number, bounds = ledgerBounds) {
    this.#completeSince = completeSince
    this.#longestLife = longestLife
    this.#bounds = bounds
  }

  /** Number of certificates that are held. */
  get size(): number {
    return this.#holders
  }

  /**
   * Restores a stored ledger. When the process that wrote it did not shut down in order, certificates may be missing from it, so `now`
   * becomes the time since which the ledger is complete.
   */
  restore(head: LedgerHead, holders: Iterable<KeptHolder>, endedInOrder: boolean, now: number): void {
    this.#completeSince = endedInOrder ? head.completeSince : now
    this.#longestLife = Math.max(this.#longestLife, head.longestLife)
    this.#evictions = head.evictions
    this.#serving = [...head.serving]
    this.#holdAll(head, holders)
  }

  /**
   * Adds the records of another replica of the authority. A certificate that either of the two knows as replaced is not held. What one of
   * them does not know for certain is not certain.
   */
  merge(head: LedgerHead, holders: Iterable<KeptHolder>): void {
    this.#completeSince = Math.max(this.#completeSince, head.completeSince)
    this.#longestLife = Math.max(this.#longestLife, head.longestLife)
    for (const { epoch, root, until } of head.evictions) this.#evictions = withEvicted(this.#evictions, { epoch, root, notAfter: until })
    const serving = new Map([...head.serving, ...this.#serving].map((record) => [record.serial, record]))
    this.#serving = [...serving.values()].sort((one, other) => one.issuedAt - other.issuedAt).slice(-most.serving)
    this.#holdAll(head, holders)
    for (const connection of this.#connections.values()) this.#holdPresented(connection, beforeAnyStage)
  }

  /**
   * The ledger of before is lost: the holders of its certificates are not known, and may be any until the last of them has expired, at the
   * latest after the longest lifetime from the Unix time `now` in milliseconds on.
   */
  lost(now: number): void {
    this.#evictions = [{ epoch: beforeAnyStage, root: '', until: now + this.#longestLife }]
  }

  head(): LedgerHead {
    const [completeSince, longestLife, evictions] = [this.#completeSince, this.#longestLife, this.#evictions]
    return { format: 1, completeSince, longestLife, hasAll: true, evictions, serving: this.#serving }
  }

  /**
   * Iterates over the holders to be stored. A certificate that is issued during the iteration may appear twice; the later record is the
   * current one.
   */
  *holders(): Iterable<KeptHolder> {
    for (const [identity, entry] of this.#identities) for (const held of entry.holders.values()) yield [identity, held]
  }

  /** Records a certificate that was issued to a workload in the stage with the number `epoch`, in place of the one that it renews. */
  issued({ identities, peer, ...certificate }: IssuedCertificate, epoch: number): void {
    this.#longestLife = Math.max(this.#longestLife, certificate.notAfter - certificate.issuedAt)
    for (const identity of identities.slice(0, this.#bounds.identities)) this.#hold(identity, { address: hostOf(peer), ...certificate, epoch })
  }

  /**
   * Whether a certificate follows one of the same root that its holder kept for a quarter of its life at least: a holder that cannot use a
   * certificate, because it is not valid by its own clock, asks again at once. Without the certificate that it renews it is compared with the
   * last one that was issued to its address.
   */
  isRenewalInTime({ identities, root, issuedAt, peer, renews = '' }: IssuedCertificate): boolean {
    const holders = this.#identities.get(identities[0] ?? '')?.holders
    let before = holders?.get(renews)
    for (const held of before ? [] : (holders?.values() ?? []))
      if (held.address === hostOf(peer) && held.issuedAt >= (before?.issuedAt ?? 0)) before = held
    return before?.root === root && issuedAt - before.issuedAt >= (before.notAfter - before.issuedAt) / 4
  }

  /**
   * The holders of certificates that lead to a root (its fingerprint) and are valid at the Unix time `now` in milliseconds, in order of
   * identities, and the nodes of the proxies that are connected with one: to all replicas, or to this one.
   */
  holdersOf(root: string, now: number, replicas: 'all' | 'own' = 'all'): RootHolder[] {
    return this.#known(replicas === 'own' ? new Map() : undefined)
      .map(({ identity, holders, connections }) => ({
        identity,
        addresses: [...new Set([...holders.values()].filter((held) => held.root === root && held.notAfter > now).map(({ address }) => address))],
        proxies: named(connections.filter(({ presented }) => presented?.root === root)),
      }))
      .filter(({ addresses, proxies }) => addresses.length + proxies.length > 0)
  }

  /** Records a serving certificate that was issued to a server of this process. */
  issuedServing(record: ServingRecord): void {
    this.#serving = [...this.#serving, record].slice(-most.serving)
  }

  /**
   * Records that a proxy opened a stream in a stage. A stream with the same name is replaced. Returns whether that changed what is known of
   * certificates.
   */
  connected(name: string, proxy: ConnectedProxy, { epoch, provenBy }: LedgerStage): boolean {
    this.disconnected(name)
    if (proxy.identities.length === 0) {
      this.#plaintext.set(name, proxy.node)
      return false
    }
    const connection = this.#connectionOf(proxy)
    this.#connections.set(name, connection)
    for (const identity of connection.identities) this.#entry(identity).connections.set(name, connection)
    return this.#holdPresented(connection, proxy.presented?.root === provenBy ? epoch : beforeAnyStage)
  }

  disconnected(name: string): void {
    this.#plaintext.delete(name)
    const connection = this.#connections.get(name)
    if (!connection) return
    this.#connections.delete(name)
    for (const identity of connection.identities) {
      const entry = this.#identities.get(identity)
      entry?.connections.delete(name)
      if (entry) this.#dropEmpty(identity, entry)
    }
  }

  /** Removes all streams whose names begin with `prefix`: those of an XDS writer that ended. */
  allDisconnected(prefix: string): void {
    for (const name of [...this.#plaintext.keys(), ...this.#connections.keys()]) if (name.startsWith(prefix)) this.disconnected(name)
  }

  /** The streams of this replica. */
  streams(): ConnectedProxy[] {
    const plaintext = [...this.#plaintext.values()].map((node): ConnectedProxy => ({ node, identities: [] }))
    return [...[...this.#connections.values()].map(({ node, identities, presented }) => ({ node, identities, presented })), ...plaintext]
  }

  /**
   * Takes over the streams of all other replicas in place of those that they told before. They count in what is told of proxies; what is known of
   * certificates comes from {@link merge}. `isComplete`: no replica is missing.
   */
  connectedElsewhere(streams: readonly ConnectedProxy[], isComplete: boolean): void {
    const connections = new Map<string, Connection[]>()
    for (const connection of streams.map((stream) => this.#connectionOf(stream)))
      for (const identity of connection.identities) {
        const others = connections.get(identity)
        if (others) others.push(connection)
        else connections.set(identity, [connection])
      }
    const plaintext = streams.filter(({ identities }) => identities.length === 0).map(({ node }) => node)
    this.#elsewhere = { connections, plaintext, isComplete }
  }

  /** Removes the certificates that have expired at the Unix time `now` in milliseconds. */
  sweep(now: number): void {
    for (const [identity, entry] of this.#identities) {
      for (const held of entry.holders.values()) if (held.notAfter <= now) this.#release(entry, held)
      this.#dropEmpty(identity, entry)
    }
    this.#serving = this.#serving.filter(({ notAfter }) => notAfter > now)
    this.#evictions = this.#evictions.filter(({ until }) => until > now)
  }

  /** When the last known certificate of a root expires, evicted ones included, in Unix milliseconds. 0 when there is none. */
  lastExpiry(root: string): number {
    let last = Math.max(0, ...this.#evictions.filter((evicted) => evicted.root === root || evicted.root === '').map(({ until }) => until))
    for (const { holders, connections } of this.#identities.values()) {
      for (const held of holders.values()) if (held.root === root) last = Math.max(last, held.notAfter)
      for (const { presented } of connections.values()) if (presented?.root === root) last = Math.max(last, presented.notAfter)
    }
    return last
  }

  /**
   * The identities that would or might be left without a valid certificate if the rotation advanced at the Unix time `now` in milliseconds,
   * in the order of their names.
   */
  blockers(stage: LedgerStage, now: number): Blocker[] {
    const found: Blocker[] = []
    const { isComplete } = this.#elsewhere
    for (const known of this.#known())
      found.push(...blockersOf(known, stage, { now, knownFrom: this.#completeSince + this.#longestLife, isComplete }))
    const until = Math.max(0, ...this.#evictions.filter(({ epoch }) => epoch < stage.epoch).map((evicted) => evicted.until))
    if (until > now) {
      const isLost = this.#evictions.some(({ epoch, root }) => epoch === beforeAnyStage && root === '')
      const reason = isLost
        ? 'may hold certificates of an earlier stage that are not in the ledger, which was lost or written by an earlier version'
        : `hold certificates of an earlier stage that were removed from the ledger, which has room for ${this.#bounds.holders}`
      found.push({ identity: '(others)', proxies: [], why: 'not known', reason, until })
    }
    return found
  }

  /** Nodes of the proxies that are connected on the plaintext port. */
  plaintext(): string[] {
    return [...new Set([...this.#plaintext.values(), ...this.#elsewhere.plaintext])]
  }

  /** Serving certificates of this process, in order of issue, last issued last. */
  serving(): readonly ServingRecord[] {
    return this.#serving
  }

  /** Rows of the ledger in the order of identities: at most `length` of them, from the index `start`. */
  rows(start = 0, length = Number.POSITIVE_INFINITY): LedgerRow[] {
    return this.#known(undefined, start, length).map(({ identity, holders, connections }) => ({
      identity,
      proxies: [...new Set(connections.map(({ node }) => node))],
      certificates: [...holders.values()].sort((one, other) => other.issuedAt - one.issuedAt || (one.serial < other.serial ? -1 : 1)),
    }))
  }

  /** What is known of the identities in the order of their names: at most `length` of them, from the index `start`. */
  #known(elsewhere = this.#elsewhere.connections, start = 0, length = Number.POSITIVE_INFINITY): Known[] {
    const identities = [...new Set([...this.#identities.keys(), ...elsewhere.keys()])].sort()
    return identities.slice(start, start + length).map((identity) => {
      const { holders, connections } = this.#identities.get(identity) ?? { holders: new Map<string, HeldCertificate>() }
      return { identity, holders, connections: [...(connections?.values() ?? []), ...(elsewhere.get(identity) ?? [])] }
    })
  }

  #connectionOf(proxy: ConnectedProxy): Connection {
    const identities = proxy.identities.slice(0, this.#bounds.identities)
    return { ...proxy, identities, address: hostOf(proxy.node.split('~')[1] ?? '') }
  }

  #entry(identity: string): Entry {
    const entry = this.#identities.get(identity) ?? { holders: new Map(), renewed: new Set(), connections: new Map() }
    this.#identities.set(identity, entry)
    return entry
  }

  /**
   * Records stored certificates. Where not every one was recorded, a certificate of each address may be missing that was issued before the
   * recorded one.
   */
  #holdAll({ hasAll, longestLife }: LedgerHead, holders: Iterable<KeptHolder>): void {
    for (const [identity, held] of holders) {
      this.#hold(identity, held)
      if (hasAll) continue
      const missing = { epoch: beforeAnyStage, root: '', notAfter: held.issuedAt + longestLife }
      this.#evictions = withEvicted(this.#evictions, missing)
    }
  }

  /**
   * Holds the certificate that a proxy presented as one of a stage. Of one that is not recorded nothing is known: it was replaced, unless it
   * may have been issued before the ledger was complete. Returns whether that is news.
   */
  #holdPresented({ presented, identities, address }: Connection, epoch: number): boolean {
    if (!presented) return false
    const { serial, root, notAfter } = presented
    const isOld = notAfter - this.#longestLife < this.#completeSince
    let isNews = false
    for (const identity of identities) {
      const known = this.#identities.get(identity)?.holders.get(serial)
      if (known ? known.epoch >= epoch : !isOld) continue
      if (this.#hold(identity, known ? { ...known, epoch } : { address, serial, root, issuedAt: 0, notAfter, epoch })) isNews = true
    }
    return isNews
  }

  /** Holds a certificate in place of the one that it renews. Returns false when it is known as replaced, or as well as it is known here. */
  #hold(identity: string, told: HeldCertificate): boolean {
    const entry = this.#entry(identity)
    if (entry.renewed.has(told.serial)) return false
    const known = entry.holders.get(told.serial)
    // A certificate that was only presented has no time of issue.
    const held = known ? { ...(known.issuedAt > 0 ? known : told), epoch: Math.max(known.epoch, told.epoch) } : told
    if (known && held.epoch === known.epoch && held.issuedAt === known.issuedAt) return false
    const before = held.renews === undefined ? undefined : entry.holders.get(held.renews)
    if (before) this.#release(entry, before)
    if (held.renews !== undefined) entry.renewed.add(held.renews)
    if (!entry.holders.delete(held.serial)) this.#holders++
    entry.holders.set(held.serial, held)
    // Keeps the map in order of issue: the identity with the newest certificate is last.
    this.#identities.delete(identity)
    this.#identities.set(identity, entry)
    if (this.#holders > this.#bounds.holders) this.#forgetOne(identity)
    return true
  }

  /**
   * Evicts one certificate. An identity with more than a tenth of all holders loses its own oldest certificate; otherwise the oldest one of
   * the least recently issued identity goes.
   */
  #forgetOne(latest: string): void {
    const own = this.#identities.get(latest)
    const takesMuch = own !== undefined && own.holders.size > this.#bounds.holders / 10
    for (const [identity, entry] of takesMuch ? ([[latest, own]] as const) : this.#identities) {
      for (const held of entry.holders.values()) {
        this.#evictions = withEvicted(this.#evictions, held)
        this.#release(entry, held)
        this.#dropEmpty(identity, entry)
        return
      }
      // A connected identity without a certificate moves behind those that have one, so that later evictions do not examine it again.
      this.#identities.delete(identity)
      this.#identities.set(identity, entry)
    }
  }

  #release({ holders, renewed }: Entry, { serial, renews }: HeldCertificate): void {
    if (holders.delete(serial)) this.#holders--
    if (renews !== undefined) renewed.delete(renews)
  }

  #dropEmpty(identity: string, { holders, connections }: Entry): void {
    if (holders.size === 0 && connections.size === 0) this.#identities.delete(identity)
  }
}

/** The moment of a decision. */
interface Moment {
  /** Unix milliseconds. */
  readonly now: number
  /** Until when certificates may be valid that are not recorded, in Unix milliseconds. */
  readonly knownFrom: number
  /** Whether the connections to all replicas are known. */
  readonly isComplete: boolean
}

/** What blocks a stage because of the certificates of an identity. */
function blockersOf({ identity, holders, connections: open }: Known, stage: LedgerStage, { now, knownFrom, isComplete }: Moment): Blocker[] {
  const valid = [...holders.values()].filter(({ notAfter }) => notAfter > now)
  const [serials, addresses] = [new Set(open.map(({ presented }) => presented?.serial)), new Set(open.map(({ address }) => address))]
  const isHere = ({ serial, address }: HeldCertificate) => serials.has(serial) || addresses.has(address)
  const { late = [], absent = [] } = Object.groupBy(
    valid.filter(({ epoch }) => epoch < stage.epoch),
    (held) => (isHere(held) ? 'late' : 'absent'),
  )
  const found: Blocker[] = []
  const unseen = open.filter(({ presented }) => !presented)
  if (unseen.length > valid.length && knownFrom > now) {
    const reason = 'is connected, and may hold a certificate from before the ledger was begun'
    found.push({ identity, proxies: named(unseen), why: 'not known', reason, until: knownFrom })
  }
  if (late.length > 0) {
    const { serial, address, notAfter } = lastOf(late)
    const of = (one: Connection) => late.some((held) => held.serial === one.presented?.serial || held.address === one.address)
    const others = late.length > 1 ? `, and ${late.length - 1} more` : ''
    const reason = `is connected, and has not renewed certificate ${serial} of an earlier stage, issued to ${address}${others}`
    found.push({ identity, proxies: named(open.filter(of)), why: 'not issued since', reason, until: notAfter })
  }
  if (absent.length > 0) {
    const { serial, address, notAfter } = lastOf(absent)
    const others = absent.length > 1 ? `, and ${absent.length - 1} more` : ''
    // Behind address translation a certificate is issued to another address than that of its node.
    const issuedTo = new Set(valid.map((held) => held.address))
    const strays = named(open.filter((one) => !one.presented && !issuedTo.has(one.address)))
    const [known, hint] = strays.length > 0 ? [false, '; one of these proxies may hold it, if its address is translated'] : [isComplete, '']
    const where = `${known ? 'is not connected' : 'is not known to be connected'} from ${address}`
    const reason = `${where}, where it holds certificate ${serial} of an earlier stage${others}${hint}`
    found.push({ identity, proxies: strays, why: strays.length > 0 ? 'not known' : 'not connected', reason, until: notAfter })
  }
  return found
}

/** The certificate that expires last. */
const lastOf = (held: readonly HeldCertificate[]): HeldCertificate =>
  held.reduce((last, one) => (one.notAfter > last.notAfter || (one.notAfter === last.notAfter && one.serial < last.serial) ? one : last))

/** The evictions and one more certificate. Beyond the maximum, all are taken as the oldest stage with any root, which lasts longest. */
function withEvicted(
  evictions: readonly Evictions[],
  { epoch, root, notAfter }: Pick<HeldCertificate, 'epoch' | 'root' | 'notAfter'>,
): readonly Evictions[] {
  const isSame = (one: Evictions) => one.epoch === epoch && one.root === root
  const known = evictions.find(isSame)
  if (known && known.until >= notAfter) return evictions
  const all = [...evictions.filter((one) => !isSame(one)), { epoch, root, until: notAfter }]
  if (all.length <= most.evictions) return all
  return [{ epoch: Math.min(...all.map((one) => one.epoch)), root: '', until: Math.max(...all.map(({ until }) => until)) }]
}

const named = (connections: readonly Connection[]): string[] => [...new Set(connections.map(({ node }) => node))].slice(0, most.proxies)

/** The address without its port. An IPv4-mapped IPv6 address is returned as IPv4. */
function hostOf(peer: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(peer)?.[1]
  const host = bracketed ?? (peer.split(':').length === 2 ? (peer.split(':')[0] as string) : peer)
  return host.replace(/^::ffff:(?=\d+\.)/i, '')
}
