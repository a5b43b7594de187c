/** Finds destinations whose service, port or subset is not there. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { HttpRoute } from '../config/kinds/virtual-service.ts'
import { suggestion } from '../model/edit-distance.ts'
import { completeHost } from '../model/match.ts'
import type { Tell } from './finding.ts'
import { hostSuggestion } from './near-hosts.ts'
import { isAbsent, servicesOf, subsetsOf } from './references.ts'
import type { World } from './world.ts'

type Destination = NonNullable<HttpRoute['mirror']>

/** Tells what a destination of an object names and is not there. `consequence`: what follows without a service. */
export function checkDestination(
  { host, subset, port }: Destination,
  at: string,
  { namespace }: ConfigObject,
  world: World,
  tell: Tell,
  consequence = 'requests are answered with an error',
): void {
  const full = completeHost(host, namespace, world.domain)
  const services = servicesOf(full, world)
  if (services.length === 0) {
    if (!isAbsent(full, world)) return
    return tell('IST0101', `${at}.host`, `there is no service ${full}, so ${consequence}`, () => hostSuggestion(host, namespace, world))
  }
  const ports = services.flatMap((service) => service.ports)
  const numbers = [...new Set(ports.map(({ number }) => number))].sort((one, other) => one - other)
  if (port?.number === undefined) {
    if (numbers.length > 1)
      tell('IST0112', at, `the service ${full} has the ports ${numbers.join(', ')}: say which with port.number, otherwise that of the request counts`)
  } else if (!numbers.includes(port.number))
    tell('IST0101', `${at}.port.number`, `the service ${full} has no port ${port.number}, only ${numbers.join(', ') || 'none'}`)
  if (subset === undefined) return
  const subsets = subsetsOf(full, namespace, world)
  if (!subsets.has(subset) && world.isRead('DestinationRule'))
    tell('IST0101', `${at}.subset`, `no DestinationRule defines a subset ${JSON.stringify(subset)} of ${full}, so there are no endpoints`, () =>
      suggestion(subset, subsets),
    )
}
