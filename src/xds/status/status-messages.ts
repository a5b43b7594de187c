/**
 * The resources of streams about the service (the generators `event` and `status`; docs/xds-protocol.md, "Streams about the service"):
 * `envoy.config.core.v3.Node`, `envoy.service.discovery.v3.DiscoveryRequest`, `envoy.service.status.v3.ClientConfig` and the parts of
 * `envoy.admin.v3.ConfigDump`, encoded without generated code, which would take a writer long to load.
 */
import type { ProxyEventKind } from '../../../protocols/messages/proxy-events.ts'
import type { MeshNames } from '../../names/mesh-names.ts'
import { bytesField, encodeStruct } from '../slab/struct.ts'
import { elementHead, scanFields, textField, varintField } from '../slab/wire.ts'
import type { ResponseResource } from '../stream/response.ts'
import { clusterType, endpointType, extensionConfigType, listenerType, routeType, virtualHostType } from '../type-urls.ts'

/** The values of `GENERATOR` in the metadata of a node whose stream may ask about the service. */
export const statusGenerators: ReadonlySet<unknown> = new Set(['event', 'status'])

/** What a stream can ask about the service. */
export type StatusKind = ProxyEventKind | 'syncz' | 'config_dump'

const kinds: ReadonlyMap<string, StatusKind> = new Map([
  ['connect', 'connect'],
  ['disconnect', 'disconnect'],
  ['nack', 'nack'],
  ['debug/syncz', 'syncz'],
  ['debug/config_dump', 'config_dump'],
])

/** Returns what a type URL such as `mesh.io/connect`, or its alias, asks; undefined for all other types. */
export function statusKindOf(typeUrl: string, names: MeshNames): StatusKind | undefined {
  const prefix = `${names.domain}/`
  const own = names.canonicalKey(typeUrl)
  return own.startsWith(prefix) ? kinds.get(own.slice(prefix.length)) : undefined
}

/** The type of the resources of `syncz`. */
export const clientConfigType = 'envoy.service.status.v3.ClientConfig'

const anyPrefix = 'type.googleapis.com/'

/** Returns a message as a resource. */
export function statusResource(name: string, type: string, message: Uint8Array): ResponseResource {
  return { name, version: '', element: [elementHead(anyPrefix + type, message.length), Buffer.from(message)] }
}

/** A node as it is shown. The locality is `region/zone/subzone`, or empty. */
export interface ShownNode {
  readonly id: string
  readonly metadata: Readonly<Record<string, unknown>>
  readonly locality: string
}

/** The type of an event's message. */
export const eventType = (kind: ProxyEventKind): string =>
  kind === 'nack' ? 'envoy.service.discovery.v3.DiscoveryRequest' : 'envoy.config.core.v3.Node'

/** Encodes `envoy.config.core.v3.Node`. */
export function nodeMessage({ id, metadata, locality }: ShownNode): Buffer {
  const fields = encodeStruct(metadata)
  const parts = locality.split('/').flatMap((part, index) => (part === '' || index > 2 ? [] : [textField(index + 1, part)]))
  return Buffer.concat([
    textField(1, id),
    ...(fields.length > 0 ? [bytesField(3, fields)] : []),
    ...(parts.length > 0 ? [bytesField(4, Buffer.concat(parts))] : []),
  ])
}

/** What stands in place of the proxies of a replica that has not answered: a node with its name as id, and the reason in its metadata. */
export const silentReplicaNode = ({ name, reason }: { readonly name: string; readonly reason: string }) => ({
  id: name,
  metadata: { ANSWERED: false, REASON: reason },
  locality: '',
})

/** A request that refused a response. `rawNames`: fields 3 of the request, or empty. */
export interface RefusingRequest {
  readonly version: string
  readonly node: ShownNode
  readonly rawNames: Uint8Array
  readonly typeUrl: string
  readonly nonce: string
  readonly error: { readonly code: number; readonly message: string }
}

/** Encodes `envoy.service.discovery.v3.DiscoveryRequest`. */
export function refusalMessage({ version, node, rawNames, typeUrl, nonce, error }: RefusingRequest): Buffer {
  const text = (field: number, value: string) => (value === '' ? Buffer.alloc(0) : textField(field, value))
  const detail = Buffer.concat([varintField(1, error.code), text(2, error.message)])
  return Buffer.concat([text(1, version), bytesField(2, nodeMessage(node)), rawNames, text(4, typeUrl), text(5, nonce), bytesField(6, detail)])
}

/** What a proxy was sent of a type, and what it has acknowledged. */
export interface TypeSync {
  readonly typeUrl: string
  readonly nonceSent: string
  readonly nonceAcked: string
}

/** Values of `envoy.service.status.v3.ConfigStatus`. */
const configStatus = { synced: 1, notSent: 2, stale: 3 }

/** The types that `syncz` tells of, and the field of `PerXdsConfig` that says which one it is about. */
const syncedTypes: readonly (readonly [typeUrl: string, field: number])[] = [
  [listenerType, 2],
  [routeType, 4],
  [endpointType, 6],
  [clusterType, 3],
]

/** Encodes `envoy.service.status.v3.ClientConfig` of a proxy with its four types, in both forms: `xds_config` and `generic_xds_configs`. */
export function clientConfigMessage(node: ShownNode, types: readonly TypeSync[]): Buffer {
  const states = syncedTypes.map(([typeUrl, field]) => ({ typeUrl, field, state: stateOf(types.find((type) => type.typeUrl === typeUrl)) }))
  return Buffer.concat([
    bytesField(1, nodeMessage(node)),
    ...states.map(({ field, state }) => bytesField(2, Buffer.concat([varintField(1, state), bytesField(field, Buffer.alloc(0))]))),
    ...states.map(({ typeUrl, state }) => bytesField(3, Buffer.concat([textField(1, typeUrl), varintField(6, state)]))),
  ])
}

/** Encodes `envoy.service.status.v3.ClientConfig` of a node that stands for a replica, without types. */
export const silentConfigMessage = (node: ShownNode): Buffer => bytesField(1, nodeMessage(node))

function stateOf(type: TypeSync | undefined): number {
  if (!type || type.nonceSent === '') return configStatus.notSent
  return type.nonceSent === type.nonceAcked ? configStatus.synced : configStatus.stale
}

/** A resource that a proxy has. `element`: field 2 of a response, an `Any` with tag and length, in base64. */
export interface DumpedResource {
  readonly name: string
  readonly version: string
  readonly element: string
}

/**
 * Returns the parts of `envoy.admin.v3.ConfigDump` with what a proxy was given: clusters, endpoints, listeners, routes with the virtual hosts
 * that are resources of their own, and extension configurations. There are no secrets in them. The messages in which the dump holds a
 * resource have it in field 2, as responses do, so that the bytes are the same.
 */
export function configDumpResources(resources: Readonly<Record<string, readonly DumpedResource[]>>): ResponseResource[] {
  const of = (typeUrl: string) => resources[typeUrl] ?? []
  const held = ({ version, element }: DumpedResource) => Buffer.concat([textField(1, version), Buffer.from(element, 'base64')])
  const hosts = of(virtualHostType)
  const route = (each: DumpedResource) => {
    const own = hosts.filter(({ name }) => name.startsWith(`${each.name}/`))
    return Buffer.concat([textField(1, each.version), withHosts(Buffer.from(each.element, 'base64'), own)])
  }
  const part = (name: string, field: number, entries: readonly Buffer[]) =>
    statusResource(name, `envoy.admin.v3.${name}`, Buffer.concat(entries.map((entry) => bytesField(field, entry))))
  return [
    part('ClustersConfigDump', 3, of(clusterType).map(held)),
    part('EndpointsConfigDump', 3, of(endpointType).map(held)),
    part(
      'ListenersConfigDump',
      3,
      of(listenerType).map((each) => Buffer.concat([textField(1, each.name), bytesField(2, held(each))])),
    ),
    part('RoutesConfigDump', 3, of(routeType).map(route)),
    part('EcdsConfigDump', 1, of(extensionConfigType).map(held)),
  ]
}

/** Adds virtual hosts to the encoded route configuration in an element: parts of a repeated field may stand anywhere. */
function withHosts(element: Buffer, hosts: readonly DumpedResource[]): Buffer {
  if (hosts.length === 0) return element
  const value = Buffer.concat([anyValueOf(element), ...hosts.map((host) => bytesField(2, anyValueOf(Buffer.from(host.element, 'base64'))))])
  return Buffer.concat([elementHead(routeType, value.length), value])
}

/** Returns the value of the `Any` in an element. */
function anyValueOf(element: Buffer): Buffer {
  for (const { bytes } of scanFields(element))
    for (const { field, bytes: value } of scanFields(bytes ?? Buffer.alloc(0))) if (field === 2 && value) return value
  return Buffer.alloc(0)
}
