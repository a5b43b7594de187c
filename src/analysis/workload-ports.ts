/** Answers which ports workloads have, by what their containers declare and by where Services lead. */
import type { Service, ServicePort } from '../../protocols/data.ts'
import type { Workload } from '../../protocols/messages/analysis.ts'
import { injectedContainers } from '../names/mesh-names.ts'
import { serves } from './references.ts'
import type { World } from './world.ts'

/** The ports of workloads. */
export interface WorkloadPorts {
  /** The ports that containers declare, of the sidecars too, by name; those without a name are among the numbers only. */
  readonly named: ReadonlyMap<string, number>
  readonly numbers: ReadonlySet<number>
  /** The ports that other containers than the sidecars declare. */
  readonly own: ReadonlySet<number>
}

const proxies: readonly string[] = injectedContainers.proxy

/** Returns the ports of workloads that run; undefined: there is none, or of one of them the containers are not known. */
export function declaredPorts(workloads: readonly Workload[]): WorkloadPorts | undefined {
  const named = new Map<string, number>()
  const numbers = new Set<number>()
  const own = new Set<number>()
  let running = 0
  for (const { pod } of workloads) {
    if (!pod) return undefined
    if (pod.hasEnded) continue
    running++
    for (const container of pod.containers)
      for (const { name, number } of container.ports) {
        if (name !== '') named.set(name, number)
        numbers.add(number)
        if (!proxies.includes(container.name)) own.add(number)
      }
  }
  return running === 0 ? undefined : { named, numbers, own }
}

/** The port of a workload that a port of a Service leads to; undefined: it names one that no container has. */
export const targetOf = ({ number, targetPort, targetName }: ServicePort, { named }: WorkloadPorts): number | undefined =>
  targetName ? named.get(targetName) : targetPort || number

/** Returns workloads whose traffic a sidecar takes; undefined: there is none, or one of them may be a gateway, which takes it as Gateways say. */
export function sidecarWorkloads(workloads: readonly Workload[]): readonly Workload[] | undefined {
  const isOwn = ({ pod }: Workload) => pod?.containers.some(({ name }) => !proxies.includes(name)) === true
  return workloads.length > 0 && workloads.every(isOwn) ? workloads : undefined
}

/** The Services of which one of some workloads is an endpoint. */
export function servicesFor(workloads: readonly Workload[], world: World): readonly Service[] {
  return [...Map.groupBy(workloads, ({ namespace }) => namespace)].flatMap(([namespace, own]) => {
    const services = world.servicesIn(namespace)
    world.spend(services.length * own.length)
    return services.filter((service) => own.some(({ labels }) => serves(service, labels)))
  })
}
