/**
 * The Secrets of an authority as `pilot-discovery ca` uses them, which issues no certificate and may run beside servers that do
 * (docs/certificates.md, K14).
 */

import type { AuthorityState } from '../../../src/ca/state.ts'
import type { Purpose } from '../../../src/cli/ca.ts'
import type { CaStorage, Stored } from './storage.ts'

/**
 * Passes on what the purpose permits. Everything else is as if it had been written, for this process only: to show an authority nothing is
 * written, to change it the state, and to accept the time the record of the clocks. The ledger is read and never written: that of a server knows more.
 */
export class GuestStorage implements CaStorage {
  readonly #storage: CaStorage
  readonly #purpose: Purpose
  /** What would have been written. */
  #kept: Stored | undefined

  constructor(storage: CaStorage, purpose: Purpose) {
    this.#storage = storage
    this.#purpose = purpose
  }

  get described(): string {
    return this.#storage.described
  }

  get ledgerDelay(): CaStorage['ledgerDelay'] {
    return this.#storage.ledgerDelay
  }

  get fault(): string | undefined {
    return this.#storage.fault
  }

  get settleMs(): number {
    return this.#storage.settleMs
  }

  get keys(): CaStorage['keys'] {
    return this.#storage.keys
  }

  follow(changed: () => void): void {
    if (this.#purpose === 'change') this.#storage.follow?.(changed)
  }

  async read(): Promise<Stored> {
    return this.#kept ?? this.#storage.read()
  }

  async write(state: AuthorityState, version: string): Promise<string> {
    if (this.#purpose === 'change') return this.#storage.write(state, version)
    this.#kept = { state, version }
    return version
  }

  readonly noteAt = (name: string): string => this.#storage.noteAt(name)

  readNote(name: string): Promise<string | undefined> {
    return this.#storage.readNote(name)
  }

  async writeNote(name: string, pieces: Iterable<string>, others?: (text: string) => void): Promise<void> {
    if (this.#purpose === 'accept-time' && others === undefined) return this.#storage.writeNote(name, pieces)
    const text = others && (await this.#storage.readNote(name))
    if (text !== undefined) others?.(text)
  }

  async keepKeys(ids: readonly string[]): Promise<void> {
    if (this.#purpose === 'change') await this.#storage.keepKeys(ids)
  }

  close(): Promise<void> {
    return this.#storage.close()
  }
}
