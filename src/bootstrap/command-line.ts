/** Envoy's command line (docs/agent.md, B16). */
import type { WorkloadNode } from './node.ts'
import type { ProxyConfig } from './proxy-config.ts'

/** What the command line says besides the configuration. */
export interface CommandLineOptions {
  readonly logLevel: string
  readonly componentLogLevel: string
  readonly logAsJson: boolean
  /** A configuration that Envoy merges over the file; undefined without one. */
  readonly override: string | undefined
}

const plainFormat = '%Y-%m-%dT%T.%fZ\t%l\tenvoy %n\t%v'
const jsonFormat = '{"level":"%l","time":"%Y-%m-%dT%T.%fZ","scope":"envoy %n","msg":"%_"}'

/** The arguments of Envoy for a configuration file. There is one run only, so hot restart is off: two proxies on one machine do not meet in it. */
export function envoyArguments(file: string, config: ProxyConfig, node: WorkloadNode, options: CommandLineOptions): string[] {
  const { logLevel, componentLogLevel, logAsJson, override } = options
  return [
    ...['-c', file],
    ...['--restart-epoch', '0'],
    ...['--drain-time-s', String(config.drainDuration / 1000)],
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
