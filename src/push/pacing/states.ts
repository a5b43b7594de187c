/**
 * The budget of pushes as tables of states (docs/resources.md, Q1 and Q2). Of pushes of changes one is under way at a time (`rounds`), until
 * the writers that keep up have answered it (`writers`); of responses to connections as many are half sent as there are permits (`turns`).
 * A table has for each state the events that it can meet, with the state that follows. An event that a state has not cannot come in it.
 */

type Steps<State extends string, Event extends string> = Readonly<Partial<Record<Event, State>>>

/** A table of states. */
export type StateTable<State extends string, Event extends string> = Readonly<Record<State, { readonly on: Steps<State, Event> }>>

/** Returns the state that follows. Throws when the event cannot come in this state. `what` names whose state it is. */
export function following<State extends string, Event extends string>(
  table: StateTable<State, Event>,
  from: State,
  event: Event,
  what: string,
): State {
  const to = table[from].on[event]
  if (to === undefined) throw new Error(`${what} is ${from}, which does not allow "${event}"`)
  return to
}

/** States of the pushes of changes: whether one is under way, and whether changes wait for the next. */
export type RoundState = 'starting' | 'idle' | 'gathering' | 'underWay' | 'overlapping'
type RoundEvent = 'changed' | 'begun' | 'delivered'

/** The table of the pushes of changes. */
export const rounds: StateTable<RoundState, RoundEvent> = {
  /** Before the first push: changes are part of it, and make none due. */
  starting: { on: { changed: 'starting', begun: 'underWay' } },
  /** Nothing has changed. */
  idle: { on: { changed: 'gathering' } },
  /** Changes wait until they are due. */
  gathering: { on: { changed: 'gathering', begun: 'underWay' } },
  /** A push is made, or was sent and is not answered. */
  underWay: { on: { changed: 'overlapping', delivered: 'idle' } },
  /** A push is under way, and later changes wait until it is delivered. */
  overlapping: { on: { changed: 'overlapping', delivered: 'gathering' } },
}

/** States of a writer: what the push under way waits for. */
export type WriterState = 'prompt' | 'awaited' | 'behind'
type WriterEvent = 'sent' | 'answered' | 'late'

/** The table of writers. */
export const writers: StateTable<WriterState, WriterEvent> = {
  /** Has answered the last push that waited for it. */
  prompt: { on: { sent: 'awaited', answered: 'prompt' } },
  /** The push under way waits for its answer. */
  awaited: { on: { answered: 'prompt', late: 'behind' } },
  /** Has not answered in time. No push waits for it until it has answered the last one, unless all writers are behind. */
  behind: { on: { sent: 'awaited', answered: 'prompt' } },
}

/** States of a connection: whether a push to it is due or under way, and whether it is known to read. */
export type TurnState = 'unproven' | 'proven' | 'untried' | 'waiting' | 'onTrial' | 'paused' | 'sending' | 'slow' | 'gone'
/** What happens to a connection in the budget. */
export type TurnEvent = 'due' | 'begun' | 'passed' | 'slow' | 'done' | 'gone'

/**
 * The queue that a connection waits in: those known to read, those in the middle of a push that have passed their trial, and those that
 * begin one.
 */
export type Lane = 'trusted' | 'passed' | 'trial'

/** What the budget holds for a connection in a state. */
interface Held {
  readonly lane?: Lane
  /** Whether a push to the connection is under way. */
  readonly isUnderWay?: true
  readonly hasPermit?: true
}

/** The table of connections. Only `sending` has a permit. A connection for which a push is due while one is under way is due again after it. */
export const turns: StateTable<TurnState, TurnEvent> & Readonly<Record<TurnState, Held>> = {
  /** Nothing is due. It is new, or was slow the last time. Its trial may end when the push has. */
  unproven: { on: { due: 'untried', passed: 'proven', gone: 'gone' } },
  /** Nothing is due. It is known to read. */
  proven: { on: { due: 'waiting', gone: 'gone' } },
  /** Waits for its trial, which needs no permit. */
  untried: { lane: 'trial', on: { due: 'untried', begun: 'onTrial', passed: 'waiting', gone: 'gone' } },
  /** Waits for a permit. */
  waiting: { lane: 'trusted', on: { due: 'waiting', begun: 'sending', gone: 'gone' } },
  /** Is sent the first bytes, without a permit. */
  onTrial: { isUnderWay: true, on: { due: 'onTrial', passed: 'paused', slow: 'slow', done: 'unproven', gone: 'gone' } },
  /** Has passed its trial in the middle of a push, and waits for a permit. */
  paused: { isUnderWay: true, lane: 'passed', on: { due: 'paused', begun: 'sending', done: 'proven', gone: 'gone' } },
  /** Is sent a push with a permit. */
  sending: { isUnderWay: true, hasPermit: true, on: { due: 'sending', slow: 'slow', done: 'proven', gone: 'gone' } },
  /** Was too slow to keep its permit or to pass its trial. It is sent the rest of the push without one. */
  slow: { isUnderWay: true, on: { due: 'slow', done: 'unproven', gone: 'gone' } },
  /** Is closed. */
  gone: { on: { due: 'gone', passed: 'gone', slow: 'gone', done: 'gone', gone: 'gone' } },
}
