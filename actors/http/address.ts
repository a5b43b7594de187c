/** Listening addresses as flags give them: read, claimed together before anything listens, and the real ones told. */
import { lookup } from 'node:dns/promises'
import { type AddressInfo, createServer, isIP, type Server } from 'node:net'

/** An address that a flag gives. An empty one is not listened on. */
export interface AddressFlag {
  readonly flag: string
  readonly address: string
  /** How many threads listen on it. Where they share the port, one chosen by the kernel is held until all of them listen. */
  readonly listeners: number
}

/** How each of so many threads listens on one address: a port may be shared only if all its sockets say so, the one that holds it included. */
export const sharing = (listeners: number): { readonly reusePort: boolean } => ({ reusePort: listeners > 1 })

/** Addresses that are free, each with the address and port that the kernel gave. */
export interface Claim {
  /** The real address of a flag as `host:port`; an empty string when it is not listened on. */
  readonly of: (flag: string) => string
  /** Lets go of the ports that were chosen by the kernel and held for threads that share them. */
  release(): Promise<void>
}

/** Host and port of `host:port`; an empty host means every address. */
export function splitAddress(address: string): [host: string, port: number] {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '')
  return [host === '*' ? '' : host, Number(address.slice(colon + 1))]
}

/**
 * Claims all addresses at once. Rejects with one Error that names every flag whose address cannot be listened on: equal or
 * overlapping addresses of two flags, addresses in use, unknown hosts. Threads that share a port would not notice the second:
 * the kernel would spread connections over them and whoever else shares it.
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
    release: async () => void (await Promise.all(held.splice(0).map(({ server }) => closeServer(server)))),
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

/** Why an address cannot be listened on, with the flag that gives it. */
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
      return 'the port may not be listened on without more rights (EACCES)'
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host is not known (${error.code})`
    default:
      return error.message
  }
}

/** Pairs of flags whose addresses are the same for a client, one sentence each. */
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

/** The address of a host, as listening on it would take it; the host itself when it is not known. */
async function resolveHost(host: string): Promise<string> {
  if (host === '' || isIP(host) !== 0) return host
  return lookup(host).then(
    ({ address }) => address,
    () => host,
  )
}

/** Whether a client could mean either of two listening addresses. The empty host and `::` take both families. */
function meet(one: string, other: string): boolean {
  const all = (host: string) => host === '' || /^[0:]+$/.test(host)
  if (one === other || all(one) || all(other)) return true
  const [wildcard, address] = one === '0.0.0.0' ? [one, other] : [other, one]
  return wildcard === '0.0.0.0' && isIP(address) === 4
}
