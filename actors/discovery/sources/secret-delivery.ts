/**
 * Brings secrets from a source to the writers that want them, and to no others (`SecretCommand`, `SecretEvent`; docs/resources.md, K6, K7). A source keeps one of these, tells it which
 * secrets there are, and hands on what writers want.
 */
import type { GatewaySecret, SecretCommand, SecretEvent, SecretMaterial, SecretReader, Validity } from '../../../protocols/messages/secrets.ts'
import { configKey } from '../../../src/config/kinds.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { Counter, type Registry } from '../../runtime/metrics.ts'

/**
 * Whether a service account may read the secrets of its own namespace; those of another it never may. Undefined while that is being found out: whoever answers so
 * calls {@link SecretDelivery.certain} when it is known.
 */
export type SecretAccess = (reader: SecretReader) => boolean | undefined

/** A secret as pages show it: that it is there, and what it is good for; nothing that it holds. */
export interface SecretSummary {
  readonly namespace: string
  readonly name: string
  readonly type: string
  readonly origin: string
  /** Of the certificate, and of the authorities; undefined where the Secret has none. */
  readonly pair: Validity | undefined
  readonly authorities: Validity | undefined
}

/** A name that one reader wants. */
interface Want {
  readonly reader: SecretReader
  readonly name: string
  /** Whether the writer has been told what there is of this name. */
  answered: boolean
}

/** The secrets of a source, and who wants which. */
export class SecretDelivery {
  readonly #secrets = new Map<string, GatewaySecret>()
  /** What each writer wants: by the key of the secret, then the account of the reader. */
  readonly #writers = new Map<Peer<SecretEvent>, ReadonlyMap<string, ReadonlyMap<string, Want>>>()
  readonly #isAbsent: (key: string) => boolean
  readonly #mayRead: SecretAccess
  readonly #triggers: Counter

  /** `isAbsent` says of a secret that was not told, `Secret/<namespace>/<name>`, whether it is certain that there is none. */
  constructor(isAbsent: (key: string) => boolean, mayRead: SecretAccess, register: Registry) {
    this.#isAbsent = isAbsent
    this.#mayRead = mayRead
    this.#triggers = new Counter({
      name: 'pilot_push_triggers',
      help: 'pushes triggered, by reason',
      labelNames: ['type'],
      registers: [register],
    })
  }

  /** A secret is there as said, or gone. Writers are told if it is another than before. */
  set(key: string, secret: GatewaySecret | undefined): void {
    const before = this.#secrets.get(key)
    if (secret) this.#secrets.set(key, secret)
    else this.#secrets.delete(key)
    if (sameMaterial(before?.material, secret?.material)) return
    let told = false
    for (const [writer, wants] of this.#writers)
      for (const want of wants.get(key)?.values() ?? []) {
        told = true
        this.#answer(writer, want)
      }
    if (told) this.#triggers.inc({ type: 'secret' })
  }

  /** More is certain than before of what there is not: tells writers that wait to hear it. */
  certain(): void {
    for (const writer of this.#writers.keys()) this.#answerAll(writer)
  }

  /** A writer wants these, and no others. It is told what it did not want before. */
  wanted(writer: Peer<SecretEvent>, { wanted }: SecretCommand): void {
    const before = this.#writers.get(writer)
    const wants = new Map<string, Map<string, Want>>()
    for (const { reader, names } of wanted)
      for (const name of names) {
        const key = keyOf(reader, name)
        const want = before?.get(key)?.get(reader.account) ?? { reader, name, answered: false }
        const readers = wants.get(key)
        if (readers) readers.set(reader.account, want)
        else wants.set(key, new Map([[reader.account, want]]))
      }
    this.#writers.set(writer, wants)
    this.#answerAll(writer)
  }

  /** A writer is gone. */
  unlinked(writer: Peer): void {
    this.#writers.delete(writer as Peer<SecretEvent>)
  }

  /** All secrets, for pages. */
  summaries(): SecretSummary[] {
    return [...this.#secrets.values()].map(({ namespace, name, type, origin, validity }) => ({ namespace, name, type, origin, ...validity }))
  }

  #answerAll(writer: Peer<SecretEvent>): void {
    for (const readers of this.#writers.get(writer)?.values() ?? [])
      for (const want of readers.values()) if (!want.answered) this.#answer(writer, want)
  }

  #answer(writer: Peer<SecretEvent>, want: Want): void {
    const { reader, name } = want
    const key = keyOf(reader, name)
    const isAllowed = this.#mayRead(reader)
    const secret = this.#secrets.get(key)
    if (isAllowed === undefined || (isAllowed && !secret && !this.#isAbsent(key))) return
    want.answered = true
    const material = isAllowed ? secret?.material : undefined
    const event: SecretEvent = { type: 'SecretChanged', reader, name, material, at: monotonicMs() }
    writer.tell(event, JSON.stringify(['secret', reader.namespace, reader.account, name]))
  }
}

const keyOf = ({ namespace }: SecretReader, name: string): string => configKey({ kind: 'Secret', namespace, name })

function sameMaterial(one: SecretMaterial | undefined, other: SecretMaterial | undefined): boolean {
  if (!one || !other) return one === other
  const same = (a: Uint8Array | undefined, b: Uint8Array | undefined) => (a && b ? Buffer.compare(a, b) === 0 : a === b)
  return same(one.pair?.chain, other.pair?.chain) && same(one.pair?.key, other.pair?.key) && same(one.authorities, other.authorities)
}
