/**
 * The ledger of the certificate authority: which workloads hold which certificates until when, which proxies are connected, and which of
 * them would fail if a rotation advanced to its next stage now (docs/certificates.md, R9 to R13). The ledger is no source of trust: no
 * permission depends on it.
 */

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
}

/** A serving certificate that was issued to a server of this process. */
export type ServingRecord = Pick<IssuedCertificate, 'serial' | 'root' | 'issuedAt' | 'notAfter'>

/** A stream of a proxy. On the plaintext port it has no identities. */
export interface ConnectedProxy {
  /** Id of the proxy's node, `<type>~<address>~<name>~<domain>`. */
  readonly node: string
  readonly identities: readonly string[]
  /**
   * The root of the client certificate's chain, and when the certificate expires in Unix milliseconds. Undefined without a client
   * certificate.
   */
  readonly presented: { readonly root: string; readonly notAfter: number } | undefined
}

/** The current stage of a rotation, as the ledger needs it. */
export interface LedgerStage {
  /** The number of the stage. */
  readonly epoch: number
  /**
   * Fingerprint of the root that signs at this stage. A connection that began in this stage and presented a certificate of this root needs
   * no newer one. Undefined: no client certificate is such a proof.
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
  /** The last certificate of each address, in order of issue, last issued first. */
  readonly certificates: readonly HeldCertificate[]
}

/** The last certificate that was issued to an identity from one address. */
export interface HeldCertificate {
  readonly address: string
  readonly serial: string
  readonly root: string
  readonly issuedAt: number
  readonly notAfter: number
  /** The number of the stage in which the certificate was issued, and how many were issued to this address in that stage. */
  readonly epoch: number
  readonly count: number
}

/** An identity with certificates of a root: the addresses that they were issued to, and the nodes of its proxies that presented one (ten). */
export interface RootHolder {
  readonly identity: string
  readonly addresses: readonly string[]
  readonly proxies: readonly string[]
}

/** Limits of the ledger. */
export interface LedgerBounds {
  /** The maximum number of addresses that hold a certificate, over all identities. */
  readonly holders: number
  /** The maximum number of identities of one certificate or connection that are recorded. */
  readonly identities: number
}

export const ledgerBounds: LedgerBounds = { holders: 100_000, identities: 8 }
/** The maximum numbers of serving certificates, of proxies named in one blocker, and of stages and roots with evicted certificates. */
const most = { serving: 64, proxies: 10, evictions: 32 }

/** The stage of certificates of which a lost ledger had the stage. */
const beforeAnyStage = -1

interface Entry {
  readonly holders: Map<string, HeldCertificate>
  readonly connections: Map<string, Connection>
  /** How many certificates of a stage were evicted while the entry stood: they count for proxies at addresses without a certificate. */
  evicted: { readonly epoch: number; readonly count: number } | undefined
}

interface Connection extends ConnectedProxy {
  readonly address: string
  /** The number of the stage in which the connection began. */
  readonly epoch: number
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

  /** Number of addresses that hold a certificate. */
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
    for (const [identity, held] of holders) this.#hold(identity, held)
  }

  /**
   * Adds the records of another replica of the authority: of each holder the certificate that was issued last counts. What one of the two
   * does not know for certain is not certain.
   */
  merge(head: LedgerHead, holders: Iterable<KeptHolder>): void {
    this.#completeSince = Math.max(this.#completeSince, head.completeSince)
    this.#longestLife = Math.max(this.#longestLife, head.longestLife)
    for (const { epoch, root, until } of head.evictions) this.#evictions = withEvicted(this.#evictions, { epoch, root, notAfter: until })
    const serving = new Map([...head.serving, ...this.#serving].map((record) => [record.serial, record]))
    this.#serving = [...serving.values()].sort((one, other) => one.issuedAt - other.issuedAt).slice(-most.serving)
    for (const [identity, held] of holders) {
      const known = this.#identities.get(identity)?.holders.get(held.address)
      if (known && (known.issuedAt > held.issuedAt || known.serial === held.serial)) continue
      this.#hold(identity, held)
    }
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
    return { format: 1, completeSince, longestLife, evictions, serving: this.#serving }
  }

  /**
   * Iterates over the holders to be stored. A certificate that is issued during the iteration may appear twice; the later record is the
   * current one.
   */
  *holders(): Iterable<KeptHolder> {
    for (const [identity, entry] of this.#identities) for (const held of entry.holders.values()) yield [identity, held]
  }

  /** Records a certificate that was issued to a workload in the stage with the number `epoch`. */
  issued({ identities, serial, root, issuedAt, notAfter, peer }: IssuedCertificate, epoch: number): void {
    this.#longestLife = Math.max(this.#longestLife, notAfter - issuedAt)
    const address = hostOf(peer)
    for (const identity of identities.slice(0, this.#bounds.identities)) {
      const before = this.#identities.get(identity)?.holders.get(address)
      const count = before?.epoch === epoch ? before.count + 1 : 1
      this.#hold(identity, { address, serial, root, issuedAt, notAfter, epoch, count })
    }
  }

  /**
   * Whether a certificate follows one of the same root that its holder kept for a quarter of its life at least: a holder that cannot use a
   * certificate, because it is not valid by its own clock, asks again at once.
   */
  isRenewalInTime({ identities, root, issuedAt, peer }: IssuedCertificate): boolean {
    const before = this.#identities.get(identities[0] ?? '')?.holders.get(hostOf(peer))
    return before?.root === root && issuedAt - before.issuedAt >= (before.notAfter - before.issuedAt) / 4
  }

  /**
   * The holders of certificates that lead to a root (its fingerprint) and are valid at the Unix time `now` in milliseconds, in order of
   * identities, and the nodes of the proxies that are connected with one.
   */
  holdersOf(root: string, now: number): RootHolder[] {
    return [...this.#identities]
      .map(([identity, { holders, connections }]) => ({
        identity,
        addresses: [...holders.values()].filter((held) => held.root === root && held.notAfter > now).map(({ address }) => address),
        proxies: named([...connections.values()].filter(({ presented }) => presented?.root === root)),
      }))
      .filter(({ addresses, proxies }) => addresses.length + proxies.length > 0)
      .sort((one, other) => (one.identity < other.identity ? -1 : 1))
  }

  /** Records a serving certificate that was issued to a server of this process. */
  issuedServing(record: ServingRecord): void {
    this.#serving = [...this.#serving, record].slice(-most.serving)
  }

  /** Records that a proxy opened a stream in the stage with the number `epoch`. A stream with the same name is replaced. */
  connected(name: string, proxy: ConnectedProxy, epoch: number): void {
    this.disconnected(name)
    if (proxy.identities.length === 0) {
      this.#plaintext.set(name, proxy.node)
      return
    }
    const identities = proxy.identities.slice(0, this.#bounds.identities)
    const connection: Connection = { ...proxy, identities, address: hostOf(proxy.node.split('~')[1] ?? ''), epoch }
    this.#connections.set(name, connection)
    for (const identity of identities) this.#entry(identity).connections.set(name, connection)
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

  /** Removes the certificates that have expired at the Unix time `now` in milliseconds. */
  sweep(now: number): void {
    for (const [identity, entry] of this.#identities) {
      // A connected identity keeps one expired certificate: the record shows that it was issued a certificate and let it expire.
      const least = entry.connections.size > 0 ? 1 : 0
      for (const [address, { notAfter }] of entry.holders) if (notAfter <= now && entry.holders.size > least) this.#release(entry, address)
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
   * The identities that would or might be left without a valid certificate if the rotation advanced at the Unix time `now` in milliseconds.
   */
  blockers(stage: LedgerStage, now: number): Blocker[] {
    const found: Blocker[] = []
    for (const [identity, entry] of this.#identities) {
      const late = lateProxies(entry, stage, now, this.#completeSince + this.#longestLife)
      if (late) found.push({ identity, ...late })
      const absent = absentHolder(entry, stage, now)
      if (absent) found.push({ identity, proxies: [], why: 'not connected', reason: absentReason(absent), until: absent.notAfter })
    }
    const until = Math.max(0, ...this.#evictions.filter(({ epoch }) => epoch < stage.epoch).map((evicted) => evicted.until))
    if (until > now) {
      const isLost = this.#evictions.some(({ epoch }) => epoch === beforeAnyStage)
      const reason = isLost
        ? 'may hold certificates of an earlier stage: the ledger that recorded them was lost'
        : `hold certificates of an earlier stage that were removed from the ledger, which has room for ${this.#bounds.holders} addresses`
      found.push({ identity: '(others)', proxies: [], why: 'not known', reason, until })
    }
    return found
  }

  /** Nodes of the proxies that are connected on the plaintext port. */
  plaintext(): string[] {
    return [...new Set(this.#plaintext.values())]
  }

  /** Serving certificates of this process, in order of issue, last issued last. */
  serving(): readonly ServingRecord[] {
    return this.#serving
  }

  /** Rows of the ledger in the order of identities: at most `length` of them, from the index `start`. */
  rows(start = 0, length = Number.POSITIVE_INFINITY): LedgerRow[] {
    return [...this.#identities]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .slice(start, start + length)
      .map(([identity, { holders, connections }]) => ({
        identity,
        proxies: [...new Set([...connections.values()].map(({ node }) => node))],
        certificates: [...holders.values()].toReversed(),
      }))
  }

  #entry(identity: string): Entry {
    const entry = this.#identities.get(identity) ?? { holders: new Map(), connections: new Map(), evicted: undefined }
    this.#identities.set(identity, entry)
    return entry
  }

  #hold(identity: string, held: HeldCertificate): void {
    const entry = this.#entry(identity)
    if (!entry.holders.delete(held.address)) this.#holders++
    entry.holders.set(held.address, held)
    // Keeps the map in order of issue: the identity with the newest certificate is last.
    this.#identities.delete(identity)
    this.#identities.set(identity, entry)
    if (this.#holders > this.#bounds.holders) this.#forgetOne(identity)
  }

  /**
   * Evicts one certificate. An identity with more than a tenth of all holders loses its own oldest certificate; otherwise the oldest one of
   * the least recently issued identity goes.
   */
  #forgetOne(latest: string): void {
    const own = this.#identities.get(latest)
    const takesMuch = own !== undefined && own.holders.size > this.#bounds.holders / 10
    for (const [identity, entry] of takesMuch ? ([[latest, own]] as const) : this.#identities) {
      for (const [address, held] of entry.holders) {
        this.#evictions = withEvicted(this.#evictions, held)
        const { epoch, count } = entry.evicted ?? { epoch: -1, count: 0 }
        entry.evicted = { epoch: held.epoch, count: held.count + (epoch === held.epoch ? count : 0) }
        this.#release(entry, address)
        this.#dropEmpty(identity, entry)
        return
      }
      // A connected identity without a certificate moves behind those that have one, so that later evictions do not examine it again.
      this.#identities.delete(identity)
      this.#identities.set(identity, entry)
    }
  }

  #release(entry: Entry, address: string): void {
    if (entry.holders.delete(address)) this.#holders--
  }

  #dropEmpty(identity: string, { holders, connections }: Entry): void {
    if (holders.size === 0 && connections.size === 0) this.#identities.delete(identity)
  }
}

/**
 * Returns a blocker for the connected proxies of an identity that have no certificate of the current stage. Undefined when there are none.
 */
function lateProxies(
  { holders, connections, evicted }: Entry,
  stage: LedgerStage,
  now: number,
  knownFrom: number,
): Omit<Blocker, 'identity'> | undefined {
  if (connections.size === 0) return undefined
  const relevant = [...connections.values()].filter((connection) => holdsSomething(connection, holders, now))
  if (relevant.length === 0) {
    if (holders.size > 0 || now >= knownFrom) return undefined
    const reason = 'is connected, and may hold a certificate from before the ledger was begun'
    return { proxies: named([...connections.values()]), why: 'not known', reason, until: knownFrom }
  }
  const byAddress = Map.groupBy(relevant, ({ address }) => address)
  const fresh = (address: string) => {
    const held = holders.get(address)
    return held?.epoch === stage.epoch ? held.count : 0
  }
  const late: Connection[] = []
  let [missing, unknown] = [0, 0]
  for (const [address, proxies] of byAddress) {
    const unproven = proxies.filter((proxy) => !isProof(proxy, stage))
    const open = unproven.length === 0 ? 0 : proxies.length - Math.max(fresh(address), proxies.length - unproven.length)
    if (open <= 0) continue
    if (holders.has(address)) missing += open
    else unknown += open
    late.push(...unproven)
  }
  // A proxy behind NAT requests its certificate from an address that is not the address of its node. Certificates of the current stage that
  // were issued to addresses of no connected proxy, and those that were evicted, are therefore counted for proxies whose own address holds none.
  const removed = evicted?.epoch === stage.epoch ? evicted.count : 0
  const elsewhere = [...holders.keys()].filter((address) => !byAddress.has(address)).reduce((sum, address) => sum + fresh(address), removed)
  missing += Math.max(0, unknown - elsewhere)
  if (missing === 0) return undefined
  const until = Math.max(...[...holders.values()].map(({ notAfter }) => notAfter), ...late.map(({ presented }) => presented?.notAfter ?? 0))
  const reason = `has proxies that were not issued a certificate since the stage began: ${missing} of ${relevant.length}`
  return { proxies: named(late), why: 'not issued since', reason, until }
}

/** Whether a proxy may hold a certificate that is still valid. */
function holdsSomething({ presented }: Connection, holders: ReadonlyMap<string, HeldCertificate>, now: number): boolean {
  return (presented !== undefined && presented.notAfter > now) || [...holders.values()].some(({ notAfter }) => notAfter > now)
}

function isProof({ presented, epoch }: Connection, stage: LedgerStage): boolean {
  return presented !== undefined && stage.provenBy !== undefined && presented.root === stage.provenBy && epoch === stage.epoch
}

/** The certificate of an earlier stage that expires last, among those of addresses from which no proxy is connected. */
function absentHolder({ holders, connections }: Entry, stage: LedgerStage, now: number): HeldCertificate | undefined {
  const here = new Set(connections.size === 0 ? [] : [...connections.values()].map(({ address }) => address))
  let longest: HeldCertificate | undefined
  for (const held of holders.values()) {
    const blocks = held.notAfter > now && held.epoch < stage.epoch && !here.has(held.address)
    if (blocks && held.notAfter > (longest?.notAfter ?? 0)) longest = held
  }
  return longest
}

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

const absentReason = ({ address, serial }: HeldCertificate): string =>
  `is not connected from ${address}, where it holds certificate ${serial} of an earlier stage`

const named = (connections: readonly Connection[]): string[] => [...new Set(connections.map(({ node }) => node))].slice(0, most.proxies)

/** The address without its port. An IPv4-mapped IPv6 address is returned as IPv4. */
function hostOf(peer: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(peer)?.[1]
  const host = bracketed ?? (peer.split(':').length === 2 ? (peer.split(':')[0] as string) : peer)
  return host.replace(/^::ffff:(?=\d+\.)/i, '')
}
