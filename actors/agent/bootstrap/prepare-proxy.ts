/** Works out the configuration of the proxy before any actor or process is started (docs/agent.md, "Bootstrap"). */
import type { ProxyOptions } from '../../../protocols/messages/agent-options.ts'
import { shownConfig } from '../../../src/bootstrap/metadata.ts'
import { type PodFacts, type PreparedSettings, preparedSettings } from '../../../src/bootstrap/prepared.ts'
import { annotatedConfig, type ConfigLayer, mergeProxyConfig } from '../../../src/bootstrap/proxy-config.ts'
import { buildInfo } from '../../../src/cli/build-info.ts'
import { type AgentFeatures, readAgentFeatures } from '../../../src/config/agent-features.ts'
import { canonicalEnvironment, type MeshNames, meshNames } from '../../../src/names/mesh-names.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { kernelIpv6 } from '../kernel-ipv6.ts'
import { interfaceAddresses, meshFileLayer, readPodFacts, textLayer } from './sources.ts'
import { type WrittenBootstrap, writeBootstrap } from './write-bootstrap.ts'

/** The configuration of the proxy, and the means to write its bootstrap. */
export interface PreparedProxy extends PreparedSettings {
  /** Writes the bootstrap. Rejects with an Error that says why the bootstrap cannot be made or written. */
  write(): Promise<WrittenBootstrap>
}

/**
 * Reads the pod's files, the environment and the mesh file, and works out the configuration of the proxy. Rejects with an Error that names
 * the source and the field that cannot be read or is invalid.
 */
export async function prepareProxy(
  options: ProxyOptions,
  given: Readonly<Record<string, string | undefined>>,
  log: ScopedLogger,
): Promise<PreparedProxy> {
  const environment = canonicalEnvironment(given)
  const { features } = readAgentFeatures(environment)
  const names = meshNames(features.MESH_DOMAIN)
  const pod = await readPodFacts(log)
  const layers = await configLayers(options.meshConfig, features, { names, pod, log })
  const interfaces = await interfaceAddresses(log)
  const { version } = buildInfo()
  const sources = { version, options, environment, pod, layers, interfaces, hasIpv6: kernelIpv6() !== 'absent', names }
  const settings = preparedSettings(sources, (text) => log.warn(text))
  const { role, addresses, id, domain } = settings.node
  log.info(`effective configuration of the proxy: ${JSON.stringify(shownConfig(settings.config))}`)
  log.info('the proxy is', { role, ips: addresses.join(','), id, domain })
  return { ...settings, write: () => writeBootstrap(settings, log) }
}

/** Returns the admin port from the proxy's effective configuration. Rejects with an Error that names the source that cannot be read. */
export async function proxyAdminPort(meshConfig: string, given: Readonly<Record<string, string | undefined>>, log: ScopedLogger): Promise<number> {
  const { features } = readAgentFeatures(canonicalEnvironment(given))
  const layers = await configLayers(meshConfig, features, { names: meshNames(features.MESH_DOMAIN), pod: await readPodFacts(log), log })
  return mergeProxyConfig(layers, (text) => log.warn(text)).proxyAdminPort
}

interface LayerSources {
  readonly names: MeshNames
  readonly pod: PodFacts
  readonly log: ScopedLogger
}

async function configLayers(meshConfig: string, features: AgentFeatures, { names, pod, log }: LayerSources): Promise<ConfigLayer[]> {
  const annotated = annotatedConfig(names.canonicalKeys(pod.annotations), names.domain, (text) => log.error(text))
  return [
    await meshFileLayer(meshConfig),
    await textLayer('environment variable PROXY_CONFIG', features.PROXY_CONFIG),
    await textLayer(`annotation proxy.${names.domain}/config`, annotated.config ?? ''),
    annotated.fields,
  ]
}
