/**
 * The ledger of the certificate authority: who holds what until when, who is connected, and who would be hurt if a rotation went one stage
 * further now (docs/certificates.md, R9 to R13). It is no source of trust: nothing is permitted because of it.
 */

/** A certificate that was issued to a workload. */
export interface IssuedCertificate {
  /** SPIFFE ids in it. */
  readonly identities: readonly string[]
  /** Hexadecimal. */
  readonly serial: string
  /** SHA-256 fingerprint of the root that it leads to. */
  readonly root: string
  /** Unix milliseconds. */
  readonly issuedAt: number
  readonly notAfter: number
  /** Address that asked for it, with or without a port. */
  readonly peer: string
}

/** A certificate that was issued to a server of this process. */
export type ServingRecord = Pick<IssuedCertificate, 'serial' | 'root' | 'issuedAt' | 'notAfter'>

/** A stream of a proxy; without identities on the plaintext port. */
export interface ConnectedProxy {
  /** Id of its node, `<type>~<address>~<name>~<domain>`. */
  readonly node: string
  readonly identities: readonly string[]
  /** Of a client certificate: the root that it leads to, and when it expires in Unix milliseconds. */
  readonly presented: { readonly root: string; readonly notAfter: number } | undefined
}

/** The stage that a rotation is in, as far as the ledger must know it. */
export interface LedgerStage {
  /** Number of the stage. */
  readonly epoch: number
  /** The root that signs at this stage; a certificate of it that a connection begun in this stage has presented is proof, undefined when it is not. */
  readonly provenBy: string | undefined
}

/** What holds a rotation up. */
export interface Blocker {
  readonly identity: string
  /** Nodes of its proxies that block, the first of them. */
  readonly proxies: readonly string[]
  readonly why: 'not issued since' | 'not connected' | 'not known'
  /** Part of a sentence about the identity. */
  readonly reason: string
  /** When it ends by itself, in Unix milliseconds. */
  readonly until: number | undefined
}

/** What is known of an identity. */
export interface LedgerRow {
  readonly identity: string
  readonly proxies: readonly string[]
  /** Holders by address, last issued first. */
  readonly certificates: readonly Held[]
}

/** The last certificate that was issued to an identity from an address. */
export interface Held {
  readonly address: string
  readonly serial: string
  readonly root: string
  readonly issuedAt: number
  readonly notAfter: number
  /** The stage in which it was issued, and how many were from this address in that stage. */
  readonly epoch: number
  readonly count: number
}

/** Most that is remembered. */
export interface LedgerBounds {
  /** Addresses that hold a certificate, of all identities. */
  readonly holders: number
  /** Identities that one caller stands for. */
  readonly identities: number
}

export const ledgerBounds: LedgerBounds = { holders: 100_000, identities: 8 }
/** Serving certificates, and proxies named in one blocker. */
const most = { serving: 64, proxies: 10 }

interface Entry {
  readonly holders: Map<string, Held>
  readonly connections: Map<string, Connection>
}

interface Connection extends ConnectedProxy {
  readonly address: string
  /** The stage in which it began. */
  readonly epoch: number
}

/** What is kept over restarts, beside the certificates. */
export interface LedgerHead {
  readonly format: 1
  /** From when on nothing is missing, in Unix milliseconds. */
  readonly completeSince: number
  /** Longest life that a certificate was given, in milliseconds. */
  readonly longestLife: number
  /** Until when certificates are valid that there was no room for, in Unix milliseconds. */
  readonly forgottenUntil: number
  readonly serving: readonly ServingRecord[]
}

/** A certificate that is kept over restarts: to whom it was issued, and what is known of it. */
export type KeptHolder = readonly [identity: string, held: Held]

/** The ledger. */
export class Ledger {
  readonly #bounds: LedgerBounds
  /** Least recently issued first. */
  readonly #identities = new Map<string, Entry>()
  readonly #plaintext = new Map<string, string>()
  readonly #connections = new Map<string, Connection>()
  #serving: ServingRecord[] = []
  #holders = 0
  #completeSince: number
  #longestLife: number
  #forgottenUntil = 0

  /** `completeSince`: from when on nothing is missing; `longestLife`: that of certificates which may be missing before. Both in milliseconds. */
  constructor(completeSince: number, longestLife: number, bounds = ledgerBounds) {
    this.#completeSince = completeSince
    this.#longestLife = longestLife
    this.#bounds = bounds
  }

  /** Number of addresses that hold a certificate. */
  get size(): number {
    return this.#holders
  }

  /** Takes what was kept. `now` stands for the time since which nothing is missing when the process before did not end in order. */
  restore(head: LedgerHead, holders: Iterable<KeptHolder>, endedInOrder: boolean, now: number): void {
    this.#completeSince = endedInOrder ? head.completeSince : now
    this.#longestLife = Math.max(this.#longestLife, head.longestLife)
    this.#forgottenUntil = head.forgottenUntil
    this.#serving = [...head.serving]
    for (const [identity, held] of holders) this.#hold(identity, held)
  }

  head(): LedgerHead {
    const [completeSince, longestLife, forgottenUntil] = [this.#completeSince, this.#longestLife, this.#forgottenUntil]
    return { format: 1, completeSince, longestLife, forgottenUntil, serving: this.#serving }
  }

  /** What is to be kept of each holder. What is issued while this is read may come twice, the last time as it is then. */
  *holders(): Iterable<KeptHolder> {
    for (const [identity, entry] of this.#identities) for (const held of entry.holders.values()) yield [identity, held]
  }

  /** A workload was given a certificate in the stage of number `epoch`. */
  issued({ identities, serial, root, issuedAt, notAfter, peer }: IssuedCertificate, epoch: number): void {
    this.#longestLife = Math.max(this.#longestLife, notAfter - issuedAt)
    const address = hostOf(peer)
    for (const identity of identities.slice(0, this.#bounds.identities)) {
      const before = this.#identities.get(identity)?.holders.get(address)
      const count = before?.epoch === epoch ? before.count + 1 : 1
      this.#hold(identity, { address, serial, root, issuedAt, notAfter, epoch, count })
    }
  }

  /** A server of this process was given a certificate. */
  issuedServing(record: ServingRecord): void {
    this.#serving = [...this.#serving, record].slice(-most.serving)
  }

  /** A proxy has opened a stream in the stage of number `epoch`. A stream of the same name is replaced. */
  connected(name: string, proxy: ConnectedProxy, epoch: number): void {
    this.gone(name)
    if (proxy.identities.length === 0) {
      this.#plaintext.set(name, proxy.node)
      return
    }
    const identities = proxy.identities.slice(0, this.#bounds.identities)
    const connection: Connection = { ...proxy, identities, address: hostOf(proxy.node.split('~')[1] ?? ''), epoch }
    this.#connections.set(name, connection)
    for (const identity of identities) this.#entry(identity).connections.set(name, connection)
  }

  gone(name: string): void {
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

  /** Forgets all streams of a writer that is gone: those whose names begin with this. */
  allGone(prefix: string): void {
    for (const name of [...this.#plaintext.keys(), ...this.#connections.keys()]) if (name.startsWith(prefix)) this.gone(name)
  }

  /** Forgets certificates that had expired at a Unix time in milliseconds. */
  sweep(now: number): void {
    for (const [identity, entry] of this.#identities) {
      // Of an identity that is connected one stays: it was given a certificate, and let it expire.
      const least = entry.connections.size > 0 ? 1 : 0
      for (const [address, { notAfter }] of entry.holders) if (notAfter <= now && entry.holders.size > least) this.#release(entry, address)
      this.#dropEmpty(identity, entry)
    }
    this.#serving = this.#serving.filter(({ notAfter }) => notAfter > now)
  }

  /** Until when certificates of a root are valid, as far as is known; 0 when none is. */
  lastExpiry(root: string): number {
    let last = this.#forgottenUntil
    for (const { holders, connections } of this.#identities.values()) {
      for (const held of holders.values()) if (held.root === root) last = Math.max(last, held.notAfter)
      for (const { presented } of connections.values()) if (presented?.root === root) last = Math.max(last, presented.notAfter)
    }
    return last
  }

  /** Everybody who would be hurt, or may be, if the stage went on at the Unix time `now` in milliseconds. */
  blockers(stage: LedgerStage, now: number): Blocker[] {
    const found: Blocker[] = []
    for (const [identity, entry] of this.#identities) {
      const late = lateProxies(entry, stage, now, this.#completeSince + this.#longestLife)
      if (late) found.push({ identity, ...late })
      const absent = absentHolder(entry, stage, now)
      if (absent) found.push({ identity, proxies: [], why: 'not connected', reason: absentReason(absent), until: absent.notAfter })
    }
    if (this.#forgottenUntil > now)
      found.push({
        identity: '(others)',
        proxies: [],
        why: 'not known',
        reason: `there was no room for: of more than ${this.#bounds.holders} addresses with a certificate some are forgotten`,
        until: this.#forgottenUntil,
      })
    return found
  }

  /** Nodes on the plaintext port. */
  plaintext(): string[] {
    return [...new Set(this.#plaintext.values())]
  }

  /** Serving certificates of this process, last issued last. */
  serving(): readonly ServingRecord[] {
    return this.#serving
  }

  /** What is known of identities, in their order of names, from `start` on. */
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
    const entry = this.#identities.get(identity) ?? { holders: new Map(), connections: new Map() }
    this.#identities.set(identity, entry)
    return entry
  }

  #hold(identity: string, held: Held): void {
    const entry = this.#entry(identity)
    if (!entry.holders.delete(held.address)) this.#holders++
    entry.holders.set(held.address, held)
    // The one that was issued to last comes last.
    this.#identities.delete(identity)
    this.#identities.set(identity, entry)
    if (this.#holders > this.#bounds.holders) this.#forgetOne(identity)
  }

  /** An identity that takes much of the room loses its oldest; else the one that was issued to longest ago. */
  #forgetOne(latest: string): void {
    const own = this.#identities.get(latest)
    const takesMuch = own !== undefined && own.holders.size > this.#bounds.holders / 10
    for (const [identity, entry] of takesMuch ? ([[latest, own]] as const) : this.#identities) {
      for (const [address, { notAfter }] of entry.holders) {
        this.#forgottenUntil = Math.max(this.#forgottenUntil, notAfter)
        this.#release(entry, address)
        this.#dropEmpty(identity, entry)
        return
      }
      // Connected, and without a certificate: behind those that have one, so that it is not looked at again and again.
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

/** Proxies of an identity that are connected and have not what the stage gives. */
function lateProxies({ holders, connections }: Entry, stage: LedgerStage, now: number, knownFrom: number): Omit<Blocker, 'identity'> | undefined {
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
  // Proxies behind a translation of addresses, nothing was ever issued to the address that they have themselves: certificates to addresses that no proxy has may be theirs.
  const elsewhere = [...holders.keys()].filter((address) => !byAddress.has(address)).reduce((sum, address) => sum + fresh(address), 0)
  missing += Math.max(0, unknown - elsewhere)
  if (missing === 0) return undefined
  const until = Math.max(...[...holders.values()].map(({ notAfter }) => notAfter), ...late.map(({ presented }) => presented?.notAfter ?? 0))
  const reason = `has ${missing} of ${relevant.length} proxies that were not issued a certificate since the stage began`
  return { proxies: named(late), why: 'not issued since', reason, until }
}

/** Whether a proxy may hold a certificate that is valid. */
function holdsSomething({ presented }: Connection, holders: ReadonlyMap<string, Held>, now: number): boolean {
  return (presented !== undefined && presented.notAfter > now) || [...holders.values()].some(({ notAfter }) => notAfter > now)
}

function isProof({ presented, epoch }: Connection, stage: LedgerStage): boolean {
  return presented !== undefined && stage.provenBy !== undefined && presented.root === stage.provenBy && epoch === stage.epoch
}

/** The longest-lived certificate of a stage before that somebody holds who is not connected. */
function absentHolder({ holders, connections }: Entry, stage: LedgerStage, now: number): Held | undefined {
  const here = new Set(connections.size === 0 ? [] : [...connections.values()].map(({ address }) => address))
  let longest: Held | undefined
  for (const held of holders.values()) {
    const blocks = held.notAfter > now && held.epoch < stage.epoch && !here.has(held.address)
    if (blocks && held.notAfter > (longest?.notAfter ?? 0)) longest = held
  }
  return longest
}

const absentReason = ({ address, serial }: Held): string =>
  `is not connected from ${address}, where it holds certificate ${serial} of an earlier stage`

const named = (connections: readonly Connection[]): string[] => [...new Set(connections.map(({ node }) => node))].slice(0, most.proxies)

/** The address without its port, IPv4 in its own notation. */
function hostOf(peer: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(peer)?.[1]
  const host = bracketed ?? (peer.split(':').length === 2 ? (peer.split(':')[0] as string) : peer)
  return host.replace(/^::ffff:(?=\d+\.)/i, '')
}
