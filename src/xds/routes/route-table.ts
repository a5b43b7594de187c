/**
 * Route configurations of sidecars, assembled from shared slices. All virtual hosts of a route configuration are encoded once, in the form
 * for callers in other namespaces, into one block sorted by namespace. The configuration for a namespace consists of that block without the
 * hosts that differ for the namespace, and of these hosts in its own form: its own services with short names, and others that differ.
 */
import { create, toBinary } from '@bufbuild/protobuf'
import { ApiVersion, ConfigSourceSchema } from '../../../protocols/gen/envoy/config/core/v3/config_source_pb.js'
import { type VirtualHost, VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { largestDirectResponse } from '../../config/shapes/http-actions.ts'
import { checkMessage } from '../resource-check.ts'
import { Block, isUsable, type Resource, type Slice, WholeResource } from '../slab/resource.ts'
import { addSums, contentVersion, type KeyedSums, type Sum, subtractSums, versionOfSum, zeroSum } from '../slab/sums.ts'
import { elementHead, fieldHead, scanFields, textField } from '../slab/wire.ts'
import { routeType, virtualHostType } from '../type-urls.ts'

/** An encoded virtual host: a `virtual_hosts` field of a route configuration. */
export interface HostPiece {
  readonly name: string
  readonly domains: readonly string[]
  readonly bytes: Uint8Array
  /** Equal for equal bytes. */
  readonly version: string
}

const virtualHostsField = 2
/** The field `domains` of a virtual host. */
const domainsField = 2

/**
 * Fields of every route configuration of a sidecar: unknown clusters are accepted, and direct responses may be as long as a VirtualService
 * allows.
 */
const commonFields = toBinary(
  RouteConfigurationSchema,
  create(RouteConfigurationSchema, { validateClusters: false, maxDirectResponseBodySizeBytes: largestDirectResponse }),
)

/** Encodes a virtual host. Throws InvalidResource if it violates Envoy's validation rules. */
export function encodeHost(host: VirtualHost): HostPiece {
  checkMessage(VirtualHostSchema, host)
  return pieceOf(host.name, host.domains, [toBinary(VirtualHostSchema, host)])
}

/** Returns a virtual host with additional domains. They are appended to the encoded message, which protobuf allows for a repeated field. */
export function withDomains(piece: HostPiece, more: readonly string[]): HostPiece {
  const added = more.filter((domain) => !piece.domains.includes(domain))
  if (added.length === 0) return piece
  return pieceOf(piece.name, piece.domains.concat(added), [messageOf(piece), ...added.map((domain) => textField(domainsField, domain))])
}

function pieceOf(name: string, domains: readonly string[], value: readonly Uint8Array[]): HostPiece {
  const length = value.reduce((sum, part) => sum + part.length, 0)
  const head = fieldHead(virtualHostsField, length)
  // Memory of its own: a slice of Node's buffer pool would keep the whole pool block alive.
  const bytes = new Uint8Array(head.length + length)
  let at = 0
  for (const part of [head, ...value]) {
    bytes.set(part, at)
    at += part.length
  }
  return { name, domains, bytes, version: contentVersion(bytes) }
}

/** Returns the encoded message of a virtual host. */
function messageOf({ bytes }: HostPiece): Buffer {
  const [field] = scanFields(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))
  return field?.bytes ?? Buffer.alloc(0)
}

/** All virtual hosts of a route configuration in one block, in the form for callers in other namespaces. */
export interface RouteTable {
  readonly name: string
  readonly block: Block
  readonly sum: Sum
  /** Undefined for a virtual host without domains. */
  readonly pieces: readonly (HostPiece | undefined)[]
  /** The offset at which each piece begins, and the end of the last one. */
  readonly offsets: Uint32Array
}

/** Creates a table of pieces, in their order. */
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

/**
 * Returns the route configuration of a namespace: the table without the pieces at the indices `without`, and with the namespace's own
 * pieces. `extra` are additional encoded fields of the message.
 */
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

/**
 * Returns the route configuration for proxies that fetch virtual hosts separately (`RouteConfiguration.vhds`). It does not depend on the
 * hosts.
 */
export function hostlessRoute(name: string, extra: Uint8Array): Resource {
  const configSource = create(ConfigSourceSchema, { resourceApiVersion: ApiVersion.V3, configSourceSpecifier: { case: 'ads', value: {} } })
  const route = create(RouteConfigurationSchema, { name, vhds: { configSource } })
  const value = Buffer.concat([toBinary(RouteConfigurationSchema, route), commonFields, extra])
  return wholeResource(name, routeType, value)
}

const hostResources = new WeakMap<HostPiece, Resource>()

/**
 * Returns a virtual host as a resource, `<route>/<host>`. A piece belongs to one route configuration. Envoy removes a virtual host by the
 * name in its message, so the message has the name of the resource there: of two values of a field, the later one counts (docs/resources.md,
 * R12).
 */
export function hostResource(route: string, piece: HostPiece): Resource {
  const known = hostResources.get(piece)
  if (known && isUsable(known)) return known
  const name = `${route}/${piece.name}`
  const made = wholeResource(name, virtualHostType, Buffer.concat([messageOf(piece), textField(1, name)]))
  hostResources.set(piece, made)
  return made
}

function wholeResource(name: string, typeUrl: string, value: Uint8Array): Resource {
  return new WholeResource(name, contentVersion(value), Buffer.concat([elementHead(typeUrl, value.length), value]))
}
