/** Listening addresses from flags: parsed, reserved together before any server listens, and reported with their actual ports. */
import { lookup } from 'node:dns/promises'
import { type AddressInfo, createServer, isIP, type Server } from 'node:net'

/** An address from a flag. If empty, nothing listens. */
export interface AddressFlag {
  readonly flag: string
  readonly address: string
  /** Number of threads that listen on it. If they share a port that the kernel chose, the port is reserved until all of them listen. */
  readonly listeners: number
}

/**
 * The listen option for one of `listeners` threads on an address: a port can be shared only if all of its sockets set it, including the
 * one that reserves the port.
 */
export const sharing = (listeners: number): { readonly reusePort: boolean } => ({ reusePort: listeners > 1 })

/** Reserved addresses, with the actual host and port of each. */
export interface Claim {
  /** The actual address of a flag as `host:port`; empty when nothing listens. */
  readonly of: (flag: string) => string
  /**
   * Releases the ports that the kernel chose and that were reserved for several threads. The kernel gives the reserving socket, too, a part of the
   * connections, which are reset; none that begins after this call.
   */
  release(): void
}

/** Splits `host:port`; an empty host means all addresses. */
export function splitAddress(address: string): [host: string, port: number] {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '')
  return [host === '*' ? '' : host, Number(address.slice(colon + 1))]
}

/**
 * Reserves all addresses together. Rejects with one Error that names every flag whose address cannot be used: equal or overlapping
 * addresses of two flags, addresses in use, unknown hosts. Without this check, threads that share a port would not notice another process
 * that shares it too: the kernel would distribute connections among all of them.
 */
export async function claimAddresses(flags: readonly AddressFlag[]): Promise<Claim> {
  const used = flags.filter(({ address }) => address !== '')
  const problems = await overlaps(used)
  const probes: { readonly flag: AddressFlag; readonly server: Server }[] = []
  if (problems.length === 0)
    for (const flag of used) {
      try {
        probes.push({ flag, server: await listenOn(flag) })
      } catch (error) {
        problems.push(listenError(flag.flag, flag.address, error).message)
      }
    }
  const real = new Map(probes.map(({ flag, server }) => [flag.flag, addressOf(server)]))
  const held = problems.length === 0 ? probes.filter(({ flag }) => isHeld(flag)) : []
  await Promise.all(probes.filter((probe) => !held.includes(probe)).map(({ server }) => closeServer(server)))
  if (problems.length > 0) throw new Error(problems.join('; '))
  return {
    of: (flag) => real.get(flag) ?? '',
    release: () => {
      for (const { server } of held.splice(0)) server.close()
    },
  }
}

const isHeld = ({ address, listeners }: AddressFlag): boolean => sharing(listeners).reusePort && splitAddress(address)[1] === 0

function listenOn(flag: AddressFlag): Promise<Server> {
  const [host, port] = splitAddress(flag.address)
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.resetAndDestroy())
    server.once('error', reject)
    const how = isHeld(flag) ? sharing(flag.listeners) : { exclusive: true }
    server.listen({ host: host || undefined, port, ...how }, () => resolve(server.unref()))
  })
}

const closeServer = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()))

function addressOf(server: Server): string {
  const { address, port } = server.address() as AddressInfo
  return `${isIP(address) === 6 ? `[${address}]` : address}:${port}`
}

/** An Error that says why an address cannot be listened on, with its flag. */
export function listenError(flag: string, address: string, cause: unknown): Error {
  return new Error(`--${flag} ${address}: ${reasonOf(cause as NodeJS.ErrnoException)}`, { cause })
}

function reasonOf(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return 'another process listens on it already (EADDRINUSE)'
    case 'EADDRNOTAVAIL':
      return 'this machine does not have the address (EADDRNOTAVAIL)'
    case 'EACCES':
      return 'no permission to listen on this port (EACCES)'
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host name cannot be resolved (${error.code})`
    default:
      return error.message
  }
}

/** Finds pairs of flags with overlapping addresses; one sentence for each. */
async function overlaps(flags: readonly AddressFlag[]): Promise<string[]> {
  const hosts = await Promise.all(flags.map(async ({ address }) => resolveHost(splitAddress(address)[0])))
  const found: string[] = []
  for (const [index, { flag, address }] of flags.entries()) {
    const port = splitAddress(address)[1]
    if (port === 0) continue
    for (const [before, other] of flags.slice(0, index).entries()) {
      if (splitAddress(other.address)[1] !== port || !meet(hosts[before] ?? '', hosts[index] ?? '')) continue
      found.push(`--${other.flag} ${other.address} and --${flag} ${address} overlap: each needs an address and port of its own`)
    }
  }
  return found
}

/** Resolves a host to the address that listening would use; returns the host itself when it is unknown. */
async function resolveHost(host: string): Promise<string> {
  if (host === '' || isIP(host) !== 0) return host
  return lookup(host).then(
    ({ address }) => address,
    () => host,
  )
}

/** Whether two listening hosts overlap. The empty host and `::` stand for both address families. */
function meet(one: string, other: string): boolean {
  const all = (host: string) => host === '' || /^[0:]+$/.test(host)
  if (one === other || all(one) || all(other)) return true
  const [wildcard, address] = one === '0.0.0.0' ? [one, other] : [other, one]
  return wildcard === '0.0.0.0' && isIP(address) === 4
}
