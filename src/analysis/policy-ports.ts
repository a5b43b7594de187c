/** Finds ports of policies that the workloads of these do not have. Policies name ports of workloads, not those of Services. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { AuthorizationPolicySpec } from '../config/kinds/authorization-policy.ts'
import type { PeerAuthenticationSpec } from '../config/kinds/peer-authentication.ts'
import { selectedLabels } from '../config/shapes/policies.ts'
import type { Tell } from './finding.ts'
import { listed } from './references.ts'
import { selectedNamespace } from './selectors.ts'
import { declaredPorts, servicesFor, targetOf } from './workload-ports.ts'
import type { World } from './world.ts'

/** Ports at which sidecars themselves answer: for metrics, for probes, and for Envoy's statistics. No connection to them is redirected. */
const sidecarPorts: ReadonlySet<number> = new Set([15_020, 15_021, 15_090])

/** A port that a policy names. */
interface Named {
  readonly port: number
  readonly at: string
  /** What follows where no workload has it. */
  readonly consequence: string
}

/** Tells the ports of `portLevelMtls`. */
export function checkPeerPorts(object: ConfigObject<PeerAuthenticationSpec>, world: World, tell: Tell): void {
  const ports = Object.keys(object.spec.portLevelMtls ?? {})
  check(
    object,
    ports.map((port) => ({ port: Number(port), at: `spec.portLevelMtls[${port}]`, consequence: 'so its mode has no effect' })),
    world,
    tell,
  )
}

/** Tells the ports of operations and conditions. */
export function checkRulePorts(object: ConfigObject<AuthorizationPolicySpec>, world: World, tell: Tell): void {
  check(object, [...portsOf(object.spec)], world, tell)
}

function* portsOf({ rules = [] }: AuthorizationPolicySpec): Generator<Named> {
  const named = function* (ports: readonly string[] = [], at: string, consequence: string): Generator<Named> {
    for (const [index, port] of ports.entries()) yield { port: Number(port), at: `${at}[${index}]`, consequence }
  }
  const [none, all] = ['so it matches nothing', 'so it leaves nothing out']
  for (const [index, { to = [], when = [] }] of rules.entries()) {
    for (const [number, { operation }] of to.entries()) {
      const at = `spec.rules[${index}].to[${number}].operation`
      yield* named(operation.ports, `${at}.ports`, none)
      yield* named(operation.notPorts, `${at}.notPorts`, all)
    }
    for (const [number, { key, values, notValues }] of when.entries()) {
      if (key !== 'destination.port') continue
      const at = `spec.rules[${index}].when[${number}]`
      yield* named(values, `${at}.values`, none)
      yield* named(notValues, `${at}.notValues`, all)
    }
  }
}

/**
 * Tells ports that are those of a Service which leads elsewhere, and those that nobody declares where the containers declare others. Without a
 * selector the workloads of very many policies would be all of a namespace.
 */
function check(object: ConfigObject, ports: readonly Named[], world: World, tell: Tell): void {
  const labels = selectedLabels(object.spec as PeerAuthenticationSpec)
  if (ports.length === 0 || Object.keys(labels).length === 0) return
  const workloads = world.workloads(labels, selectedNamespace(object, world)) ?? []
  const declared = declaredPorts(workloads)
  if (!declared || ports.every(({ port }) => declared.numbers.has(port))) return
  const services = servicesFor(workloads, world)
  const leading = services.flatMap((service) => service.ports.map((port) => ({ service, port: port.number, target: targetOf(port, declared) })))
  const known = new Set([...declared.numbers, ...leading.flatMap(({ target }) => target ?? [])])
  for (const { port, at, consequence } of ports) {
    if (known.has(port)) continue
    const led = leading.find((each) => each.port === port)
    if (led?.target)
      tell(
        'MESH0008',
        at,
        `${port} is a port of the Service ${led.service.name}, which leads to ${led.target} of the workloads, ${consequence}: policies name ports of workloads, so write ${led.target}`,
      )
    else if (sidecarPorts.has(port) && declared.own.size > 0)
      tell('MESH0008', at, `${port} is a port of the sidecar itself, and connections to it pass no policy, ${consequence}: leave it out`)
    else if (declared.own.size > 0)
      tell(
        'MESH0008',
        at,
        `no container of the selected workloads declares the port ${port}, and no Service leads to it, ${consequence}: use one of ${listed([...known].sort((one, other) => one - other).map(String))}, or declare it`,
      )
  }
}
