/**
 * Route configurations of sidecars as ropes. All virtual hosts of a route are encoded once, in the form that callers in
 * other namespaces see, and stand in one block sorted by namespace. The configuration for a namespace is that block without
 * the hosts that it sees otherwise, and these as it sees them: its own with short names, and whatever else differs for it.
 */
import { create, toBinary } from '@bufbuild/protobuf'
import { ApiVersion, ConfigSourceSchema } from '../../../protocols/gen/envoy/config/core/v3/config_source_pb.js'
import { type VirtualHost, VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { largestDirectResponse } from '../../config/shapes/http-actions.ts'
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
/** `domains` of a virtual host. */
const domainsField = 2

/** Fields of every route configuration of a sidecar: clusters that are not there are no fault of it, and direct responses may be as long as a VirtualService takes them. */
const commonFields = toBinary(
  RouteConfigurationSchema,
  create(RouteConfigurationSchema, { validateClusters: false, maxDirectResponseBodySizeBytes: largestDirectResponse }),
)

/** Encodes a virtual host. Throws InvalidResource when Envoy would refuse it. */
export function encodeHost(host: VirtualHost): HostPiece {
  checkMessage(VirtualHostSchema, host)
  return pieceOf(host.name, host.domains, [toBinary(VirtualHostSchema, host)])
}

/** A virtual host that answers to more domains: the same message with these at its end, as a repeated field allows. */
export function withDomains(piece: HostPiece, more: readonly string[]): HostPiece {
  const added = more.filter((domain) => !piece.domains.includes(domain))
  if (added.length === 0) return piece
  return pieceOf(piece.name, [...piece.domains, ...added], [messageOf(piece), ...added.map((domain) => textField(domainsField, domain))])
}

function pieceOf(name: string, domains: readonly string[], value: readonly Uint8Array[]): HostPiece {
  const length = value.reduce((sum, part) => sum + part.length, 0)
  const head = fieldHead(virtualHostsField, length)
  // Its own memory: a piece of the pool of `Buffer` would keep all that was taken from it meanwhile.
  const bytes = new Uint8Array(head.length + length)
  let at = 0
  for (const part of [head, ...value]) {
    bytes.set(part, at)
    at += part.length
  }
  return { name, domains, bytes, version: contentVersion(bytes) }
}

/** The message of a virtual host. */
function messageOf({ bytes }: HostPiece): Buffer {
  const [field] = scanFields(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))
  return field?.bytes ?? Buffer.alloc(0)
}

/** All virtual hosts of a route in one block, as strangers see them. */
export interface RouteTable {
  readonly name: string
  readonly block: Block
  readonly sum: Sum
  /** Undefined for one that has no domains. */
  readonly pieces: readonly (HostPiece | undefined)[]
  /** Where each piece begins; one more than there are pieces. */
  readonly offsets: Uint32Array
}

/** Puts pieces into a table, in their order. */
export function buildTable(name: string, pieces: readonly (HostPiece | undefined)[], sums: KeyedSums): RouteTable {
  const bytes = Buffer.allocUnsafe(pieces.reduce((sum, piece) => sum + (piece?.bytes.length ?? 0), 0))
  const offsets = new Uint32Array(pieces.length + 1)
  let offset = 0
  let sum = zeroSum
  for (const [index, piece] of pieces.entries()) {
    if (piece) {
      bytes.set(piece.bytes, offset)
      offset += piece.bytes.length
      sum = addSums(sum, sums.ofPart(piece))
    }
    offsets[index + 1] = offset
  }
  return { name, block: new Block(bytes), sum, pieces, offsets }
}

/** The route configuration of a namespace: a table without the pieces at some places, and with its own; `extra` are more fields of the message. */
export function routeResource(table: RouteTable, without: Iterable<number>, own: readonly HostPiece[], extra: Uint8Array, sums: KeyedSums): Resource {
  const cuts = [...without].filter((index) => table.pieces[index]).sort((one, other) => one - other)
  const stretches: { start: number; end: number }[] = []
  let from = 0
  let sum = table.sum
  for (const index of cuts) {
    const [start, end] = [table.offsets[index] as number, table.offsets[index + 1] as number]
    if (start > from) stretches.push({ start: from, end: start })
    from = end
    sum = subtractSums(sum, sums.ofPart(table.pieces[index] as HostPiece))
  }
  if (table.block.length > from) stretches.push({ start: from, end: table.block.length })
  for (const piece of own) sum = addSums(sum, sums.ofPart(piece))
  const length = [...stretches.map(({ start, end }) => end - start), ...own.map(({ bytes }) => bytes.length)].reduce((total, part) => total + part, 0)
  const before = textField(1, table.name)
  const after = Buffer.concat([commonFields, extra])
  const head = new Block(
    Buffer.concat([elementHead(routeType, before.length + length + after.length), before, after, ...own.map((piece) => piece.bytes)]),
  )
  sum = addSums(sum, sums.of(`head|${contentVersion(Buffer.concat([before, after]))}`))
  const slices: Slice[] = [
    { block: head, offset: 0, length: head.length },
    ...stretches.map(({ start, end }) => ({ block: table.block, offset: start, length: end - start })),
  ]
  return { name: table.name, version: versionOfSum(sum), slices }
}

/** The route configuration of proxies that take virtual hosts by themselves (`RouteConfiguration.vhds`): the same whatever hosts there are. */
export function hostlessRoute(name: string, extra: Uint8Array): Resource {
  const configSource = create(ConfigSourceSchema, { resourceApiVersion: ApiVersion.V3, configSourceSpecifier: { case: 'ads', value: {} } })
  const route = create(RouteConfigurationSchema, { name, vhds: { configSource } })
  const value = Buffer.concat([toBinary(RouteConfigurationSchema, route), commonFields, extra])
  return wholeResource(name, routeType, value)
}

const hostResources = new WeakMap<HostPiece, Resource>()

/** A virtual host as a resource of its own, `<route>/<host>`. A piece belongs to one route. */
export function hostResource(route: string, piece: HostPiece): Resource {
  const known = hostResources.get(piece)
  if (known && isUsable(known)) return known
  const made = wholeResource(`${route}/${piece.name}`, virtualHostType, messageOf(piece))
  hostResources.set(piece, made)
  return made
}

function wholeResource(name: string, typeUrl: string, value: Uint8Array): Resource {
  const block = new Block(Buffer.concat([elementHead(typeUrl, value.length), value]))
  return { name, version: contentVersion(value), slices: [{ block, offset: 0, length: block.length }] }
}
