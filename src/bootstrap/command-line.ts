/** Envoy's command line (docs/agent.md, B16). */
import type { WorkloadNode } from './node.ts'
import type { ProxyConfig } from './proxy-config.ts'

/** The settings of the command line that are not in the proxy's configuration. */
export interface CommandLineOptions {
  readonly logLevel: string
  readonly componentLogLevel: string
  readonly logAsJson: boolean
  /** Configuration that Envoy merges over the bootstrap file. Undefined without one. */
  readonly override: string | undefined
}

const plainFormat = '%Y-%m-%dT%T.%fZ\t%l\tenvoy %n\t%v'
const jsonFormat = '{"level":"%l","time":"%Y-%m-%dT%T.%fZ","scope":"envoy %n","msg":"%_"}'

/**
 * Returns Envoy's arguments for a bootstrap file. Hot restart is disabled: Envoy is started once per agent, and two proxies on one machine
 * would conflict over its shared memory.
 */
export function envoyArguments(file: string, config: ProxyConfig, node: WorkloadNode, options: CommandLineOptions): string[] {
  const { logLevel, componentLogLevel, logAsJson, override } = options
  return [
    ...['-c', file],
    ...['--restart-epoch', '0'],
    ...['--drain-time-s', String(config.drainDuration / 1000)],
    // Connections of a listener that has changed are to end with their next answer: until then they have the policies of before.
    ...['--drain-strategy', 'immediate'],
    ...['--parent-shutdown-time-s', String(config.parentShutdownDuration / 1000)],
    ...['--service-cluster', node.serviceCluster],
    ...['--service-node', node.id],
    ...['--local-address-ip-version', node.isIpv6Only ? 'v6' : 'v4'],
    ...['--log-format', logAsJson ? jsonFormat : plainFormat],
    ...(logLevel === '' ? [] : ['-l', logLevel]),
    ...(componentLogLevel === '' ? [] : ['--component-log-level', componentLogLevel]),
    ...(override === undefined ? [] : ['--config-yaml', override]),
    ...(config.concurrency > 0 ? ['--concurrency', String(config.concurrency)] : []),
    '--disable-hot-restart',
  ]
}
