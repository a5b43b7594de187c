/** Finds servers of Gateways that cannot have their port, since others of the same workloads have it. */

import type { ConfigObject } from '../../protocols/data.ts'
import type { Workload } from '../../protocols/messages/analysis.ts'
import type { GatewaySpec } from '../config/kinds/gateway.ts'
import { holderText, type PlacedServer, portConflict, splitServerHost } from '../model/gateway-ports.ts'
import { labelsMatch } from '../model/match.ts'
import { isPlainHttp } from '../model/protocol.ts'
import { allGateways } from './claims.ts'
import type { Tell } from './finding.ts'
import { serves } from './references.ts'
import type { World } from './world.ts'

type Gateway = ConfigObject<GatewaySpec>

/** A server at a port. */
interface User extends PlacedServer {
  readonly gateway: Gateway
}

interface Port {
  readonly plainHttp: User[]
  readonly others: User[]
}

/** Where Gateways meet: the workloads that all of them select, of which one stands for those with the same Services; undefined: none is known. */
interface Meeting {
  readonly gateways: readonly Gateway[]
  readonly workload: Workload | undefined
}

/** Tells the servers of a Gateway that are left out, each once, with the server that has the port (docs/resources.md, G2). */
export function checkSharedPorts(gateway: Gateway, world: World, tell: Tell): void {
  const told = new Set<number>()
  for (const meeting of meetingsOf(gateway, world))
    for (const { index, other, reason } of leftOut(gateway, meeting, world)) {
      if (told.has(index)) continue
      told.add(index)
      const { port } = gateway.spec.servers[index] as GatewaySpec['servers'][number]
      tell(
        'MESH0006',
        `spec.servers[${index}].port`,
        `${holderText(other, gateway, port.number)}, and this one is for ${port.protocol.toUpperCase()}, so this one is left out: ${reason}; give it another port${reason.startsWith('the host') ? ' or host' : ''}`,
      )
    }
}

/** Replays what the planner does with the servers of Gateways that select a workload, the oldest first. */
function* leftOut(gateway: Gateway, { gateways, workload }: Meeting, world: World): Generator<{ index: number; other: User; reason: string }> {
  const ports = new Map<string, Port>()
  for (const each of gateways)
    for (const [index, server] of each.spec.servers.entries()) {
      world.spend(1)
      const protocol = server.port.protocol.toUpperCase()
      const use: User = { gateway: each, index, protocol, hosts: server.hosts.map((host) => splitServerHost(host, each.namespace)) }
      for (const number of listenPorts(server, workload, world)) {
        const key = `${server.bind || '0.0.0.0'}_${number}`
        const there = ports.get(key) ?? { plainHttp: [], others: [] }
        ports.set(key, there)
        const conflict = portConflict(there.plainHttp, there.others, use)
        if (conflict) {
          if (each === gateway) yield { index, other: conflict.with, reason: conflict.reason }
        } else if (isPlainHttp(protocol)) there.plainHttp.push(use)
        else there.others.push(use)
      }
    }
}

/** The ports at which a workload listens for a server. Of a port that its Services name by the name of a container's port it is not known. */
function listenPorts(
  { port: { number, targetPort } }: GatewaySpec['servers'][number],
  workload: Workload | undefined,
  world: World,
): readonly number[] {
  if (targetPort) return [targetPort]
  if (!workload) return [number]
  const ports = servicesFor(workload, world).flatMap((service) => service.ports.filter((port) => port.number === number))
  if (ports.some(({ targetName }) => targetName)) return []
  return ports.length > 0 ? [...new Set(ports.map((port) => port.targetPort || port.number))] : [number]
}

const servicesFor = ({ namespace, labels }: Workload, world: World) => world.servicesIn(namespace).filter((service) => serves(service, labels))

/** The sets of Gateways of which a Gateway is one and that select the same workload. */
function meetingsOf(gateway: Gateway, world: World): Meeting[] {
  const selector = gateway.spec.selector ?? {}
  const all = world.claimants(allGateways) as readonly Gateway[]
  const inScope = (each: Gateway, namespace: string) => !world.mesh.scopesGateways || each.namespace === namespace
  const near = all.filter((each) => each === gateway || mayShare(selector, each.spec.selector ?? {}))
  const workloads =
    Object.keys(selector).length > 0 ? (world.workloads(selector, world.mesh.scopesGateways ? gateway.namespace : undefined) ?? []) : []
  const found = new Map<string, Meeting>()
  for (const workload of workloads) {
    world.spend(near.length)
    const gateways = near.filter((each) => inScope(each, workload.namespace) && labelsMatch(each.spec.selector ?? {}, workload.labels))
    const services = servicesFor(workload, world).map(({ name }) => name)
    const id = JSON.stringify([workload.namespace, services, gateways.map(({ namespace, name }) => `${namespace}/${name}`)])
    if (!found.has(id)) found.set(id, { gateways, workload })
  }
  if (found.size > 0) return [...found.values()]
  // Whatever the workloads are, equal selectors select the same ones.
  const same = (each: Gateway) => textOf(each.spec.selector ?? {}) === textOf(selector) && inScope(each, gateway.namespace)
  return [{ gateways: near.filter((each) => each === gateway || same(each)), workload: undefined }]
}

type Labels = Readonly<Record<string, string>>
const textOf = (labels: Labels): string => JSON.stringify(Object.entries(labels).sort())

/** Whether a workload may have the labels of both selectors. */
const mayShare = (one: Labels, other: Labels): boolean => Object.entries(one).every(([label, value]) => (other[label] ?? value) === value)
