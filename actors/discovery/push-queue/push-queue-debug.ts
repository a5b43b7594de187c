/** The push queue's answers to the debug pages. */

import { configKey } from '../../../src/config/kinds.ts'
import { proxyPorts } from '../../../src/config/own-ports.ts'
import { checkedPolicies } from '../../../src/config/policy-checks.ts'
import { effectRows } from '../../../src/config/without-effect.ts'
import type { DescribedRequest } from '../../../src/policy/evaluate.ts'
import type { Share } from '../../../src/push/classes/identity-shares.ts'
import type { Planner } from '../../../src/push/planner.ts'
import { policiesFor } from '../../../src/snapshot/policies.ts'
import { configuredPorts } from '../../../src/xds/endpoints/own-machine.ts'
import { wallClockMs } from '../../runtime/clock.ts'

/**
 * Returns the functions that answer the debug pages. None of them is on the push path. `isLastSent` says whether a ledger is the last one
 * sent to some writer.
 */
export function debugAnswers(
  planner: Planner,
  own: { pushAgain: () => number; shares: () => readonly Share[] },
  isLastSent: (ledger: string) => boolean,
) {
  return { ...own, ...configurationAnswers(planner, isLastSent), ...stateAnswers(planner), ...proxyAnswers(planner) }
}

/** Answers about configuration objects and mesh settings. */
function configurationAnswers(planner: Planner, isLastSent: (ledger: string) => boolean) {
  return {
    configs: () =>
      planner.state.objects.all().map((object) => ({
        apiVersion: `${object.group}/${object.version}`,
        kind: object.kind,
        metadata: {
          name: object.name,
          namespace: object.namespace,
          labels: object.labels,
          annotations: object.annotations,
          ...(object.uid === '' ? {} : { uid: object.uid }),
          ...(object.resourceVersion === '' ? {} : { resourceVersion: object.resourceVersion }),
          generation: object.generation,
          creationTimestamp: new Date(object.createdAt).toISOString(),
        },
        spec: object.spec,
        source: object.source,
        place: object.place,
      })),
    policyChecks: () => checkedPolicies(planner.state.objects.all(), planner.snapshot.settings.optOuts),
    withoutEffect: () => effectRows(planner.state.objects.all(), planner.snapshot.settings.names.domain, planner.faults.all()),
    mesh: () => planner.snapshot.mesh,
    /**
     * Generations of an object at the given ledgers. A ledger that was the last one sent to a writer stands for the present one: nothing
     * that this writer serves has changed since.
     */
    generations: (key: string, ledgers: readonly string[]) =>
      ledgers.map((ledger) => planner.state.objects.generation(key, isLastSent(ledger) ? planner.ledger : ledger)),
    authorizationPolicies: () => ({
      namespace_to_policies: Object.fromEntries(
        [...planner.snapshot.policies.authorization].map(([namespace, policies]) => [
          namespace,
          policies.map(({ name, annotations, spec }) => ({ name, namespace, annotations, spec })),
        ]),
      ),
      root_namespace: planner.snapshot.mesh.rootNamespace,
    }),
  }
}

/** Answers about the state that was derived from the configuration: services, endpoints, groups, memory. */
function stateAnswers(planner: Planner) {
  return {
    services: () => [...planner.snapshot.services.values()].flat().map(({ service }) => service),
    endpoints: () =>
      [...planner.snapshot.services.values()].flat().map(({ service, endpoints, shards }) => ({
        hostname: service.hostname,
        namespace: service.namespace,
        ports: service.ports,
        endpoints,
        shards: shards.map((shard) => ({ provider: shard.provider, cluster: shard.cluster, endpoints: shard.endpoints })),
      })),
    faults: () => planner.faults.all(),
    cacheKeys: () => [...planner.groups.ids()].sort().map((id) => ({ group: id, resources: planner.groups.resources(id).size })),
    memory: () => ({ ...planner.slabs.usage(), ...{ made: planner.builder.memo.made, found: planner.builder.memo.found } }),
    conflicts: () => planner.builder.conflicts,
  }
}

/** Answers about one proxy or all proxies: ports, service instances, authorization, Sidecar scope. */
function proxyAnswers(planner: Planner) {
  return {
    /** The ports of E8: those of the mesh, and those that connected proxies name. */
    portsOfProxies: () => {
      const { mesh } = planner.snapshot
      const ports = proxyPorts(mesh)
      for (const { traits } of planner.classes()) for (const port of configuredPorts(traits, mesh)) ports.add(port)
      return [...ports]
    },
    instances: () =>
      // Asked by proxy and not by class: proxies of one class share the endpoints behind a port, but not their addresses.
      planner.proxies().map(({ connection, node }) => ({
        connection,
        namespace: node.namespace,
        instances: planner.instancesOf(node).map(({ service, port, endpoint, targetPort }) => ({
          service: service.hostname,
          namespace: service.namespace,
          port: port.number,
          name: port.name,
          protocol: port.protocol,
          address: endpoint.address,
          targetPort,
        })),
      })),
    /** Evaluates the policies of a proxy for a request. Returns undefined when no proxy has this connection. */
    explain: async (connection: string, request: DescribedRequest) => {
      const { snapshot } = planner
      const found = planner.proxies().find((proxy) => proxy.connection === connection)?.proxyClass
      if (!found) return undefined
      const { explain } = await import('../../../src/policy/explain.ts')
      const policies = policiesFor(snapshot.policies, snapshot.mesh.rootNamespace, found)
      const { trustsForwarded } = await import('../../../src/xds/security/trusted-proxies.ts')
      return explain(policies, request, snapshot, { now: wallClockMs() / 1000, trustsForwarded: trustsForwarded(found.traits, snapshot.mesh) })
    },
    sidecarScope: (connection: string) => {
      const found = planner.proxies().find((proxy) => proxy.connection === connection)?.proxyClass
      if (!found) return undefined
      const view = planner.builder.view(found.viewKey)
      return {
        view: view.id,
        sidecar: view.sidecar && configKey(view.sidecar),
        outboundTrafficPolicy: view.allowAny ? 'ALLOW_ANY' : 'REGISTRY_ONLY',
        egress: view.egress.map((egress) => ({
          port: egress.port,
          bind: egress.bind,
          services: egress.services.map(({ service }) => `${service.namespace}/${service.hostname}`),
          virtualServices: egress.virtualServices.all.map((service) => `${service.namespace}/${service.name}`),
        })),
      }
    },
  }
}
