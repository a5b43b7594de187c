/**
 * The interface of the storage that keeps the certificate authority's state across restarts. This module has the part for public data,
 * used on the authority's thread; `key-storage.ts` reads and writes private keys, in signer threads.
 */
import type { AuthorityState } from '../../../src/ca/state.ts'

/**
 * A stored state and its version. The meaning of a version is up to the storage: a number in a file, or the resource version of an
 * object.
 */
export interface Stored {
  readonly state: AuthorityState
  readonly version: string
}

/**
 * Where private keys are stored: plain data that is passed to signer threads with each task. `directory`: the threads read and write files.
 * `tasks`: the storage has the keys in memory, and each task brings the key that it needs (`HeldKeys`).
 */
export type KeyPlace = { readonly kind: 'directory'; readonly directory: string } | { readonly kind: 'tasks' }

/** Another process has written since the state was read. Nothing was changed; the state must be read again. */
export class StaleVersionError extends Error {
  override readonly name = 'StaleVersionError'
}

/** The storage cannot be reached or used now: nothing is known of its content. */
export class StorageAwayError extends Error {
  override readonly name = 'StorageAwayError'
}

/** The error about a note that is damaged, which is not overwritten. `message`: where it is, and what is wrong with it. */
export const damagedNote = (message: string): Error => new Error(`${message}; it is damaged and stays as it is until somebody restores or removes it`)

/** A storage that this process uses exclusively until it closes it, or shares with other replicas ({@link CaStorage.follow}). */
export interface CaStorage {
  /** Name of the storage in messages. */
  readonly described: string
  /** Delay before changes of the ledger are stored, in milliseconds: a minimum, and an amount per holder. */
  readonly ledgerDelay: { readonly least: number; readonly each: number }
  /** Of a storage that replicas share: calls `changed` when another one may have written the state, until the storage is closed. */
  follow?(changed: () => void): void
  /** Of a storage that replicas share: why the state as it is stored cannot be used, as far as was last looked. The one that was read before is in force. */
  readonly fault?: string | undefined
  /** How long the other replicas need to take over a stage and to store what they issued before, in milliseconds; 0 without others. */
  readonly settleMs: number
  /**
   * Reads the state, which is empty before the first write. Rejects with an Error that names what is damaged; damaged data is never
   * overwritten.
   */
  read(): Promise<Stored>
  /** Replaces the state if it still has the given version. Resolves to the new version; rejects with {@link StaleVersionError}. */
  write(state: AuthorityState, version: string): Promise<string>
  /**
   * Reads the text that was stored under a name, such as the ledger; undefined when there is none. No certificate depends on such texts:
   * they may be lost.
   */
  readNote(name: string): Promise<string | undefined>
  /** Where the text of a name is stored, for messages. */
  readonly noteAt: (name: string) => string
  /**
   * Stores a text that is produced in pieces. Many pieces are written per turn of the event loop, but never all of them. `others` is called
   * with the text of another replica that has written the note since this one did; the pieces are iterated after that, and once
   * more when another replica was faster again. Rejects, and leaves a note that is shared as it is, when that text is damaged or `others` throws.
   */
  writeNote(name: string, pieces: Iterable<string>, others?: (text: string) => void): Promise<void>
  /** Location of the keys. A key is stored before the state that references it, and removed after the state no longer references it. */
  readonly keys: KeyPlace
  /** Removes the keys of all certificates except those with these ids. */
  keepKeys(ids: readonly string[]): Promise<void>
  /** Closes the storage, so that other processes may use it. */
  close(): Promise<void>
}
