/** Classes of proxies: proxies that must see the same configuration share a class, and with it every byte they are sent. */
import { hash } from 'node:crypto'
import type { Pod, ProxyNode } from '../../../protocols/data.ts'
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import { proxyLabels, type ServiceInstance } from '../../model/workload.ts'
import type { EnvoyFilter } from '../../snapshot/objects.ts'
import { passingGateways } from '../../snapshot/passed-on.ts'
import type { Settings } from '../../snapshot/snapshot.ts'
import { networkOf, type SystemNetworks } from '../../snapshot/system-networks.ts'
import { viewKeyOf } from '../../snapshot/view.ts'
import { filtersFor, withoutPatches } from '../../xds/envoy-filter/selection.ts'
import { hasPodListeners } from '../../xds/routes/port-uses.ts'
import { type ProxyClass, traitsOf } from '../../xds/traits.ts'
import type { SelectedWorkload, SelectingObjects } from './selecting-objects.ts'

/** How the configuration of a proxy differs from that of its class after the proxy refused a resource of the class. */
export interface Fallback {
  /** Patches that are left out. */
  readonly withdrawn: ReadonlySet<ConfigPatch>
  readonly denied: ProxyClass['denied']
}

/** The fallback of a proxy that has refused nothing. */
export const noFallback: Fallback = { withdrawn: new Set(), denied: new Map() }

/** What the classes of proxies are found by. Every read is recorded. */
export interface ClassInputs {
  readonly settings: Settings
  readonly visibility: { readonly differences: Pick<ReadonlyMap<string, unknown>, 'has'> }
  readonly callerLabels: readonly string[]
  selecting(workload: SelectedWorkload): SelectingObjects
  readonly systemNetworks: SystemNetworks
  /** Whether some service has addresses of its own in a cluster. */
  hasVipsIn(cluster: string): boolean
  /** The node of the pod of a proxy, empty if it is not known; undefined where it matters to no service. */
  clusterNodeOf(node: ProxyNode): string | undefined
  /** The pod of a proxy, if one is known. */
  podOf(node: ProxyNode): Pod | undefined
}

/** Finds the class of a proxy with some instances. */
export function classOf(
  node: ProxyNode,
  instances: readonly ServiceInstance[],
  inputs: ClassInputs,
  { withdrawn, denied }: Fallback = noFallback,
): ProxyClass {
  const { namespace } = node
  const pod = inputs.podOf(node)
  const labels = proxyLabels(node, instances, pod)
  const network = node.network || networkOf(node, pod, inputs.systemNetworks, inputs.settings.names.domain)
  const { sidecar, gateways: selected, filters: candidates, policies, policyLabels } = inputs.selecting({ type: node.type, namespace, labels })
  const chosen: readonly EnvoyFilter[] = filtersFor(candidates, node)
  const filters = withdrawn.size > 0 ? chosen.flatMap((filter) => withoutPatches(filter, withdrawn) ?? []) : chosen
  const forwards = passingGateways(selected).length > 0
  const place = { locality: instances[0]?.endpoint.locality ?? '', clusterNode: inputs.clusterNodeOf(node) }
  const traits = traitsOf(network === node.network ? node : { ...node, network }, place, filters, forwards)
  const isDifferent = inputs.visibility.differences.has(namespace)
  const viewKey = viewKeyOf({
    namespace,
    sidecar,
    isDifferent,
    allocates: traits.allocates,
    cluster: inputs.hasVipsIn(node.clusterId) ? node.clusterId : undefined,
  })
  const sourceLabels = Object.fromEntries(inputs.callerLabels.flatMap((key) => (labels[key] === undefined ? [] : [[key, labels[key]]])))
  // A gateway listens on the target ports of its own services.
  const own = node.type === 'sidecar' || selected.length > 0 ? instances : []
  const inbound = own.map((instance) => [instance.service.namespace, instance.service.hostname, instance.port.number, instance.targetPort])
  const bound = viewKey.sidecar?.spec.ingress?.length || traits.interception === 'NONE' ? (node.addresses[0] ?? '') : ''
  const headless = headlessOf(node.type === 'sidecar' ? own : [], node, inputs)
  const gateways = selected.map((gateway) => `${gateway.namespace}/${gateway.name}`)
  const facts = JSON.stringify([
    traits.key,
    viewKey.id,
    node.namespace,
    sourceLabels,
    inbound,
    bound,
    headless,
    gateways,
    policies,
    ...deniedKey(denied),
  ])
  const id = hash('sha1', facts, 'hex').slice(0, 20)
  const address = node.addresses[0] ?? ''
  return { id, namespace: node.namespace, traits, viewKey, labels: policyLabels, sourceLabels, instances: own, headless, address, gateways, denied }
}

const deniedKey = (denied: ProxyClass['denied']): unknown[] => (denied.size > 0 ? [[...denied].map(([name, versions]) => [name, ...versions])] : [])

function headlessOf(instances: readonly ServiceInstance[], { addresses }: ProxyNode, inputs: ClassInputs): ProxyClass['headless'] {
  const hosts = instances.flatMap(({ service }) => (hasPodListeners(service, inputs) ? [service.hostname] : []))
  return hosts.length > 0 ? { hosts: [...new Set(hosts)].sort(), addresses } : { hosts: [], addresses: [] }
}

/** Whether two classes with the same id are equal in everything that resources are made from. */
export function sameClass(one: ProxyClass, other: ProxyClass): boolean {
  return (
    JSON.stringify([one.labels, one.traits.key]) === JSON.stringify([other.labels, other.traits.key]) &&
    one.viewKey.sidecar === other.viewKey.sidecar &&
    one.traits.filters.every((filter, index) => filter === other.traits.filters[index]) &&
    one.instances.length === other.instances.length &&
    one.instances.every(({ service, port, targetPort }, index) => {
      const peer = other.instances[index]
      return peer?.service === service && peer.port === port && peer.targetPort === targetPort
    })
  )
}
