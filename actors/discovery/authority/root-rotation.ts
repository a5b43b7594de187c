/**
 * The life of the certificate authority's own root: created once, stored, rotated in stages (docs/certificates.md, R1 to R14); with the
 * ledger of issued certificates. Runs on the authority's thread; keys are created by {@link RotationParts.makeRoot}.
 */

import { type Blocker, type ConnectedProxy, type IssuedCertificate, Ledger, type ServingRecord } from '../../../src/ca/ledger.ts'
import { ledgerLines, readLedger } from '../../../src/ca/ledger-record.ts'
import {
  advance,
  announce,
  chainExpiry,
  hasOldRootExpired,
  isDue,
  type Material,
  materialOf,
  noteRoots,
  rootsOf,
  stageOf,
  withFirstRoot,
} from '../../../src/ca/rotation.ts'
import { type AuthorityRecord, type AuthorityState, type Stage, stages } from '../../../src/ca/state.ts'
import { fingerprintOf } from '../../../src/identity/pem.ts'
import { count } from '../../../src/model/counts.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Counter, gaugesOf, type Registry } from '../../runtime/metrics.ts'
import { after, every, type Timer } from '../../runtime/timers.ts'
import { type CaStorage, StaleVersionError, type Stored } from './storage.ts'

/** Settings of rotations; times in milliseconds. */
export interface RotationSettings {
  /** Interval between two checks; no checks if not above zero. */
  readonly checkInterval: number
  /** Whether the first check comes after a random part of the interval instead of at once. */
  readonly jitter: boolean
  /** A rotation starts when less than this percentage of the root's lifetime is left. */
  readonly gracePercent: number
  /** Default lifetime of workload certificates. */
  readonly workloadLife: number
}

/** Dependencies and settings of {@link RootRotation}. */
export interface RotationParts {
  readonly storage: CaStorage
  readonly settings: RotationSettings
  /**
   * Creates a self-signed root with a new key, stores the key in `storage.keys` under the id of the certificate, and has `before`, if
   * given, cross-sign the new root's name and key (`cross`). Runs in a signer thread.
   */
  makeRoot(before: AuthorityRecord | undefined): Promise<AuthorityRecord>
  /**
   * Called when any part of the authority in force has changed, except by {@link RootRotation.useOwn} and {@link
   * RootRotation.usePlugged}.
   */
  changed(): void
  /** The wall clock in Unix milliseconds, and a monotonic clock in milliseconds. */
  readonly now: () => number
  readonly monotonic: () => number
  /** Returns a random number in [0, 1). */
  readonly random: () => number
  readonly log: Logger
  readonly metrics: Registry
}

/** The stage of the rotation, and its blockers. */
export interface RotationStatus {
  readonly stage: Stage
  /** The stage after the next {@link RootRotation.advance}. */
  readonly next: Stage
  /** When the stage began, ISO 8601; undefined when there is no own root. */
  readonly since: string | undefined
  readonly blockers: readonly Blocker[]
  /** Nodes on the plaintext port. They have no certificates, so they do not block. */
  readonly plaintext: readonly string[]
}

/** The result of an attempt to advance. */
export type AdvanceAnswer =
  | { readonly went: Stage; readonly from: Stage; readonly forcedOver: readonly Blocker[] }
  | { readonly refused: string; readonly status: RotationStatus }

/**
 * Maximum lead of the wall clock over the monotonic clock for which certificates are considered expired by the wall clock, in
 * milliseconds (docs/certificates.md, R12).
 */
const believedLead = 60_000
/** Delay before changes of the ledger are stored, in milliseconds: a minimum, and an amount per holder. */
const ledgerDelay = { least: 250, each: 0.5 }

/** The own root and the ledger. */
export class RootRotation {
  readonly #parts: RotationParts
  readonly ledger: Ledger
  readonly #startedAt: { readonly wall: number; readonly monotonic: number }
  readonly #timers: Timer[] = []
  readonly #steps: Counter<'stage' | 'forced'>
  #usesOwn = false
  #isChecked = false
  #state: AuthorityState
  #version: string
  #queue: Promise<unknown> = Promise.resolve()
  #kept: Promise<void> = Promise.resolve()
  #keeping: Timer | undefined
  /** Number of blockers at the last check. */
  #blocking = 0

  private constructor(parts: RotationParts, ledger: Ledger, { state, version }: Stored) {
    this.#parts = parts
    this.ledger = ledger
    this.#state = state
    this.#version = version
    this.#startedAt = { wall: parts.now(), monotonic: parts.monotonic() }
    this.#steps = this.#declareMetrics(parts.metrics)
  }

  /**
   * Reads the stored state. Nothing is in force until {@link useOwn} or {@link usePlugged}. Rejects with an Error that names what is
   * damaged.
   */
  static async open(parts: RotationParts): Promise<RootRotation> {
    const stored = await parts.storage.read()
    const rotation = new RootRotation(parts, await rotationLedger(parts), stored)
    await parts.storage.keepKeys(stored.state.authorities.map(({ id }) => id))
    await rotation.#keepLedger(false)
    return rotation
  }

  /** Puts the own root in force; creates it if there is none. Rejects with the reason. */
  useOwn(): Promise<void> {
    return this.#inTurn(async () => {
      const { makeRoot, now, log, storage } = this.#parts
      this.#usesOwn = true
      if (this.#state.authorities.length === 0) {
        const first = await makeRoot(undefined)
        await this.#store(this.#noted(withFirstRoot(this.#state, first, now()), [first.root], []))
        log('ca').info(`made a root of its own, ${first.id}, valid until ${new Date(chainExpiry(first)).toISOString()}, in ${storage.described}`)
      } else await this.#store(this.#noted(this.#state, rootsOf(this.#state), []))
      // All roots have expired: without a check now, nothing could be signed until the first scheduled one.
      if (this.#state.authorities.every((one) => chainExpiry(one) <= now())) await this.#check()
      this.#startChecks()
    })
  }

  /** Puts a plugged-in authority with these roots (PEM each) in force. The own root is kept, and stays trusted for a time. */
  usePlugged(roots: readonly string[]): Promise<void> {
    return this.#inTurn(async () => {
      this.#usesOwn = false
      await this.#store(this.#noted(this.#state, roots, []))
      this.#startChecks()
    })
  }

  /** The present signing material of the own root; undefined when there is none. */
  material(): Material | undefined {
    return materialOf(this.#state, this.#parts.now())
  }

  /** The stored state, which is in force. */
  get state(): AuthorityState {
    return this.#state
  }

  /** Replaced roots that stay trusted, PEM each (docs/certificates.md, R14). */
  formerRoots(): readonly { readonly certificate: string; readonly until: number }[] {
    const now = this.#parts.now()
    return this.#state.formerRoots.filter(({ until }) => until > now)
  }

  /** Records a certificate issued to a workload. */
  issued(certificate: IssuedCertificate): void {
    this.ledger.issued(certificate, this.#state.epoch)
    this.#ledgerChanged()
  }

  /** Records a certificate issued to a server of this process. */
  issuedServing(certificate: ServingRecord): void {
    this.ledger.issuedServing(certificate)
    this.#ledgerChanged()
  }

  /** Records a stream of a proxy. The name begins with the name of its writer. */
  connected(name: string, proxy: ConnectedProxy): void {
    this.ledger.connected(name, proxy, this.#state.epoch)
  }

  status(): RotationStatus {
    const { stage, since, authorities } = this.#state
    return {
      stage,
      next: stages[(stages.indexOf(stage) + 1) % stages.length] as Stage,
      since: authorities.length > 0 ? new Date(since).toISOString() : undefined,
      blockers: this.#blockers(),
      plaintext: this.ledger.plaintext(),
    }
  }

  /**
   * Advances by one stage if there are no blockers, or by force. From `stable` it starts a rotation, to the root `next` if given. Rejects
   * when the new stage cannot be stored.
   */
  advance(force: boolean, next?: AuthorityRecord): Promise<AdvanceAnswer> {
    return this.#inTurn(() => this.#advance(force, next))
  }

  /** Checks now whether a rotation is due or can advance. A failure is logged. */
  check(): Promise<void> {
    return this.#inTurn(() => this.#check()).catch((error: Error) => this.#log.error(`the check of the root failed: ${error.message}`))
  }

  /** Stores the ledger and closes the storage. */
  async close(): Promise<void> {
    for (const timer of this.#timers) timer.cancel()
    this.#keeping?.cancel()
    await this.#queue.catch(() => undefined)
    await this.#keepLedger(true)
    await this.#parts.storage.close()
  }

  get #log() {
    return this.#parts.log('rootcertrotator')
  }

  #startChecks(): void {
    const { checkInterval, jitter } = this.#parts.settings
    if (this.#isChecked) return
    this.#isChecked = true
    if (checkInterval <= 0) {
      this.#log.info(
        'CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL is not above zero: the root is not checked; rotate it with "pilot-discovery ca rotate"',
      )
      return
    }
    const first = jitter ? checkInterval * this.#parts.random() : 0
    const run = () => void this.check()
    const begin = () => {
      run()
      this.#timers.push(every(checkInterval, run).unref())
    }
    this.#timers.push(after(first, begin).unref())
  }

  async #check(): Promise<void> {
    const now = this.#parts.now()
    this.ledger.sweep(this.#believedNow())
    const before = this.#state.formerRoots
    await this.#store(this.#noted(this.#state, this.#state.inForce, []))
    if (this.#state.formerRoots !== before) this.#parts.changed()
    if (!this.#usesOwn) return
    const { gracePercent } = this.#parts.settings
    const due = isDue(this.#state, gracePercent, now)
    if (due) this.#log.info(`less than ${gracePercent} % of the life of root ${this.#state.authorities[0]?.id} are left: a rotation begins`)
    if (due || this.#state.stage !== 'stable') await this.#advance(false)
    while (hasOldRootExpired(this.#state, now)) await this.#advance(false)
  }

  async #advance(force: boolean, next?: AuthorityRecord): Promise<AdvanceAnswer> {
    const { stage: from, authorities } = this.#state
    if (!this.#usesOwn) return { refused: 'the authority is plugged in (ROOT_CA_DIR): only a root of its own is rotated', status: this.status() }
    const blockers = this.#blockers()
    if (blockers.length > 0 && !force) {
      const [{ identity, reason }] = blockers as [Blocker]
      const others = blockers.length > 1 ? `, and ${blockers.length - 1} more` : ''
      this.#log.info(`the root rotation stays in stage ${from}: ${identity} ${reason}${others}`)
      return {
        refused: `the rotation stays in stage ${from}: ${count(blockers.length, 'holder of certificates is', 'holders of certificates are')} not ready; --force continues without them`,
        status: this.status(),
      }
    }
    const now = this.#parts.now()
    const living = authorities.filter((one) => chainExpiry(one) > now)
    const begins = from === 'stable' ? (next ?? (await this.#parts.makeRoot(living[0]))) : undefined
    const went = begins ? announce(this.#state, begins, now) : advance(this.#state, now)
    const ended = authorities.filter((one) => !went.authorities.includes(one)).map(({ root }) => fingerprintOf(root))
    await this.#store(this.#noted(went, rootsOf(went), ended))
    const forced = blockers.length > 0
    this.#steps.inc({ stage: went.stage, forced: String(forced) })
    this.#log.info(`the root rotation goes from ${from} to ${went.stage}: ${describe(went)}`)
    for (const { identity, reason } of blockers.slice(0, 20)) this.#log.warn(`stage ${from} was ended by force although ${identity} ${reason}`)
    this.#blocking = 0
    this.#parts.changed()
    await this.#parts.storage
      .keepKeys(went.authorities.map(({ id }) => id))
      .catch((error: Error) => this.#log.error(`keys of roots that are no longer used cannot be removed before the next start: ${error.message}`))
    return { went: went.stage, from, forcedOver: blockers }
  }

  #blockers(): Blocker[] {
    const waits = this.#state.stage !== 'stable' && !hasOldRootExpired(this.#state, this.#parts.now())
    const blockers = waits ? this.ledger.blockers(stageOf(this.#state), this.#believedNow()) : []
    this.#blocking = blockers.length
    return blockers
  }

  /** The wall clock, limited by the monotonic time since the start: a wall clock that jumps ahead does not make certificates expire. */
  #believedNow(): number {
    const { now, monotonic } = this.#parts
    return Math.min(now(), this.#startedAt.wall + monotonic() - this.#startedAt.monotonic + believedLead)
  }

  #noted(state: AuthorityState, roots: readonly string[], ended: readonly string[]): AuthorityState {
    const now = this.#parts.now()
    const lives = { lastExpiry: (root: string) => this.ledger.lastExpiry(root), atLeast: now + this.#parts.settings.workloadLife }
    return noteRoots(state, roots, ended, lives, now)
  }

  /** Stores a state, which is in force when this resolves. If another process has written a state, that one comes into force. */
  async #store(state: AuthorityState): Promise<void> {
    if (state === this.#state) return
    try {
      this.#version = await this.#parts.storage.write(state, this.#version)
      this.#state = state
    } catch (error) {
      if (error instanceof StaleVersionError) {
        const read = await this.#parts.storage.read()
        this.#state = read.state
        this.#version = read.version
        this.#parts.changed()
      }
      throw error
    }
  }

  /** Runs steps sequentially. */
  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(step, step)
    this.#queue = done.catch(() => undefined)
    return done
  }

  #ledgerChanged(): void {
    this.#keeping ??= after(ledgerDelay.least + this.ledger.size * ledgerDelay.each, () => {
      this.#keeping = undefined
      void this.#keepLedger(false)
    }).unref()
  }

  /** Stores the ledger, after any write under way. */
  #keepLedger(inOrder: boolean): Promise<void> {
    this.#kept = this.#kept.then(async () => {
      try {
        this.ledger.sweep(this.#believedNow())
        await this.#parts.storage.writeNote(ledgerNote, ledgerLines(this.ledger, inOrder))
      } catch (error) {
        this.#log.warn(`the ledger of issued certificates cannot be saved: ${(error as Error).message}`)
      }
    })
    return this.#kept
  }

  #declareMetrics(metrics: Registry): Counter<'stage' | 'forced'> {
    const registers = [metrics]
    const gauge = gaugesOf(metrics)
    gauge('citadel_server_rotation_stage', 'stage of the root rotation: 0 none, 1 announce, 2 trust-both, 3 sign-with-new, 4 retire', () =>
      stages.indexOf(this.#state.stage),
    )
    gauge('citadel_server_rotation_blockers', 'identities that blocked the stage of the root rotation at the last check', () => this.#blocking)
    gauge('citadel_server_ledger_holders', 'addresses in the ledger that hold a certificate', () => this.ledger.size)
    return new Counter({
      name: 'citadel_server_rotation_steps_total',
      help: 'stages of root rotations that began; forced=true: although identities blocked the stage before',
      labelNames: ['stage', 'forced'],
      registers,
    })
  }
}

const ledgerNote = 'ledger'

/** The stored ledger; an empty one when there is none, or when it is damaged, which is logged. */
async function rotationLedger({ storage, settings, now, log }: RotationParts): Promise<Ledger> {
  const ledger = new Ledger(now(), settings.workloadLife)
  try {
    const text = await storage.readNote(ledgerNote)
    if (text === undefined) return ledger
    const { inOrder, head, holders } = readLedger(text)
    ledger.restore(head, holders, inOrder, now())
  } catch (error) {
    log('ca').warn(`the ledger of issued certificates cannot be read and begins anew: ${(error as Error).message}`)
  }
  return ledger
}

function describe({ stage, authorities: [old, next] }: AuthorityState): string {
  switch (stage) {
    case 'announce':
      return `answers hold roots ${old?.id} and ${next?.id}, the first one signs`
    case 'trust-both':
      return `root ${next?.id} signs the certificates of the own servers`
    case 'sign-with-new':
      return `root ${next?.id} signs all certificates`
    case 'retire':
      return `answers hold root ${next?.id} alone, the own servers still take certificates of ${old?.id}`
    case 'stable':
      return `root ${old?.id} is alone`
  }
}
