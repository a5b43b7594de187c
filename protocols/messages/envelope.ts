/** What travels on the ports between a supervisor and its actors, and between two linked actors. */
import type { MessagePort } from 'node:worker_threads'
import type { WireError } from './errors.ts'
import type { LogLevels, LogRecord } from './log.ts'

/** Supervisor to actor. */
export type Control =
  /** A port to another actor. Of the links to one peer the one with the highest incarnation counts, whichever comes first. */
  | { readonly type: 'Link'; readonly peer: string; readonly incarnation: number; readonly port: MessagePort }
  /** A port on which the actor answers asks (comlink). */
  | { readonly type: 'ServeAsks'; readonly port: MessagePort }
  /** A port on which the supervisor answers the actor's asks (comlink). */
  | { readonly type: 'UseAsks'; readonly port: MessagePort }
  /** Finish what is under way, then report `Drained`. */
  | { readonly type: 'Drain' }
  /** Answer with `Alive`. */
  | { readonly type: 'Ping' }
  /** Log by these levels from now on, and answer with `LogLevelsSet`. */
  | { readonly type: 'SetLogLevels'; readonly levels: LogLevels }

/** Actor to supervisor. */
export type Report =
  | { readonly type: 'Started' }
  | { readonly type: 'Alive' }
  | { readonly type: 'LogLevelsSet' }
  /** Something of the actor's condition; holds until the actor notes another value of the same name, or ends. */
  | { readonly type: 'Noted'; readonly name: string; readonly value: unknown }
  | { readonly type: 'Drained' }
  | { readonly type: 'Failed'; readonly error: WireError }
  | { readonly type: 'Logged'; readonly records: readonly LogRecord[] }

/** Actor to linked actor: a batch of messages and marks, or room for as many more. */
export type Parcel = { readonly type: 'Batch'; readonly entries: readonly Entry[] } | { readonly type: 'Credit'; readonly count: number }

/** What waits in a mailbox. */
export type Entry = Keyed | ReplayMark

/** A message and the key under which a newer one replaces it while it waits; an empty key is never replaced. */
export type Keyed = readonly [key: string, message: unknown]

/** Begin or end of a replay, numbered by its sender. No message is moved from one side of a mark to the other. */
export interface ReplayMark {
  readonly mark: 'begin' | 'end'
  readonly replay: number
  /** Of an end: whether the sender could see everything. Otherwise what it did not mention may still be there. */
  readonly complete?: boolean
}

/** What every actor tells of itself when asked. */
export interface ActorStats {
  readonly name: string
  readonly kind: string
  /** Messages waiting in the actor's mailbox. */
  readonly depth: number
  readonly processed: number
  readonly coalesced: number
  /** Share of time the event loop was busy since the last ask, 0 to 1. */
  readonly utilisation: number
  /** Bytes of JavaScript heap in use in the actor's thread. */
  readonly heapBytes: number
  /** CPU seconds of the actor's thread since it started; 0 when the actor shares a thread. */
  readonly cpuSeconds: number
}
