/** Makes the virtual hosts of sidecars' routes one by one, and caches them. */
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

/** The result of making a virtual host. Without `piece` and `failed` there is no such host. */
export interface MadeHost {
  readonly name: string
  readonly piece: HostPiece | undefined
  /** The objects and the reason if making the host failed. */
  readonly failed: Pick<Problem, 'objects' | 'reason'> | undefined
  /** Patches that could not be applied, and parts that were left out. */
  readonly problems: readonly Problem[]
}

/**
 * A virtual host to be added to a route. Domains that another host has claimed before are passed to `make` as `without` and removed from
 * it.
 */
export interface Candidate {
  readonly route: RouteName
  /**
   * The key by which views are compared: a host, `*` for the catch-all, or `+` and the name for a virtual host that an EnvoyFilter adds.
   */
  readonly host: string
  /** The egress listener that the host is reached through. Undefined for virtual hosts common to all routes. */
  readonly egress: EgressListener | undefined
  /** The namespace of the service. Empty for hosts without a service, which come last. */
  readonly namespace: string
  /** The port of the service. A host may be in a route with several ports. */
  readonly port: number
  make(without?: ReadonlySet<string>): MadeHost
}

/** The caller that virtual hosts are made for. */
export interface Caller {
  /** The namespace whose short host names are added, and which `sourceNamespace` matches are compared with. Undefined: none. */
  readonly namespace: string | undefined
  /** The labels that `sourceLabels` matches use. */
  readonly labels: Readonly<Record<string, string>>
}

/** A caller without namespace and labels. */
export const anonymousCaller: Caller = { namespace: undefined, labels: {} }

/** Makes the virtual hosts of one view, for one caller. */
export class HostMaker {
  readonly view: View
  readonly #snapshot: MeshSnapshot
  readonly #traits: Traits
  readonly #caller: Caller
  readonly #memo: Memo
  /** The hosts in which the view differs from the shared view, computed on first use. */
  #differing: ReadonlySet<string> | undefined

  constructor(view: View, snapshot: MeshSnapshot, traits: Traits, caller: Caller, memo: Memo) {
    this.view = view
    this.#snapshot = snapshot
    this.#traits = traits
    this.#caller = caller
    this.#memo = memo
  }

  /** EnvoyFilters that apply to routes. */
  get filters(): readonly EnvoyFilter[] {
    return this.#traits.filtersOf.routes.filters
  }

  /** The virtual hosts of a service that is reached through an egress listener. */
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

  /** Routes that exist even without any host. */
  get fixedRoutes(): readonly RouteName[] {
    return hasHttpProxy(this.#snapshot, this.#traits) ? [httpProxyRoute] : []
  }

  /** A problem for a host whose virtual hosts could not be determined. */
  problem(host: string, reason: string): Problem {
    const state = this.view.service(host)
    return { type: 'rds', resource: host, objects: state ? [serviceKey(state.service)] : [], reason, consequence: consequences.leftOut }
  }

  /** The virtual hosts of a host that a VirtualService names, on ports that no visible service of that host has. */
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

  /** The virtual hosts that EnvoyFilters add to a route, and the catch-all. */
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

  /** Applies patches. Patches that cannot be applied are added to `problems`. */
  patched<T>(problems: Problem[], apply: (patches: PatchContext) => T): T {
    return apply({
      context: 'SIDECAR_OUTBOUND',
      traits: this.#traits,
      report: (object, reason, consequence = 'the patch is left out') =>
        problems.push({ type: 'patch', resource: object, objects: [object], reason, consequence }),
    })
  }

  /** The context for making the routes of a host. What has to be left out of them is added to `problems`. */
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
    // Where no rule of the VirtualService applies, the service's default route depends on its own DestinationRule.
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
        // Apart from its short names the virtual host is the same for all callers, so it is made once for all of them where they see the
        // same service.
        const isForAll = !asksCaller && !this.#isOthers(state) && !without?.size
        const made = isForAll ? this.#ofPort(route, port, state, egress, false, undefined) : encode(false)
        const names = ownDomains(state.service, port.number, { own, withoutPort }, this.#snapshot.settings.domain)
        if (!made.piece) return made.failed ? made : encode(own)
        return { ...made, piece: withDomains(made.piece, without ? names.filter((name) => !without.has(name)) : names) }
      },
    )
  }

  /** Whether the shared view has another service of this host, or none. */
  #isOthers({ service }: ServiceState): boolean {
    this.#differing ??= new Set(this.view.difference?.hosts)
    return this.#differing.has(service.hostname)
  }

  /** Encodes a virtual host with patches applied. If only the patched virtual host is invalid, it is encoded without patches. */
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

/** Returns a virtual host without the domains that other hosts have. */
function withoutDomains(host: VirtualHost | undefined, without: ReadonlySet<string> | undefined): VirtualHost | undefined {
  if (!host || !without || without.size === 0) return host
  const narrowed = clone(VirtualHostSchema, host)
  narrowed.domains = host.domains.filter((domain) => !without.has(domain))
  return narrowed
}

/** Makes the only virtual host of a sniffed port match every domain, because the destination address has already selected the service. */
function anyDomain(host: VirtualHost | undefined): VirtualHost | undefined {
  if (host) host.domains = ['*']
  return host
}

/** The services that a VirtualService routes to, and their DestinationRules: ports and hash policies depend on them. */
function destinationInputs(view: View, hosts: readonly string[]): (object | undefined)[] {
  return hosts.flatMap((host) => {
    const state = view.service(host)
    return [state?.service, state && view.ruleFor(state.service)]
  })
}
