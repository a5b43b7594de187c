/**
 * Private keys of signing certificates that are in Secrets, by the id of the certificate. The main thread, which calls the API server, has
 * them in memory and passes each to the signer threads with the tasks that need it. They are in no object that is shown or logged.
 */

/** Where keys come from: `own` and `plugged-in` authorities, and the root that was `made` last and is not stored yet. */
type Origin = 'own' | 'plugged-in' | 'made'

export class HeldKeys {
  readonly #keys = new Map<Origin, ReadonlyMap<string, string>>()

  /** The key of a certificate, PEM; undefined when it is not here. */
  get(id: string): string | undefined {
    for (const keys of this.#keys.values()) if (keys.has(id)) return keys.get(id)
    return undefined
  }

  /** Replaces all keys of one origin. */
  set(origin: Origin, keys: ReadonlyMap<string, string>): void {
    this.#keys.set(origin, keys)
  }
}
