/** Classes of proxies: proxies that must see the same configuration share a class, and with it every byte they are sent. */
import { hash } from 'node:crypto'
import type { ProxyNode } from '../../../protocols/data.ts'
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import { gateway as gatewayKind } from '../../config/kinds/gateway.ts'
import { labelsMatch } from '../../model/match.ts'
import { proxyLabels, type ServiceInstance } from '../../model/workload.ts'
import type { EnvoyFilter, Gateway } from '../../snapshot/objects.ts'
import { policiesFor, selectingLabels } from '../../snapshot/policies.ts'
import { viewKeyOf } from '../../snapshot/view.ts'
import { filtersFor, withoutPatches } from '../../xds/envoy-filter/selection.ts'
import { hasPodListeners } from '../../xds/routes/port-uses.ts'
import { type ProxyClass, traitsOf } from '../../xds/traits.ts'
import type { ClassInputs } from './class-inputs.ts'

/** How the configuration of a proxy differs from that of its class after the proxy refused a resource of the class. */
export interface Fallback {
  /** Patches that are left out. */
  readonly withdrawn: ReadonlySet<ConfigPatch>
  readonly denied: ProxyClass['denied']
}

/** The fallback of a proxy that has refused nothing. */
export const noFallback: Fallback = { withdrawn: new Set(), denied: new Map() }

/** Finds the class of a proxy. */
export function classOf(
  node: ProxyNode,
  instances: readonly ServiceInstance[],
  snapshot: ClassInputs,
  { withdrawn, denied }: Fallback = noFallback,
): ProxyClass {
  const labels = proxyLabels(node, instances)
  const chosen: readonly EnvoyFilter[] = filtersFor(snapshot, node, labels)
  const filters = withdrawn.size > 0 ? chosen.flatMap((filter) => withoutPatches(filter, withdrawn) ?? []) : chosen
  const selected = node.type === 'router' ? selectedGateways(snapshot, node.namespace, labels) : []
  const forwards = selected.some(({ spec }) => spec.servers.some(({ tls }) => tls?.mode === 'AUTO_PASSTHROUGH'))
  const traits = traitsOf(node, instances[0]?.endpoint.locality ?? '', filters, forwards)
  const viewKey = viewKeyOf(snapshot, { namespace: node.namespace, labels, type: node.type, allocates: traits.allocates })
  const sourceLabels = Object.fromEntries(
    [...snapshot.virtualServices.byCallerLabel.keys()].sort().flatMap((key) => (labels[key] === undefined ? [] : [[key, labels[key]]])),
  )
  // A gateway listens on the target ports of its own services.
  const own = node.type === 'sidecar' || selected.length > 0 ? instances : []
  const inbound = own.map((instance) => [instance.service.namespace, instance.service.hostname, instance.port.number, instance.targetPort])
  const bound = viewKey.sidecar?.spec.ingress?.length || traits.interception === 'NONE' ? (node.addresses[0] ?? '') : ''
  const headless = headlessOf(node.type === 'sidecar' ? own : [], node, snapshot)
  const gateways = selected.map((gateway) => `${gateway.namespace}/${gateway.name}`)
  const { policies: index, mesh } = snapshot
  const policies = policiesFor(index, mesh.rootNamespace, { namespace: node.namespace, labels })
  const policyNames = [policies.authorization, policies.requests, policies.peers].map((list) =>
    list.map(({ namespace, name }) => `${namespace}/${name}`),
  )
  const facts = JSON.stringify([
    traits.key,
    viewKey.id,
    node.namespace,
    sourceLabels,
    inbound,
    bound,
    headless,
    gateways,
    policyNames,
    ...deniedKey(denied),
  ])
  const id = hash('sha1', facts, 'hex').slice(0, 20)
  const selecting = selectingLabels(index, mesh.rootNamespace, node.namespace)
  const selectorLabels = Object.fromEntries(Object.entries(labels).filter(([key]) => selecting.has(key)))
  const address = node.addresses[0] ?? ''
  return { id, namespace: node.namespace, traits, viewKey, labels: selectorLabels, sourceLabels, instances: own, headless, address, gateways, denied }
}

const deniedKey = (denied: ProxyClass['denied']): unknown[] => (denied.size > 0 ? [[...denied].map(([name, versions]) => [name, ...versions])] : [])

function headlessOf(instances: readonly ServiceInstance[], { addresses }: ProxyNode, snapshot: ClassInputs): ProxyClass['headless'] {
  const hosts = instances.flatMap(({ service }) => (hasPodListeners(service, snapshot) ? [service.hostname] : []))
  return hosts.length > 0 ? { hosts: [...new Set(hosts)].sort(), addresses } : { hosts: [], addresses: [] }
}

function selectedGateways(snapshot: ClassInputs, namespace: string, labels: Readonly<Record<string, string>>): Gateway[] {
  const scoped = snapshot.settings.features.PILOT_SCOPE_GATEWAY_TO_NAMESPACE
  return snapshot.gateways.filter(
    (gateway) => (!scoped || gateway.namespace === namespace) && labelsMatch(gatewayKind.selects.labels(gateway.spec), labels),
  )
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
