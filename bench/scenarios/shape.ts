/**
 * Measures one shape of a mesh in one size: all proxies connect, then endpoints and routes change; and the bare server with the same bytes.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { atRest, type Bounds, OverBounds, within } from '../bounds.ts'
import { BareServer } from '../limit.ts'
import { type Arrivals, type Connected, Load, type LoadOptions, median, percentile } from '../load.ts'
import * as mesh from '../mesh.ts'
import { type Measure, progress } from '../report.ts'
import { DiscoveryServer, spent } from '../server.ts'
import { type Shape, type ShapeName, type Size, shapeFiles, shapes, viewersOf } from '../shapes.ts'
import { type ViewCost, viewCost } from '../view-cost.ts'

/** The settings of a run. */
export interface ShapeOptions {
  readonly variant: string
  readonly name: ShapeName
  readonly size: Size
  readonly delta: boolean
  /** Whether proxies take virtual hosts as separate resources (VHDS). */
  readonly hosts: boolean
  readonly writers: number
  readonly rounds: number
  readonly limits: Bounds
}

/** The results. Figures of a change are per round. */
export interface ShapeMeasures {
  readonly connect: Measure
  readonly endpoint: Measure
  readonly route: Measure
  /** The push queue's cost per class of a namespace, with its view. */
  readonly view: ViewCost
}

/** The measure of a change, and the number of proxies that received it per round. */
interface Change {
  readonly measure: Measure
  readonly touched: number
}

/**
 * The maximum number of proxies without their first configuration, per process of the load. With more than a hundred, proxies starve where
 * a configuration has 30 MB.
 */
const atOnce = 50

/**
 * The time after which idle threads have collected the garbage of connecting (actors/runtime/idle-collection.ts), in milliseconds.
 * Otherwise the collection counts as cost of a change. In meshes with fewer namespaces than `collectedFrom` there is too little garbage.
 */
const collectedMs = 25_000
const collectedFrom = 100

const mib = (bytes: number) => bytes / 1_048_576

/** Runs the scenario. Rejects with `OverBounds` when it exceeds its limits. All processes that it started have ended then. */
export async function measureShape(options: ShapeOptions): Promise<ShapeMeasures> {
  const { variant, name, size, limits, writers, hosts } = options
  const shape: Shape = shapes[name]
  progress(`${variant}: starting`)
  const files = [...mesh.files(size.services, size.namespaces), ...shapeFiles(shape, size)]
  const server = await DiscoveryServer.start({ writers, files, mesh: shape.mesh, readyWithin: limits.seconds }).catch((error: Error) => {
    throw new OverBounds(error.message)
  })
  const load = new Load()
  let connected: Connected
  let connect: Measure
  let endpoint: Change
  let route: Change
  try {
    await within(limits, server, 'the start', atRest(server))
    ;({ connected, connect } = await connectAll(options, server, load))
    if (size.namespaces >= collectedFrom) await pause(collectedMs)
    endpoint = await measureChange('endpoint change', options, server, load)
    route = await measureChange('route change', options, server, load)
  } finally {
    load.end()
    await server.kill()
  }
  const measures = await beside(options, connected, connect, endpoint, route)
  return { ...measures, view: await viewCost({ shape: name, size, hosts }) }
}

async function connectAll(options: ShapeOptions, server: DiscoveryServer, load: Load): Promise<{ connected: Connected; connect: Measure }> {
  const { variant, size, delta, hosts, limits } = options
  const client: LoadOptions = {
    port: server.port,
    tls: false,
    delta,
    hosts,
    namespaces: size.namespaces,
    reads: 'names',
    own: false,
    misbehaving: 0,
    atOnce,
  }
  const before = await server.usage()
  const connected = await within(limits, server, 'connecting', load.connect(size.namespaces, client))
  await within(limits, server, 'what follows connecting', atRest(server))
  const after = await server.usage()
  const connect = { scenario: 'connect', variant, ...timesOf([connected]), ...spent(after, before), mib: mib(connected.bytes), rss: after.rss }
  return { connected, connect }
}

async function measureChange(kind: 'endpoint change' | 'route change', options: ShapeOptions, server: DiscoveryServer, load: Load): Promise<Change> {
  const { variant, name, size, rounds, limits } = options
  let touched = 0
  const make = async (round: number): Promise<Arrivals> => {
    const { file, text = '', marker = '', service = 0 } = mesh.change(kind, round, size.services, size.namespaces)
    const viewers = viewersOf(shapes[name], service, size)
    touched += viewers.length
    const arrivals = await within(
      limits,
      server,
      kind,
      load.mark(marker, () => server.put(file, text), viewers),
    )
    await within(limits, server, `what follows the ${kind}`, atRest(server))
    return arrivals
  }
  // The first change of a kind warms up the code and is not measured.
  await make(rounds)
  await load.received()
  touched = 0
  const before = await server.usage()
  const arrivals: Arrivals[] = []
  for (let round = 0; round < rounds; round++) arrivals.push(await make(round))
  const after = await server.usage()
  const { cpu, threads } = spent(after, before)
  const share = Object.fromEntries(Object.entries(threads).map(([name, seconds]) => [name, seconds / rounds]))
  const sent = mib(await load.received()) / rounds
  const measure = { scenario: kind, variant, ...timesOf(arrivals), cpu: cpu / rounds, threads: share, mib: sent, rss: after.rss }
  return { measure, touched: touched / rounds }
}

function timesOf(arrivals: readonly Arrivals[]): Pick<Measure, 'p50' | 'p99' | 'last'> {
  const all = arrivals.flatMap(({ times }) => [...times]).sort((one, other) => one - other)
  if (all.length === 0) return {}
  return { p50: percentile(all, 0.5), p99: percentile(all, 0.99), last: median(arrivals.map(({ times }) => percentile(times, 1))) }
}

/**
 * Adds the bare server's figures: with as many requests and bytes when all connect, and as many bytes for changes that reach every proxy.
 */
async function beside(
  options: ShapeOptions,
  connected: Connected,
  connect: Measure,
  endpoint: Change,
  route: Change,
): Promise<Omit<ShapeMeasures, 'view'>> {
  const { writers, size, delta, rounds } = options
  const proxies = size.namespaces
  const { names, bytes } = connected
  const { bare, connect: limit } = await BareServer.start({
    threads: writers,
    proxies,
    bytes,
    names,
    delta,
    tls: undefined,
    bytesPerSecond: undefined,
    atOnce,
  })
  try {
    const changed = async ({ measure, touched }: Change): Promise<Measure> => {
      if (touched < proxies) return { ...measure, notes: `touches ${touched}` }
      return { ...measure, limit: await bare.push(measure.mib * 1_048_576, rounds) }
    }
    return { connect: { ...connect, limit }, endpoint: await changed(endpoint), route: await changed(route) }
  } finally {
    bare.stop()
  }
}
