/** Finds ports of Services that say no protocol. */
import type { Service } from '../../protocols/data.ts'
import type { Tell } from './finding.ts'
import { isInjectedNamespace, ownNamespaces } from './references.ts'
import type { World } from './world.ts'

/** Tells the ports of a Service of a cluster whose protocol has to be detected from their connections. */
export function analyzePorts({ namespace, ports, external }: Service, world: World, tell: Tell): void {
  if (ownNamespaces.has(namespace) || external) return
  const labels = world.knowsNamespaces ? world.namespaceLabels(namespace) : undefined
  if (labels && isInjectedNamespace(labels, world) !== true) return
  for (const [index, { name, number, protocol }] of ports.entries())
    if (protocol === 'unknown')
      tell(
        'IST0118',
        `spec.ports[${index}].name`,
        `the port ${number}${name === '' ? ' has no name' : ` is named ${JSON.stringify(name)}`}, which says no protocol, so it is detected from the first bytes of each connection: set appProtocol, or begin the name with it, such as http-`,
      )
}
