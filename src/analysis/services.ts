/** Finds Services without workloads, ports that lead to none of these, and ports that say no protocol. */

import type { Service } from '../../protocols/data.ts'
import type { Workload } from '../../protocols/messages/analysis.ts'
import { orchestratorNamespaces } from '../inject/decision.ts'
import { suggestion } from '../model/edit-distance.ts'
import type { Tell } from './finding.ts'
import { checkPassedOn } from './network-gateways.ts'
import { isInjectedNamespace, labelText, listed, selectorOf, someWorkload } from './references.ts'
import { declaredPorts, servicesFor, targetOf, type WorkloadPorts } from './workload-ports.ts'
import type { World } from './world.ts'

/** Tells what is wrong with a Service of a cluster. */
export function analyzeService(service: Service, world: World, tell: Tell): void {
  if (orchestratorNamespaces.has(service.namespace) || service.external) return
  checkProtocols(service, world, tell)
  checkPassedOn(service, world, tell)
  const selector = selectorOf(service)
  if (!selector) return
  const isAny = someWorkload(selector, service.namespace, world)
  if (isAny) return checkTargets(service, world.workloads(selector, service.namespace) ?? [], world, tell)
  // Workloads of a namespace that has none may come from elsewhere.
  if (isAny === false && world.hasWorkloads(service.namespace))
    tell(
      'IST0127',
      'spec.selector',
      `no workload of the namespace ${service.namespace} has the labels ${labelText(selector, world)}, so it has no endpoints at present: correct the labels`,
    )
}

/** Tells the ports whose protocol has to be detected from their connections. */
function checkProtocols({ namespace, ports }: Service, world: World, tell: Tell): void {
  const labels = world.knowsNamespaces ? world.namespaceLabels(namespace) : undefined
  if (labels && isInjectedNamespace(labels, world) !== true) return
  for (const [index, { number, name, protocol }] of ports.entries())
    if (protocol === 'unknown')
      tell(
        'IST0118',
        `spec.ports[${index}]${name === '' ? '' : '.name'}`,
        `the port ${number}${name === '' ? ' has no name' : ` is named ${JSON.stringify(name)}`}, which says no protocol, so it is detected from the first bytes of each connection: set appProtocol, or begin the name with it, such as http-`,
      )
}

/**
 * Tells ports that lead to no port of the workloads. A name that no container has certainly leads nowhere. A container may listen at a port that it
 * does not declare: a number is told where a container declares another one, to which no Service leads, so that this may be meant.
 */
function checkTargets({ ports }: Service, workloads: readonly Workload[], world: World, tell: Tell): void {
  const declared = declaredPorts(workloads)
  if (!declared) return
  const unknown = ports.flatMap((port, index) => {
    const target = targetOf(port, declared)
    return target === undefined || !declared.numbers.has(target) ? [{ port, index, target }] : []
  })
  if (unknown.length === 0) return
  const spare = spareOf(workloads, declared, world)
  for (const { port, index, target } of unknown) {
    const at = `spec.ports[${index}].${port.targetName || port.targetPort ? 'targetPort' : 'port'}`
    if (target === undefined)
      tell(
        'IST0101',
        at,
        `no container of the selected workloads has a port named ${JSON.stringify(port.targetName)}, so the port ${port.number} has no endpoints: name one of theirs`,
        () => suggestion(port.targetName ?? '', declared.named.keys()),
      )
    else if (spare.length > 0)
      tell(
        'MESH0008',
        at,
        `no container of the selected workloads declares the port ${target}, and no Service leads to ${listed(spare.map(String))}, which they declare: set targetPort to that, or declare ${target}`,
      )
  }
}

/** The ports that containers declare, without those of sidecars, and to which no Service leads. */
function spareOf(workloads: readonly Workload[], declared: WorkloadPorts, world: World): readonly number[] {
  if (declared.own.size === 0) return []
  const led = new Set(servicesFor(workloads, world).flatMap(({ ports }) => ports.map((port) => targetOf(port, declared))))
  return [...declared.own].filter((number) => !led.has(number)).sort((one, other) => one - other)
}
