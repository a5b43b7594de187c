/** Makes `envoy.config.route.v3.VirtualHost` of services for sidecars (docs/resources.md, R1 to R3). */
import { create } from '@bufbuild/protobuf'
import type { Service, ServicePort } from '../../../protocols/data.ts'
import { type VirtualHost, VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { namespaceInHost } from '../../model/match.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import type { View } from '../../snapshot/view.ts'
import type { ResolvedVirtualService } from '../../snapshot/virtual-services.ts'
import { durationOf } from '../message.ts'
import { outboundCluster, passthrough } from '../names.ts'
import { clusterOf, defaultRoute, type RouteContext, routesOf } from './http-routes.ts'

/** Which names of a service are domains of its virtual host. */
export interface Naming {
  /** Whether the caller is in the namespace of the service, so that names without the namespace are included. */
  readonly own: boolean
  /** Whether names are also included without the port. */
  readonly withoutPort: boolean
}

/** Returns the virtual host of an HTTP port of a service. */
export function serviceVirtualHost(
  state: ServiceState,
  port: ServicePort,
  virtualService: ResolvedVirtualService | undefined,
  naming: Naming,
  context: RouteContext,
): VirtualHost {
  const { service } = state
  const operation = `${service.hostname}:${port.number}/*`
  const ruled = virtualService ? routesOf(virtualService, context) : []
  const routes = ruled.length > 0 ? ruled : [defaultRoute(outboundCluster(port.number, '', service.hostname), operation, state, context)]
  return create(VirtualHostSchema, {
    name: `${service.hostname}:${port.number}`,
    domains: domainsOf(service, port.number, naming, context.snapshot.settings.domain),
    routes,
    includeRequestAttemptCount: true,
  })
}

/** Returns the virtual host of a host without a service; undefined if no rule of its VirtualService applies. */
export function virtualServiceHost(host: string, virtualService: ResolvedVirtualService, context: RouteContext): VirtualHost | undefined {
  const routes = routesOf(virtualService, context)
  if (routes.length === 0) return undefined
  return create(VirtualHostSchema, {
    name: `${host}:${context.port}`,
    domains: withPort([host], context.port, { withoutPort: true }),
    routes,
    includeRequestAttemptCount: true,
  })
}

/** Returns the virtual host for unknown hosts: it passes requests through or answers 502. */
export function catchAllHost(view: View, context: RouteContext): VirtualHost {
  if (!view.allowAny) {
    return create(VirtualHostSchema, {
      name: 'block_all',
      domains: ['*'],
      routes: [
        { name: 'block_all', match: { pathSpecifier: { case: 'prefix', value: '/' } }, action: { case: 'directResponse', value: { status: 502 } } },
      ],
      includeRequestAttemptCount: true,
    })
  }
  const cluster = view.egressProxy ? clusterOf(view.egressProxy, context) : passthrough
  return create(VirtualHostSchema, {
    name: 'allow_any',
    domains: ['*'],
    routes: [
      {
        name: 'allow_any',
        match: { pathSpecifier: { case: 'prefix', value: '/' } },
        action: { case: 'route', value: { clusterSpecifier: { case: 'cluster', value: cluster }, timeout: durationOf(0) } },
      },
    ],
    includeRequestAttemptCount: true,
  })
}

/** Returns the domains of a service: its full name, its addresses, and the short names that are valid in the caller's namespace. */
function domainsOf(service: Service, port: number, naming: Naming, domain: string): string[] {
  const names = [service.hostname]
  const namespace = namespaceInHost(service.hostname, domain)
  if (namespace !== undefined) {
    const withNamespace = service.hostname.slice(0, -`.svc.${domain}`.length)
    names.push(withNamespace, `${withNamespace}.svc`)
  }
  if (service.resolution === 'passthrough' && service.provider === 'Orchestrator' && service.addresses.length === 0)
    names.push(`*.${service.hostname}`)
  for (const address of service.addresses) if (!address.includes('/')) names.push(address.includes(':') ? `[${address}]` : address)
  const own = naming.own ? ownDomains(service, port, naming, domain) : []
  return [...new Set([...withPort(names, port, naming), ...own])]
}

/** Returns the domains that only callers in the service's own namespace use; they follow all other domains. */
export function ownDomains(service: Service, port: number, naming: Naming, domain: string): string[] {
  const namespace = namespaceInHost(service.hostname, domain)
  return namespace === undefined ? [] : withPort([service.hostname.slice(0, -`.${namespace}.svc.${domain}`.length)], port, naming)
}

/** Returns names with and without the port, without repetitions: Envoy refuses a route configuration in which a domain occurs twice. */
const withPort = (names: readonly string[], port: number, { withoutPort }: Pick<Naming, 'withoutPort'>): string[] => [
  ...new Set(names.flatMap((name) => [...(withoutPort ? [name] : []), ...(name === '*' ? [] : [`${name}:${port}`])])),
]
