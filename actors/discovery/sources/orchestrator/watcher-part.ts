/** What the watcher of a cluster is made of: each part follows some kinds of objects and tells other actors what comes of them. */
import type { MeshNamesEvent } from '../../../../protocols/messages/identity.ts'
import type { Fault } from '../../../../src/config/shape.ts'
import type { Resource } from '../../../../src/orchestrator/resources.ts'
import type { Peer } from '../../../runtime/link.ts'

type Mapping = Readonly<Record<string, unknown>>

/** A kind of objects that is followed, and what becomes of them. Keys are `<namespace>/<name>`, `/<name>` without a namespace. */
export interface Follower<Item = unknown> {
  readonly resource: Resource
  /** Whether the service is not ready, and serves nothing, before this kind has been listed. */
  readonly isAwaited: boolean
  /** Whether it is awaited no longer when it cannot be listed (`--allowUnreadableConfig`). */
  readonly mayBeUnread?: boolean
  /**
   * Cuts an object to what is used; undefined if it cannot be used, for the reasons in `faults`: its last good state stays. Faults of parts of
   * an object cost these parts. `isLate`: it is looked at later, and its faults are told then ({@link Following.tellFaults}). Never throws.
   */
  cut(value: Mapping): { readonly object: Item | undefined; readonly faults: readonly Fault[]; readonly isLate?: boolean }
  /** An object was added or replaced; undefined: it was removed. */
  set(key: string, object: Item | undefined): void
  /** All objects of this kind have been told, the first time or again. */
  listed?(): void
  /** This kind cannot be followed at present, for this reason. */
  failed?(reason: string): void
  /** It is followed again. */
  recovered?(): void
  /** The role does not permit to follow it; it is tried again. */
  forbidden?(): void
}

/** A part of the watcher. */
export interface WatcherPart {
  /** What it follows from the start. Others are followed later with {@link Following.follow}. */
  readonly followers: readonly Follower[]
  /** The push queue is linked: sends all that is known. */
  replay(): void
  /** What was set before belongs together: sends what has changed. */
  settled(): void
  /** Why what it has cannot be told completely yet, for people; empty: it can. Undefined: always. The replay does not end before. */
  waitsFor?(): readonly string[]
  /** The mesh configuration in force may be another one. */
  meshChanged?(event: MeshNamesEvent): void
  /** The watcher ends. */
  close?(): void
  /** An actor other than the push queue is linked, or is not any more. */
  linked?(peer: Peer): void
  unlinked?(peer: Peer): void
}

/** What a part may do. */
export interface Following {
  follow(follower: Follower): void
  /** Ends the following of a kind, by the path of its resource. Nothing of it is told any more; what was told stays. */
  unfollow(path: string): void
  /** Tells what is wrong with an object that was looked at later than it was read; nothing: it is as it should be. `isUsed`: all but some parts are used. */
  tellFaults(resource: Resource, key: string, faults: readonly Fault[], isUsed: boolean): void
}

/** What a part may do and know of the watcher. */
export interface Watching extends Following {
  /** A part may be complete that was not when the awaited kinds had been listed. */
  mayBeComplete(): void
  /** Whether all awaited kinds have been listed. */
  readonly isListed: boolean
  /** Why resources cannot be followed at present. */
  readonly troubles: readonly string[]
}
