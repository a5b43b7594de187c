/**
 * Looks up names as the system does, with queries of its own to the system's name servers. The system's call (`getaddrinfo`) takes one of the
 * two threads that a process has for lookups and cannot be ended, so that two names whose servers do not answer would make all others wait.
 */
import { type LookupAddress, type LookupAllOptions, lookup, Resolver } from 'node:dns'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { addressesInHosts, fullNames, isFromServers } from '../../src/dns/name-search.ts'
import { readResolvConf } from '../../src/dns/resolv-conf.ts'
import { readIfThere } from '../runtime/bounded-file.ts'

type Done = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void

/** Looks up all addresses of a name. A lookup that the signal ends fails; that of the system goes on without an asker. */
export type LookupAll = (name: string, options: LookupAllOptions, done: Done, signal: AbortSignal) => void

/** The bounds of a query: the time until it is sent again, in milliseconds, and how often it is sent to each server. */
const query = { timeout: 1500, tries: 2 }

/** What a name server answers when a name does not exist, or has no address of the wanted family. */
const isMissing = (error: unknown): boolean => ['ENOTFOUND', 'ENODATA'].includes((error as NodeJS.ErrnoException).code ?? '')

/**
 * Looks up a name in the hosts file and with the name servers, IPv4 addresses first; by the system where it has other sources of names
 * (nsswitch.conf), or is not Linux.
 */
export const lookUpName: LookupAll = lookUpIn('/etc')

/** Like {@link lookUpName}, with the files of the system in another directory. */
export function lookUpIn(directory: string): LookupAll {
  return (name, options, done, signal) => {
    find(directory, name, options, signal).then(
      (addresses) => (addresses ? done(null, addresses) : lookup(name, options, done)),
      (error: NodeJS.ErrnoException) => done(error, []),
    )
  }
}

/** Resolves to undefined where the system has to be asked. */
async function find(directory: string, name: string, { family }: LookupAllOptions, signal: AbortSignal): Promise<LookupAddress[] | undefined> {
  const families = family === 4 || family === 'IPv4' ? [4] : family === 6 || family === 'IPv6' ? [6] : [4, 6]
  const only = (addresses: readonly string[]) =>
    families.flatMap((wanted) => addresses.filter((address) => isIP(address) === wanted).map((address) => ({ address, family: wanted })))
  if (isIP(name) !== 0) return only([name])
  const [hosts, nsswitch, resolvConf] = await Promise.all(['hosts', 'nsswitch.conf', 'resolv.conf'].map((file) => textOf(join(directory, file))))
  if (process.platform !== 'linux' || !isFromServers(name, nsswitch)) return undefined
  const inHosts = only(addressesInHosts(name, hosts ?? ''))
  if (inHosts.length > 0) return inHosts
  const resolver = new Resolver(query)
  const cancel = () => resolver.cancel()
  signal.throwIfAborted()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    return await firstOf(fullNames(name, readResolvConf(resolvConf ?? '')), async (full) =>
      only((await Promise.all(families.map((wanted) => addressesOf(resolver, full, wanted, signal)))).flat()),
    )
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** The addresses of the first name that has any. Rejects with the error of the last one if none has. */
async function firstOf(names: readonly string[], addressesOf: (name: string) => Promise<LookupAddress[]>): Promise<LookupAddress[]> {
  for (const name of names) {
    const found = await addressesOf(name)
    if (found.length > 0) return found
  }
  throw Object.assign(new Error(`${names[0]} has no address`), { code: 'ENOTFOUND' })
}

/** The addresses of a family; none where the name has none. Rejects when the servers do not say. */
function addressesOf(resolver: Resolver, name: string, family: number, signal: AbortSignal): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const done = (error: NodeJS.ErrnoException | null, addresses: string[]) => {
      if (!error) resolve(addresses)
      else if (isMissing(error) && !signal.aborted) resolve([])
      else reject(error)
    }
    if (family === 4) resolver.resolve4(name, done)
    else resolver.resolve6(name, done)
  })
}

/** Maximum size of a file of the system, in bytes: some list a million hosts. */
const systemBytes = 67_108_864

/** The content of a file; undefined when there is none. Rejects when it cannot be read, since another address may stand there. */
const textOf = (path: string): Promise<string | undefined> => readIfThere(path, { most: systemBytes })
