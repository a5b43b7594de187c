/** Finds ServiceEntries whose connections cannot be told apart, and ports whose protocol is not known. */
import type { ConfigObject } from '../../protocols/data.ts'
import { leadsToCaller } from '../config/addresses.ts'
import type { ServiceEntrySpec } from '../config/kinds/service-entry.ts'
import { suggestion } from '../model/edit-distance.ts'
import { isHttp, isOpaqueTls, selectProtocol } from '../model/protocol.ts'
import { entriesOf } from './claims.ts'
import { checkFixed } from './entries.ts'
import type { Tell } from './finding.ts'
import { labelText, listed, mayMeet, someWorkload } from './references.ts'
import type { World } from './world.ts'

/** The protocols that are suggested. */
const protocols = ['HTTP', 'HTTPS', 'HTTP2', 'GRPC', 'GRPC-Web', 'TLS', 'TCP', 'UDP', 'MONGO', 'REDIS', 'MYSQL']

/** Tells what is wrong with a ServiceEntry. */
export function analyzeServiceEntry(entry: ConfigObject<ServiceEntrySpec>, world: World, tell: Tell): void {
  const { spec } = entry
  checkEndpoints(entry, world, tell)
  checkFixed(entry, world, tell)
  checkHosts(entry, world, tell)
  const labels = spec.workloadSelector?.labels ?? {}
  if (Object.keys(labels).length > 0 && someWorkload(labels, entry.namespace, world) === false)
    tell(
      'IST0127',
      'spec.workloadSelector.labels',
      `no workload of the namespace ${entry.namespace} has the labels ${labelText(labels, world)}, so its hosts have no endpoints at present`,
    )
  for (const [index, { number, name, protocol }] of (spec.ports ?? []).entries()) {
    const at = `spec.ports[${index}]`
    if (protocol && selectProtocol(protocol, '', 0) === 'unknown')
      tell(
        'IST0133',
        `${at}.protocol`,
        `${JSON.stringify(protocol)} is no protocol, so that of the port's name counts${suggestion(protocol.toUpperCase(), protocols)}`,
      )
    const effective = selectProtocol(protocol, name, number)
    if (!spec.addresses?.length && !isHttp(effective) && !isOpaqueTls(effective) && effective !== 'unknown' && effective !== 'udp')
      tell(
        'IST0134',
        at,
        `connections to port ${number} (${effective}) name no host: without addresses those of all such services are one, so set addresses, or the protocol TLS if clients name the host`,
      )
  }
}

/** Tells endpoints at the caller's own machine, where other namespaces see the service (docs/resources.md, E7). */
function checkEndpoints({ namespace, spec }: ConfigObject<ServiceEntrySpec>, world: World, tell: Tell): void {
  const { mesh } = world
  const exported = spec.exportTo?.length ? spec.exportTo : mesh.exportTo.services
  if (namespace === mesh.rootNamespace || exported.every((target) => target === '.' || target === '~' || target === namespace)) return
  if (!world.hasOthers(namespace)) return
  for (const [index, { address }] of (spec.endpoints ?? []).entries())
    if (address && (address.startsWith('unix://') || leadsToCaller(address)))
      tell(
        'MESH0002',
        `spec.endpoints[${index}].address`,
        `${address} is the caller's own machine, so proxies of other namespaces than ${namespace} do not get this endpoint`,
      )
}

/** Whether an entry adds nothing to an older one of the same host (docs/resources.md, S9). */
const differs = (one: ServiceEntrySpec, other: ServiceEntrySpec): boolean =>
  (one.resolution ?? 'NONE') !== (other.resolution ?? 'NONE') ||
  JSON.stringify(one.workloadSelector) !== JSON.stringify(other.workloadSelector) ||
  JSON.stringify(one.exportTo ?? []) !== JSON.stringify(other.exportTo ?? [])

/** Tells hosts that an entry of another namespace, or a Service of the cluster, has too, where some namespace sees both. */
function checkHosts(entry: ConfigObject<ServiceEntrySpec>, world: World, tell: Tell): void {
  for (const [index, host] of entry.spec.hosts.entries()) {
    checkServices(entry, host.toLowerCase(), `spec.hosts[${index}]`, world, tell)
    const all = world.claimants(entriesOf(host.toLowerCase())) as readonly ConfigObject<ServiceEntrySpec>[]
    const first = all
      .slice(0, Math.max(all.indexOf(entry), 0))
      .find(({ namespace, spec }) => namespace === entry.namespace && differs(spec, entry.spec))
    if (first)
      tell(
        'MESH0004',
        `spec.hosts[${index}]`,
        `the ServiceEntry ${first.namespace}/${first.name} has ${host} too, with another resolution, selector or export list, and counts: the ports and addresses of this one do not`,
      )
    const others = all.filter((other) => other.namespace !== entry.namespace && mayMeet(entry, other, world.mesh.exportTo.services))
    if (others.length > 0)
      tell(
        'MESH0004',
        `spec.hosts[${index}]`,
        `${host} is also a host of the ServiceEntry ${listed(others.map(({ namespace, name }) => `${namespace}/${name}`))}: a namespace that sees both uses one of them`,
      )
  }
}

/** Tells a host that a Service of the cluster has too (docs/resources.md, S9). */
function checkServices({ namespace }: ConfigObject<ServiceEntrySpec>, host: string, at: string, world: World, tell: Tell): void {
  const suffix = `.svc.${world.domain}`
  const [name = '', owner = '', ...more] = host.endsWith(suffix) ? host.slice(0, -suffix.length).split('.') : []
  if (more.length > 0 || !world.hasService(owner, name)) return
  if (owner !== namespace)
    return tell('MESH0004', at, `${host} is also the host of the Service ${owner}/${name}: a namespace that sees both uses one of them`)
  const isInForce = world.servicesIn(owner).some((service) => service.hostname === host)
  const counts = isInForce
    ? 'and counts: the ports and addresses of this entry do not'
    : 'which does not count: its selector and ports have no effect'
  tell('MESH0004', at, `the Service ${owner}/${name} has ${host} too, ${counts}`)
}
