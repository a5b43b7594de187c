/** Whether the network namespace of this process has IPv6 (docs/agent.md, B7, R5). */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isGone } from '../runtime/bounded-file.ts'
import { readKernelFile } from '../runtime/kernel-file.ts'

/**
 * - `absent`: the kernel has no IPv6, and no socket can be opened;
 * - `off`: it is switched off for every interface and for those to come (`disable_ipv6`), so that there is no address until somebody
 *   switches it on;
 * - `on`: there are addresses, if only link-local ones, or they may come.
 */
export type KernelIpv6 = 'absent' | 'off' | 'on'

/** Reads the state from the files of the kernel below `proc`. What cannot be read counts as on. */
export function kernelIpv6(proc = '/proc'): KernelIpv6 {
  if (isAbsent(proc)) return 'absent'
  const settings = join(proc, 'sys/net/ipv6/conf')
  const isOff = (scope: string) => readKernelFile(join(settings, scope, 'disable_ipv6')).trim() === '1'
  try {
    // `all` only holds what was last written for all at once; `default` is for interfaces to come.
    return readdirSync(settings).every((scope) => scope === 'all' || isOff(scope)) ? 'off' : 'on'
  } catch {
    return 'on'
  }
}

/** Whether the kernel shows its network, and in it no addresses of IPv6. */
function isAbsent(proc: string): boolean {
  try {
    statSync(join(proc, 'net/if_inet6'))
    return false
  } catch (error) {
    return isGone(error) && isThere(join(proc, 'net/tcp'))
  }
}

function isThere(path: string): boolean {
  try {
    statSync(path)
    return true
  } catch {
    return false
  }
}
