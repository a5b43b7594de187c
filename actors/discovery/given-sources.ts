/** Decides what the service reads services and configuration from, and whether that can ever make it ready. */
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { Features } from '../../src/config/features.ts'
import type { Notice } from './exposure.ts'

/** The name of the source that reads the orchestrator. There is no actor of this name yet. */
const orchestratorSource = 'source/orchestrator'

/** The sources of a service. */
export interface GivenSources {
  /** The sources without an actor that the first push waits for. */
  readonly missing: readonly string[]
  /** What the operator has to do before the service can become ready; undefined if nothing. */
  readonly advice: string | undefined
  /** The line for the log about the registry Orchestrator. */
  readonly notices: readonly Notice[]
}

/**
 * Returns the sources. Throws an Error when the flag names the registry Orchestrator outside of a cluster. When that registry, of the flag's
 * default or named, is the only source, the service waits for it: an empty mesh would make ready proxies lose what they serve.
 */
export function givenSources(
  { registries, configDir, given }: Pick<DiscoveryOptions, 'registries' | 'configDir' | 'given'>,
  { ORCHESTRATOR_SERVICE_HOST }: Pick<Features, 'ORCHESTRATOR_SERVICE_HOST'>,
): GivenSources {
  if (!registries.includes('Orchestrator')) return { missing: [], advice: undefined, notices: [] }
  const isNamed = given.some((flag) => flag.startsWith('--registries='))
  const isOutside = ORCHESTRATOR_SERVICE_HOST === ''
  const elsewhere = 'use --configDir <directory> or --registries Mock'
  if (isNamed && isOutside)
    throw new Error(
      `--registries: Orchestrator: this process does not run in a cluster (ORCHESTRATOR_SERVICE_HOST is not set), and there is no orchestrator client yet; ${elsewhere}`,
    )
  if (configDir === '' && registries.every((registry) => registry === 'Orchestrator')) {
    const place = isOutside ? 'this process does not run in a cluster' : 'there is no orchestrator client yet'
    const advice = `nothing can be served: the only source is the registry Orchestrator, and ${place}; ${elsewhere}`
    return { missing: [orchestratorSource], advice, notices: [{ level: 'error', message: `${advice}; the service stays not ready` }] }
  }
  const message = 'registry Orchestrator has no effect yet: there is no orchestrator client yet; services come from --configDir and --registries Mock'
  // Without the flag nobody chose it: it is in the default.
  return { missing: [], advice: undefined, notices: [{ level: isNamed ? 'warn' : 'info', message }] }
}
