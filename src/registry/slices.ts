/** Slices of endpoints: how lists are cut into them, and how a slice is compared with its predecessor, endpoint by endpoint. */
import type { Endpoint, EndpointSlice, ServicePort } from '../../protocols/data.ts'
import { isIp, leadsToCaller } from '../config/addresses.ts'
import { fnv1a } from '../model/digest.ts'
import { compare } from '../model/order.ts'

/** A slice, with what is known of its endpoints as a whole. */
export interface Slice extends EndpointSlice {
  /** The service accounts of the endpoints, each once, as `<namespace>/<account>`. */
  readonly accounts: readonly string[]
  /** Whether some endpoint has an address on the caller's own machine. */
  readonly hasLocal: boolean
  /** The number of endpoints that are not ready. */
  readonly unready: number
  /** The family of the addresses of all its endpoints; undefined: they have several, or none. */
  readonly family: AddressFamily | undefined
  /** The nodes of the endpoints that have no locality of their own. */
  readonly nodes: readonly string[]
}

const none: readonly never[] = []

/** A family of IP addresses. */
export type AddressFamily = 'ipv4' | 'ipv6'

/** The family of an IP address. */
export const familyOf = (address: string): AddressFamily => (address.includes(':') ? 'ipv6' : 'ipv4')

/** Examines the endpoints of a slice; `before`: another one whose endpoints need not be examined again. */
export function sliceOf({ key, version, endpoints }: EndpointSlice, before?: Slice): Slice {
  const remote = before && !before.hasLocal ? new Set(before.endpoints) : undefined
  const accounts = new Set<string>()
  let nodes: Set<string> | undefined
  let [hasLocal, unready] = [false, 0]
  const [first] = endpoints
  let family = first && isIp(first.address) ? familyOf(first.address) : undefined
  for (const endpoint of endpoints) {
    const { address, namespace, serviceAccount, readiness = 'ready' } = endpoint
    accounts.add(`${namespace}/${serviceAccount}`)
    hasLocal ||= !remote?.has(endpoint) && leadsToCaller(address)
    if (readiness !== 'ready') unready++
    if (family !== undefined && familyOf(address) !== family) family = undefined
    if (endpoint.node && endpoint.locality === '') nodes = (nodes ?? new Set()).add(endpoint.node)
  }
  return { key, version, endpoints, accounts: [...accounts], hasLocal, unready, family, nodes: nodes ? [...nodes] : none }
}

/** Orders slices by key. */
export const byKey = ({ key: one }: EndpointSlice, { key: other }: EndpointSlice): number => compare(one, other)

/** The length of the lists that are one slice. Longer lists are cut into slices of about half of this, and at most twice of it. */
const longest = 64

/**
 * Cuts a list of endpoints into slices, for sources that have none. Where a long list is cut follows from the endpoints beside the cut, so
 * that an endpoint that is added or removed changes the slice that it is in, and no other.
 */
export function slicesOf(endpoints: readonly Endpoint[]): EndpointSlice[] {
  if (endpoints.length <= longest) return [{ key: '', version: '', endpoints }]
  const slices = new Map<string, EndpointSlice>()
  for (let start = 0; start < endpoints.length; ) {
    const end = endOf(endpoints, start)
    const name = nameOf(endpoints[start] as Endpoint)
    let key = name
    for (let copy = 2; slices.has(key); copy++) key = `${name} ${copy}`
    slices.set(key, { key, version: '', endpoints: endpoints.slice(start, end) })
    start = end
  }
  return [...slices.values()]
}

/** The beginning of the keys of slices of selected WorkloadEntries. */
const selectedKey = 'WorkloadEntries '

/** Whether the endpoints of a slice of a registry are WorkloadEntries that a Service selects. */
export const isOfWorkloadEntries = ({ key }: EndpointSlice): boolean => key.startsWith(selectedKey)

/**
 * Returns the slices of WorkloadEntries that a Service with some ports selects. The port of a workload is what it calls by the name of the
 * service port, else by the name of its target port, else the number of that (docs/resources.md, O10).
 */
export function selectedSlices(endpoints: readonly Endpoint[], ports: readonly ServicePort[]): EndpointSlice[] {
  const named = ports.filter(({ targetName = '' }) => targetName !== '')
  const withPorts = (endpoint: Endpoint): Endpoint => {
    const found = named.flatMap(({ name, targetName = '' }): [string, number][] => {
      const port = Object.hasOwn(endpoint.ports, name) || !Object.hasOwn(endpoint.ports, targetName) ? undefined : endpoint.ports[targetName]
      return port === undefined ? [] : [[name, port]]
    })
    return found.length > 0 ? { ...endpoint, ports: { ...endpoint.ports, ...Object.fromEntries(found) } } : endpoint
  }
  return slicesOf(endpoints.map(withPorts)).map((slice) => ({ ...slice, key: `${selectedKey}${slice.key}` }))
}

/** Where the slice that begins at `start` ends. */
function endOf(endpoints: readonly Endpoint[], start: number): number {
  const last = Math.min(start + 2 * longest, endpoints.length)
  // The low bits of FNV follow from the last characters alone.
  for (let at = start + 1; at < last; at++) if ((fnv1a(nameOf(endpoints[at] as Endpoint)) >>> 12) % (longest / 2) === 0) return at
  return last
}

const nameOf = ({ address, workload }: Endpoint): string => address || workload

/** Returns the slice before if the two are equal; otherwise the slice now, in which equal endpoints are those of before. */
export function keptSlice(before: Slice | undefined, now: EndpointSlice): Slice {
  if (!before || before.key !== now.key) return sliceOf(now)
  if (now.version !== '' && before.version === now.version) return before
  const endpoints = keptEndpoints(before.endpoints, now.endpoints)
  return endpoints === before.endpoints ? before : sliceOf({ ...now, endpoints }, before)
}

function keptEndpoints(before: readonly Endpoint[], now: readonly Endpoint[]): readonly Endpoint[] {
  let byName: Map<string, Endpoint> | undefined
  const endpoints = now.map((endpoint, index) => {
    const there = before[index]
    if (there && sameEndpoint(there, endpoint)) return there
    byName ??= new Map(before.map((each) => [nameOf(each), each]))
    const known = byName.get(nameOf(endpoint))
    return known && sameEndpoint(known, endpoint) ? known : endpoint
  })
  return before.length === now.length && endpoints.every((endpoint, index) => endpoint === before[index]) ? before : endpoints
}

/** Whether two endpoints are equal. */
function sameEndpoint(one: Endpoint, other: Endpoint): boolean {
  return (
    one === other ||
    (one.address === other.address &&
      one.locality === other.locality &&
      one.network === other.network &&
      one.weight === other.weight &&
      one.serviceAccount === other.serviceAccount &&
      one.namespace === other.namespace &&
      one.workload === other.workload &&
      one.node === other.node &&
      one.cluster === other.cluster &&
      (one.readiness ?? 'ready') === (other.readiness ?? 'ready') &&
      sameList(one.serves, other.serves) &&
      sameFields(one.ports, other.ports) &&
      sameFields(one.labels, other.labels))
  )
}

const sameList = (one: readonly string[] | undefined, other: readonly string[] | undefined): boolean =>
  one === other || (one?.length === other?.length && (one?.every((item, index) => item === other?.[index]) ?? false))

/** Whether two records have the same fields. */
export function sameFields(one: Readonly<Record<string, unknown>>, other: Readonly<Record<string, unknown>>): boolean {
  const keys = Object.keys(one)
  return keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && one[key] === other[key])
}
