/** A group of resources with everything that is kept for it: how it is made, who uses it, and how its last making went. */
import type { ResourceFault } from '../../model/faults.ts'
import type { ListenerConflict } from '../../xds/draft.ts'
import type { Product } from '../dependencies/dependencies.ts'
import { groupSteps, type LifeState, step } from '../life.ts'
import type { GroupMaker } from './making.ts'

const none: readonly never[] = []

/** A group. Its resources are in the group store under the same id. `User` is what wants and keeps groups: a class. */
export class ResourceGroup<User> {
  readonly id: string
  readonly typeUrl: string
  /** How it is made. Undefined for a copy of resources that classes keep. */
  maker: GroupMaker | undefined
  /** The record of what was read to make it. Undefined until it is made. */
  record: Product<ResourceGroup<User>> | undefined
  /** The hosts that it hides in the shared group; undefined if it hides none. */
  hides: readonly string[] | undefined
  /** What rules keep from the proxies of the group. */
  losses: readonly ResourceFault[] = none
  conflicts: readonly ListenerConflict[] = none
  /** Whether its last making failed as a whole. */
  hasFailed = false
  #state: LifeState = 'made'
  readonly #users = new Set<User>()
  #keepers: Set<User> | undefined
  /** All groups that nothing wants or keeps. */
  readonly #idle: Set<ResourceGroup<User>>

  /** `idle` contains the group whenever nothing wants or keeps it. */
  constructor(id: string, typeUrl: string, idle: Set<ResourceGroup<User>>) {
    this.id = id
    this.typeUrl = typeUrl
    this.#idle = idle
    idle.add(this)
  }

  get state(): LifeState {
    return this.#state
  }

  /** The classes that are made of it. */
  get users(): ReadonlySet<User> {
    return this.#users
  }

  /** A class is made of it from now on. */
  want(by: User): void {
    this.#users.add(by)
    if (this.#state !== 'wanted') this.#become('wanted')
  }

  /** A class is no longer made of it. */
  leave(by: User): void {
    if (this.#users.delete(by) && this.#users.size === 0) this.#become(this.#keepers?.size ? 'lingering' : 'made')
  }

  /** A class keeps what it contains. */
  keep(by: User): void {
    this.#keepers ??= new Set()
    this.#keepers.add(by)
    if (this.#state !== 'wanted' && this.#state !== 'lingering') this.#become('lingering')
  }

  /** A class keeps it no longer. */
  release(by: User): void {
    if (this.#keepers?.delete(by) && this.#keepers.size === 0 && this.#state === 'lingering') this.#become('made')
  }

  /** Ends its life. */
  end(): void {
    this.#become('gone')
  }

  #become(state: LifeState): void {
    this.#state = step(groupSteps, this.#state, state, `group ${this.id}`)
    if (state === 'made') this.#idle.add(this)
    else this.#idle.delete(this)
  }
}
