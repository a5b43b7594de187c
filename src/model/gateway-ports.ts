/** Which servers of Gateways may share a port of a proxy (docs/resources.md, G2). */
import { byAge } from './order.ts'
import { isPlainHttp } from './protocol.ts'

/** A server at a port: its protocol in upper case, and its hosts without namespaces. */
export interface PortUser {
  readonly protocol: string
  readonly hosts: readonly { readonly host: string }[]
}

/** A server at a port, and where it stands: in `spec.servers[index]` of a Gateway. */
export interface PlacedServer extends PortUser {
  readonly gateway: { readonly namespace: string; readonly name: string; readonly createdAt: number }
  readonly index: number
}

/** Whether a server terminates TLS or passes it through. */
export const isTlsServer = ({ protocol }: Pick<PortUser, 'protocol'>): boolean => protocol === 'HTTPS' || protocol === 'TLS'

/** Why a server cannot have a port. */
export interface PortConflict<User> {
  /** A server that has it already. */
  readonly with: User
  readonly reason: string
}

/**
 * Returns why a server cannot have a port beside those that have it; undefined: it can. `plainHttp`, `others`: those that have the port, in plain
 * HTTP and otherwise.
 */
export function portConflict<User extends PortUser>(
  plainHttp: readonly User[],
  others: readonly User[],
  use: PortUser,
): PortConflict<User> | undefined {
  const because = (other: User | undefined, reason: string) => other && { with: other, reason }
  if (isPlainHttp(use.protocol)) return because(others[0], 'plain HTTP shares a port with plain HTTP only')
  if (plainHttp[0]) return because(plainHttp[0], 'plain HTTP shares a port with plain HTTP only')
  if (!isTlsServer(use)) return because(others[0], 'a TCP server needs the port for itself')
  const tcp = others.find((other) => !isTlsServer(other))
  if (tcp) return because(tcp, 'a TCP server needs the port for itself')
  const taken = new Map<string, User>()
  for (const other of others) for (const { host } of other.hosts) if (!taken.has(host)) taken.set(host, other)
  const twice = use.hosts.find(({ host }) => taken.has(host))
  return twice && because(taken.get(twice.host), `the host ${twice.host} is served on the port already`)
}

/** Says which server has a port that another one cannot have, for which protocol, and why that one has it: `gateway` is the Gateway of the other one. */
export function holderText({ gateway: holder, index, protocol }: PlacedServer, gateway: PlacedServer['gateway'], port: number): string {
  const place = `spec.servers[${index}]`
  if (holder.namespace === gateway.namespace && holder.name === gateway.name) return `${place} has the port ${port} for ${protocol}`
  const precedence = holder.createdAt === gateway.createdAt && byAge(holder, gateway) < 0 ? 'is as old and first by name' : 'is older'
  return `${place} of the Gateway ${holder.namespace}/${holder.name}, which selects the same workloads and ${precedence}, has the port ${port} for ${protocol}`
}

/** Reads `<host>` or `<namespace>/<host>` of a server; without a namespace it is `*`. `namespace`: that of the Gateway, which `.` means. */
export function splitServerHost(text: string, namespace: string): { namespace: string; host: string } {
  const slash = text.indexOf('/')
  if (slash < 0) return { namespace: '*', host: text.toLowerCase() }
  const given = text.slice(0, slash)
  return { namespace: given === '.' ? namespace : given, host: text.slice(slash + 1).toLowerCase() }
}

/** The path of the Gateway that a VirtualService of a namespace names. */
export const gatewayPath = (name: string, namespace: string): string =>
  name.startsWith('./') ? `${namespace}${name.slice(1)}` : name.includes('/') ? name : `${namespace}/${name}`
