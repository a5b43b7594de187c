/**
 * What keeps the state of the certificate authority over restarts. The half in this file holds public data only and is for the thread
 * that owns the authority; the half that reads and writes private keys is `key-storage.ts`, for signer threads.
 */
import type { AuthorityState } from '../../../src/ca/state.ts'

/** What was read, and which version of it. A version means something to the storage only: a number in a file, the resource version of an object. */
export interface Stored {
  readonly state: AuthorityState
  readonly version: string
}

/** Where signer threads keep private keys: plain data, handed to them with each task. */
export interface KeyPlace {
  readonly kind: 'directory'
  readonly directory: string
}

/** Somebody else has written since the state was read. Nothing was changed: read again. */
export class StaleVersionError extends Error {
  override readonly name = 'StaleVersionError'
}

/** A storage that this process has for itself until it closes it. */
export interface CaStorage {
  /** How messages name it. */
  readonly described: string
  /** Reads the state; before the first write it is empty. Rejects with an Error that names what is damaged; what is damaged is never overwritten. */
  read(): Promise<Stored>
  /** Replaces the state if it still has the given version. Resolves to the new version; rejects with {@link StaleVersionError}. */
  write(state: AuthorityState, version: string): Promise<string>
  /** Reads the text that was last kept under a name, a ledger say; undefined when there is none. Such texts are not vital: losing one costs no certificate. */
  readNote(name: string): Promise<string | undefined>
  /** Keeps a text that comes in pieces, of which many are taken between two turns of the event loop, but never all at once. */
  writeNote(name: string, pieces: Iterable<string>): Promise<void>
  /** Where keys are. A key is stored before the state that names it is written, and removed after the state names it no more. */
  readonly keys: KeyPlace
  /** Removes the keys of all certificates but those of these ids. */
  keepKeys(ids: readonly string[]): Promise<void>
  /** Gives the storage up for others. */
  close(): Promise<void>
}
