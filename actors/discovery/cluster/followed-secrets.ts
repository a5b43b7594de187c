/** Follows the remote secrets of the own cluster, and says which clusters they name (docs/operation.md, J1 to J3). */
import { createSecureContext } from 'node:tls'
import type { ClusterAccess } from '../../../protocols/messages/orchestrator.ts'
import { certificatesOf } from '../../../src/identity/pem.ts'
import { remoteSecretLabels } from '../../../src/names/secret-names.ts'
import { cutRemoteSecret, type RemoteSecret, RemoteSecrets, type SecretsResult } from '../../../src/orchestrator/remote-secrets.ts'
import { labelled } from '../../../src/orchestrator/resources.ts'
import { keyAndVersion } from '../../../src/orchestrator/responses.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import type { ClusterApi } from './cluster-api.ts'
import type { FollowedResource, ResourceEvents } from './followed-resource.ts'

/** How long texts of Secrets are read at a time, in milliseconds. */
const usualTurnMs = 5

/** What the Secrets are followed with. */
export interface FollowedSecretsParts {
  readonly namespace: string
  /** The id of the own cluster. */
  readonly own: string
  readonly api: ClusterApi
  readonly log: ScopedLogger
  /** The interval of comparisons with lists, in milliseconds; 0: there are none. */
  readonly auditMs: number
  /** How long texts of Secrets are read at a time, in milliseconds, if not 5. */
  readonly turnMs?: number | undefined
  /** What was told belongs together, or a further part of it was read. */
  readonly settled: () => void
  /** The Secrets cannot be read. */
  readonly failed: () => void
}

/** The remote secrets. */
export class FollowedSecrets {
  readonly #parts: FollowedSecretsParts
  readonly #secrets: RemoteSecrets
  /** The Secrets as each label tells of them: one with both is told twice. */
  readonly #byLabel = new Map(remoteSecretLabels.map((label) => [label, new Map<string, RemoteSecret>()]))
  /** The Secrets that have changed and are to be read, the one that is being read, and the next turn. */
  readonly #changed = new Set<string>()
  #reading: Generator<void, void> | undefined
  #turn: Timer | undefined
  readonly #follows: FollowedResource<RemoteSecret>[] = []
  readonly #listed = new Set<string>()
  /** Why Secrets cannot be read, by label, and whether the role forbids it. */
  readonly #troubles = new Map<string, { readonly reason: string; readonly isForbidden: boolean }>()

  constructor(parts: FollowedSecretsParts) {
    this.#parts = parts
    this.#secrets = new RemoteSecrets(parts.own, unusable)
  }

  /** Follows from now on. */
  start(): void {
    for (const label of remoteSecretLabels) {
      const follow = this.#parts.api.followed(labelled(this.#parts.namespace, label), this.#eventsOf(label))
      this.#follows.push(follow)
      follow.start(this.#parts.auditMs)
    }
  }

  close(): void {
    this.#turn?.cancel()
    for (const follow of this.#follows) follow.close()
  }

  /** Whether all Secrets have been listed and read. */
  get isListed(): boolean {
    return !this.#turn && remoteSecretLabels.every((label) => this.#listed.has(label))
  }

  /** Whether there are any; undefined: they have not been listed. */
  get areSome(): boolean | undefined {
    return this.isListed ? this.#secrets.keys().length > 0 : undefined
  }

  /** Whether it is known which clusters there are, as far as the role permits to read the Secrets. */
  get isKnown(): boolean {
    return this.isListed || this.isForbidden
  }

  /** Whether the role does not permit to read the Secrets, so that none is known. */
  get isForbidden(): boolean {
    return !this.isListed && [...this.#troubles.values()].some(({ isForbidden }) => isForbidden)
  }

  /** Why the Secrets cannot be read. */
  get troubles(): readonly string[] {
    return [...new Set([...this.#troubles.values()].map(({ reason }) => reason))]
  }

  /**
   * Reads the Secrets that changed, for a while, and returns which clusters they name; undefined where not all are listed or read yet: the rest is
   * read in further turns, each of which ends with {@link FollowedSecretsParts.settled}.
   */
  result(): SecretsResult | undefined {
    return this.isListed && this.#haveReadAll() ? this.#secrets.result() : undefined
  }

  #eventsOf(label: string): ResourceEvents<RemoteSecret> {
    const secrets = this.#byLabel.get(label) ?? new Map<string, RemoteSecret>()
    const { settled } = this.#parts
    return {
      read: (value) => {
        const known = keyAndVersion(value)
        return known && { key: known[0], version: known[1], object: cutRemoteSecret(value) }
      },
      set: (key, secret) => {
        secrets.set(key, secret)
        this.#changed.add(key)
      },
      same: () => {},
      remove: (key) => {
        secrets.delete(key)
        this.#changed.add(key)
      },
      complete: () => {
        this.#listed.add(label)
        settled()
      },
      failed: (verb, refusal, reason) => this.#failed(label, verb, refusal?.code, reason),
      recovered: () => this.#recovered(label),
      audited: () => {},
      auditFailed: () => {},
      settled,
    }
  }

  #failed(label: string, verb: string, code: number | undefined, reason: string): void {
    const { namespace, log, failed } = this.#parts
    const isForbidden = code === 403
    const why = isForbidden
      ? `the role of this service account does not permit "${verb}" of "secrets" in the namespace ${namespace}`
      : `${verb} failed`
    const consequence = this.#listed.has(label)
      ? 'the clusters that are known stay'
      : isForbidden
        ? 'until it does, the service has none of the services and endpoints of other clusters, and refuses their proxies'
        : 'which other clusters there are is not known, and waited for'
    const line = `remote secrets of the namespace ${namespace} cannot be read: ${why}: ${reason}; ${consequence}`
    if (!this.troubles.includes(line)) log.error(line)
    this.#troubles.set(label, { reason: line, isForbidden })
    failed()
  }

  #recovered(label: string): void {
    const { namespace, log } = this.#parts
    if (this.#troubles.delete(label) && this.#troubles.size === 0) log.info(`remote secrets of the namespace ${namespace} are read again`)
  }

  #haveReadAll(): boolean {
    const until = monotonicMs() + (this.#parts.turnMs ?? usualTurnMs)
    for (;;) {
      const [key] = this.#changed
      if (!this.#reading && key === undefined) return true
      if (!this.#reading && key !== undefined) {
        this.#changed.delete(key)
        const [told] = [...this.#byLabel.values()].flatMap((each) => each.get(key) ?? [])
        this.#reading = this.#secrets.steps(key, told)
      }
      if (this.#reading?.next().done) this.#reading = undefined
      else if (monotonicMs() >= until) {
        this.#turn = after(0, () => {
          this.#turn = undefined
          this.#parts.settled()
        }).unref()
        return false
      }
    }
  }
}

/** Why certificates and keys of an access cannot be used; undefined if they can. */
function unusable({ ca, cert, key }: ClusterAccess): string | undefined {
  try {
    createSecureContext({ ca, cert, key })
  } catch {
    return 'its certificates or its key cannot be used: expected PEM, and a key that belongs to the certificate'
  }
  // OpenSSL takes authorities that it cannot read for none, and then trusts no server.
  try {
    if (ca !== undefined) certificatesOf(ca)
    return undefined
  } catch {
    return 'certificate-authority-data: one of its certificates cannot be read'
  }
}
