/** Finds hosts of VirtualServices of the mesh that are probably misspelt (docs/analysis.md, Y18). */

import type { ConfigObject } from '../../protocols/data.ts'
import { isIpOrCidr } from '../config/addresses.ts'
import type { VirtualServiceSpec } from '../config/kinds/virtual-service.ts'
import { completeHost } from '../model/match.ts'
import type { Tell } from './finding.ts'
import { hostSuggestion, meantOutside } from './near-hosts.ts'
import { isAbsent, servicesOf } from './references.ts'
import type { World } from './world.ts'

/** Tells hosts whose routes no request to a service takes. A host outside of the cluster needs no service: it is told where it is nearly that of one. */
export function checkRoutedHosts({ namespace, spec }: ConfigObject<VirtualServiceSpec>, world: World, tell: Tell): void {
  if (namespace === '' || (spec.gateways?.length && !spec.gateways.includes('mesh'))) return
  // A destination that is not there is told by itself.
  const named = new Set(destinationsOf(spec).map(({ host }) => completeHost(host, namespace, world.domain).toLowerCase()))
  for (const [index, host] of (spec.hosts ?? []).entries()) {
    const full = completeHost(host, namespace, world.domain).toLowerCase()
    if (host.startsWith('*') || isIpOrCidr(host) || servicesOf(full, world).length > 0 || !isAbsent(full, world)) continue
    if (named.has(full)) continue
    const at = `spec.hosts[${index}]`
    if (full.endsWith(`.svc.${world.domain}`)) {
      if (!isOfPod(full, world))
        tell('MESH0012', at, `there is no service ${full}, so no request to a service takes these routes`, () =>
          hostSuggestion(host, namespace, world),
        )
      continue
    }
    const meant = meantOutside(full, world)
    if (meant === undefined) continue
    if (meant.endsWith(`.svc.${world.domain}`))
      tell('MESH0012', at, `${full} is not the host of a service, so requests to ${meant} do not take these routes: write that`)
    else tell('MESH0013', at, `no service has the host ${full}, and one has ${meant}: correct it, if that is meant`)
  }
}

/** The destinations of all routes. */
const destinationsOf = ({ http = [], tls = [], tcp = [] }: VirtualServiceSpec) =>
  [...http, ...tls, ...tcp].flatMap(({ route = [] }) => route.map(({ destination }) => destination))

/** Whether a host is the name of a pod of a service. */
const isOfPod = (host: string, world: World): boolean => world.services(host.slice(host.indexOf('.') + 1)).length > 0
