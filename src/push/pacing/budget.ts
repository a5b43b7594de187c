/**
 * The budget of the pushes of a writer: which connection is pushed to next, and who holds a permit (docs/resources.md, Q2). However many
 * connections are new or slow, those that are known to read still get their changes.
 */
import { PermitTimeout, trialBytes } from './permit-timeout.ts'
import type { PermitSource } from './permits.ts'
import { following, type Lane, type TurnEvent, type TurnState, turns } from './states.ts'

/** The place of a connection in the budget. Only the budget changes it. */
export class Turn {
  state: TurnState = 'unproven'
  /** Since when it waits, in monotonic milliseconds. */
  since = 0
  /** Since when the push after the one under way is due. */
  againSince: number | undefined
  /** Whether the turn that began last goes on with a push that waited for its permit. */
  isContinued = false

  /** Whether a push is under way: on trial, with a permit, or without one because the connection is slow. */
  get isUnderWay(): boolean {
    return turns[this.state].isUnderWay === true
  }
}

/** What the budget knows of a connection. */
export interface Pushed {
  readonly turn: Turn
}

/** A response that is being sent: milliseconds since it began and since its last progress, and its length. */
export interface Delivery {
  readonly elapsed: number
  readonly still: number
  readonly bytes: number
}

/** Gives connections their turns: each waits at most once, and is pushed to by at most one push at a time. */
export class PushBudget<Connection extends Pushed> {
  readonly #permits: PermitSource
  readonly #timeout = new PermitTimeout()
  readonly #lanes: Readonly<Record<Lane, Set<Connection>>> = { trusted: new Set(), passed: new Set(), trial: new Set() }
  #permitTurn: 'trusted' | 'passed' = 'trusted'
  #isTrialTurn = true

  constructor(permits: PermitSource) {
    this.#permits = permits
  }

  /** The number of connections that wait for a permit. */
  get waiting(): number {
    return this.#lanes.trusted.size + this.#lanes.passed.size
  }

  /** A push is due. A connection that waits already keeps its place; one that is pushed to waits again when that push is done. */
  due(connection: Connection, now: number): void {
    const { turn } = connection
    if (turn.isUnderWay) turn.againSince ??= now
    else if (turns[turn.state].lane === undefined) turn.since = now
    this.#step(connection, 'due')
  }

  /**
   * Begins the next turn, or continues one that waited for its permit; alternately of those that begin a trial and those that need a permit.
   * Undefined if nobody can go on: then `freed` is called when there may be a permit for those that wait.
   */
  next(freed: () => void): Connection | undefined {
    const first = this.#begin()
    if (first || this.waiting === 0) {
      if (!first) this.#permits.satisfied()
      return first
    }
    // Repeated each time: an earlier wait may still be pending although its permit was acquired in another way since.
    const wanted = this.#permits.want()
    const second = this.#begin()
    if (!second) this.#permits.whenFreed(wanted, freed)
    return second
  }

  /** The bytes of the trial have been written: the connection reads, and needs a permit for the rest. */
  passed(connection: Connection, now: number): void {
    if (connection.turn.isUnderWay) connection.turn.since = now
    this.#step(connection, 'passed')
  }

  /**
   * Looks at a response that is being sent, and takes the connection's permit, or ends its trial, when it is slow. Returns whether it did:
   * then the rest is sent without a permit.
   */
  charge(connection: Connection, { elapsed, still, bytes }: Delivery): boolean {
    const { state } = connection.turn
    this.#permits.alive()
    const counted = state === 'onTrial' ? Math.min(trialBytes, bytes) : bytes
    if ((state !== 'onTrial' && state !== 'sending') || !this.#timeout.isOver({ elapsed, still, bytes: counted })) return false
    this.#step(connection, 'slow')
    return true
  }

  /** A response of `bytes` bytes was delivered within `ms` milliseconds. */
  delivered(ms: number, bytes: number): void {
    this.#timeout.record(ms, bytes)
  }

  /** The push to a connection is complete, or has failed. */
  done(connection: Connection): void {
    const { turn } = connection
    this.#step(connection, 'done')
    if (turn.againSince === undefined) return
    this.due(connection, turn.againSince)
    turn.againSince = undefined
  }

  /** A connection was closed. What it held is free. */
  gone(connection: Connection): void {
    this.#step(connection, 'gone')
  }

  #begin(): Connection | undefined {
    this.#isTrialTurn = !this.#isTrialTurn
    return this.#isTrialTurn ? (this.#beginIn('trial') ?? this.#beginWithPermit()) : (this.#beginWithPermit() ?? this.#beginIn('trial'))
  }

  #beginWithPermit(): Connection | undefined {
    if (this.waiting === 0 || !this.#permits.acquire()) return undefined
    const other = this.#permitTurn === 'trusted' ? 'passed' : 'trusted'
    const lane = this.#lanes[this.#permitTurn].size > 0 ? this.#permitTurn : other
    this.#permitTurn = lane === 'trusted' ? 'passed' : 'trusted'
    return this.#beginIn(lane)
  }

  #beginIn(lane: Lane): Connection | undefined {
    const [first] = this.#lanes[lane]
    if (!first) return undefined
    first.turn.isContinued = first.turn.isUnderWay
    this.#step(first, 'begun')
    return first
  }

  /** Takes a step of the table. A permit was acquired before a step to a state that has one. */
  #step(connection: Connection, event: TurnEvent): void {
    const { turn } = connection
    const [before, to] = [turns[turn.state], following(turns, turn.state, event, 'the turn of a connection')]
    if (to === turn.state) return
    turn.state = to
    if (before.lane) this.#lanes[before.lane].delete(connection)
    const { lane } = turns[to]
    if (lane) this.#lanes[lane].add(connection)
    if (before.hasPermit) this.#permits.release()
  }
}
