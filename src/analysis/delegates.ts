/** Finds delegates from which a route gets nothing (docs/resources.md, R10). */
import type { ConfigObject } from '../../protocols/data.ts'
import type { HttpRoute, VirtualServiceSpec } from '../config/kinds/virtual-service.ts'
import { isExported } from '../model/match.ts'
import { expandDelegate } from '../snapshot/virtual-services.ts'
import type { Tell } from './finding.ts'
import { tellMissing } from './references.ts'
import type { World } from './world.ts'

/** Tells what is wrong with the delegate of a route. */
export function checkDelegate(route: HttpRoute, at: string, { namespace }: ConfigObject, world: World, tell: Tell): void {
  const { delegate } = route
  if (!delegate?.name) return
  const owner = delegate.namespace || namespace
  const path = `${owner}/${delegate.name}`
  const found = world.object('VirtualService', path) as ConfigObject<VirtualServiceSpec> | undefined
  if (!found) {
    if (world.isRead('VirtualService', owner)) tellMissing('VirtualService', path, '', { at: `${at}.delegate`, world, tell })
    return
  }
  const { hosts, exportTo, http = [] } = found.spec
  const unused = (why: string) => tell('IST0101', `${at}.delegate`, `the VirtualService ${path} ${why}, so this route is left out`)
  if (hosts?.length) return unused('has hosts, and a delegate has none')
  if (!isExported(exportTo, world.mesh.exportTo.virtualServices, owner, namespace))
    return unused(`is not exported to the namespace ${namespace}: add it to exportTo of that`)
  const rules = http.filter(({ delegate: further }) => !further)
  world.spend(rules.length * (route.match?.length ?? 1))
  if (expandDelegate(route, rules).length > 0) return
  tell(
    'IST0130',
    `${at}.delegate`,
    `the VirtualService ${path} has no route ${rules.length === 0 ? 'of its own' : 'whose match agrees with that of this one'}, so no request is sent there`,
  )
}

/** Tells what has no effect in a VirtualService without hosts, which is a delegate. */
export function checkAsDelegate({ spec }: ConfigObject<VirtualServiceSpec>, tell: Tell): void {
  if (spec.hosts?.length) return
  for (const [index, { delegate }] of (spec.http ?? []).entries())
    if (delegate)
      tell(
        'IST0133',
        `spec.http[${index}].delegate`,
        'this is itself a delegate, as it has no hosts, and a delegate does not delegate further: the route is left out',
      )
  for (const kind of ['tls', 'tcp'] as const)
    if (spec[kind]?.length) tell('IST0133', `spec.${kind}`, `this is a delegate, as it has no hosts, and of a delegate only http counts`)
}
