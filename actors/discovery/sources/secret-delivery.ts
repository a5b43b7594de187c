/**
 * Delivers the secrets of a source to the writers that subscribed to them (`SecretCommand`, `SecretEvent`; docs/resources.md, K6, K7). A
 * source owns one instance, passes it the secrets that it reads, and forwards the subscriptions of the writers.
 */
import type { GatewaySecret, SecretCommand, SecretEvent, SecretMaterial, SecretReader, Validity } from '../../../protocols/messages/secrets.ts'
import { configKey } from '../../../src/config/kinds.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { Counter, type MetricRegistry } from '../../runtime/metrics.ts'

/**
 * Returns whether a service account may read a secret of its own namespace; it may never read those of another namespace. Returns undefined
 * while the answer is being determined: {@link SecretDelivery.answerPending} must be called once it is known.
 */
export type SecretAccess = (reader: SecretReader, secret: GatewaySecret) => boolean | undefined

/** The readers whose Secrets a source has: those for which its cluster vouches, undefined: the own one (docs/identity.md, I11). */
const isOf = ({ cluster }: SecretReader, own: string | undefined): boolean => cluster === own

/** The maximum number of service accounts that are remembered as refused, for each secret. */
const mostRefused = 100

/** A secret as debug pages show it, without its content. */
export interface SecretSummary {
  readonly namespace: string
  readonly name: string
  readonly type: string
  readonly place: string
  /** The service accounts that the annotation of the Secret names; undefined without one. */
  readonly serviceAccounts: readonly string[] | undefined
  /** Service accounts of gateways that requested it and may not read it. */
  readonly refused: readonly string[]
  /** Validity of the certificate, and of the CA certificates; undefined where the Secret has none. */
  readonly pair: Validity | undefined
  readonly authorities: Validity | undefined
}

/** The subscription of a reader to a name. */
interface Want {
  readonly reader: SecretReader
  readonly name: string
  /** What the writer has been sent: the secret, or that there is none that the reader may read. */
  answered: 'nothing yet' | 'secret' | 'none'
}

/** The secrets of a source, and the subscriptions to them. */
export class SecretDelivery {
  readonly #secrets = new Map<string, GatewaySecret>()
  /** Subscriptions of each writer: by the key of the secret, then by the account of the reader. */
  readonly #writers = new Map<Peer<SecretEvent>, ReadonlyMap<string, ReadonlyMap<string, Want>>>()
  readonly #cluster: string | undefined
  readonly #isAbsent: (key: string) => boolean
  readonly #mayRead: SecretAccess
  readonly #triggers: Counter
  /** By secret the accounts that requested it and may not read it. */
  readonly #refused = new Map<string, Set<string>>()
  readonly #sayRefused: (reader: SecretReader, secret: GatewaySecret) => void

  /**
   * `isAbsent` returns whether a secret that was not passed here (`Secret/<namespace>/<name>`) certainly does not exist. `refused` is called
   * once for each account that requests a secret which it may not read, and again after the secret changed. `cluster`: the other cluster whose
   * Secrets these are; undefined: they are those of this process. Readers of other clusters are told nothing.
   */
  constructor(
    isAbsent: (key: string) => boolean,
    mayRead: SecretAccess,
    refused: (reader: SecretReader, secret: GatewaySecret) => void,
    register: MetricRegistry,
    cluster?: string,
  ) {
    this.#cluster = cluster
    this.#isAbsent = isAbsent
    this.#mayRead = mayRead
    this.#sayRefused = refused
    this.#triggers = new Counter({
      name: 'pilot_push_triggers',
      help: 'pushes triggered, by reason',
      labelNames: ['type'],
      registers: [register],
    })
  }

  /** Adds, replaces or removes a secret. Subscribed writers are sent it if its content, or who may read it, changed. */
  set(key: string, secret: GatewaySecret | undefined): void {
    const before = this.#secrets.get(key)
    if (secret) this.#secrets.set(key, secret)
    else this.#secrets.delete(key)
    this.#refused.delete(key)
    const isSame = sameMaterial(before?.material, secret?.material)
    let isAnswered = false
    for (const [writer, wants] of this.#writers)
      for (const want of wants.get(key)?.values() ?? []) {
        const isAllowed = secret ? this.#mayRead(want.reader, secret) : false
        if (isSame && isAllowed !== undefined && want.answered === (isAllowed ? 'secret' : 'none')) this.#noteRefusal(want, secret, isAllowed)
        else if (this.#answer(writer, want)) isAnswered = true
      }
    if (isAnswered) this.#triggers.inc({ type: 'secret' })
  }

  /** Answers outstanding subscriptions: `isAbsent` or the access decision may now be certain for more of them. */
  answerPending(): void {
    for (const writer of this.#writers.keys()) this.#answerAll(writer)
  }

  /** The decision on a reader has been made, or is another than before: its subscriptions are answered where the answer is another. */
  accessChanged({ namespace, account }: SecretReader): void {
    let isAnswered = false
    for (const [writer, wants] of this.#writers)
      for (const [key, readers] of wants) {
        const want = readers.get(account)
        const secret = this.#secrets.get(key)
        if (!secret || want?.reader.namespace !== namespace) continue
        const isAllowed = this.#mayRead(want.reader, secret)
        if (isAllowed) this.#refused.get(key)?.delete(account)
        if (want.answered === (isAllowed ? 'secret' : 'none')) this.#noteRefusal(want, secret, isAllowed)
        else if (this.#answer(writer, want)) isAnswered = true
      }
    if (isAnswered) this.#triggers.inc({ type: 'secret' })
  }

  /** Whether there is a secret. */
  has(namespace: string, name: string): boolean {
    return this.#secrets.has(configKey({ kind: 'Secret', namespace, name }))
  }

  /** The keys of all secrets. */
  keys(): Iterable<string> {
    return this.#secrets.keys()
  }

  /** Replaces the subscriptions of a writer. New ones are answered. */
  wanted(writer: Peer<SecretEvent>, { wanted }: SecretCommand): void {
    const before = this.#writers.get(writer)
    const wants = new Map<string, Map<string, Want>>()
    for (const { reader, names } of wanted.filter((each) => isOf(each.reader, this.#cluster)))
      for (const name of names) {
        const key = keyOf(reader, name)
        const want = before?.get(key)?.get(reader.account) ?? { reader, name, answered: 'nothing yet' }
        const readers = wants.get(key)
        if (readers) readers.set(reader.account, want)
        else wants.set(key, new Map([[reader.account, want]]))
      }
    this.#writers.set(writer, wants)
    this.#answerAll(writer)
  }

  /** Removes a writer. */
  unlinked(writer: Peer): void {
    this.#writers.delete(writer as Peer<SecretEvent>)
  }

  /** All secrets, for debug pages. */
  summaries(): SecretSummary[] {
    return [...this.#secrets].map(([key, { namespace, name, type, place, serviceAccounts, validity }]) => {
      const refused = [...(this.#refused.get(key) ?? [])].sort()
      return { namespace, name, type, place, serviceAccounts, refused, ...validity }
    })
  }

  #answerAll(writer: Peer<SecretEvent>): void {
    for (const readers of this.#writers.get(writer)?.values() ?? [])
      for (const want of readers.values()) if (want.answered === 'nothing yet') this.#answer(writer, want)
  }

  /** Answers a subscription. Returns false if the answer is not known yet. */
  #answer(writer: Peer<SecretEvent>, want: Want): boolean {
    const { reader, name } = want
    const key = keyOf(reader, name)
    const secret = this.#secrets.get(key)
    const isAllowed = secret ? this.#mayRead(reader, secret) : this.#isAbsent(key) ? false : undefined
    if (isAllowed === undefined) return false
    want.answered = isAllowed ? 'secret' : 'none'
    const material = isAllowed ? secret?.material : undefined
    const isRefused = secret && !isAllowed ? { isRefused: true as const } : {}
    const event: SecretEvent = { type: 'SecretChanged', reader, name, material, ...isRefused, at: monotonicMs() }
    writer.tell(event, JSON.stringify(['secret', reader.namespace, reader.account, name]))
    this.#noteRefusal(want, secret, isAllowed)
    return true
  }

  /** Reports a reader that may not read the secret that it requests. */
  #noteRefusal({ reader, name }: Want, secret: GatewaySecret | undefined, isAllowed: boolean | undefined): void {
    if (!secret || isAllowed !== false) return
    const key = keyOf(reader, name)
    const refused = this.#refused.get(key) ?? new Set()
    this.#refused.set(key, refused)
    if (refused.has(reader.account) || refused.size >= mostRefused) return
    refused.add(reader.account)
    this.#sayRefused(reader, secret)
  }
}

const keyOf = ({ namespace }: SecretReader, name: string): string => configKey({ kind: 'Secret', namespace, name })

function sameMaterial(one: SecretMaterial | undefined, other: SecretMaterial | undefined): boolean {
  if (!one || !other) return one === other
  const same = (a: Uint8Array | undefined, b: Uint8Array | undefined) => (a && b ? Buffer.compare(a, b) === 0 : a === b)
  return same(one.pair?.chain, other.pair?.chain) && same(one.pair?.key, other.pair?.key) && same(one.authorities, other.authorities)
}
