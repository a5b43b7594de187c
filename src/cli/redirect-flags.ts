/**
 * The flags of `pilot-agent mesh-iptables` and `mesh-clean-iptables`. Each has an environment variable of the same name (docs/agent.md,
 * R6).
 */
import type { AgentFeatures } from '../config/agent-features.ts'
import { longest } from '../config/variable.ts'
import type { RedirectOrder } from '../iptables/order.ts'
import type { CommandLine } from './command-line.ts'
import { type FlagSpec, type FlagTable, readFlags } from './flag-table.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Flags of both commands. */
export const cleanFlags = {
  'dry-run': { type: 'switch', char: 'n', default: false, about: 'do not call external dependencies such as iptables' },
} as const satisfies FlagTable

/** Flags of `mesh-iptables`. */
export const redirectFlags = {
  ...cleanFlags,
  'inbound-capture-port': {
    type: 'string',
    char: 'z',
    default: '',
    about: 'port to which all inbound TCP traffic is redirected; $INBOUND_CAPTURE_PORT, else 15006, when empty',
  },
  'inbound-tunnel-port': {
    type: 'string',
    char: 'e',
    default: '',
    about: 'mesh tunnel port for inbound TCP traffic; $INBOUND_TUNNEL_PORT, else 15008, when empty',
  },
  'iptables-probe-port': { type: 'uint16', default: 15_002, range: [1, 65_535], about: 'listen port for failure detection' },
  'mesh-inbound-interception-mode': {
    type: 'string',
    char: 'm',
    default: '',
    about: 'mode used to redirect inbound connections to the proxy: REDIRECT or TPROXY',
  },
  'mesh-inbound-ports': {
    type: 'string',
    char: 'b',
    default: '',
    about: 'comma-separated inbound ports redirected to the proxy; * means all ports; an empty list disables',
  },
  'mesh-inbound-tproxy-mark': { type: 'string', char: 't', default: '', about: 'mark of packets and connections of TPROXY mode; 1337 when empty' },
  'mesh-inbound-tproxy-route-table': { type: 'string', char: 'r', default: '', about: 'routing table of TPROXY mode; 133 when empty' },
  'mesh-ipv6': {
    type: 'string',
    default: '',
    about: 'what becomes of IPv6 on a host that has it: capture (also when empty), or pass, by which it goes past the proxy and all policies',
  },
  'mesh-local-exclude-ports': {
    type: 'string',
    char: 'd',
    default: '',
    about: 'comma-separated inbound ports excluded from redirection; counts only when all inbound traffic (*) is redirected',
  },
  'mesh-local-outbound-ports-exclude': {
    type: 'string',
    char: 'o',
    default: '',
    about: 'comma-separated outbound ports excluded from redirection',
  },
  'mesh-outbound-ports': {
    type: 'string',
    char: 'q',
    default: '',
    about: 'comma-separated outbound ports explicitly included for redirection',
  },
  'mesh-service-cidr': {
    type: 'string',
    char: 'i',
    default: '',
    about: 'comma-separated IP ranges in CIDR form redirected to the proxy; * redirects all outbound traffic; an empty list disables all outbound',
  },
  'mesh-service-exclude-cidr': {
    type: 'string',
    char: 'x',
    default: '',
    about: 'comma-separated CIDR ranges excluded from redirection',
  },
  'orch-virt-interfaces': {
    type: 'string',
    char: 'k',
    default: '',
    about: 'comma-separated virtual interfaces whose inbound traffic (from a VM) is treated as outbound',
  },
  'probe-timeout': { type: 'duration', default: '5s', range: ['1ms', longest], about: 'failure detection timeout' },
  'proxy-gid': {
    type: 'string',
    char: 'g',
    default: '',
    about: 'comma-separated GIDs for which redirection is not applied; those of --proxy-uid when empty',
  },
  'proxy-port': {
    type: 'string',
    char: 'p',
    default: '',
    about: 'proxy port to which all TCP traffic is redirected; $PROXY_PORT, else 15001, when empty',
  },
  'proxy-uid': {
    type: 'string',
    char: 'u',
    default: '',
    about: 'comma-separated UIDs for which redirection is not applied; that of the user $PROXY_USER, else 1337, when empty',
  },
  'redirect-dns': {
    type: 'switch',
    default: false,
    about: 'enables capture of DNS traffic by the agent; on with $MESH_META_DNS_CAPTURE',
  },
  'restore-format': { type: 'switch', char: 'f', default: false, about: 'prints iptables rules in iptables-restore format' },
  'run-validation': { type: 'switch', default: false, about: 'validates iptables' },
  'skip-rule-apply': { type: 'switch', default: false, about: 'skips applying iptables rules' },
} as const satisfies FlagTable

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

/** Returns the name of a flag's environment variable. */
const variableOf = (flag: string) => flag.toUpperCase().replaceAll('-', '_')

/**
 * Returns the parsed order of `mesh-iptables`. Throws an Error that names a flag with an invalid value; an invalid value of a variable is a
 * warning.
 */
export function redirectOrder(flags: CommandLine['flags'], environment: Environment, features: AgentFeatures): RedirectOrder {
  const warnings: string[] = []
  const {
    'dry-run': isDryRun,
    'restore-format': restoreFormat,
    'redirect-dns': redirectDns,
    'run-validation': runValidation,
    'skip-rule-apply': skipRuleApply,
    'iptables-probe-port': probePort,
    'probe-timeout': probeTimeoutMs,
    ...settings
  } = readFlags(redirectFlags, { 'redirect-dns': features.MESH_META_DNS_CAPTURE, ...fromVariables(redirectFlags, environment, warnings), ...flags })
  return {
    settings,
    proxyUser: features.PROXY_USER,
    ...{ isDryRun, restoreFormat, redirectDns, runValidation, skipRuleApply, probePort, probeTimeoutMs },
    environment: printedFlags.map((flag) => [variableOf(flag), environment[variableOf(flag)] ?? '']),
    warnings,
  }
}

/** Whether `mesh-clean-iptables` is a dry run. */
export function isDryClean(flags: CommandLine['flags'], environment: Environment): boolean {
  return readFlags(cleanFlags, { ...fromVariables(cleanFlags, environment, []), ...flags })['dry-run']
}

/** Returns the values of flags from their environment variables. An empty variable counts as unset. */
function fromVariables(table: FlagTable, environment: Environment, warnings: string[]): Record<string, string | boolean> {
  const values: Record<string, string | boolean> = {}
  for (const [flag, spec] of Object.entries(table)) {
    const text = environment[variableOf(flag)]
    if (!text) continue
    const value = readText(flag, spec, text)
    if (value === undefined)
      warnings.push(`environment variable ${variableOf(flag)}: ${JSON.stringify(text.slice(0, 100))} cannot be read; it is left out`)
    else values[flag] = value
  }
  return values
}

function readText(flag: string, spec: FlagSpec, text: string): string | boolean | undefined {
  if (spec.type === 'switch') return /^(1|t|true)$/i.test(text) ? true : /^(0|f|false)$/i.test(text) ? false : undefined
  try {
    readFlags({ [flag]: spec }, { [flag]: text })
    return text
  } catch {
    return undefined
  }
}
