/** Messages on the ports between a supervisor and its actors, and between two linked actors. */
import type { MessagePort } from 'node:worker_threads'
import type { WireError } from './errors.ts'
import type { LogLevels, LogRecord } from './log.ts'

/** Supervisor to actor. */
export type Control =
  /** A port to another actor. Of the links to one peer only the one with the highest incarnation is used, in whatever order they arrive. */
  | { readonly type: 'Link'; readonly peer: string; readonly incarnation: number; readonly port: MessagePort }
  /**
   * Another actor was removed for good: its link is down, and what it announced is withdrawn. `incarnation` is at least that of every link
   * to it.
   */
  | { readonly type: 'Forget'; readonly peer: string; readonly incarnation: number }
  /** A port on which the actor answers asks (comlink). */
  | { readonly type: 'ServeAsks'; readonly port: MessagePort }
  /** A port on which the supervisor answers the actor's asks (comlink). */
  | { readonly type: 'UseAsks'; readonly port: MessagePort }
  /** Finish current work, then report `Drained`. */
  | { readonly type: 'Drain' }
  /** Answer with `Alive`. */
  | { readonly type: 'Ping' }
  /** Use these log levels from now on, and answer with `LogLevelsSet`. */
  | { readonly type: 'SetLogLevels'; readonly levels: LogLevels }

/** Actor to supervisor. */
export type Report =
  /** `threadId`: the thread that the actor runs on, as the system numbers it; undefined where it does not tell. */
  | { readonly type: 'Started'; readonly threadId: number | undefined }
  | { readonly type: 'Alive' }
  | { readonly type: 'LogLevelsSet' }
  /** A note on the actor's condition. Valid until the actor sets another value for the same name, or ends. */
  | { readonly type: 'Noted'; readonly name: string; readonly value: unknown }
  | { readonly type: 'Drained' }
  | { readonly type: 'Failed'; readonly error: WireError }
  | { readonly type: 'Logged'; readonly records: readonly LogRecord[] }

/** Actor to linked actor: a batch of messages and marks, or credit for that many more. */
export type Parcel = { readonly type: 'Batch'; readonly entries: readonly Entry[] } | { readonly type: 'Credit'; readonly count: number }

/** An entry of a mailbox. */
export type Entry = Keyed | ReplayMark

/** A message and its key. A newer message with the same key replaces a waiting one; messages with an empty key are never replaced. */
export type Keyed = readonly [key: string, message: unknown]

/** The begin or end of a replay, numbered by its sender. Messages are never moved across a mark. */
export interface ReplayMark {
  readonly mark: 'begin' | 'end'
  readonly replay: number
  /** For an end: whether the sender could see everything. If not, objects that the replay did not mention may still exist. */
  readonly complete?: boolean
}

/** Statistics that every actor reports when asked. */
export interface ActorStats {
  readonly name: string
  readonly kind: string
  /** The number of messages waiting in the actor's mailbox. */
  readonly depth: number
  readonly processed: number
  readonly coalesced: number
  /** The fraction of time for which the event loop was busy since the last ask, 0 to 1. */
  readonly utilisation: number
  /** Bytes of JavaScript heap in use in the actor's thread. */
  readonly heapBytes: number
  /** CPU seconds of the actor's thread since it started; 0 if the actor shares a thread. */
  readonly cpuSeconds: number
}
