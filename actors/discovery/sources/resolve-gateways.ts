/** Resolves the host names of network gateways when the file is read (docs/resources.md, S8). */
import { lookup } from 'node:dns/promises'
import { isIp } from '../../../src/config/addresses.ts'
import type { MeshNetworks } from '../../../src/config/mesh-config.ts'
import { deadlineAfter } from '../../runtime/timers.ts'

/** Timeout of a lookup, in milliseconds. */
const lookupMs = 5000

type Gateway = NonNullable<NonNullable<MeshNetworks['networks']>[string]['gateways']>[number]

/**
 * `networks`: networks in which each address of a gateway's host name is a gateway of its own. `missing`: host names that were not found,
 * with reason and consequence.
 */
export interface ResolvedNetworks {
  readonly networks: MeshNetworks
  readonly missing: string[]
}

/** Returns a function that resolves the gateways of networks. A name that is not found keeps its addresses from the previous call. */
export function gatewayResolver(find: (host: string) => Promise<string[]> = findAddresses): (given: MeshNetworks) => Promise<ResolvedNetworks> {
  let known: ReadonlyMap<string, readonly string[]> = new Map()
  let calls = 0
  return async (given) => {
    const call = ++calls
    const missing: string[] = []
    const found = new Map<string, readonly string[]>()
    const resolve = async (gateway: Gateway): Promise<Gateway[]> => {
      const { address } = gateway
      if (address === undefined || isIp(address)) return [gateway]
      const last = known.get(address)
      const addresses = await find(address).catch((error: Error) => {
        missing.push(`${address}: ${error.message}; ${last ? 'its last addresses stay' : 'it is left out until it can be resolved'}`)
        return last
      })
      if (!addresses) return [gateway]
      found.set(address, addresses)
      return addresses.map((resolved) => ({ ...gateway, address: resolved }))
    }
    const entries = Object.entries(given.networks ?? {}).map(async ([name, network]) => {
      const gateways = (await Promise.all((network.gateways ?? []).map(resolve))).flat()
      return [name, { ...network, ...(network.gateways ? { gateways } : {}) }] as const
    })
    const networks = { ...given, networks: Object.fromEntries(await Promise.all(entries)) }
    // A call that took longer than the next one knows only the names of the networks before.
    if (call === calls) known = found
    return { networks, missing }
  }
}

/** Looks up a host name. Rejects when it is unknown or not answered in time. */
function findAddresses(host: string): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const timer = deadlineAfter(lookupMs, () => reject(new Error(`no answer within ${lookupMs} ms`)))
    lookup(host, { all: true })
      .then((found) => resolve(found.map(({ address }) => address)), reject)
      .finally(() => timer.cancel())
  })
}
