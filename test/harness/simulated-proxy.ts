/** A simulated Envoy on the state of a stream: what it holds after applying what it is sent, by the rules of its protocol. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { type Any, anyUnpack } from '@bufbuild/protobuf/wkt'
import { Cluster_DiscoveryType, ClusterSchema } from '../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { ListenerSchema } from '../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { VirtualHostSchema } from '../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { RouteConfigurationSchema } from '../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { HttpConnectionManagerSchema } from '../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import {
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { scanFields } from '../../src/xds/slab/wire.ts'
import { ConnectionBudget } from '../../src/xds/stream/budget.ts'
import type { Catalog } from '../../src/xds/stream/catalog.ts'
import { responseFrame } from '../../src/xds/stream/frames.ts'
import { Plans } from '../../src/xds/stream/plans.ts'
import { ReportedVersions } from '../../src/xds/stream/reported-versions.ts'
import { XdsSession } from '../../src/xds/stream/session.ts'
import { Subscriptions } from '../../src/xds/stream/subscription.ts'
import { clusterType, endpointType, listenerType, routeType, virtualHostType } from '../../src/xds/type-urls.ts'

/** A proxy with a SotW stream, with a delta stream, or with a delta stream that uses VHDS. */
export class SimulatedProxy {
  readonly kind: 'sotw' | 'delta' | 'hosts'
  session: XdsSession
  connection = ''
  readonly held = new Map<string, Map<string, string>>(
    [clusterType, endpointType, listenerType, routeType, virtualHostType].map((type) => [type, new Map()]),
  )
  readonly #open: () => XdsSession
  readonly #versions = new Map<string, Map<string, string>>([...this.held.keys()].map((type) => [type, new Map()]))
  #answers: { typeUrl: string; nonce: string }[] = []
  readonly #nonces = new Map<string, string>()
  /** The load assignments that its clusters refer to, those it subscribed to, and those it does not want for now. */
  #endpoints: readonly string[] = []
  #asked = new Set<string>()
  readonly #forgotten = new Set<string>()
  readonly #everHad = new Set<string>()
  #connections = 0

  #routes: readonly string[]
  /** Whether it subscribes to the routes that its listeners name. */
  readonly #followsListeners: boolean

  /** `routes`: the routes that it subscribes to from the beginning, or with VHDS one after the other; or those that its listeners name. */
  constructor(kind: SimulatedProxy['kind'], catalog: Catalog, nonce: () => string, routes: readonly string[] | 'of listeners' = ['80', '81']) {
    this.kind = kind
    this.#followsListeners = routes === 'of listeners'
    this.#routes = routes === 'of listeners' || kind === 'hosts' ? [] : routes
    const plans = new Plans(catalog, { enabled: true, size: 100 })
    const parts = {
      catalog,
      plans,
      subscriptions: new Subscriptions(),
      flowControlTimeoutMs: undefined,
      nonce,
      held: () => undefined,
    }
    this.#open = () => new XdsSession(kind !== 'sotw', parts, new ConnectionBudget())
    this.session = this.#open()
  }

  /** Opens a new stream. */
  connect(): void {
    this.session = this.#open()
    this.connection = `${this.kind}-${++this.#connections}`
    this.#nonces.clear()
    this.#answers = []
    this.#asked.clear()
  }

  /** Drops all resources, like a new process. */
  lose(): void {
    for (const held of [...this.held.values(), ...this.#versions.values()]) held.clear()
    this.#everHad.clear()
    this.#endpoints = []
    this.#forgotten.clear()
  }

  start(): void {
    this.#ask(clusterType, '', [], [], 0)
    this.#ask(listenerType, '', [], [], 0)
    if (this.#routes.length > 0) this.#ask(routeType, '', this.#routes, [], 0)
    // Envoy subscribes to virtual hosts before routes when it reconnects without a route.
    if (this.kind === 'hosts') this.#ask(virtualHostType, '', [], [], 0)
    this.#follow(0)
  }

  /** Receives the next response. Returns whether there was one. */
  receive(now: number): boolean {
    const response = this.session.classId === '' ? undefined : this.session.next(now)
    if (!response) return false
    const { delta } = this.session
    const message = Buffer.concat(responseFrame(response, delta)).subarray(5)
    const decoded = delta ? fromBinary(DeltaDiscoveryResponseSchema, message) : fromBinary(DiscoveryResponseSchema, message)
    const values = decoded.resources.map((resource) =>
      Buffer.from('resource' in resource ? (resource.resource?.value ?? []) : (resource as { value: Uint8Array }).value),
    )
    const held = this.held.get(decoded.typeUrl) as Map<string, string>
    const versions = this.#versions.get(decoded.typeUrl) as Map<string, string>
    if (!delta && (decoded.typeUrl === clusterType || decoded.typeUrl === listenerType)) held.clear()
    values.forEach((value, index) => {
      const { name, version } = decoded.resources[index] as { name?: string; version?: string }
      // Envoy ignores virtual hosts of a route that it never had, and keeps using a route that is removed.
      if (decoded.typeUrl === virtualHostType && !this.#everHad.has(String(name).split('/')[0] as string)) return
      if (decoded.typeUrl === routeType) this.#everHad.add(String(name))
      // Envoy finds a virtual host that is removed by the name in its message.
      const key =
        decoded.typeUrl === virtualHostType ? fromBinary(VirtualHostSchema, value).name : (name ?? [...scanFields(value)][0]?.bytes?.toString() ?? '')
      // Envoy ignores load assignments that it did not subscribe to.
      if (decoded.typeUrl === endpointType && !this.#asked.has(key)) return
      held.set(key, value.toString('base64'))
      if (version !== undefined) versions.set(key, version)
    })
    if ('removedResources' in decoded)
      for (const name of decoded.removedResources) {
        held.delete(name)
        versions.delete(name)
      }
    this.#nonces.set(decoded.typeUrl, decoded.nonce)
    this.#answers.push({ typeUrl: decoded.typeUrl, nonce: decoded.nonce })
    return true
  }

  /** Acknowledges the responses and subscribes to the endpoints of the present clusters. */
  answer(now: number): void {
    for (const { typeUrl, nonce } of this.#answers.splice(0)) {
      this.#ask(typeUrl, nonce, typeUrl === endpointType ? [...this.#asked] : typeUrl === routeType ? this.#routes : [], [], now)
      if (this.#followsListeners) {
        if (typeUrl === listenerType) this.#followRoutes(now)
      } else if ((typeUrl === listenerType || typeUrl === routeType) && this.#routes.length < 2) {
        const added = this.#routes.length === 0 ? '80' : '81'
        this.#routes = [...this.#routes, added]
        this.#ask(routeType, '', [added], [], now)
      }
      if (typeUrl === clusterType) this.#follow(now)
    }
  }

  /** Unsubscribes from the endpoints of a cluster that still exists. */
  forget(now: number): void {
    const [name] = this.#asked
    if (name === undefined) return
    this.#forgotten.add(name)
    this.#follow(now)
  }

  /** Subscribes again to the endpoints that it unsubscribed from. */
  remember(now: number): void {
    this.#forgotten.clear()
    this.#follow(now)
  }

  /** Subscribes to the endpoints that it wants, and unsubscribes from the others. */
  #follow(now: number): void {
    this.#endpoints = [...(this.held.get(clusterType)?.values() ?? [])].flatMap((value) => {
      const cluster = fromBinary(ClusterSchema, Buffer.from(value, 'base64'))
      return cluster.clusterDiscoveryType.value === Cluster_DiscoveryType.EDS ? [cluster.edsClusterConfig?.serviceName || cluster.name] : []
    })
    const before = this.#asked
    this.#asked = new Set(this.#endpoints.filter((name) => !this.#forgotten.has(name)))
    const added = [...this.#asked].filter((name) => !before.has(name))
    const gone = [...before].filter((name) => !this.#asked.has(name))
    for (const name of this.held.get(endpointType)?.keys() ?? []) {
      if (this.#asked.has(name)) continue
      this.held.get(endpointType)?.delete(name)
      this.#versions.get(endpointType)?.delete(name)
    }
    if (added.length + gone.length === 0) return
    const { delta } = this.session
    this.#ask(endpointType, delta ? '' : (this.#nonces.get(endpointType) ?? ''), delta ? added : [...this.#asked], gone, now)
  }

  /** Subscribes to the routes that its listeners name, and unsubscribes from the others. */
  #followRoutes(now: number): void {
    const before = this.#routes
    this.#routes = [...new Set([...(this.held.get(listenerType)?.values() ?? [])].flatMap((value) => routesOf(value)))].sort()
    const added = this.#routes.filter((name) => !before.includes(name))
    const gone = before.filter((name) => !this.#routes.includes(name))
    for (const name of gone) {
      this.held.get(routeType)?.delete(name)
      this.#versions.get(routeType)?.delete(name)
      this.#everHad.delete(name)
      for (const key of [...(this.held.get(virtualHostType)?.keys() ?? [])])
        if (key.startsWith(`${name}/`)) this.held.get(virtualHostType)?.delete(key)
    }
    if (added.length + gone.length === 0) return
    const { delta } = this.session
    this.#ask(routeType, delta ? '' : (this.#nonces.get(routeType) ?? ''), delta ? added : this.#routes, gone, now)
  }

  #ask(typeUrl: string, nonce: string, wanted: readonly string[], unsubscribe: readonly string[], now: number): void {
    const raw = (names: readonly string[]) =>
      Buffer.from(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { resourceNames: [...names] })))
    const head = { node: undefined, typeUrl, nonce, error: undefined }
    // A SotW request lists all names each time. A delta request lists only new ones, and an ACK none.
    if (!this.session.delta) {
      this.session.takeSotw({ ...head, hasVersion: (this.held.get(typeUrl)?.size ?? 0) > 0, rawNames: raw(wanted) }, now)
      return
    }
    const first = !this.session.watches.has(typeUrl)
    const initialVersions = ReportedVersions.of((first && this.#versions.get(typeUrl)) || [])
    this.session.takeDelta({ ...head, rawSubscribe: raw(nonce === '' ? wanted : []), unsubscribe, initialVersions }, now)
  }
}

/** Returns the names of the route configurations that an encoded listener refers to. */
function routesOf(value: string): string[] {
  const { filterChains, defaultFilterChain } = fromBinary(ListenerSchema, Buffer.from(value, 'base64'))
  return [...filterChains, ...(defaultFilterChain ? [defaultFilterChain] : [])].flatMap(({ filters }) =>
    filters.flatMap(({ configType }) => {
      const manager = configType.case === 'typedConfig' ? anyUnpack(configType.value as Any, HttpConnectionManagerSchema) : undefined
      return manager?.routeSpecifier.case === 'rds' ? [manager.routeSpecifier.value.routeConfigName] : []
    }),
  )
}

/**
 * Returns the resources by type and name. A removed name of delta corresponds in SotW to a resource that has only its name. The order of the
 * virtual hosts of a route means nothing and is no part of its version, so they are sorted.
 */
export const stateOf = ({ held }: SimulatedProxy) =>
  Object.fromEntries(
    [...held].map(([type, resources]) => {
      const present = [...resources].sort().filter(([, value]) => [...scanFields(Buffer.from(value, 'base64'))].length > 1)
      return [type, Object.fromEntries(type === routeType ? present.map(([name, value]) => [name, sortedHosts(value)]) : present)]
    }),
  )

function sortedHosts(value: string): string {
  const route = fromBinary(RouteConfigurationSchema, Buffer.from(value, 'base64'))
  route.virtualHosts.sort((one, other) => (one.name < other.name ? -1 : 1))
  return Buffer.from(toBinary(RouteConfigurationSchema, route)).toString('base64')
}
