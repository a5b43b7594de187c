/** A class that proxies are assigned to, with everything that is kept for it. */
import type { Manifest } from '../../../protocols/messages/push.ts'
import type { ProxyClass } from '../../xds/traits.ts'
import type { Product } from '../dependencies/dependencies.ts'
import type { ResourceGroup } from '../groups/resource-group.ts'
import { ClassLife } from './class-life.ts'

/** A group as classes use it. */
export type ClassGroup = ResourceGroup<ServedClass>

/** A group that a class uses, and the hosts that are hidden from the class in it, sorted. */
export interface ClassUse {
  readonly group: ClassGroup
  readonly hide: readonly string[]
}

/** A group that a class keeps after it has stopped using it, until `due` (monotonic milliseconds). */
export interface KeptUse extends ClassUse {
  readonly due: number
}

/** A class of proxies: what its resources are made from, its connections, its groups, and what writers were told of it. */
export class ServedClass extends ClassLife {
  /** What the resources are made from. Its id is that of the class, or, for a transitional class, of the class that follows. */
  proxyClass: ProxyClass
  /** The record of what was read to list the groups. Undefined until they are listed. */
  record: Product<ServedClass> | undefined
  /** The groups of its resources. When several contain a resource of the same name, the first in which it is not being removed counts. */
  uses: readonly ClassUse[] = []
  /** The groups that it keeps in addition. */
  kept: readonly KeptUse[] = []
  /** A digest of the policies that the groups were made with. Undefined when there are none. */
  policies: string | undefined
  /** The manifest last made; undefined while none could be made. */
  manifest: Manifest | undefined

  constructor(id: string, proxyClass: ProxyClass) {
    super(id)
    this.proxyClass = proxyClass
  }

  /**
   * Whether the class is transitional: it is for proxies that have just changed their class and keep removed groups for a short time. They
   * join the class of {@link proxyClass} afterwards.
   */
  get isTransitional(): boolean {
    return this.proxyClass.id !== this.id
  }
}
