/**
 * Route configurations of sidecars as ropes. All virtual hosts of a route are encoded once, in the form that callers in
 * other namespaces see, and stand in one block sorted by namespace. The configuration for a namespace is that block without
 * the namespace's own stretch, and in its place the same hosts with short names: four slices, however many services there are.
 */
import { create, toBinary } from '@bufbuild/protobuf'
import { ApiVersion, ConfigSourceSchema } from '../../../protocols/gen/envoy/config/core/v3/config_source_pb.js'
import { type VirtualHost, VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { checkMessage } from '../resource-check.ts'
import { Block, isUsable, type Resource, type Slice } from '../slab/resource.ts'
import { addSums, contentVersion, type KeyedSums, type Sum, subtractSums, versionOfSum, zeroSum } from '../slab/sums.ts'
import { elementHead, fieldHead, scanFields, textField } from '../slab/wire.ts'
import { routeType, virtualHostType } from '../type-urls.ts'

/** One encoded virtual host: a `virtual_hosts` field of a route configuration. */
export interface HostPiece {
  readonly name: string
  readonly domains: readonly string[]
  readonly bytes: Uint8Array
  /** Equal for equal bytes. */
  readonly version: string
}

const virtualHostsField = 2
const validateClustersField = 7

/** Encodes a virtual host. Throws InvalidResource when Envoy would refuse it. */
export function encodeHost(host: VirtualHost): HostPiece {
  checkMessage(VirtualHostSchema, host)
  const value = toBinary(VirtualHostSchema, host)
  const bytes = Buffer.concat([fieldHead(virtualHostsField, value.length), value])
  return { name: host.name, domains: host.domains, bytes, version: contentVersion(bytes) }
}

/** All virtual hosts of a route in one block, and where each namespace's stretch is. */
export interface RouteTable {
  readonly name: string
  readonly block: Block
  readonly sum: Sum
  readonly pieces: readonly HostPiece[]
  readonly stretches: ReadonlyMap<string, { readonly start: number; readonly end: number; readonly sum: Sum }>
}

/** Puts pieces, grouped by namespace in order, then those of no namespace, into a table. */
export function buildTable(name: string, groups: readonly { namespace: string; pieces: readonly HostPiece[] }[], sums: KeyedSums): RouteTable {
  const pieces = groups.flatMap((group) => group.pieces)
  const stretches = new Map<string, { start: number; end: number; sum: Sum }>()
  const bytes = Buffer.allocUnsafe(pieces.reduce((sum, piece) => sum + piece.bytes.length, 0))
  let offset = 0
  let sum = zeroSum
  for (const group of groups) {
    const start = offset
    let groupSum = zeroSum
    for (const piece of group.pieces) {
      bytes.set(piece.bytes, offset)
      offset += piece.bytes.length
      groupSum = addSums(groupSum, sums.ofPart(piece))
    }
    stretches.set(group.namespace, { start, end: offset, sum: groupSum })
    sum = addSums(sum, groupSum)
  }
  return { name, block: new Block(bytes), sum, pieces, stretches }
}

/** The route configuration for a namespace: the table with the namespace's own pieces instead of their public form; `extra` are more fields of the message. */
export function routeResource(table: RouteTable, namespace: string, own: readonly HostPiece[], extra: Uint8Array, sums: KeyedSums): Resource {
  const stretch = table.stretches.get(namespace)
  const ownLength = own.reduce((sum, piece) => sum + piece.bytes.length, 0)
  const length = table.block.length + (stretch ? stretch.start - stretch.end + ownLength : 0)
  const before = textField(1, table.name)
  const after = Buffer.concat([Uint8Array.of((validateClustersField << 3) | 2, 0), extra])
  const head = new Block(
    Buffer.concat([
      elementHead(routeType, before.length + length + after.length),
      before,
      after,
      ...(stretch ? own.map((piece) => piece.bytes) : []),
    ]),
  )
  const slices: Slice[] = [{ block: head, offset: 0, length: head.length }]
  let sum = addSums(table.sum, sums.of(`head|${contentVersion(Buffer.concat([before, after]))}`))
  if (!stretch) {
    if (table.block.length > 0) slices.push({ block: table.block, offset: 0, length: table.block.length })
    return { name: table.name, version: versionOfSum(sum), slices }
  }
  for (const [start, end] of [
    [0, stretch.start],
    [stretch.end, table.block.length],
  ] as const) {
    if (end > start) slices.push({ block: table.block, offset: start, length: end - start })
  }
  sum = subtractSums(sum, stretch.sum)
  for (const piece of own) sum = addSums(sum, sums.ofPart(piece))
  return { name: table.name, version: versionOfSum(sum), slices }
}

/** The route configuration of proxies that take virtual hosts by themselves (`RouteConfiguration.vhds`): the same whatever hosts there are. */
export function hostlessRoute(name: string, extra: Uint8Array): Resource {
  const configSource = create(ConfigSourceSchema, { resourceApiVersion: ApiVersion.V3, configSourceSpecifier: { case: 'ads', value: {} } })
  const route = create(RouteConfigurationSchema, { name, validateClusters: false, vhds: { configSource } })
  const value = Buffer.concat([toBinary(RouteConfigurationSchema, route), extra])
  return wholeResource(name, routeType, value)
}

const hostResources = new WeakMap<HostPiece, Resource>()

/** A virtual host as a resource of its own, `<route>/<host>`. A piece belongs to one route. */
export function hostResource(route: string, piece: HostPiece): Resource {
  const known = hostResources.get(piece)
  if (known && isUsable(known)) return known
  const [field] = scanFields(Buffer.from(piece.bytes))
  const made = wholeResource(`${route}/${piece.name}`, virtualHostType, field?.bytes ?? Buffer.alloc(0))
  hostResources.set(piece, made)
  return made
}

function wholeResource(name: string, typeUrl: string, value: Uint8Array): Resource {
  const block = new Block(Buffer.concat([elementHead(typeUrl, value.length), value]))
  return { name, version: contentVersion(value), slices: [{ block, offset: 0, length: block.length }] }
}
