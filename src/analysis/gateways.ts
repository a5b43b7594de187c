/** Finds Gateways whose certificates are not there, and ports that nobody reaches. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { GatewaySpec } from '../config/kinds/gateway.ts'
import { hasAuthorities, hasPair } from '../config/secret-document.ts'
import { suggestion } from '../model/edit-distance.ts'
import type { Tell } from './finding.ts'
import { checkSharedPorts } from './gateway-ports.ts'
import { listed, serves, tellNoNamespace } from './references.ts'
import type { World } from './world.ts'

/** Tells what is wrong with a Gateway. */
export function analyzeGateway(gateway: ConfigObject<GatewaySpec>, world: World, tell: Tell): void {
  checkHostNamespaces(gateway, world, tell)
  checkPorts(gateway, world, tell)
  checkSharedPorts(gateway, world, tell)
  for (const namespace of secretNamespaces(gateway, world)) checkSecrets(gateway.spec, namespace, world, tell)
}

/** The modes of servers whose certificates may be in Secrets. */
const secretModes: ReadonlySet<string> = new Set(['SIMPLE', 'MUTUAL', 'OPTIONAL_MUTUAL'])

/** The namespaces in which the Secrets of a Gateway are looked for: those of its workloads (docs/resources.md, K7), or, while there is none, its own. */
function secretNamespaces({ namespace, spec: { selector = {} } }: ConfigObject<GatewaySpec>, world: World): readonly string[] {
  const workloads = Object.keys(selector).length === 0 ? [] : (world.workloads(selector, world.mesh.scopesGateways ? namespace : undefined) ?? [])
  return workloads.length === 0 ? [namespace] : [...new Set(workloads.map((workload) => workload.namespace))]
}

/** Tells Secrets that are not in a namespace, and those without what servers need of them. What is in a Secret that may be written otherwise is not known. */
function checkSecrets({ servers }: GatewaySpec, namespace: string, world: World, tell: Tell): void {
  const isKnown = (name: string) => world.knowsSecrets(placeOf(name, namespace)[0])
  const found = (name: string) => world.secrets(...placeOf(name, namespace))
  const has = (name: string, hasKeys: (keys: readonly string[]) => boolean) => found(name).some(({ keys }) => keys === undefined || hasKeys(keys))
  const check = (at: string, name: string) => {
    if (!isKnown(name)) return
    if (found(name).length === 0) {
      const near = () => suggestion(name, world.secretNames(namespace))
      tell('IST0101', at, `there is no Secret ${name} in the namespace ${namespace}, so the server takes no connections`, near)
    } else if (!has(name, hasPair))
      tell(
        'IST0101',
        at,
        `the Secret ${name} in the namespace ${namespace} has no certificate with its key (tls.crt and tls.key, or cert and key), so the server takes no connections`,
      )
  }
  for (const [index, { tls }] of servers.entries()) {
    if (!tls || !secretModes.has(tls.mode ?? '')) continue
    const at = `spec.servers[${index}].tls`
    const named: [string, string][] = (tls.credentialNames ?? []).map((name, number) => [`${at}.credentialNames[${number}]`, name])
    if (tls.credentialName) named.push([`${at}.credentialName`, tls.credentialName])
    for (const [path, name] of named) check(path, name)
    const authorities: [string, string] | undefined = tls.caCertCredentialName ? [`${at}.caCertCredentialName`, tls.caCertCredentialName] : named[0]
    if (!authorities || tls.mode === 'SIMPLE') continue
    const [path, name] = authorities
    if (!isKnown(name)) continue
    // A Secret that is not there has been told, unless only authorities are named by it.
    if (has(`${name}-cacert`, hasAuthorities) || has(name, hasAuthorities) || (!tls.caCertCredentialName && found(name).length === 0)) continue
    tell(
      'IST0101',
      path,
      `neither the Secret ${name}-cacert nor ${name} in the namespace ${namespace} has authorities (ca.crt or cacert), by which the mode ${tls.mode} knows clients, so the server takes no connections`,
    )
  }
}

/** The namespace and name of a Secret that a workload of a namespace reads. */
function placeOf(name: string, namespace: string): [namespace: string, name: string] {
  const slash = name.indexOf('/')
  return slash < 0 ? [namespace, name] : [name.slice(0, slash), name.slice(slash + 1)]
}

/** Tells hosts that are for the routes of a namespace that does not exist. */
function checkHostNamespaces({ spec }: ConfigObject<GatewaySpec>, world: World, tell: Tell): void {
  for (const [server, { hosts }] of spec.servers.entries())
    for (const [index, host] of hosts.entries()) {
      const owner = host.includes('/') ? host.slice(0, host.indexOf('/')) : '*'
      if (owner !== '*' && owner !== '.')
        tellNoNamespace(owner, ', so it has no routes', { at: `spec.servers[${server}].hosts[${index}]`, world, tell })
    }
}

/** Tells ports that no Service of the selected workloads has. Without such a Service its workloads are reached by other ways. */
function checkPorts({ spec }: ConfigObject<GatewaySpec>, world: World, tell: Tell): void {
  const { selector = {}, servers } = spec
  if (Object.keys(selector).length === 0) return
  const workloads = world.workloads(selector, undefined) ?? []
  const namespaces = [...new Set(workloads.map(({ namespace }) => namespace))]
  const services = namespaces.flatMap((namespace) =>
    world
      .servicesIn(namespace)
      .filter((service) => workloads.some((workload) => workload.namespace === namespace && serves(service, workload.labels))),
  )
  if (services.length === 0) return
  const ports = services.flatMap((service) => service.ports)
  // A named port of the workload may be any.
  if (ports.some(({ targetName }) => targetName)) return
  const numbers = new Set(ports.flatMap(({ number, targetPort }) => [number, targetPort || number]))
  for (const [index, { port }] of servers.entries())
    if (!numbers.has(port.number))
      tell(
        'IST0104',
        `spec.servers[${index}].port.number`,
        `the Service ${listed(services.map(({ name }) => name))} of the selected workloads has no port ${port.number}, so no connection arrives there`,
      )
}
