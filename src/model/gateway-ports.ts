/** Which servers of Gateways may share a port of a proxy (docs/resources.md, G2). */
import { isPlainHttp } from './protocol.ts'

/** A server at a port: its protocol in upper case, and its hosts without namespaces. */
export interface PortUser {
  readonly protocol: string
  readonly hosts: readonly { readonly host: string }[]
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
  if (isPlainHttp(use.protocol)) return because(others[0], 'another gateway uses the port with another protocol')
  if (plainHttp[0]) return because(plainHttp[0], 'another gateway uses the port for HTTP')
  if (!isTlsServer(use)) return because(others[0], 'a TCP server needs the port for itself')
  const tcp = others.find((other) => !isTlsServer(other))
  if (tcp) return because(tcp, 'another gateway uses the port for TCP')
  const taken = new Map<string, User>()
  for (const other of others) for (const { host } of other.hosts) if (!taken.has(host)) taken.set(host, other)
  const twice = use.hosts.find(({ host }) => taken.has(host))
  return twice && because(taken.get(twice.host), `the host ${twice.host} is served on the port already`)
}

/** Reads `<host>` or `<namespace>/<host>` of a server; without a namespace it is `*`. `namespace`: that of the Gateway, which `.` means. */
export function splitServerHost(text: string, namespace: string): { namespace: string; host: string } {
  const slash = text.indexOf('/')
  if (slash < 0) return { namespace: '*', host: text.toLowerCase() }
  const given = text.slice(0, slash)
  return { namespace: given === '.' ? namespace : given, host: text.slice(slash + 1).toLowerCase() }
}
