/** The hosts to which gateways send requests (docs/resources.md, C13). */
import { isExported } from '../../model/match.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'

/**
 * Returns the destinations of the VirtualServices that are bound to one of the gateways (`<namespace>/<name>`) and visible in the namespace
 * of the proxy, and the services of extension providers, which check its requests; sorted.
 */
export function gatewayHosts(
  { mesh, virtualServices }: Pick<MeshSnapshot, 'mesh' | 'virtualServices'>,
  { gateways, namespace }: { readonly gateways: readonly string[]; readonly namespace: string },
): string[] {
  const bound = virtualServices.all.filter(
    (service) =>
      service.gateways.some((gateway) => gateways.includes(gateway)) &&
      isExported(service.exportTo, mesh.defaultVirtualServiceExportTo, service.namespace, namespace),
  )
  return [...new Set([...bound.flatMap(({ destinations }) => destinations), ...providerHosts(mesh)])].sort()
}

/** A provider names its service as `<host>` or `<namespace>/<host>`. */
const providerHosts = ({ extensionProviders = [] }: MeshSnapshot['mesh']): string[] =>
  extensionProviders.flatMap(({ envoyExtAuthzHttp: http, envoyExtAuthzGrpc: grpc }) => {
    const service = (http ?? grpc)?.service
    return service === undefined ? [] : [service.slice(service.indexOf('/') + 1)]
  })
