/**
 * What services contribute to the outbound listeners of sidecars (docs/resources.md, L1, L3, L5, L9), and an index of it that is kept up
 * service by service.
 */
import { isIp } from '../../config/addresses.ts'
import { consequences, contain } from '../../model/faults.ts'
import { append } from '../../model/lists.ts'
import { compare } from '../../model/order.ts'
import { withNames } from '../../model/sorted-names.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import { serviceKey } from '../../snapshot/objects.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { EgressListener, View } from '../../snapshot/view.ts'
import type { Problem } from '../draft.ts'
import { isBound, type PortUse, portUses, virtualAddresses } from '../routes/port-uses.ts'
import type { Traits } from '../traits.ts'
import { isOwnListener, isWildcard, loopbackOf, wildcardOf } from './own-addresses.ts'

/** What the contributions of a service depend on, apart from the service. */
export interface ShareInputs {
  readonly view: Pick<View, 'egress'>
  readonly snapshot: Pick<MeshSnapshot, 'mesh' | 'settings'>
  readonly traits: Traits
  /** Addresses of the workload itself: as a pod of a headless service it needs no listener to reach itself. */
  readonly ownAddresses: readonly string[]
}

/** The contribution of a service port to a listener. */
export interface Share extends PortUse {
  readonly bind: string
}

/** The name of the listener of a share. */
export const nameOf = ({ bind, port, route }: Share): string => (route?.isOfAllPorts ? bind : `${bind}_${port.number}`)

/** Returns the contributions of a service to listeners when it is called through an egress listener. */
export function sharesOf(state: ServiceState, egress: EgressListener, inputs: ShareInputs): Share[] {
  const { traits } = inputs
  const wildcard = wildcardOf(traits)
  const isOpened = isBound(egress, traits.interception)
  const unnamed = isOpened ? loopbackOf(traits) : wildcard
  // A proxy without privileges cannot bind ports below 1024.
  const isClosed = ({ port }: PortUse) => isOpened && traits.unprivileged && port.number < 1024
  const binds: Readonly<Record<PortUse['at'], () => readonly string[]>> = {
    shared: () => [wildcard],
    service: () => virtualAddresses(state.service),
    pods: () => podAddresses(state, inputs),
    // At an address of redirected connections, one wildcard address stands for both families.
    egress: () => [egress.bind === '' ? unnamed : !isOpened && isWildcard(egress.bind, traits) ? wildcard : egress.bind],
  }
  return portUses(state.service, egress, inputs.view.egress, inputs.snapshot, traits.interception).flatMap((use) =>
    isClosed(use) ? [] : binds[use.at]().map((bind) => ({ ...use, bind })),
  )
}

/** Returns the addresses of the pods for which a caller needs a listener: all except its own. */
function podAddresses({ endpoints }: ServiceState, { ownAddresses }: ShareInputs): string[] {
  return [...new Set(endpoints.map(({ address }) => address))].filter((address) => isIp(address) && !ownAddresses.includes(address))
}

/** A contribution to the listener of a name: an HTTP protocol, or TCP (`bytes`). */
interface Brought {
  readonly name: string
  readonly what: string
}

const bytes = 'bytes'

/** What a service contributes to listeners. */
export interface Contribution {
  readonly namespace: string
  readonly host: string
  readonly brought: readonly Brought[]
  /** What is left out of it. */
  readonly problems: readonly Problem[]
}

/** The problem of a service of which a port is left out. */
export function problemOf({ service }: ServiceState, reason: string): Problem {
  return { type: 'lds', resource: service.hostname, objects: [serviceKey(service)], reason, consequence: consequences.leftOut }
}

/** The problem of a service that claims an address of the proxy. */
export const ownListenerProblem = (state: ServiceState, { bind, port }: Share): Problem =>
  problemOf(state, `the proxy itself listens at ${bind}:${port.number}`)

/** What is noted as changed when other hosts contribute to a listener, or the same in another way. */
export const hostsOf = (name: string): string => `hosts of ${name}`

/** The hosts that contribute to a listener, by what they contribute. */
type Contributors = Map<string, { readonly brought: Brought; readonly hosts: Set<string> }>

/**
 * The contributions of the services of a view with one egress listener, by host and by listener. It is changed in place, host by host, at a
 * cost that does not depend on the number of other hosts.
 */
export class ListenerShares {
  readonly #contributions = new Map<string, Contribution>()
  readonly #listeners = new Map<string, Contributors>()
  /** Hosts with problems. */
  readonly #problems = new Set<string>()
  /**
   * The maximum number of hosts that one of the {@link differing} views had other contributions of, by listener. While more hosts contribute
   * the same, it makes no difference to these views whether one comes or goes.
   */
  readonly #replaced = new Map<string, number>()
  #names: readonly string[] | undefined

  /** Returns what a service contributes. Equal contributions of several services are one object. */
  contributionOf(state: ServiceState, inputs: ShareInputs): Contribution {
    const [egress] = inputs.view.egress
    const { hostname: host, namespace } = state.service
    const problems: Problem[] = []
    const brought = contain(
      () =>
        sharesOf(state, egress as EgressListener, inputs).flatMap((share) => {
          const isOpened = isBound(egress as EgressListener, inputs.traits.interception)
          if (!isOwnListener(share.bind, share.port.number, isOpened, inputs.snapshot, inputs.traits)) return this.#broughtBy(share)
          problems.push(ownListenerProblem(state, share))
          return []
        }),
      (reason) => {
        problems.push(problemOf(state, reason))
        return []
      },
    )
    return { namespace, host, brought, problems: problems.length > 0 ? problems : none }
  }

  #broughtBy(share: Share): Brought {
    const name = nameOf(share)
    const what = share.kind === 'http' ? share.port.protocol : bytes
    return this.#listeners.get(name)?.get(what)?.brought ?? { name, what }
  }

  /**
   * Sets or removes the contribution of a host. Adds the names of the listeners to `changed` that may be others by it, and {@link hostsOf}
   * those to which other hosts contribute.
   */
  set(host: string, now: Contribution | undefined, changed: Set<string>): void {
    const before = this.#contributions.get(host)
    if (before === now) return
    const left = before ? before.brought : none
    const joined = now ? now.brought : none
    // A listener with TCP depends on the order of its services, one without only on their protocols.
    const isAlike = before?.namespace === now?.namespace && sameBrought(left, joined)
    if (!isAlike) {
      for (const { name } of [...left, ...joined]) {
        changed.add(hostsOf(name))
        if (this.#hasBytes(name)) changed.add(name)
      }
      for (const brought of left) this.#leave(brought, host, changed)
      for (const brought of joined) this.#join(brought, host, changed)
    }
    if (now) this.#contributions.set(host, now)
    else this.#contributions.delete(host)
    if (now?.problems.length) this.#problems.add(host)
    else this.#problems.delete(host)
  }

  #hasBytes(name: string): boolean {
    return this.#listeners.get(name)?.has(bytes) ?? false
  }

  #join(brought: Brought, host: string, changed: Set<string>): void {
    const { name, what } = brought
    let listener = this.#listeners.get(name)
    if (!listener) {
      this.#listeners.set(name, (listener = new Map()))
      this.#names &&= withNames(this.#names, { added: [name] })
    }
    const alike = listener.get(what)
    if ((alike?.hosts.size ?? 0) <= this.#replacedOn(name)) changed.add(name)
    if (alike) alike.hosts.add(host)
    else listener.set(what, { brought, hosts: new Set([host]) })
  }

  #replacedOn(name: string): number {
    return this.#replaced.get(name) ?? 0
  }

  #leave({ name, what }: Brought, host: string, changed: Set<string>): void {
    const listener = this.#listeners.get(name)
    const alike = listener?.get(what)
    if (!listener || !alike?.hosts.delete(host)) return
    if (alike.hosts.size <= this.#replacedOn(name)) changed.add(name)
    if (alike.hosts.size > 0) return
    listener.delete(what)
    if (listener.size > 0) return
    this.#listeners.delete(name)
    this.#names &&= withNames(this.#names, { removed: [name] })
  }

  /** The names of all listeners, sorted. It is the same list until a listener comes or goes. */
  get names(): readonly string[] {
    return (this.#names ??= [...this.#listeners.keys()].sort(compare))
  }

  /** Whether there is a listener of a name. */
  has(name: string): boolean {
    return this.#listeners.has(name)
  }

  /** What a host contributes. */
  get(host: string): Contribution | undefined {
    return this.#contributions.get(host)
  }

  /** The problems of all hosts. */
  get problems(): Problem[] {
    return [...this.#problems].sort(compare).flatMap((host) => this.#contributions.get(host)?.problems ?? none)
  }

  /** All hosts that contribute to a listener, in order of precedence. */
  hostsOn(name: string): string[] {
    const hosts = new Set(Array.from(this.#listeners.get(name)?.values() ?? [], (alike) => [...alike.hosts]).flat())
    return this.#inOrder(hosts)
  }

  /** The hosts that are needed to make a listener, in order of precedence: without TCP one for each protocol. */
  hostsFor(name: string): string[] {
    if (this.#hasBytes(name)) return this.hostsOn(name)
    return this.#inOrder(new Set(Array.from(this.#listeners.get(name)?.values() ?? [], ({ hosts: [first = ''] }) => first)))
  }

  #inOrder(hosts: ReadonlySet<string>): string[] {
    const namespaceOf = (host: string) => this.#contributions.get(host)?.namespace ?? ''
    return [...hosts].sort((one, other) => compare(namespaceOf(one), namespaceOf(other)) || compare(one, other))
  }

  /**
   * The names of the listeners that are others when some hosts contribute something else. A listener with HTTP only depends on the set of
   * its protocols and not on the services.
   */
  differing(hosts: Iterable<readonly [host: string, now: Contribution | undefined]>): Set<string> {
    const [before, after] = [new Map<string, string[]>(), new Map<string, string[]>()]
    for (const [host, now] of hosts) {
      for (const { name, what } of new Set(this.#contributions.get(host)?.brought)) append(before, name, what)
      for (const { name, what } of distinct(now?.brought ?? none)) append(after, name, what)
    }
    for (const [name, { length }] of before) if (length > this.#replacedOn(name)) this.#replaced.set(name, length)
    return new Set([...before.keys(), ...after.keys()].filter((name) => !this.#isSame(name, before.get(name) ?? none, after.get(name) ?? none)))
  }

  #isSame(name: string, without: readonly string[], others: readonly string[]): boolean {
    const listener = this.#listeners.get(name)
    if (!listener || listener.has(bytes) || others.includes(bytes)) return false
    const left = new Map(Array.from(listener, ([what, { hosts }]) => [what, hosts.size]))
    for (const what of without) left.set(what, (left.get(what) ?? 0) - 1)
    for (const what of others) left.set(what, (left.get(what) ?? 0) + 1)
    return [...left].every(([what, count]) => count > 0 && listener.has(what))
  }
}

const none: readonly never[] = []

const distinct = (brought: readonly Brought[]): Iterable<Brought> => new Map(brought.map((each) => [`${each.name} ${each.what}`, each])).values()

const sameBrought = (one: readonly Brought[], other: readonly Brought[]): boolean =>
  one.length === other.length && one.every(({ name, what }, index) => name === other[index]?.name && what === other[index]?.what)
