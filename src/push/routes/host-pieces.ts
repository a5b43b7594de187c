/** Makes the virtual hosts of sidecars' routes, each by itself, and remembers them. */
import { clone } from '@bufbuild/protobuf'
import type { ServicePort } from '../../../protocols/data.ts'
import { type VirtualHost, VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { configKey } from '../../config/kinds.ts'
import { consequences, contain } from '../../model/faults.ts'
import { namespaceInHost } from '../../model/match.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import { type EnvoyFilter, serviceKey } from '../../snapshot/objects.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { EgressListener, View } from '../../snapshot/view.ts'
import type { ResolvedVirtualService } from '../../snapshot/virtual-services.ts'
import type { Problem } from '../../xds/draft.ts'
import type { PatchContext } from '../../xds/envoy-filter/patches.ts'
import { addedVirtualHosts, patchVirtualHosts } from '../../xds/envoy-filter/routes.ts'
import type { RouteName } from '../../xds/routes/port-uses.ts'
import { encodeHost, type HostPiece, withDomains } from '../../xds/routes/route-table.ts'
import { hasHttpProxy, httpProxyRoute, placesWithoutService, routeContext, routedPorts } from '../../xds/routes/sidecar-routes.ts'
import { catchAllHost, ownDomains, serviceVirtualHost, virtualServiceHost } from '../../xds/routes/virtual-hosts.ts'
import type { Traits } from '../../xds/traits.ts'
import type { Memo } from '../dependencies/memo.ts'

/** What came of making a virtual host; without a piece there is no such host, unless a problem says that it failed. */
export interface MadeHost {
  readonly name: string
  readonly piece: HostPiece | undefined
  /** Why it could not be made. */
  readonly failed: Pick<Problem, 'objects' | 'reason'> | undefined
  /** Patches that could not be applied. */
  readonly problems: readonly Problem[]
}

/** A virtual host that is wanted in a route. Domains that another claimed before it are taken from it. */
export interface Candidate {
  readonly route: RouteName
  /** What it is found by when views are compared: a host, `*` for the catch-all, `+` and its name when an EnvoyFilter adds it. */
  readonly host: string
  /** The egress listener through which it is called; undefined for what every route has. */
  readonly egress: EgressListener | undefined
  /** Namespace of the service; empty for hosts without one, which come last. */
  readonly namespace: string
  /** Port of the service; one host may stand in a route with several. */
  readonly port: number
  make(without?: ReadonlySet<string>): MadeHost
}

/** For whom virtual hosts are made. */
export interface Caller {
  /** Namespace whose short names count, and that matches are compared with; undefined for strangers. */
  readonly namespace: string | undefined
  /** The labels that some match looks at. */
  readonly labels: Readonly<Record<string, string>>
}

/** Nobody in particular. */
export const stranger: Caller = { namespace: undefined, labels: {} }

/** What the virtual hosts of a view are made from. */
export class HostMaker {
  readonly view: View
  readonly #snapshot: MeshSnapshot
  readonly #traits: Traits
  readonly #caller: Caller
  readonly #memo: Memo

  constructor(view: View, snapshot: MeshSnapshot, traits: Traits, caller: Caller, memo: Memo) {
    this.view = view
    this.#snapshot = snapshot
    this.#traits = traits
    this.#caller = caller
    this.#memo = memo
  }

  /** EnvoyFilters that apply. */
  get filters(): readonly EnvoyFilter[] {
    return this.#traits.filtersOf.routes.filters
  }

  /** The virtual hosts of a service that is called through an egress listener. */
  ofService(state: ServiceState, egress: EgressListener): Candidate[] {
    const { namespace, hostname } = state.service
    const own = this.#caller.namespace !== undefined && namespaceInHost(hostname, this.#snapshot.settings.domain) === this.#caller.namespace
    return routedPorts(state, egress, this.view, this.#snapshot, this.#traits).map(({ route, port }) => ({
      route,
      host: hostname,
      egress,
      namespace,
      port: port.number,
      make: (without) => this.#ofPort(route, port, state, egress, own, without),
    }))
  }

  /** Routes that are there without any host. */
  get fixedRoutes(): readonly RouteName[] {
    return hasHttpProxy(this.#snapshot, this.#traits) ? [httpProxyRoute] : []
  }

  /** That it could not be told what a host wants in the routes. */
  problem(host: string, reason: string): Problem {
    const state = this.view.service(host)
    return { type: 'rds', resource: host, objects: state ? [serviceKey(state.service)] : [], reason, consequence: consequences.leftOut }
  }

  /** The virtual hosts of a host on ports that no visible service of it has, if a VirtualService has it. */
  ofHost(host: string, egress: EgressListener): Candidate[] {
    return placesWithoutService(host, egress, this.view, this.#snapshot, this.#traits).map(({ route, virtualService }) => {
      const { port } = route
      const objects = virtualService.sources.map(configKey)
      const make = (problems: Problem[]) => virtualServiceHost(host, virtualService, this.#context(port, host, problems))
      return {
        route,
        host,
        egress,
        namespace: '',
        port,
        make: (without) => this.#encode(route, `${host}:${port}`, (problems) => withoutDomains(make(problems), without), objects),
      }
    })
  }

  /** The virtual hosts that EnvoyFilters add to a route, and the one for all other hosts. */
  ofRoute(route: RouteName): Candidate[] {
    const problems: Problem[] = []
    const added = this.patched(problems, (patches) => addedVirtualHosts(route.name, patches)).map((host): Candidate => {
      const objects = this.filters.map(configKey)
      const make = (without: ReadonlySet<string> | undefined) => this.#encode(route, host.name, () => withoutDomains(host, without), objects)
      return { route, host: `+${host.name}`, egress: undefined, namespace: '', port: 0, make: (without) => withProblems(make(without), problems) }
    })
    if (!route.catchAll) return added
    const rest = (without: ReadonlySet<string> | undefined, problems: Problem[]) =>
      withoutDomains(catchAllHost(this.view, this.#context(route.port, '*', problems)), without)
    return [
      ...added,
      {
        route,
        host: '*',
        egress: undefined,
        namespace: '',
        port: 0,
        make: (without) => this.#encode(route, '*', (problems) => rest(without, problems), []),
      },
    ]
  }

  /** Applies patches; those that cannot be applied are problems. */
  patched<T>(problems: Problem[], apply: (patches: PatchContext) => T): T {
    return apply({
      context: 'SIDECAR_OUTBOUND',
      traits: this.#traits,
      report: (object, reason, consequence = 'the patch is left out') =>
        problems.push({ type: 'patch', resource: object, objects: [object], reason, consequence }),
    })
  }

  /** What the routes of a host may refer to; what is left out of them is a problem. */
  #context(port: number, host: string, problems: Problem[]) {
    const { largestProgram } = this.#traits
    const leftOut = ({ sources }: ResolvedVirtualService, reason: string) =>
      problems.push({ type: 'rds', resource: host, objects: sources.map(configKey), reason, consequence: consequences.without })
    return routeContext(this.view, this.#snapshot, port, this.#caller.labels, this.#caller.namespace ?? '', { largestProgram, leftOut })
  }

  #ofPort(
    route: RouteName,
    port: ServicePort,
    state: ServiceState,
    egress: EgressListener,
    own: boolean,
    without: ReadonlySet<string> | undefined,
  ): MadeHost {
    const { view } = this
    const traits = this.#traits
    const virtualService = egress.virtualServices.find(state.service.hostname)
    const rule = view.ruleFor(state.service)
    // Where no rule of the VirtualService applies, the service's own route is made by the rule of the service.
    const inputs = [rule, ...(virtualService ? destinationInputs(view, virtualService.destinations) : [])]
    const asksCaller = virtualService !== undefined && virtualService.callerNamespaces.length + virtualService.callerLabels.length > 0
    const caller = `${virtualService ? traits.largestProgram : ''}|${asksCaller ? JSON.stringify(this.#caller) : ''}`
    return this.#memo.get(
      `host|${caller}|${traits.filtersOf.routes.key}`,
      [state.service, virtualService ?? rule],
      `${route.name}|${own}|${without ? [...without].join() : ''}|${virtualService ? this.#memo.identityOf(inputs) : ''}`,
      [virtualService, port, ...inputs, ...this.filters],
      () => {
        const { hostname } = state.service
        const withoutPort = !route.isOfAllPorts || port.number === route.port
        const objects = [serviceKey(state.service), ...(virtualService?.sources.map(configKey) ?? [])]
        const encode = (own: boolean) => {
          const make = (problems: Problem[]) =>
            withoutDomains(
              serviceVirtualHost(state, port, virtualService, { own, withoutPort }, this.#context(port.number, hostname, problems)),
              without,
            )
          return this.#encode(route, `${hostname}:${port.number}`, route.catchAll ? make : (problems) => anyDomain(make(problems)), objects)
        }
        if (!own || !route.catchAll || this.filters.length > 0) return encode(own)
        // It is the same for all callers, but for these names: where others see it too, it is made once for all of them.
        const isForAll = !asksCaller && !this.#isOthers(state) && !without?.size
        const made = isForAll ? this.#ofPort(route, port, state, egress, false, undefined) : encode(false)
        const names = ownDomains(state.service, port.number, { own, withoutPort }, this.#snapshot.settings.domain)
        if (!made.piece) return made.failed ? made : encode(own)
        return { ...made, piece: withDomains(made.piece, without ? names.filter((name) => !without.has(name)) : names) }
      },
    )
  }

  /** Whether strangers see another service of the host, or none. */
  #isOthers({ service }: ServiceState): boolean {
    return this.view.difference?.hosts.includes(service.hostname) ?? false
  }

  /** Encodes a virtual host, patched. One that Envoy would refuse only as patched is made as it was. */
  #encode(route: RouteName, name: string, make: (problems: Problem[]) => VirtualHost | undefined, objects: readonly string[]): MadeHost {
    const problems: Problem[] = []
    const filters = this.filters.map(configKey)
    const pieceOf = (of: VirtualHost | undefined) => (of && of.domains.length > 0 ? encodeHost(of) : undefined)
    return contain(
      () => {
        const host = make(problems)
        if (!host) return { name, piece: undefined, failed: undefined, problems }
        const piece = this.patched(problems, (patches) =>
          contain(
            () => pieceOf(patchVirtualHosts([host], route.name, patches)[0]),
            (reason) => {
              if (filters.length === 0) throw new Error(reason)
              problems.push({ type: 'rds', resource: `${route.name}/${name}`, objects: filters, reason, consequence: consequences.without })
              return pieceOf(host)
            },
          ),
        )
        return { name: host.name, piece, failed: undefined, problems }
      },
      (reason): MadeHost => ({ name, piece: undefined, failed: { objects, reason }, problems }),
    )
  }
}

const withProblems = (made: MadeHost, problems: readonly Problem[]): MadeHost =>
  problems.length === 0 ? made : { ...made, problems: [...made.problems, ...problems] }

/** A virtual host without domains that others have. */
function withoutDomains(host: VirtualHost | undefined, without: ReadonlySet<string> | undefined): VirtualHost | undefined {
  if (!host || !without || without.size === 0) return host
  const narrowed = clone(VirtualHostSchema, host)
  narrowed.domains = host.domains.filter((domain) => !without.has(domain))
  return narrowed
}

/** The only virtual host of a sniffed port answers to every name: the address has already decided. */
function anyDomain(host: VirtualHost | undefined): VirtualHost | undefined {
  if (host) host.domains = ['*']
  return host
}

/** All services that a VirtualService sends to and their rules: ports and hash policies come from them. */
function destinationInputs(view: View, hosts: readonly string[]): (object | undefined)[] {
  return hosts.flatMap((host) => {
    const state = view.service(host)
    return [state?.service, state && view.ruleFor(state.service)]
  })
}
