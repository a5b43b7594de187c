/** What the services of a view contribute to its outbound listeners, kept up to the present snapshot, with every read recorded. */
import { sameItems } from '../../model/lists.ts'
import { byNamespaceThenHost } from '../../snapshot/view.ts'
import type { Problem } from '../../xds/draft.ts'
import { type Contribution, hostsOf, ListenerShares, type ShareInputs } from '../../xds/listeners/listener-shares.ts'
import type { ListenerChoice, OutboundInputs } from '../../xds/listeners/outbound.ts'
import type { Collection, Dependencies, Topic } from '../dependencies/dependencies.ts'
import { type HostList, listed, noHosts } from '../host-list.ts'

/** The part of the recorder that is needed. */
type Recording = Pick<Dependencies<never>, 'collection' | 'read' | 'changedInPlace'>

const unanswered = () => undefined

/**
 * The contributions of a view's services. It is changed in place: a changed service costs what that service costs, and outdates the readers
 * of the listeners that may be others by it.
 */
export class ViewShares {
  readonly #record: Recording
  #shares = new ListenerShares()
  #cells: Collection<Contribution | undefined>
  #hosts: HostList = noHosts
  #given: readonly unknown[] = []
  /** Questions about a listener, about a host, and about all names and problems. The index is changed in place, so no answers are compared. */
  readonly #listeners: Topic<never, undefined> = { of: unanswered }
  readonly #ofHosts: Topic<never, undefined> = { of: unanswered }
  readonly #all: Topic<never, undefined> = { of: unanswered }

  constructor(record: Recording) {
    this.#record = record
    this.#cells = record.collection()
  }

  /** Brings the contributions up to the present snapshot. If that fails, the next attempt begins anew. */
  update(inputs: OutboundInputs): void {
    const { view, traits, ownAddresses } = inputs
    const { mesh, settings } = inputs.snapshot
    const [egress] = view.egress
    const names = new Set<string>()
    const hosts = new Set<string>()
    const given = [view, mesh]
    if (!sameItems(given, this.#given)) this.#clear(names, hosts)
    const before = this.#hosts === noHosts ? undefined : this.#shares.names
    const problems = this.#shares.problems
    const of: ShareInputs = { view, snapshot: { mesh, settings }, traits, ownAddresses }
    try {
      this.#hosts = listed(egress?.hosts ?? [], this.#hosts, hosts)
      for (const host of this.#cells.outdated) hosts.add(host)
      for (const host of hosts) this.#shares.set(host, this.#hosts.set.has(host) ? this.#contributionOf(host, of, inputs) : undefined, names)
      this.#cells.drop([...hosts].filter((host) => !this.#hosts.set.has(host)))
      this.#cells.read()
      this.#given = given
    } catch (error) {
      this.#clear(names, hosts)
      throw error
    } finally {
      this.#record.changedInPlace(this.#listeners, names)
      this.#record.changedInPlace(this.#ofHosts, hosts)
      if (this.#shares.names !== before || !sameItems(problems, this.#shares.problems)) this.#record.changedInPlace(this.#all, [''])
    }
  }

  /** Forgets everything, and notes what that changes. */
  #clear(names: Set<string>, hosts: Set<string>): void {
    for (const name of this.#shares.names) names.add(name).add(hostsOf(name))
    for (const host of this.#hosts.list) hosts.add(host)
    this.#shares = new ListenerShares()
    this.#cells.keep(new Set())
    this.#hosts = noHosts
    this.#given = []
  }

  #contributionOf(host: string, of: ShareInputs, { view }: OutboundInputs): Contribution | undefined {
    const make = () => {
      const state = view.service(host)
      return state && this.#shares.contributionOf(state, of)
    }
    return this.#cells.get(host, make).value
  }

  /** The names of all listeners, sorted. */
  get names(): readonly string[] {
    this.#record.read(this.#all, '', unanswered)
    return this.#shares.names
  }

  /** The problems of all services. */
  get problems(): readonly Problem[] {
    this.#record.read(this.#all, '', unanswered)
    return this.#shares.problems
  }

  /** Whether there is a listener of a name. */
  has(name: string): boolean {
    this.#record.read(this.#listeners, name, unanswered)
    return this.#shares.has(name)
  }

  /** One listener, with the services that are needed to make it. */
  choice(name: string, { view }: OutboundInputs): ListenerChoice {
    this.#record.read(this.#listeners, name, unanswered)
    const services = this.#shares.hostsFor(name).flatMap((host) => view.service(host) ?? [])
    return { names: new Set([name]), services, has: (other) => this.has(other) }
  }

  /**
   * The listeners in which another view differs that equals this one except for `hosts`, the listeners of this view that it must hide, and
   * the problems of these hosts in the other view.
   */
  differing(hosts: readonly string[], own: OutboundInputs, shared: OutboundInputs): { chosen: ListenerChoice; hide: string[]; problems: Problem[] } {
    const now = new Map(
      hosts.map((host) => {
        this.#record.read(this.#ofHosts, host, unanswered)
        const state = own.view.service(host)
        return [host, state && this.#shares.contributionOf(state, own)] as const
      }),
    )
    const concerned = new Set(
      hosts.flatMap((host) => [this.#shares.get(host), now.get(host)].flatMap((of) => of?.brought.map(({ name }) => name) ?? [])),
    )
    for (const name of concerned) this.#record.read(this.#listeners, name, unanswered)
    const names = this.#shares.differing(now)
    for (const name of names) this.#record.read(this.#listeners, hostsOf(name), unanswered)
    const others = new Set([...names].flatMap((name) => this.#shares.hostsOn(name)).filter((host) => !now.has(host)))
    const services = [...[...others].map((host) => shared.view.service(host)), ...hosts.map((host) => own.view.service(host))].flatMap(
      (state) => state ?? [],
    )
    return {
      chosen: { names, services: services.sort(byNamespaceThenHost), has: (name) => this.has(name) },
      hide: [...names].filter((name) => this.#shares.has(name)).sort(),
      problems: [...now.values()].flatMap((of) => of?.problems ?? []),
    }
  }
}
