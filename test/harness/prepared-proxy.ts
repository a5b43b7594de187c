/** Prepares a proxy as the agent does, from sources that the test provides. */
import type { ProxyOptions } from '../../protocols/messages/agent-options.ts'
import { makeBootstrap } from '../../src/bootstrap/bootstrap.ts'
import { envoyArguments } from '../../src/bootstrap/command-line.ts'
import { bootstrapSettings, type FoundPeers, type PodFacts, type PreparedSettings, preparedSettings } from '../../src/bootstrap/prepared.ts'
import { annotatedConfig } from '../../src/bootstrap/proxy-config.ts'
import type { BootstrapSettings } from '../../src/bootstrap/settings.ts'
import { canonicalEnvironment } from '../../src/names/mesh-names.ts'
import { names } from './settings.ts'

/** The sources. By default a pod with one IPv4 address. */
export interface GivenProxy {
  readonly options?: Partial<ProxyOptions>
  readonly env?: Readonly<Record<string, string>>
  readonly pod?: Partial<PodFacts>
  readonly interfaces?: readonly string[]
  /** Whether the kernel has IPv6; by default it has not. */
  readonly hasIpv6?: boolean
  /** The values of `defaultConfig` in the mesh file, of `PROXY_CONFIG`, and of the annotation with a whole configuration. */
  readonly meshConfig?: unknown
  readonly proxyConfig?: unknown
  readonly annotatedConfig?: unknown
  readonly found?: Partial<FoundPeers>
}

const defaultOptions: ProxyOptions = {
  role: 'sidecar',
  concurrency: 0,
  domain: '',
  meshConfig: '',
  outlierLogPath: '',
  proxyComponentLogLevel: 'misc:error',
  proxyLogLevel: 'warning',
  serviceCluster: 'mesh-proxy',
  stsPort: 0,
  templateFile: '',
  tokenManagerPlugin: '',
  logAsJson: false,
  flags: [],
  ignored: [],
}

/** The prepared settings, the bootstrap and its settings, Envoy's arguments, and all warnings. */
export interface PreparedTestProxy {
  readonly prepared: PreparedSettings
  readonly settings: BootstrapSettings
  readonly bootstrap: ReturnType<typeof makeBootstrap>
  readonly args: readonly string[]
  readonly warnings: readonly string[]
}

/** Prepares the proxy. Throws the errors with which the agent would exit. */
export function prepareTestProxy(given: GivenProxy): PreparedTestProxy {
  const warnings: string[] = []
  const warn = (text: string) => warnings.push(text)
  const pod = { labels: {}, annotations: {}, cpuLimit: '', cpuRequest: '', ...given.pod }
  const annotated = annotatedConfig(names.canonicalKeys(pod.annotations), names.domain, warn)
  const options = { ...defaultOptions, ...given.options }
  const prepared = preparedSettings(
    {
      version: '0.1.0',
      options,
      environment: canonicalEnvironment(given.env ?? {}),
      pod,
      layers: [
        { source: 'mesh', document: given.meshConfig },
        { source: 'PROXY_CONFIG', document: given.proxyConfig },
        { source: 'annotation', document: given.annotatedConfig },
        annotated.fields,
      ],
      interfaces: given.interfaces ?? ['10.1.2.3'],
      hasIpv6: given.hasIpv6 ?? false,
      names,
    },
    warn,
  )
  const settings = bootstrapSettings(prepared, { roots: undefined, hasPair: false, statsd: undefined, ...given.found })
  const { proxyLogLevel: logLevel, proxyComponentLogLevel: componentLogLevel, logAsJson } = options
  const args = envoyArguments('envoy-rev0.json', prepared.config, prepared.node, { logLevel, componentLogLevel, logAsJson, override: undefined })
  return { prepared, settings, bootstrap: makeBootstrap(settings), args, warnings }
}
