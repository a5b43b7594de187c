/** Finds routes of VirtualServices that share a host of a Gateway with older ones, whose routes take all that they match (docs/analysis.md, Y31). */
import type { ConfigObject } from '../../protocols/data.ts'
import type { HttpRoute, VirtualServiceSpec } from '../config/kinds/virtual-service.ts'
import { gatewayPath } from '../model/gateway-ports.ts'
import { completeHost } from '../model/match.ts'
import { byAge } from '../model/order.ts'
import { routesAt } from './claims.ts'
import type { Tell } from './finding.ts'
import { covers, type Restrictions, restrictionsOf, takesAll } from './match-coverage.ts'
import type { World } from './world.ts'

type VirtualService = ConfigObject<VirtualServiceSpec>

/** The most other VirtualServices of a host that are looked at. */
const mostOthers = 20

/** A match of a route of an older VirtualService. */
interface Earlier {
  readonly match: Restrictions
  readonly at: string
  readonly of: VirtualService
}

/** Tells the routes of a VirtualService that no request reaches at a host of a Gateway, each once. */
export function checkSharedHosts(object: VirtualService, world: World, tell: Tell): void {
  const { namespace, spec } = object
  const told = new Set<number>()
  for (const gateway of spec.gateways ?? [])
    for (const written of gateway === 'mesh' ? [] : (spec.hosts ?? [])) {
      const path = gatewayPath(gateway, namespace)
      const host = completeHost(written, namespace, world.domain)
      const { first } = world.meeting(routesAt(path, host), object, world.mesh.exportTo.virtualServices, mostOthers)
      const earlier = first.filter((other) => byAge(other, object) < 0).flatMap((other) => matchesOf(other as VirtualService))
      for (const [index, route] of (spec.http ?? []).entries()) {
        const own = restrictionsIn(route)
        world.spend(own.length * earlier.length)
        const taking = own.map((each) => earlier.find(({ match }) => isTaken(match, each)))
        if (told.has(index) || !taking[0] || taking.includes(undefined)) continue
        told.add(index)
        const { at, of } = taking[0]
        const precedence = of.createdAt === object.createdAt ? 'is as old and first by name' : 'is older'
        tell(
          'IST0130',
          `spec.http[${index}]`,
          `no request for ${host} at the Gateway ${path} reaches this route: ${at} of the VirtualService ${of.namespace}/${of.name}, which ${precedence}, takes all that it matches; put the routes into one, in order`,
        )
      }
    }
}

/** Whether a match of an older VirtualService takes all that one matches. Of the routes of a host those that take every request come last (docs/resources.md, G5). */
const isTaken = (earlier: Restrictions, match: Restrictions): boolean => (takesAll(earlier) ? takesAll(match) : covers(earlier, match))

const restrictionsIn = ({ match = [] }: HttpRoute): Restrictions[] => (match.length > 0 ? match : [{}]).map(restrictionsOf)

/** The matches of the routes of a VirtualService. What a route with a delegate takes is decided there. */
const matchesOf = (of: VirtualService): Earlier[] =>
  (of.spec.http ?? []).flatMap((route, index) =>
    route.delegate ? [] : restrictionsIn(route).map((match): Earlier => ({ match, at: `spec.http[${index}]`, of })),
  )
