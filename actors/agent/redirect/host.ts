/** Reads the facts of the host that redirection depends on: addresses, users and DNS servers. */
import { networkInterfaces } from 'node:os'
import { ExitError } from '../../../src/cli/exit-status.ts'
import type { RedirectHost } from '../../../src/iptables/options.ts'
import type { RedirectOrder } from '../../../src/iptables/order.ts'
import { readBoundedFileSync } from '../../runtime/bounded-file.ts'
import { kernelIpv6 } from '../kernel-ipv6.ts'

/** Exit status of a command that could not change the rules. */
export const failedRules = 2

/** The facts of the host. */
export interface HostFacts extends RedirectHost {
  readonly address: string
  /** Whether `net.ipv4.conf.all.route_localnet` is set, so that responses from loopback addresses may leave through other interfaces. */
  readonly routesLoopback: boolean
}

/**
 * Reads the host's files and addresses. Throws an ExitError when no interface has an address, or when DNS capture is requested and
 * resolv.conf cannot be read.
 */
export function readHost({ redirectDns, proxyUser }: RedirectOrder): HostFacts {
  const addresses = Object.values(networkInterfaces())
    .flatMap((some) => some ?? [])
    .filter(({ internal }) => !internal)
  const first = addresses.find(({ family }) => family === 'IPv4') ?? addresses[0]
  if (!first) throw new ExitError('no network interface has an address beside those of loopback', failedRules)
  return {
    address: first.address,
    ipv6: kernelIpv6(),
    routesLoopback: readOptional('/proc/sys/net/ipv4/conf/all/route_localnet').trim() !== '0',
    passwd: readOptional('/etc/passwd'),
    group: readOptional('/etc/group'),
    proxyUser,
    resolvConf: redirectDns ? readResolvConf() : undefined,
  }
}

function readResolvConf(): string {
  try {
    return readBoundedFileSync('/etc/resolv.conf')
  } catch (error) {
    throw new ExitError(`--redirect-dns: the DNS servers cannot be read: ${(error as Error).message}`, failedRules)
  }
}

/** The maximum size of a file of the system, in bytes: some list a million users. */
const systemBytes = 134_217_728

/** Returns the content of a file. Empty when it cannot be read. */
function readOptional(path: string): string {
  try {
    return readBoundedFileSync(path, { most: systemBytes })
  } catch {
    return ''
  }
}
