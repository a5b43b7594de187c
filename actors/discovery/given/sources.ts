/** Decides what the service reads services and configuration from, and whether that can ever make it ready. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { DiscoveryOptions } from '../../../protocols/messages/discovery.ts'
import type { ClusterOrigin } from '../../../protocols/messages/orchestrator.ts'
import { type ConfigSource, clusterSource } from '../../../src/config/config-sources.ts'
import type { Features } from '../../../src/config/features.ts'
import type { Notice } from './exposure.ts'

/** The name of the source that reads the orchestrator. Without a cluster there is no actor of this name. */
export const orchestratorSource = 'source/orchestrator'

/** The name under which the first push waits for the other clusters of the mesh. There is no actor of this name. */
export const remoteSources = 'source/remote-clusters'

/** The name of the actor that follows another cluster. */
export const remoteActor = (cluster: string): string => `${orchestratorSource}/${cluster}`

/** The cluster that an actor follows; undefined: it follows no other cluster. */
export const clusterOfActor = (name: string): string | undefined =>
  name.startsWith(`${orchestratorSource}/`) ? name.slice(orchestratorSource.length + 1) : undefined

/** Whether an actor follows another cluster. */
export const isRemoteActor = (name: string): boolean => clusterOfActor(name) !== undefined

/** Where a pod has the credential of its service account. */
const accountDirectory = '/var/run/secrets/kubernetes.io/serviceaccount'

/** The sources of a service. */
export interface GivenSources {
  /** The cluster that is connected to; undefined: none. */
  readonly cluster: ClusterOrigin | undefined
  /** Whether the services of the cluster are read. */
  readonly hasRegistry: boolean
  /** The sources of configuration objects, beside `--configDir`, where the mesh configuration names none. */
  readonly configSources: readonly ConfigSource[]
  /** Why there is no cluster, for those who need one; undefined with one. */
  readonly noCluster: string | undefined
  /** The sources without an actor that the first push waits for. */
  readonly missing: readonly string[]
  /** What the operator has to do before the service can become ready; undefined if nothing. */
  readonly advice: string | undefined
  /** The line for the log about the registry Orchestrator. */
  readonly notices: readonly Notice[]
}

/**
 * Returns the sources. Throws an Error when the flag names the registry Orchestrator without a cluster. When that registry, of the flag's
 * default, is the only source, the service waits for it: an empty mesh would make ready proxies lose what they serve. `directory`: where a pod
 * has the credential of its service account.
 */
export function givenSources(
  { registries, configDir, orchconfig, given }: Pick<DiscoveryOptions, 'registries' | 'configDir' | 'orchconfig' | 'given'>,
  { ORCHESTRATOR_SERVICE_HOST: host, ORCHESTRATOR_SERVICE_PORT: port }: Pick<Features, 'ORCHESTRATOR_SERVICE_HOST' | 'ORCHESTRATOR_SERVICE_PORT'>,
  directory = accountDirectory,
): GivenSources {
  const isWanted = registries.includes('Orchestrator')
  const none = { cluster: undefined, hasRegistry: false, configSources: [], noCluster: undefined, missing: [], advice: undefined, notices: [] }
  // With a directory, the files take the place of the objects of the cluster.
  const configSources = configDir === '' ? [clusterSource] : []
  const found = { ...none, hasRegistry: isWanted, configSources }
  if (orchconfig !== '') return { ...found, cluster: { from: 'file', path: orchconfig } }
  const token = join(directory, 'token')
  const isInside = host !== '' && existsSync(token)
  if (isInside && (isWanted || configDir === '')) return { ...found, cluster: { from: 'pod', host, port, directory } }
  const outside = `this process does not run in a cluster (${host === '' ? 'ORCHESTRATOR_SERVICE_HOST is not set' : `there is no ${token}`})`
  const elsewhere = 'use --orchconfig <file>, --configDir <directory> or --registries Mock'
  const noCluster = isInside ? 'with --configDir and without the registry Orchestrator, only --orchconfig <file> names a cluster' : outside
  if (!isWanted) return { ...none, noCluster }
  if (given.some((flag) => flag.startsWith('--registries='))) throw new Error(`--registries: Orchestrator: ${outside}; ${elsewhere}`)
  if (configDir === '' && registries.every((registry) => registry === 'Orchestrator')) {
    const advice = `nothing can be served: the only source is the registry Orchestrator, and ${outside}; ${elsewhere}`
    return {
      ...none,
      noCluster,
      missing: [orchestratorSource],
      advice,
      notices: [{ level: 'error', message: `${advice}; the service stays not ready` }],
    }
  }
  return { ...none, noCluster, notices: [{ level: 'info', message: `registry Orchestrator is left out: ${outside}` }] }
}
