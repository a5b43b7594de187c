/**
 * Route configurations of sidecars, assembled from shared slices. All virtual hosts of a route configuration are encoded once, in the form
 * for callers in other namespaces, into blocks of many hosts, sorted by namespace. The configuration for a namespace consists of these
 * blocks without the hosts that differ for the namespace, and of these hosts in its own form: its own services with short names, and others
 * that differ. A changed host encodes one block anew, however large the configuration is.
 */
import { create, toBinary } from '@bufbuild/protobuf'
import { ApiVersion, ConfigSourceSchema } from '../../../protocols/gen/envoy/config/core/v3/config_source_pb.js'
import { type VirtualHost, VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { largestDirectResponse } from '../../config/shapes/http-actions.ts'
import { checkMessage } from '../resource-check.ts'
import { Block, isUsable, lost, type Resource, type Slice, WholeResource } from '../slab/resource.ts'
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

/** Virtual hosts of a route configuration, in the form for callers in other namespaces, and where their bytes are. */
export interface RouteTable {
  readonly name: string
  /** In the order of their pieces. */
  readonly runs: ReadonlySet<HostRun>
  readonly sum: Sum
  /** Undefined for a virtual host without domains. */
  readonly pieces: readonly MaybePiece[]
}

type MaybePiece = HostPiece | undefined

/** Consecutive virtual hosts in one block, the unit that a changed virtual host encodes anew. */
export interface HostRun {
  readonly pieces: readonly MaybePiece[]
  readonly block: Block
  /** The offset at which each piece begins, and the end of the last one. */
  readonly offsets: Uint32Array
  readonly sum: Sum
}

const noRuns: ReadonlySet<HostRun> = new Set()

/** The usual length of a run in bytes: much more than one more write to a connection costs, and little beside a large table. */
const runBytes = 65_536
/** The minimum length in bytes of a namespace's own virtual hosts that have runs: a namespace with many is not to copy them with each change. */
const ownBytes = 4096

/** Creates a table of pieces, in their order. Runs of the table `before` that are still among the pieces are used again. */
export function buildTable(name: string, pieces: readonly MaybePiece[], sums: KeyedSums, before?: RouteTable): RouteTable {
  const runs = runsOf(pieces, sums, before?.runs ?? noRuns)
  return { name, runs: new Set(runs), pieces, sum: runs.reduce((sum, run) => addSums(sum, run.sum), zeroSum) }
}

/**
 * Creates the table of a namespace's own virtual hosts. Few of them have no runs: {@link routeResource} puts them into the block of the
 * message's first fields, since most namespaces have few.
 */
export function ownTable(name: string, pieces: readonly HostPiece[], sums: KeyedSums, before?: RouteTable): RouteTable {
  const length = pieces.reduce((total, { bytes }) => total + bytes.length, 0)
  if (length >= ownBytes) return buildTable(name, pieces, sums, before)
  return { name, runs: noRuns, pieces, sum: pieces.reduce((sum, piece) => addSums(sum, sums.ofPart(piece)), zeroSum) }
}

/** Whether the bytes of a table still exist. */
export const isUsableTable = ({ runs }: RouteTable): boolean => [...runs].every(isUsableRun)

const isUsableRun = ({ block }: HostRun): boolean => block.slab !== lost

/**
 * Divides pieces into runs. Runs of `before` are used again, except one that follows a short stretch of new ones, with which it becomes one
 * run: otherwise runs would become shorter with every host that comes or goes.
 */
function runsOf(pieces: readonly MaybePiece[], sums: KeyedSums, before: Iterable<HostRun>): HostRun[] {
  const known = new Map<MaybePiece, HostRun>()
  for (const run of before) if (run.pieces[0] && isUsableRun(run)) known.set(run.pieces[0], run)
  const runs: HostRun[] = []
  let from = 0
  let bytes = 0
  const end = (at: number) => {
    if (at > from) runs.push(...divided(pieces.slice(from, at), bytes, sums))
  }
  for (let at = 0; at < pieces.length; at++) {
    const piece = pieces[at]
    const run = at === from || bytes >= runBytes / 4 ? known.get(piece) : undefined
    if (run?.pieces.every((each, index) => each === pieces[at + index])) {
      end(at)
      runs.push(run)
      at += run.pieces.length - 1
      from = at + 1
      bytes = 0
    } else bytes += piece?.bytes.length ?? 0
  }
  end(pieces.length)
  return runs
}

/** Divides pieces of `bytes` bytes into new runs of about equal length. */
function divided(pieces: readonly MaybePiece[], bytes: number, sums: KeyedSums): HostRun[] {
  const share = bytes / Math.max(1, Math.round(bytes / runBytes))
  const runs: HostRun[] = []
  let from = 0
  let length = 0
  for (const [index, piece] of pieces.entries()) {
    length += piece?.bytes.length ?? 0
    if (length < share && index < pieces.length - 1) continue
    runs.push(runOf(pieces.slice(from, index + 1), sums))
    from = index + 1
    length = 0
  }
  return runs
}

function runOf(pieces: readonly MaybePiece[], sums: KeyedSums): HostRun {
  const bytes = Buffer.allocUnsafeSlow(pieces.reduce((sum, piece) => sum + (piece?.bytes.length ?? 0), 0))
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
  return { pieces, block: new Block(bytes), offsets, sum }
}

/** What is left of a run that has hidden virtual hosts. */
interface CutRun {
  readonly slices: readonly Slice[]
  readonly sum: Sum
}

/** What is left of a table without its hidden virtual hosts. */
export interface CutTable {
  readonly table: RouteTable
  /** The runs that have hidden virtual hosts. */
  readonly cuts: ReadonlyMap<HostRun, CutRun>
}

/**
 * Leaves the virtual hosts out of a table whose indices are hidden. `before`: what was left of an earlier table without the same virtual
 * hosts, so that only other runs are looked at.
 */
export function cutTable(table: RouteTable, isHidden: (index: number) => boolean, sums: KeyedSums, before?: CutTable): CutTable {
  const cuts = new Map<HostRun, CutRun>()
  let first = 0
  for (const run of table.runs) {
    const cut = before?.table.runs.has(run) ? before.cuts.get(run) : cutRun(run, first, isHidden, sums)
    if (cut) cuts.set(run, cut)
    first += run.pieces.length
  }
  return { table, cuts }
}

/** Leaves hidden virtual hosts out of a run, whose first virtual host has the index `first`. Undefined if none is hidden. */
function cutRun({ pieces, block, offsets, sum }: HostRun, first: number, isHidden: (index: number) => boolean, sums: KeyedSums): CutRun | undefined {
  const slices: Slice[] = []
  let left = sum
  let from = 0
  let isCut = false
  for (let index = 0; index < pieces.length; index++) {
    const piece = pieces[index]
    if (!piece || !isHidden(first + index)) continue
    const start = offsets[index] as number
    if (start > from) slices.push({ block, offset: from, length: start - from })
    from = offsets[index + 1] as number
    left = subtractSums(left, sums.ofPart(piece))
    isCut = true
  }
  if (block.length > from) slices.push({ block, offset: from, length: block.length - from })
  return isCut ? { slices, sum: left } : undefined
}

/**
 * Returns the route configuration of a namespace: a table without what is hidden, and the namespace's own virtual hosts, which come first
 * ({@link ownTable}). `extra` are additional encoded fields of the message.
 */
export function routeResource({ table, cuts }: CutTable, own: RouteTable, extra: Uint8Array, sums: KeyedSums): Resource {
  const slices = Array.from(own.runs, wholeRun)
  const inHead = own.runs.size > 0 ? [] : own.pieces.map((piece) => (piece as HostPiece).bytes)
  let { sum } = own
  for (const run of table.runs) {
    const cut = cuts.get(run)
    if (cut) slices.push(...cut.slices)
    else slices.push(wholeRun(run))
    sum = addSums(sum, (cut ?? run).sum)
  }
  const length = [...slices, ...inHead].reduce((total, part) => total + part.length, 0)
  const before = textField(1, table.name)
  const after = Buffer.concat([commonFields, extra])
  const head = new Block(Buffer.concat([elementHead(routeType, before.length + length + after.length), before, after, ...inHead]))
  sum = addSums(sum, sums.of(`head|${contentVersion(Buffer.concat([before, after]))}`))
  return { name: table.name, version: versionOfSum(sum), slices: [{ block: head, offset: 0, length: head.length }, ...slices] }
}

const wholeRun = ({ block }: HostRun): Slice => ({ block, offset: 0, length: block.length })

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
