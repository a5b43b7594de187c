/** One XDS stream on a configuration that a test changes, without sockets. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { ClusterSchema } from '../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { ClusterLoadAssignmentSchema } from '../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { ListenerSchema } from '../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import type { Manifest } from '../../protocols/messages/push.ts'
import { GroupStore } from '../../src/xds/slab/group-store.ts'
import { encodeResource, type Resource } from '../../src/xds/slab/resource.ts'
import { SlabStore } from '../../src/xds/slab/slab-store.ts'
import { KeyedSums } from '../../src/xds/slab/sums.ts'
import { scanFields } from '../../src/xds/slab/wire.ts'
import { ConnectionBudget } from '../../src/xds/stream/budget.ts'
import { Catalog } from '../../src/xds/stream/catalog.ts'
import { responseFrame } from '../../src/xds/stream/frames.ts'
import { Plans } from '../../src/xds/stream/plans.ts'
import { readDeltaRequest, readSotwRequest } from '../../src/xds/stream/request.ts'
import { XdsSession } from '../../src/xds/stream/session.ts'
import { Subscriptions } from '../../src/xds/stream/subscription.ts'
import { clusterType, endpointType, listenerType } from '../../src/xds/type-urls.ts'
import { slabsOf } from './slabs.ts'
import { wholeGroups } from './uses.ts'

const makers: Readonly<Record<string, (name: string, content: string) => Resource>> = {
  [clusterType]: (name, content) => encodeResource(ClusterSchema, create(ClusterSchema, { name, altStatName: content }), name),
  [listenerType]: (name, content) => encodeResource(ListenerSchema, create(ListenerSchema, { name, statPrefix: content }), name),
  [endpointType]: (name, content) =>
    encodeResource(ClusterLoadAssignmentSchema, create(ClusterLoadAssignmentSchema, { clusterName: name, namedEndpoints: { [content]: {} } }), name),
}

/** The content of a response: names with their content, and removed names. */
export interface Content {
  readonly resources: readonly string[]
  readonly removed: readonly string[]
}

/** A request. */
export interface Asked {
  readonly names?: readonly string[]
  readonly remove?: readonly string[]
  readonly versions?: Readonly<Record<string, string>>
  /** `last` is the nonce of the last response. Absent: no nonce. */
  readonly nonce?: string
  /** Whether the response is refused, or the error message. */
  readonly refused?: boolean | string
}

/** One stream on a configuration that a test changes. */
export class Stream {
  readonly session: XdsSession
  readonly #catalog = new Catalog(new KeyedSums('key'))
  readonly #slabs = new SlabStore()
  readonly #groups = new GroupStore(this.#slabs, new KeyedSums('key'))
  readonly #nonces = new Map<string, string>()
  #count = 0

  constructor(delta: boolean, start: Readonly<Record<string, Readonly<Record<string, string>>>>) {
    const parts = {
      catalog: this.#catalog,
      plans: new Plans(this.#catalog, { enabled: true, size: 0 }),
      subscriptions: new Subscriptions(),
      flowControlTimeoutMs: undefined,
      nonce: () => `n${++this.#count}`,
      held: () => undefined,
    }
    this.session = new XdsSession(delta, parts, new ConnectionBudget())
    this.session.classId = 'class'
    const groups = Object.fromEntries(Object.keys(makers).map((typeUrl) => [typeUrl, wholeGroups(typeUrl)]))
    for (const typeUrl of Object.keys(makers)) this.#groups.replace(typeUrl, [])
    this.#apply([{ classId: 'class', groups }])
    for (const [typeUrl, resources] of Object.entries(start)) this.set(typeUrl, resources)
  }

  /** Replaces the resources of a type, given as name to content. */
  set(typeUrl: string, resources: Readonly<Record<string, string>>): void {
    this.#groups.replace(
      typeUrl,
      Object.entries(resources).map(([name, content]) => (makers[typeUrl] as (typeof makers)[string])(name, content)),
    )
    this.#apply([])
  }

  #apply(manifests: readonly Manifest[]): void {
    const groups = this.#groups.takeUpdates()
    const slabs = { slabs: slabsOf(groups, (id) => this.#slabs.data(id)), retiredSlabs: this.#slabs.takeRetired() }
    this.#catalog.apply({ whole: false, ...slabs, groups, retiredGroups: [], manifests, retiredClasses: [] })
  }

  ask(typeUrl: string, { names = [], remove = [], versions = {}, nonce = '', refused = false }: Asked): string {
    const common = {
      typeUrl,
      responseNonce: nonce === 'last' ? (this.#nonces.get(typeUrl) ?? '') : nonce,
      ...(refused ? { errorDetail: { code: 13, message: refused === true ? 'no' : refused } } : {}),
    }
    if (!this.session.delta) {
      const message = toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { ...common, resourceNames: [...names] }))
      return this.session.takeSotw(readSotwRequest(Buffer.from(message)), 0)
    }
    const lists = { resourceNamesSubscribe: [...names], resourceNamesUnsubscribe: [...remove], initialResourceVersions: versions }
    const message = toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { ...common, ...lists }))
    return this.session.takeDelta(readDeltaRequest(Buffer.from(message)), 0)
  }

  /** Returns the present version of a resource in delta. */
  versionOf(typeUrl: string, name: string): string {
    return this.#catalog.typeState('class', typeUrl).find(name)?.version ?? ''
  }

  /** Returns the next response. */
  next(): (Content & { typeUrl: string }) | undefined {
    const response = this.session.next(0)
    if (!response) return undefined
    this.#nonces.set(response.typeUrl, response.nonce)
    const message = Buffer.concat(responseFrame(response, this.session.delta)).subarray(5)
    if (!this.session.delta) {
      const { resources, typeUrl } = fromBinary(DiscoveryResponseSchema, message)
      return { typeUrl, resources: resources.map(({ value }) => textOf(Buffer.from(value))), removed: [] }
    }
    const { resources, removedResources, typeUrl } = fromBinary(DeltaDiscoveryResponseSchema, message)
    return { typeUrl, resources: resources.map(({ resource }) => textOf(Buffer.from(resource?.value ?? []))), removed: removedResources }
  }
}

/** Returns `<name>=<content>`. The content of a load assignment is the name of an endpoint. */
function textOf(value: Buffer): string {
  const [name, content] = [...scanFields(value)].map(({ bytes }) => bytes ?? Buffer.alloc(0))
  const text = content && content[0] === 10 ? content.subarray(2, 2 + (content[1] as number)) : content
  return text === undefined ? `${name}` : `${name}=${text}`
}

/** Returns the content of a response, sorted: `a=1 b=1 -gone`. */
export const contentOf = (response: Content | undefined): string | undefined =>
  response &&
  [...response.resources]
    .sort()
    .concat(response.removed.map((name) => `-${name}`).sort())
    .join(' ')
