/**
 * The life of the certificate authority's own root: created once, stored, rotated in stages (docs/certificates.md, R1 to R14); with the
 * ledger of issued certificates. Runs on the authority's thread; keys are created by {@link RotationParts.makeRoot}.
 */

import type { ConnectedProxy, ReplicaState, StreamsElsewhere } from '../../../protocols/messages/replicas.ts'
import type { ClockReading } from '../../../src/ca/clock-record.ts'
import { checkTrust } from '../../../src/ca/distrust.ts'
import type { Blocker, IssuedCertificate, Ledger, ServingRecord } from '../../../src/ca/ledger.ts'
import { ledgerLines } from '../../../src/ca/ledger-record.ts'
import {
  advance,
  announce,
  chainExpiry,
  described,
  hasOldRootExpired,
  isDue,
  keptKeys,
  type Material,
  materialOf,
  noteRoots,
  replacedBy,
  rootsOf,
  rotationOf,
  stageOf,
  withFirstRoot,
  withUse,
} from '../../../src/ca/rotation.ts'
import { type AuthorityRecord, type AuthorityState, type FormerRoot, longestList, type Stage, stages } from '../../../src/ca/state.ts'
import { fingerprintOf } from '../../../src/identity/pem.ts'
import { type Pauses, pauseAfter } from '../../../src/model/back-off.ts'
import { count } from '../../../src/model/counts.ts'
import { secretNames } from '../../../src/names/secret-names.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Counter, gaugesOf, type MetricRegistry } from '../../runtime/metrics.ts'
import { after, every, pause, type Timer } from '../../runtime/timers.ts'
import { AuthorityClock } from './authority-clock.ts'
import { keptLedger, ledgerNote, ledgerOf, passedTime, readStored } from './kept-ledger.ts'
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
  /** Asks the other replicas for their streams; absent where no other replica has the same authority, or none can be asked. */
  readonly elsewhere?: (() => Promise<StreamsElsewhere>) | undefined
  /** Reads the wall clock and the boot clock. */
  readonly clocks: () => ClockReading
  /** Returns a random number in [0, 1). */
  readonly random: () => number
  readonly log: Logger
  readonly metrics: MetricRegistry
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
  /** Why no stage begins, whoever blocks: the time is disputed, or the stored state cannot be used. */
  readonly waits: string | undefined
}

/** The result of an attempt to advance. */
export type AdvanceAnswer =
  | { readonly went: Stage; readonly from: Stage; readonly forcedOver: readonly Blocker[] }
  | { readonly refused: string; readonly status: RotationStatus }

/** Delays before the ledger is stored again after a failure, added to the usual one. */
const ledgerPauses: Pauses = { firstMs: 1000, longestMs: 300_000 }
/** How often a step is tried again that changes what another replica has changed at the same time. */
const mostTurns = 5
/** How long is waited at a time for the other replicas, whose writes may change what is waited for, in milliseconds. */
const longestPauseMs = 1000
/** How long a stage that is forced waits for the other replicas to tell which proxies are connected to them, in milliseconds. */
const forcedMs = 500

/** The own root and the ledger. */
export class RootRotation {
  readonly #parts: RotationParts
  readonly ledger: Ledger
  readonly clock: AuthorityClock
  readonly #timers: Timer[] = []
  readonly #steps: Counter<'stage' | 'forced'>
  #usesOwn = false
  #isChecked = false
  #state: AuthorityState
  #version: string
  #queue: Promise<unknown> = Promise.resolve()
  #kept: Promise<boolean> = Promise.resolve(true)
  #keeping: Timer | undefined
  #replicas: readonly ReplicaState[] = []
  /** Number of blockers at the last check. */
  #blocking = 0
  #isClosed = false
  #replaced: string | undefined
  /** Since when the stage is known here by the boot clock, in milliseconds. */
  #knownSince: number
  /** How often in a row the ledger could not be stored. */
  #ledgerFailures = 0
  /** Whether the stored ledger cannot be used: it stays as it is until somebody has restored or removed it. */
  #isLedgerDamaged = false
  /** Whether another replica has written the ledger since this one began. */
  #hasOthers = false

  private constructor(parts: RotationParts, { ledger, clock }: Pick<RootRotation, 'ledger' | 'clock'>, { state, version }: Stored) {
    this.#parts = parts
    this.ledger = ledger
    this.clock = clock
    this.#state = state
    this.#version = version
    this.#knownSince = parts.clocks().boot
    this.#steps = this.#declareMetrics(parts.metrics)
  }

  /**
   * Reads the stored state. Nothing is in force until {@link useOwn} or {@link usePlugged}. Rejects with an Error that names what is
   * damaged.
   */
  static async open(parts: RotationParts): Promise<RootRotation> {
    const stored = await parts.storage.read()
    const found = await keptLedger(parts)
    const kept = found === 'damaged' ? undefined : found
    const clock = await AuthorityClock.open({
      storage: parts.storage,
      read: parts.clocks,
      since: passedTime(stored.state, kept),
      log: parts.log('ca'),
    })
    const rotation = new RootRotation(parts, { ledger: ledgerOf(kept, stored.state, parts, clock.now()), clock }, stored)
    rotation.#isLedgerDamaged = found === 'damaged'
    await rotation.#removeKeys()
    await rotation.#keepLedger(false)
    rotation.#hasOthers = false
    parts.storage.follow?.(() => rotation.#takeOver())
    return rotation
  }

  /** That the own root was put in force in place of one that was plugged in when the state was written last; undefined: it was not. */
  get replaced(): string | undefined {
    return this.#replaced
  }

  /** Puts the own root in force; creates it if there is none. Rejects with the reason. */
  useOwn(): Promise<void> {
    return this.#inTurnAgain(async () => {
      const replaced = replacedBy(this.#state, secretNames.pluggedIn)
      const { makeRoot, log, storage } = this.#parts
      for (const root of rootsOf(this.#state)) if (this.material()?.workloads.id === fingerprintOf(root)) checkTrust(root, this.#state.distrusted)
      this.#usesOwn = true
      if (this.#state.authorities.length === 0) {
        const first = await makeRoot(undefined)
        await this.#store(this.#noted(withFirstRoot(this.#state, first, this.clock.now()), [first.root], []))
        log('ca').info(`made a root of its own, ${first.id}, valid until ${new Date(chainExpiry(first)).toISOString()}, in ${storage.described}`)
      } else await this.#store(this.#noted(this.#state, rootsOf(this.#state), []))
      if (replaced !== undefined) log('ca').warn((this.#replaced = replaced))
      // All roots have expired: without a check now, nothing could be signed until the first scheduled one.
      if (this.#state.authorities.every((one) => chainExpiry(one) <= this.clock.now())) await this.#check()
      this.#startChecks()
    })
  }

  /** Puts a plugged-in authority with these roots (PEM each) in force. The own root is kept, and stays trusted for a time. */
  usePlugged(roots: readonly string[]): Promise<void> {
    return this.#inTurnAgain(async () => {
      this.#usesOwn = false
      this.#replaced = undefined
      await this.#store(this.#noted(this.#state, roots, []))
      this.#startChecks()
    })
  }

  /** The present signing material of the own root; undefined when there is none. */
  material(): Material | undefined {
    return materialOf(this.#state, this.clock.now())
  }

  /** The stored state, which is in force. */
  get state(): AuthorityState {
    return this.#state
  }

  /** Replaced roots that stay trusted, PEM each (docs/certificates.md, R14). */
  formerRoots(): readonly FormerRoot[] {
    const from = this.#forgetsUntil()
    return this.#state.formerRoots.filter(({ until }) => until > from)
  }

  /** Records a certificate issued to a workload. */
  issued(certificate: IssuedCertificate): void {
    if (this.ledger.isRenewalInTime(certificate)) this.seen(certificate.root)
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
    if (this.ledger.connected(name, proxy, stageOf(this.#state))) this.#ledgerChanged()
    if (proxy.presented) this.seen(proxy.presented.root)
  }

  /**
   * Records that a client uses a certificate that leads to a root (its fingerprint). While the time is disputed this shows nothing: the
   * client may be one whose clock is wrong too (docs/certificates.md, R15).
   */
  seen(root: string): void {
    if (this.#isClosed || withUse(this.#state, root) === this.#state || this.clock.dispute() !== undefined) return
    void this.#inTurnAgain(async () => {
      const before = this.#state.retired
      await this.#store(withUse(this.#state, root))
      if (before.length > this.#state.retired.length) await this.#removeKeys()
    }).catch((error: Error) => this.#failed(`the use of root ${root} cannot be recorded`, error))
  }

  /**
   * Distrusts a root (PEM) wherever it comes from, or with `isTrusted` trusts it again (docs/certificates.md, R16). Rejects when that cannot
   * be stored. {@link RotationParts.changed} is called.
   */
  setTrust(certificate: string, isTrusted: boolean): Promise<void> {
    return this.#inTurnAgain(async () => {
      const id = fingerprintOf(certificate)
      const others = this.#state.distrusted.filter((one) => fingerprintOf(one) !== id)
      if (!isTrusted && others.length >= longestList) throw new Error(`${longestList} roots are distrusted already: trust one of them again first`)
      await this.#store({ ...this.#state, distrusted: isTrusted ? others : [...others, certificate] })
      this.#parts.changed()
    })
  }

  status(): RotationStatus {
    const { stage, since, authorities } = this.#state
    return {
      stage,
      next: stages[(stages.indexOf(stage) + 1) % stages.length] as Stage,
      since: authorities.length > 0 ? new Date(since).toISOString() : undefined,
      blockers: this.#blockers(),
      plaintext: this.ledger.plaintext(),
      waits: this.clock.dispute() ?? this.#parts.storage.fault,
    }
  }

  /**
   * Advances by one stage if there are no blockers, or by force. From `stable` it starts a rotation, to the root `next` if given. Rejects
   * when the new stage cannot be stored. What another replica has written meanwhile is no reason to refuse where the stage and the authorities
   * are as they were.
   */
  async advance(force: boolean, next?: AuthorityRecord): Promise<AdvanceAnswer> {
    for (let turn = 1; ; turn++) {
      const asked = rotationOf(this.#state)
      try {
        return await this.#inTurn(() => this.#advance(force, next))
      } catch (error) {
        if (!(error instanceof StaleVersionError)) throw error
        if (rotationOf(this.#state) === asked && turn < mostTurns) continue
        return { refused: `another replica has changed the rotation meanwhile, which is in stage ${this.#state.stage}`, status: this.status() }
      }
    }
  }

  /** Takes over what other replicas have stored of the ledger, so that all answer alike. What cannot be read is left out: a stage waits for it. */
  async refresh(): Promise<void> {
    await Promise.all([this.#mergeStored(), this.#askOthers()])
  }

  /** The replicas whose proxies count as connected, as far as they have answered. */
  get replicas(): readonly ReplicaState[] {
    return this.#replicas
  }

  async #askOthers(): Promise<void> {
    const { elsewhere } = this.#parts
    if (!elsewhere) return
    const told = await elsewhere().catch(() => undefined)
    this.#replicas = told?.replicas ?? []
    this.ledger.connectedElsewhere(told?.streams ?? [], told?.replicas.every(({ answered }) => answered) ?? false)
  }

  async #mergeStored(): Promise<void> {
    const { storage } = this.#parts
    if (!storage.follow || this.#isLedgerDamaged || this.#isClosed) return
    this.#kept = this.#kept.then(async (isKept) => {
      try {
        const text = await storage.readNote(ledgerNote)
        if (text !== undefined) this.#merge(text)
      } catch {
        // The next attempt to store it says why it cannot be read.
      }
      return isKept
    })
    await this.#kept
  }

  /** Resolves when the other replicas have had the time that they need before the present stage may end ({@link CaStorage.settleMs}). */
  async settled(): Promise<void> {
    const { storage } = this.#parts
    while (storage.follow && this.#state.stage !== 'stable' && !hasOldRootExpired(this.#state, this.clock.now())) {
      const rest = this.#settlesIn()
      if (rest <= 0 || this.#isClosed) return
      await pause(Math.min(rest, longestPauseMs))
    }
  }

  /** Checks now whether a rotation is due or can advance. A failure is logged. */
  check(): Promise<void> {
    return this.#inTurn(() => this.#check()).catch((error: Error) => {
      if (error instanceof StaleVersionError) this.#log.info(`another replica has changed the state of the authority, stage ${this.#state.stage}`)
      else this.#failed('the check of the root failed', error)
    })
  }

  /**
   * Stores the ledger and closes the storage, which another process may use then. The step in progress is finished; steps that have not begun
   * are rejected.
   */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const timer of this.#timers) timer.cancel()
    this.#keeping?.cancel()
    await this.#queue.catch(() => undefined)
    await this.#keepLedger(true)
    await this.clock.close()
    await this.#parts.storage.close()
  }

  get #log() {
    return this.#parts.log('rootcertrotator')
  }

  #startChecks(): void {
    const { checkInterval, jitter } = this.#parts.settings
    if (this.#isChecked || this.#isClosed) return
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
    this.ledger.sweep(this.#forgetsUntil())
    const before = this.#state.formerRoots
    await this.#store(this.#noted(this.#state, this.#state.inForce, []))
    if (this.#state.formerRoots !== before) this.#parts.changed()
    if (!this.#usesOwn || this.clock.dispute() !== undefined) return
    const now = this.clock.now()
    const { gracePercent } = this.#parts.settings
    const due = isDue(this.#state, gracePercent, now)
    if (due) this.#log.info(`less than ${gracePercent} % of the life of root ${this.#state.authorities[0]?.id} are left: a rotation begins`)
    if (due || this.#state.stage !== 'stable') await this.#advance(false)
    while (hasOldRootExpired(this.#state, now)) {
      const answer = await this.#advance(false)
      if ('refused' in answer) return
    }
  }

  async #advance(force: boolean, next?: AuthorityRecord): Promise<AdvanceAnswer> {
    const { stage: from, authorities } = this.#state
    if (!this.#usesOwn) return { refused: 'the authority is plugged in: only a root of its own is rotated', status: this.status() }
    const dispute = this.clock.dispute()
    if (dispute !== undefined) return { refused: `the rotation stays in stage ${from}: ${dispute}`, status: this.status() }
    if (this.#parts.storage.follow && from !== 'stable') {
      // Other replicas have issued certificates too.
      const asked = force ? Promise.race([this.#askOthers(), pause(forcedMs)]) : this.#askOthers()
      const [isExchanged] = await Promise.all([this.#keepLedger(false), asked])
      const settles = force || hasOldRootExpired(this.#state, this.clock.now()) ? 0 : this.#settlesIn()
      if (settles > 0) {
        const refused = `the rotation stays in stage ${from}: other replicas may need ${Math.ceil(settles / 1000)} s more to take it over and to tell what they issued before`
        return { refused, status: this.status() }
      }
      if (!isExchanged && !force && !hasOldRootExpired(this.#state, this.clock.now())) {
        const refused = `the rotation stays in stage ${from}: what other replicas issued is not known, since the ledger cannot be exchanged with them (see the log); --force continues without it`
        return { refused, status: this.status() }
      }
    }
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
    await this.clock.store()
    const now = this.clock.now()
    const living = authorities.filter((one) => chainExpiry(one) > now)
    const begins = from === 'stable' ? (next ?? (await this.#parts.makeRoot(living[0]))) : undefined
    const went = begins ? announce(this.#state, begins, now) : advance(this.#state, now)
    const ended = authorities.filter((one) => !went.authorities.includes(one)).map(({ root }) => fingerprintOf(root))
    await this.#store(this.#noted(went, rootsOf(went), ended))
    const forced = blockers.length > 0
    this.#steps.inc({ stage: went.stage, forced: String(forced) })
    this.#log.info(`the root rotation goes from ${from} to ${went.stage}: ${described(went)}`)
    for (const { identity, reason } of blockers.slice(0, 20)) this.#log.warn(`stage ${from} was ended by force although ${identity} ${reason}`)
    this.#blocking = 0
    this.#parts.changed()
    await this.#removeKeys()
    return { went: went.stage, from, forcedOver: blockers }
  }

  /** How long other replicas may still need after the stage began, or after this one began to know of it, in milliseconds. */
  #settlesIn(): number {
    const { settleMs, ledgerDelay } = this.#parts.storage
    return this.#knownSince + settleMs + this.ledger.size * ledgerDelay.each - this.#parts.clocks().boot
  }

  /** Puts a stored state in force. */
  #adopt({ state, version }: Stored): void {
    if (state.epoch !== this.#state.epoch) this.#knownSince = this.#parts.clocks().boot
    this.#state = state
    this.#version = version
  }

  /** Removes the keys that the state does not name. A failure is logged, and tried again at the next start. */
  #removeKeys(): Promise<void> {
    return this.#parts.storage
      .keepKeys(keptKeys(this.#state))
      .catch((error: Error) => this.#log.error(`keys of roots that are no longer used cannot be removed before the next start: ${error.message}`))
  }

  #blockers(): Blocker[] {
    const now = this.clock.now()
    const waits = this.#state.stage !== 'stable' && !hasOldRootExpired(this.#state, now)
    const blockers = waits ? this.ledger.blockers(stageOf(this.#state), now) : []
    this.#blocking = blockers.length
    return blockers
  }

  /** Records whose time ended before this are forgotten: while the time is disputed, none are (docs/certificates.md, D4). */
  #forgetsUntil(): number {
    return this.clock.dispute() === undefined ? this.clock.now() : 0
  }

  #noted(state: AuthorityState, roots: readonly string[], ended: readonly string[]): AuthorityState {
    const atLeast = this.clock.now() + this.#parts.settings.workloadLife
    return noteRoots(state, roots, ended, { lastExpiry: (root) => this.ledger.lastExpiry(root), atLeast }, this.#forgetsUntil())
  }

  /** Stores a state, which is in force when this resolves. If another process has written a state, that one comes into force. */
  async #store(state: AuthorityState): Promise<void> {
    if (state === this.#state) return
    try {
      this.#adopt({ state, version: await this.#parts.storage.write(state, this.#version) })
    } catch (error) {
      if (error instanceof StaleVersionError) {
        this.#adopt(await this.#parts.storage.read())
        this.#parts.changed()
      }
      throw error
    }
  }

  /** Another replica may have written the state, which comes into force then. */
  #takeOver(): void {
    void this.#inTurn(async () => {
      const stored = await this.#parts.storage.read()
      if (stored.version === this.#version) return
      const { state } = stored
      const from = this.#state.stage
      this.#adopt(stored)
      if (state.stage !== from) this.#log.info(`another replica took the root rotation from ${from} to ${state.stage}: ${described(state)}`)
      this.#parts.changed()
    }).catch((error: Error) => this.#failed('the state of another replica cannot be read', error))
  }

  /** Like {@link #inTurn}, and once more whenever another replica was faster: the step then begins with the state of that one. */
  async #inTurnAgain(step: () => Promise<void>): Promise<void> {
    for (let turn = 1; ; turn++) {
      try {
        return await this.#inTurn(step)
      } catch (error) {
        if (!(error instanceof StaleVersionError) || turn === mostTurns) throw error
      }
    }
  }

  /** Runs steps sequentially. Rejects when the authority is closed before the step begins. */
  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(() => {
      if (this.#isClosed) throw new Error('the certificate authority is being closed')
      return step()
    })
    this.#queue = done.catch(() => undefined)
    return done
  }

  /** Logs a failed step, unless it failed because of {@link close}. */
  #failed(what: string, error: Error): void {
    if (!this.#isClosed) this.#log.error(`${what}: ${error.message}`)
  }

  #ledgerChanged(): void {
    if (this.#isClosed) return
    const { least, each } = this.#parts.storage.ledgerDelay
    const pause = this.#ledgerFailures === 0 ? 0 : pauseAfter(this.#ledgerFailures, ledgerPauses, this.#parts.random())
    this.#keeping ??= after(least + this.ledger.size * each + pause, () => {
      this.#keeping = undefined
      void this.#keepLedger(false)
    }).unref()
  }

  /** Stores the ledger, after any write under way. Resolves with whether it is stored and has all that others have stored. */
  #keepLedger(inOrder: boolean): Promise<boolean> {
    this.#kept = this.#kept.then(async () => {
      try {
        this.ledger.sweep(this.#forgetsUntil())
        // While other replicas write it, a process that ends does not know whether the ledger is complete.
        const lines = { [Symbol.iterator]: () => ledgerLines(this.ledger, inOrder && !this.#hasOthers)[Symbol.iterator]() }
        if (this.#isLedgerDamaged) await this.#readLedgerAgain()
        await this.#parts.storage.writeNote(ledgerNote, lines, (others) => {
          this.#merge(others)
          this.#hasOthers = true
        })
        this.#ledgerFailures = 0
        return true
      } catch (error) {
        this.#ledgerFailures++
        this.#log.warn(`the ledger of issued certificates cannot be saved: ${(error as Error).message}`)
        this.#ledgerChanged()
        return false
      }
    })
    return this.#kept
  }

  /** Takes over what another replica has recorded. Throws an Error when it is damaged: then it is not overwritten. */
  #merge(text: string): void {
    const { head, holders } = readStored(this.#parts.storage, text)
    this.ledger.merge(head, holders)
  }

  /** Looks whether somebody has restored or removed the damaged ledger. Rejects as long as nobody has. */
  async #readLedgerAgain(): Promise<void> {
    const text = await this.#parts.storage.readNote(ledgerNote)
    if (text !== undefined) this.#merge(text)
    this.#isLedgerDamaged = false
  }

  #declareMetrics(metrics: MetricRegistry): Counter<'stage' | 'forced'> {
    const registers = [metrics]
    const gauge = gaugesOf(metrics)
    gauge('citadel_server_rotation_stage', 'stage of the root rotation: 0 none, 1 announce, 2 trust-both, 3 sign-with-new, 4 retire', () =>
      stages.indexOf(this.#state.stage),
    )
    gauge('citadel_server_rotation_blockers', 'identities that blocked the stage of the root rotation at the last check', () => this.#blocking)
    gauge(
      'citadel_server_ledger_holders',
      'certificates of workloads in the ledger that have not expired and were not renewed',
      () => this.ledger.size,
    )
    return new Counter({
      name: 'citadel_server_rotation_steps_total',
      help: 'stages of root rotations that began; forced=true: although identities blocked the stage before',
      labelNames: ['stage', 'forced'],
      registers,
    })
  }
}
