/**
 * The flags of `pilot-agent mesh-iptables` and `mesh-clean-iptables`. Each has an environment variable of the same name (docs/agent.md,
 * R6).
 */
import type { FlagInput } from '@oclif/core/interfaces'
import type { AgentFeatures } from '../config/agent-features.ts'
import { longest } from '../config/variable.ts'
import type { RedirectOrder } from '../iptables/order.ts'
import { duration, type FlagValues, text, toggle, uint16 } from './flags.ts'

/** Returns the name of a flag's environment variable. */
const variableOf = (flag: string) => flag.toUpperCase().replaceAll('-', '_')

const withVariables = <Flags extends FlagInput>(flags: Flags): Flags =>
  Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, { ...flag, env: variableOf(name) }])) as Flags

/** Flags of both commands. */
export const cleanFlags = withVariables({
  'dry-run': toggle({ char: 'n', description: 'do not call external dependencies such as iptables' }),
})

/** Flags of `mesh-iptables`. */
export const redirectFlags = withVariables({
  ...cleanFlags,
  'inbound-capture-port': text({
    char: 'z',
    default: '',
    description: 'port to which all inbound TCP traffic is redirected; $INBOUND_CAPTURE_PORT, else 15006, when empty',
  }),
  'inbound-tunnel-port': text({
    char: 'e',
    default: '',
    description: 'mesh tunnel port for inbound TCP traffic; $INBOUND_TUNNEL_PORT, else 15008, when empty',
  }),
  'iptables-probe-port': uint16({ default: 15_002, range: [1, 65_535], description: 'listen port for failure detection' }),
  'mesh-inbound-interception-mode': text({
    value: 'REDIRECT|TPROXY',
    char: 'm',
    default: '',
    description: 'mode used to redirect inbound connections to the proxy: REDIRECT or TPROXY',
  }),
  'mesh-inbound-ports': text({
    char: 'b',
    default: '',
    description: 'comma-separated inbound ports redirected to the proxy; * means all ports; an empty list disables',
  }),
  'mesh-inbound-tproxy-mark': text({ char: 't', default: '', description: 'mark of packets and connections of TPROXY mode; 1337 when empty' }),
  'mesh-inbound-tproxy-route-table': text({ char: 'r', default: '', description: 'routing table of TPROXY mode; 133 when empty' }),
  'mesh-ipv6': text({
    value: 'capture|pass',
    default: '',
    description: 'what becomes of IPv6 on a host that has it: capture (also when empty), or pass, by which it goes past the proxy and all policies',
  }),
  'mesh-local-exclude-ports': text({
    char: 'd',
    default: '',
    description: 'comma-separated inbound ports excluded from redirection; counts only when all inbound traffic (*) is redirected',
  }),
  'mesh-local-outbound-ports-exclude': text({ char: 'o', default: '', description: 'comma-separated outbound ports excluded from redirection' }),
  'mesh-outbound-ports': text({ char: 'q', default: '', description: 'comma-separated outbound ports explicitly included for redirection' }),
  'mesh-service-cidr': text({
    char: 'i',
    default: '',
    description:
      'comma-separated IP ranges in CIDR form redirected to the proxy; * redirects all outbound traffic; an empty list disables all outbound',
  }),
  'mesh-service-exclude-cidr': text({ char: 'x', default: '', description: 'comma-separated CIDR ranges excluded from redirection' }),
  'orch-virt-interfaces': text({
    char: 'k',
    default: '',
    description: 'comma-separated virtual interfaces whose inbound traffic (from a VM) is treated as outbound',
  }),
  'probe-timeout': duration({ default: '5s', range: ['1ms', longest], description: 'failure detection timeout' }),
  'proxy-gid': text({
    char: 'g',
    default: '',
    description: 'comma-separated GIDs for which redirection is not applied; those of --proxy-uid when empty',
  }),
  'proxy-port': text({
    char: 'p',
    default: '',
    description: 'proxy port to which all TCP traffic is redirected; $PROXY_PORT, else 15001, when empty',
  }),
  'proxy-uid': text({
    char: 'u',
    default: '',
    description: 'comma-separated UIDs for which redirection is not applied; that of the user $PROXY_USER, else 1337, when empty',
  }),
  'redirect-dns': toggle({ description: 'enables capture of DNS traffic by the agent; on with $MESH_META_DNS_CAPTURE' }),
  'restore-format': toggle({ char: 'f', description: 'prints iptables rules in iptables-restore format' }),
  'run-validation': toggle({ description: 'validates iptables' }),
  'skip-rule-apply': toggle({ description: 'skips applying iptables rules' }),
})

/** Returns the flags of `mesh-iptables` where `--redirect-dns` is by default what the agent does. */
export const redirectFlagsFor = (features: AgentFeatures): typeof redirectFlags => ({
  ...redirectFlags,
  'redirect-dns': { ...redirectFlags['redirect-dns'], default: features.MESH_META_DNS_CAPTURE },
})

/** The flags whose environment variables are printed before rules are applied. */
const printedFlags: readonly (keyof typeof redirectFlags)[] = [
  'proxy-port',
  'inbound-capture-port',
  'mesh-inbound-interception-mode',
  'mesh-inbound-tproxy-mark',
  'mesh-inbound-tproxy-route-table',
  'mesh-inbound-ports',
  'mesh-outbound-ports',
  'mesh-local-exclude-ports',
  'mesh-service-cidr',
  'mesh-service-exclude-cidr',
]

/**
 * Returns the order of `mesh-iptables`. `environment` has the variables that are printed, `warnings` name those with invalid values.
 */
export function redirectOrder(
  flags: FlagValues<typeof redirectFlags>,
  environment: Readonly<Record<string, string | undefined>>,
  features: AgentFeatures,
  warnings: readonly string[],
): RedirectOrder {
  const {
    'dry-run': isDryRun,
    'restore-format': restoreFormat,
    'redirect-dns': redirectDns,
    'run-validation': runValidation,
    'skip-rule-apply': skipRuleApply,
    'iptables-probe-port': probePort,
    'probe-timeout': probeTimeoutMs,
    ...settings
  } = flags
  return {
    settings,
    proxyUser: features.PROXY_USER,
    ...{ isDryRun, restoreFormat, redirectDns, runValidation, skipRuleApply, probePort, probeTimeoutMs },
    environment: printedFlags.map((flag) => [variableOf(flag), environment[variableOf(flag)] ?? '']),
    warnings,
  }
}
