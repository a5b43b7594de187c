/**
 * Checks whether a real Envoy accepts resources: many in one update, each with a unique name, so that a rejection identifies the resource.
 * Listeners are bound as they would be, at unique addresses of this machine.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { type Any, anyPack, anyUnpack } from '@bufbuild/protobuf/wkt'
import { freePort } from '../../bench/ports.ts'
import { type Cluster, Cluster_DiscoveryType, ClusterSchema } from '../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import type { Address } from '../../protocols/gen/envoy/config/core/v3/address_pb.js'
import { type ClusterLoadAssignment, ClusterLoadAssignmentSchema } from '../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { type Filter, FilterSchema } from '../../protocols/gen/envoy/config/listener/v3/listener_components_pb.js'
import { type Listener, ListenerSchema } from '../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { type RouteConfiguration, RouteConfigurationSchema } from '../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { RouterSchema } from '../../protocols/gen/envoy/extensions/filters/http/router/v3/router_pb.js'
import {
  type HttpConnectionManager,
  HttpConnectionManagerSchema,
} from '../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import { DiscoveryResponseSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { clusterType, endpointType, listenerType, routeType } from '../../src/xds/type-urls.ts'
import type { MadeResources } from './made.ts'
import { until } from './until.ts'

/** A resource that Envoy rejected, with the reason. */
export interface Refusal {
  readonly label: string
  readonly resource: string
  readonly reason: string
}

/** Collects resources and submits all of them to one Envoy. */
export class AcceptanceBatch {
  readonly #names = new Map<string, { label: string; resource: string }>()
  readonly #clusters: Any[] = []
  readonly #listeners: Any[] = []
  readonly #seen = new Set<string>()
  #places = 0

  get size(): number {
    return this.#names.size
  }

  /** Adds the resources of one proxy. Route configurations are inlined into listeners. */
  add(label: string, made: MadeResources): void {
    const isNew = ({ element }: { element: string }) => !this.#seen.has(element) && this.#seen.add(element)
    const elements = (type: string) => (made[type] ?? []).filter(isNew).map(({ element }) => Buffer.from(element, 'base64'))
    const of = (type: string) => fromBinary(DiscoveryResponseSchema, Buffer.concat(elements(type))).resources
    const routes = new Map(
      of(routeType)
        .map((any) => anyUnpack(any, RouteConfigurationSchema) as RouteConfiguration)
        .map((each) => [each.name, each]),
    )
    for (const any of of(clusterType)) this.#addCluster(label, anyUnpack(any, ClusterSchema) as Cluster)
    for (const any of of(endpointType)) this.#addEndpoints(label, anyUnpack(any, ClusterLoadAssignmentSchema) as ClusterLoadAssignment)
    for (const any of of(listenerType)) this.#addListener(label, anyUnpack(any, ListenerSchema) as Listener, routes)
    for (const route of routes.values()) this.#addListener(label, listenerOf(route), routes)
  }

  #rename(label: string, resource: string): string {
    const name = `_${this.#names.size}_`
    this.#names.set(name, { label, resource })
    return name
  }

  #addCluster(label: string, cluster: Cluster): void {
    this.#clusters.push(anyPack(ClusterSchema, { ...cluster, name: this.#rename(label, cluster.name) }))
  }

  /** Endpoints are added as a static cluster, because a cluster that fetches them would need a file watch. */
  #addEndpoints(label: string, assignment: ClusterLoadAssignment): void {
    const cluster = create(ClusterSchema, { loadAssignment: assignment, clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.STATIC } })
    this.#clusters.push(anyPack(ClusterSchema, { ...cluster, name: this.#rename(label, `endpoints of ${assignment.clusterName}`) }))
  }

  #addListener(label: string, listener: Listener, routes: ReadonlyMap<string, RouteConfiguration>): void {
    const name = this.#rename(label, listener.name)
    this.#move(listener.address)
    for (const { address } of listener.additionalAddresses) this.#move(address)
    // Only a privileged process may set the option that this field stands for.
    if (process.getuid?.() !== 0) delete listener.transparent
    for (const chain of [...listener.filterChains, ...(listener.defaultFilterChain ? [listener.defaultFilterChain] : [])])
      for (const filter of chain.filters) putRoutes(filter, routes)
    this.#listeners.push(anyPack(ListenerSchema, { ...listener, name }))
  }

  /** Gives a listener an address where it can be bound, and which no other listener has. */
  #move(address: Address | undefined): void {
    const at = address?.address
    const place = this.#places++
    if (at?.case === 'pipe') at.value.path = `@acceptance-${process.pid}-${place}`
    if (at?.case !== 'socketAddress') return
    at.value.address = `127.${100 + (place >> 16)}.${(place >> 8) & 255}.${place & 255}`
    at.value.portSpecifier = { case: 'portValue', value: 0 }
  }

  /** Returns the resources that an Envoy rejects. Its bootstrap has no runtime keys. */
  async refusals(binary: string): Promise<Refusal[]> {
    return [...(await this.#ask(binary, 'cds')), ...(await this.#ask(binary, 'lds'))]
  }

  async #ask(binary: string, type: 'cds' | 'lds'): Promise<Refusal[]> {
    const resources = type === 'cds' ? this.#clusters : this.#listeners
    if (resources.length === 0) return []
    const dir = mkdtempSync(join(tmpdir(), 'mesh-acceptance-'))
    const port = await freePort()
    const write = (name: string, list: Any[]) =>
      writeFileSync(
        join(dir, `${name}.pb`),
        toBinary(DiscoveryResponseSchema, create(DiscoveryResponseSchema, { resources: list, versionInfo: '1' })),
      )
    write(type, resources)
    const bootstrap = join(dir, 'bootstrap.json')
    writeFileSync(bootstrap, JSON.stringify(bootstrapOf(dir, port, type)))
    const child = spawn(binary, ['-c', bootstrap, '--use-dynamic-base-id', '--concurrency', '1', '-l', 'warning'])
    let log = ''
    child.stderr.on('data', (bytes) => (log += bytes))
    const stats = async () => await (await fetch(`http://127.0.0.1:${port}/stats?filter=update_(success|rejected)`)).text()
    try {
      const manager = type === 'cds' ? 'cluster_manager.cds' : 'listener_manager.lds'
      await until('Envoy to have judged', async () => {
        if (child.exitCode !== null || child.signalCode !== null) throw new Error(`Envoy ended: ${log.slice(-5000)}`)
        return new RegExp(`${manager}.update_(success|rejected): [1-9]`).test(await stats())
      })
      return this.#read(log, await stats())
    } finally {
      child.kill('SIGKILL')
      rmSync(dir, { recursive: true, force: true })
    }
  }

  #read(log: string, stats: string): Refusal[] {
    const known = (name: string) => this.#names.get(name) ?? { label: '?', resource: name }
    const reasons = new Map<string, string>()
    for (const [, name = '', reason = ''] of log.matchAll(/(_\d+_)(?:' config rejected)?: ((?:(?!, _\d+_: )[^\n])*)/g))
      reasons.set(name, reasons.get(name) || reason.slice(0, 600))
    const named = [...reasons].map(([name, reason]) => ({ ...known(name), reason }))
    const rejected = /(?:cds|lds)\.update_rejected: [1-9]/.test(stats)
    return named.length === 0 && rejected ? [{ label: '?', resource: '?', reason: log.slice(-3000) }] : named
  }
}

/** A bootstrap without runtime keys. The aggregated stream's cluster has no endpoints, so nothing is received over it. */
const bootstrapOf = (dir: string, port: number, type: 'cds' | 'lds') => ({
  node: { id: 'acceptance', cluster: 'acceptance' },
  admin: { address: { socket_address: { address: '127.0.0.1', port_value: port } } },
  dynamic_resources: {
    [`${type}_config`]: { path_config_source: { path: join(dir, `${type}.pb`) }, resource_api_version: 'V3' },
    ads_config: { api_type: 'GRPC', transport_api_version: 'V3', grpc_services: [{ envoy_grpc: { cluster_name: 'nobody' } }] },
  },
  static_resources: {
    clusters: ['nobody', 'sds-grpc', 'BlackHoleCluster'].map((name) => ({ name, type: 'STATIC', load_assignment: { cluster_name: name } })),
  },
})

/** Inlines the route configuration that a connection manager would fetch. */
function putRoutes(filter: Filter, routes: ReadonlyMap<string, RouteConfiguration>): void {
  if (filter.configType.case !== 'typedConfig' || filter.configType.value.typeUrl !== `type.googleapis.com/${HttpConnectionManagerSchema.typeName}`)
    return
  const manager = anyUnpack(filter.configType.value, HttpConnectionManagerSchema) as HttpConnectionManager
  if (manager.routeSpecifier.case !== 'rds') return
  const found = routes.get(manager.routeSpecifier.value.routeConfigName)
  if (!found) return
  manager.routeSpecifier = { case: 'routeConfig', value: { ...found, validateClusters: false } }
  filter.configType = { case: 'typedConfig', value: anyPack(HttpConnectionManagerSchema, manager) }
}

/** Returns a listener with only a route configuration. */
function listenerOf(route: RouteConfiguration): Listener {
  const manager = create(HttpConnectionManagerSchema, {
    statPrefix: 'x',
    routeSpecifier: { case: 'rds', value: { routeConfigName: route.name, configSource: { configSourceSpecifier: { case: 'ads', value: {} } } } },
    httpFilters: [{ name: 'envoy.filters.http.router', configType: { case: 'typedConfig', value: anyPack(RouterSchema, create(RouterSchema)) } }],
  })
  const filter = create(FilterSchema, { name: 'http', configType: { case: 'typedConfig', value: anyPack(HttpConnectionManagerSchema, manager) } })
  return create(ListenerSchema, {
    name: `routes ${route.name}`,
    address: { address: { case: 'socketAddress', value: { address: '127.0.0.1', portSpecifier: { case: 'portValue', value: 1 } } } },
    filterChains: [{ filters: [filter] }],
  })
}
