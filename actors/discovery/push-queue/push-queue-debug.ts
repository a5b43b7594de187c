/** The push queue's answers to the debug pages. */

import { serialize } from 'node:v8'
import type { ObjectReference, Service } from '../../../protocols/data.ts'
import type { DescribedRequest } from '../../../protocols/messages/described-request.ts'
import type { DryRunPiece, DryRunProxy, DryRunRow } from '../../../protocols/messages/dry-run.ts'
import type { TriedRoute } from '../../../protocols/messages/explain.ts'
import type { EndpointsRow, ListPiece } from '../../../protocols/messages/pages.ts'
import type { SettingOrigin } from '../../../protocols/messages/push.ts'
import { writtenSpec } from '../../../src/config/document.ts'
import { sidecar as sidecarKind } from '../../../src/config/kinds/sidecar.ts'
import { configKey, keyAt, readKey } from '../../../src/config/kinds.ts'
import { proxyPorts } from '../../../src/config/own-ports.ts'
import { checkedPolicies } from '../../../src/config/policy-checks.ts'
import { effectRows } from '../../../src/config/without-effect.ts'
import { suggestion } from '../../../src/model/edit-distance.ts'
import { servedHost } from '../../../src/model/workload.ts'
import type { ReferencedExplanation } from '../../../src/policy/explain.ts'
import type { Share } from '../../../src/push/classes/identity-shares.ts'
import { dryRunRows, mostProxies } from '../../../src/push/dry-run/rows.ts'
import type { Planner } from '../../../src/push/planner.ts'
import { policiesFor } from '../../../src/snapshot/policies.ts'
import { configuredPorts } from '../../../src/xds/endpoints/own-machine.ts'
import type { ProxyClass } from '../../../src/xds/traits.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import { Listings, type WeighedRow } from './listings.ts'

/** The Sidecar in force for a proxy: the object as a document, and the names of all Sidecars of the namespace of the proxy. */
export interface SidecarInForce {
  readonly names: readonly string[]
  /** Undefined: none is in force. */
  readonly reference?: ObjectReference
  readonly object?: object
}

/** What copying a configuration object costs, in small objects ({@link WeighedRow}). */
const objectWeight = 20
/** How many endpoints are in one row at most. */
const endpointsOfRow = 250

/**
 * Returns the functions that answer the debug pages. None of them is on the push path. `isLastSent` says whether a digest is the last one
 * sent to some writer.
 */
export function debugAnswers<Own extends { pushAgain: () => number; shares: () => readonly Share[] }>(
  planner: Planner,
  own: Own,
  isLastSent: (digest: string) => boolean,
) {
  const lists = new Listings()
  return {
    ...own,
    more: (list: number) => lists.more(list),
    ...configurationAnswers(planner, lists, isLastSent),
    ...stateAnswers(planner, lists),
    ...proxyAnswers(planner, lists),
    ...routingAnswers(planner),
  }
}

/** Each configuration object, as pages show it. */
function* configRows({ state }: Planner): Generator<WeighedRow<object>> {
  for (const object of state.objects.each()) {
    const { labels, annotations, uid, resourceVersion, generation } = object
    yield [
      {
        apiVersion: `${object.group}/${object.version}`,
        kind: object.kind,
        metadata: {
          name: object.name,
          namespace: object.namespace,
          ...{ labels, annotations },
          ...(uid === '' ? {} : { uid }),
          ...(resourceVersion === '' ? {} : { resourceVersion }),
          generation,
          creationTimestamp: new Date(object.createdAt).toISOString(),
        },
        spec: object.spec,
        source: object.source,
        place: object.place,
      },
      objectWeight,
    ]
  }
}

/** Each service, with the clusters that have it if these are several. */
function* serviceRows({ snapshot }: Planner): Generator<WeighedRow<Service & { readonly clusters?: readonly string[] }>> {
  for (const states of snapshot.services.values())
    for (const { service, shards } of states) {
      const clusters = [...new Set(shards.flatMap(({ cluster }) => (cluster === '' ? [] : cluster)))]
      yield [clusters.length > 1 ? { ...service, clusters } : service, 5]
    }
}

/** The endpoints of each service and registry, at most {@link endpointsOfRow} a row. Services without endpoints have one row. */
function* endpointRows({ snapshot }: Planner): Generator<WeighedRow<EndpointsRow>> {
  for (const states of snapshot.services.values())
    for (const { service, shards } of states) {
      const { hostname, namespace, ports } = service
      if (shards.length === 0) yield [{ hostname, namespace, ports, shard: undefined, endpoints: [] }, 5]
      for (const { provider, cluster, endpoints } of shards)
        for (let start = 0; start === 0 || start < endpoints.length; start += endpointsOfRow) {
          const some = endpoints.slice(start, start + endpointsOfRow)
          yield [{ hostname, namespace, ports, shard: { provider, cluster }, endpoints: some }, 5 + some.length]
        }
    }
}

/** The service instances of each proxy. Asked by proxy and not by class: proxies of one class share the endpoints behind a port, but not their addresses. */
function* instanceRows(
  planner: Planner,
): Generator<WeighedRow<{ connection: string; namespace: string; instances: readonly { address: string }[] }>> {
  for (const { connection, node } of planner.proxies()) {
    const instances = planner.instancesOf(node).map(({ service, port, endpoint, targetPort }) => ({
      service: service.hostname,
      namespace: service.namespace,
      port: port.number,
      name: port.name,
      protocol: port.protocol,
      address: endpoint.address,
      targetPort,
    }))
    yield [{ connection, namespace: node.namespace, instances }, 1 + instances.length]
  }
}

/** The resources that proxies refused. The name of a proxy in the planner begins with that of its writer. */
function* refusalRows(planner: Planner): Generator<WeighedRow<object>> {
  for (const { connection, fault, ...refusal } of planner.refusals()) {
    const references = fault.objects.map((key) => planner.state.reference(key))
    yield [{ ...refusal, connectionId: connection.split('/').slice(2).join('/'), fault: { ...fault, references } }, 1]
  }
}

/** The connected proxies, for the dry run of another replica. */
function* nodeRows(planner: Planner): Generator<WeighedRow<DryRunProxy>> {
  for (const { node } of planner.proxies().slice(0, mostProxies)) yield [{ nodeId: node.id, node }, 30]
}

/** A piece in shared memory, so that the main thread, which passes it on, neither reads nor copies it. */
function packed({ rows, next }: ListPiece<DryRunRow>): DryRunPiece {
  const bytes = serialize(rows)
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length))
  shared.set(bytes)
  return { rows: shared, next }
}

/** The groups of resources. */
function* groupRows({ groups }: Planner): Generator<WeighedRow<{ group: string; resources: number }>> {
  for (const group of groups.ids()) yield [{ group, resources: groups.resources(group).size }, 1]
}

/** Answers about configuration objects and mesh settings. Lists are given out in pieces. */
function configurationAnswers(planner: Planner, lists: Listings, isLastSent: (digest: string) => boolean) {
  return {
    configs: () => lists.first(configRows(planner)),
    policyChecks: () => checkedPolicies(planner.state.objects.all(), planner.snapshot.settings.optOuts),
    withoutEffect: () => effectRows(planner.state.objects.all(), planner.snapshot.settings.names.domain, planner.faults.all(), planner.withdrawn()),
    mesh: () => planner.snapshot.mesh,
    settings: () => {
      const { meshes, networks } = planner.state
      const origin = ({ source, place }: SettingOrigin) => ({ source, place })
      return {
        mesh: { inForce: origin(meshes.inForce), overruled: meshes.overruled.map(origin) },
        networks: { inForce: origin(networks.inForce), overruled: networks.overruled.map(origin), ...networks.inForce.value },
      }
    },
    /**
     * Generations of an object at the given digests. A digest that was the last one sent to a writer stands for the present one: nothing
     * that this writer serves has changed since.
     */
    generations: (key: string, digests: readonly string[]) =>
      digests.map((digest) => planner.state.objects.generation(key, isLastSent(digest) ? planner.digest : digest)),
    /** Says that an object is not known, and which of its namespace may be meant. Undefined for one that is. */
    unknownObject: (key: string) => {
      const { objects } = planner.state
      if (objects.get(key)) return undefined
      const { namespace } = readKey(key, '')
      const near = [...objects.all()].filter((object) => object.namespace === namespace).map(configKey)
      return `there is no ${JSON.stringify(key)} (<Kind>/<namespace>/<name>)${suggestion(key, near)}`
    },
    authorizationPolicies: () => ({
      namespace_to_policies: Object.fromEntries(
        [...planner.snapshot.policies.authorization].map(([namespace, policies]) => [
          namespace,
          policies.map(({ name, annotations, spec, place, source }) => ({ name, namespace, annotations, spec, source, place })),
        ]),
      ),
      root_namespace: planner.snapshot.mesh.rootNamespace,
    }),
  }
}

/** Answers about the state that was derived from the configuration: services, endpoints, groups, memory. */
function stateAnswers(planner: Planner, lists: Listings) {
  return {
    services: () => lists.first(serviceRows(planner)),
    endpoints: () => lists.first(endpointRows(planner)),
    faults: () => planner.faults.all().map((fault) => ({ ...fault, references: fault.objects.map((key) => planner.state.reference(key)) })),
    cacheKeys: () => lists.first(groupRows(planner)),
    memory: () => ({ ...planner.slabs.usage(), ...{ made: planner.builder.memo.made, found: planner.builder.memo.found } }),
    /** The conflicts of listeners, each with the object of the service that loses. */
    conflicts: () => planner.builder.conflicts.map((conflict) => ({ ...conflict, reference: planner.state.reference(conflict.object) })),
  }
}

/** The gateways that rules at a port of a proxy may be for: `mesh`, or its Gateways with that port, all of them where none has it (its listener may have another than they name). */
function gatewaysAt({ snapshot }: Planner, { traits, gateways }: ProxyClass, port: number): ReadonlySet<string> {
  if (traits.type === 'sidecar') return new Set(['mesh'])
  const there = snapshot.gateways.filter(({ spec }) => spec.servers.some((server) => server.port.number === port))
  const own = there.map(({ namespace, name }) => `${namespace}/${name}`).filter((name) => gateways.includes(name))
  return new Set(own.length > 0 ? own : gateways)
}

/** Answers about where one proxy sends requests. They are undefined when no proxy has the connection. */
function routingAnswers(planner: Planner) {
  const classOf = (connection: string) => planner.proxies().find((proxy) => proxy.connection === connection)?.proxyClass
  const viewOf = (connection: string) => {
    const found = classOf(connection)
    return found && planner.builder.view(found.viewKey)
  }
  return {
    /** The fields that routes of a proxy were made from, and the objects. A replica of an earlier version does not say the port of the request. */
    routeFields: async (connection: string, routes: readonly (TriedRoute & { readonly port?: number })[]) => {
      const found = classOf(connection)
      if (!found) return undefined
      const port = routes[0]?.port ?? 0
      const place = { gateways: gatewaysAt(planner, found, port), port, sourceLabels: found.sourceLabels, sourceNamespace: found.namespace }
      const { routeFields } = await import('../../../src/push/explain/route-fields.ts')
      const keys = new Set(routes.map(({ virtualService }) => virtualService))
      keys.delete('')
      const references = [...keys].map((path) => [path, planner.state.reference(keyAt('VirtualService', path))] as const)
      return { ...routeFields(planner.snapshot.virtualServices.all, routes, place), references: Object.fromEntries(references) }
    },
    /** The protocols of the ports that clusters of a proxy are of. */
    portProtocols: async (connection: string, clusters: readonly string[]) => {
      const view = viewOf(connection)
      const { portProtocols } = await import('../../../src/push/explain/unread-bytes.ts')
      return view && portProtocols(view, clusters)
    },
    /** The WorkloadEntries that take no traffic, by cluster of a proxy. */
    unhealthyEntries: async (connection: string, clusters: readonly string[]) => {
      const view = viewOf(connection)
      const { unhealthyEntries } = await import('../../../src/push/explain/unhealthy-entries.ts')
      return view && unhealthyEntries(view, clusters, (key) => planner.state.object(key))
    },
    /** Why clusters of a proxy lack endpoints that their services have, by cluster. */
    lostEndpoints: async (connection: string, clusters: readonly string[]) => {
      const found = classOf(connection)
      const { lostEndpoints } = await import('../../../src/push/explain/lost-endpoints.ts')
      return found && lostEndpoints(planner.builder.view(found.viewKey), found.traits, planner.snapshot, clusters)
    },
  }
}

/** Answers about one proxy or all proxies: ports, service instances, authorization, Sidecar scope. */
function proxyAnswers(planner: Planner, lists: Listings) {
  return {
    /** The ports of E8: those of the mesh, and those that connected proxies name. */
    portsOfProxies: () => {
      const { mesh } = planner.snapshot
      const ports = proxyPorts(mesh)
      for (const { traits } of planner.classes()) for (const port of configuredPorts(traits, mesh)) ports.add(port)
      return [...ports]
    },
    instances: () => lists.first(instanceRows(planner)),
    refusals: () => lists.first(refusalRows(planner)),
    /** The mesh for a dry run, in pieces. */
    dryRun: (): DryRunPiece => packed(lists.first(dryRunRows(planner))),
    moreOfDryRun: (list: number): DryRunPiece => packed(lists.more(list) as ListPiece<DryRunRow>),
    nodes: () => lists.first(nodeRows(planner)),
    /** Evaluates the policies of a proxy for a request. Returns undefined when no proxy has this connection. */
    explain: async (connection: string, request: DescribedRequest): Promise<ReferencedExplanation | undefined> => {
      const { snapshot } = planner
      const { node, proxyClass: found } = planner.proxies().find((proxy) => proxy.connection === connection) ?? {}
      if (!node || !found) return undefined
      const { explain, policyKeys } = await import('../../../src/policy/explain.ts')
      const policies = policiesFor(snapshot.policies, snapshot.mesh.rootNamespace, found)
      const { hasServerCertificate } = await import('../../../src/xds/security/mutual-tls.ts')
      const { trustsForwarded } = await import('../../../src/xds/security/trusted-proxies.ts')
      const explanation = await explain(policies, request, snapshot, {
        now: wallClockMs() / 1000,
        trustsForwarded: trustsForwarded(found.traits, snapshot.mesh),
        isGateway: found.traits.type === 'router',
        hasCertificate: hasServerCertificate(found.traits.certificates),
        servedHost: servedHost(planner.instancesOf(node), request.destinationPort),
      })
      return { ...explanation, references: Object.fromEntries(policyKeys(explanation).map((key) => [key, planner.state.reference(key)])) }
    },
    /** What may concern a resource of a proxy. Returns undefined when no proxy has this connection. */
    explainInput: async (connection: string, typeUrl: string, name: string) =>
      (await import('../../../src/push/explain/candidates.ts')).explainInput(planner, connection, typeUrl, name),
    /** The Sidecar in force for a proxy, as a document. Returns undefined when no proxy has this connection. */
    sidecarInForce: (connection: string): SidecarInForce | undefined => {
      const found = planner.proxies().find((proxy) => proxy.connection === connection)?.proxyClass
      if (!found) return undefined
      const { sidecar } = planner.builder.view(found.viewKey)
      const names = (planner.snapshot.sidecars.get(found.namespace) ?? []).map(({ name }) => name)
      if (!sidecar) return { names }
      const { group, version, kind, namespace, name, labels, annotations, spec } = sidecar
      const given = Object.entries({ labels, annotations }).filter(([, values]) => Object.keys(values).length > 0)
      const metadata = { name, namespace, ...Object.fromEntries(given) }
      const object = { apiVersion: `${group}/${version}`, kind, metadata, spec: writtenSpec(sidecarKind.spec.form, spec) }
      return { names, reference: planner.state.reference(configKey(sidecar)), object }
    },
    sidecarScope: (connection: string) => {
      const found = planner.proxies().find((proxy) => proxy.connection === connection)?.proxyClass
      if (!found) return undefined
      const view = planner.builder.view(found.viewKey)
      // Of other namespaces only names are told.
      const own = view.egress.flatMap(({ virtualServices }) => virtualServices.all).filter(({ namespace }) => namespace === found.namespace)
      const keys = [
        ...(view.sidecar ? [configKey(view.sidecar)] : []),
        ...own.map((each) => keyAt('VirtualService', `${each.namespace}/${each.name}`)),
      ]
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
        references: Object.fromEntries(keys.map((key) => [key, planner.state.reference(key)])),
      }
    },
  }
}
