/** Gateways of networks that are given by host name: found once, when the file is read (discovery behaviour 3.2). */
import { lookup } from 'node:dns/promises'
import { isIp } from '../../src/config/addresses.ts'
import type { MeshNetworks } from '../../src/config/mesh-config.ts'
import { pause } from '../runtime/timers.ts'

/** How long a name may take, in milliseconds. */
const lookupMs = 5000

type Gateway = NonNullable<NonNullable<MeshNetworks['networks']>[string]['gateways']>[number]

/** The networks with the addresses of their gateways' host names, each as a gateway of its own; and names that were not found, with reasons. */
export async function resolveGateways(networks: MeshNetworks): Promise<{ networks: MeshNetworks; missing: string[] }> {
  const missing: string[] = []
  const resolve = async (gateway: Gateway): Promise<Gateway[]> => {
    const { address } = gateway
    if (address === undefined || isIp(address)) return [gateway]
    const late = pause(lookupMs).then(() => Promise.reject(new Error(`no answer within ${lookupMs} ms`)))
    try {
      const found = await Promise.race([lookup(address, { all: true }), late])
      return found.map((entry) => ({ ...gateway, address: entry.address }))
    } catch (error) {
      missing.push(`${address}: ${(error as Error).message}`)
      return [gateway]
    } finally {
      late.catch(() => undefined)
    }
  }
  const entries = Object.entries(networks.networks ?? {}).map(async ([name, network]) => {
    const gateways = (await Promise.all((network.gateways ?? []).map(resolve))).flat()
    return [name, { ...network, ...(network.gateways ? { gateways } : {}) }] as const
  })
  return { networks: { ...networks, networks: Object.fromEntries(await Promise.all(entries)) }, missing }
}
