/** Whether the namespace that `--clusterRegistriesNamespace` names is there (docs/operation.md, J1): nothing else tells that it is misspelt. */
import { coreResource, named } from '../../../src/orchestrator/resources.ts'
import { keyAndVersion } from '../../../src/orchestrator/responses.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import type { ClusterApi } from './cluster-api.ts'
import type { FollowedResource, ResourceEvents } from './followed-resource.ts'

/** What the namespace is followed with. */
export interface RegistriesNamespaceParts {
  readonly namespace: string
  readonly api: Pick<ClusterApi, 'followed'>
  readonly log: ScopedLogger
  /** The interval of comparisons with lists, in milliseconds; 0: there are none. */
  readonly auditMs: number
  /** Whether it has remote secrets; undefined: that is not known. */
  readonly hasSecrets: () => boolean | undefined
  /** It is known whether it is there, or otherwise than before. */
  readonly changed: () => void
}

/** The namespace of the remote secrets. */
export class RegistriesNamespace {
  readonly #parts: RegistriesNamespaceParts
  #follow: FollowedResource<true> | undefined
  #state: 'unknown' | 'there' | 'missing' | 'forbidden' = 'unknown'
  #told: string | undefined

  constructor(parts: RegistriesNamespaceParts) {
    this.#parts = parts
  }

  /** Follows it from now on. */
  start(): void {
    this.#follow = this.#parts.api.followed(named(coreResource('Namespace', 'namespaces'), this.#parts.namespace), this.#events())
    this.#follow.start(this.#parts.auditMs)
  }

  close(): void {
    this.#follow?.close()
  }

  /** Whether it is known whether it is there, as far as the role permits. */
  get isKnown(): boolean {
    return this.#state !== 'unknown'
  }

  /** What is wrong with it; where the role does not permit to see it, that it has no remote secret. */
  get trouble(): string | undefined {
    const { namespace, hasSecrets } = this.#parts
    const what = `the namespace ${namespace}, which --clusterRegistriesNamespace names,`
    if (this.#state === 'missing') return `${what} does not exist: no other cluster is followed until it has remote secrets`
    if (this.#state !== 'forbidden' || hasSecrets() !== false) return undefined
    return `${what} has no remote secret, and the role of this service account does not permit to see whether it exists`
  }

  /** Tells what is wrong, once, and that it is no more. Called whenever remote secrets were read, too. */
  judge(): void {
    const { namespace, log } = this.#parts
    const now = this.trouble
    if (now === this.#told) return
    if (now !== undefined) log.warn(now)
    else log.info(`the namespace ${namespace}, which --clusterRegistriesNamespace names, is there`)
    this.#told = now
  }

  #is(state: 'there' | 'missing' | 'forbidden'): void {
    this.#state = state
    this.judge()
    this.#parts.changed()
  }

  #events(): ResourceEvents<true> {
    return {
      read: (value) => {
        const known = keyAndVersion(value)
        return known && { key: known[0], version: known[1], object: true }
      },
      set: () => this.#is('there'),
      same: () => {},
      remove: () => this.#is('missing'),
      complete: () => {
        if (this.#state !== 'there') this.#is('missing')
      },
      failed: (_, refusal) => {
        if (refusal?.code === 403) this.#is('forbidden')
      },
      recovered: () => {},
      audited: () => {},
      auditFailed: () => {},
      settled: () => {},
    }
  }
}
