/** The actors of the discovery service: which there are, where they run, what they are told at their start. */
import type { FileWatcherConfig, JwksResolverConfig, MockRegistryConfig, PushQueueConfig, XdsWriterConfig } from '../../protocols/messages/config.ts'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { Features } from '../../src/config/features.ts'
import { permitWords, reclaimPermits } from '../../src/push/pacing/permits.ts'
import type { ActorSpec, SpawnMode } from '../runtime/spawn.ts'
import { processSecrets } from './process-secrets.ts'

/** What the table is made from. */
export interface TableParts {
  /** With the real addresses. */
  readonly options: DiscoveryOptions
  readonly features: Features
  /** Number of writers. */
  readonly writers: number
  /** Where the writers listen. */
  readonly listen: Pick<XdsWriterConfig, 'host' | 'port' | 'secure'>
  /** Where actors run that have work to do. */
  readonly mode: SpawnMode
  /** Finds the module of an actor by its path in this folder. */
  readonly module: (name: string) => URL
}

/** The actor that all others are linked to, and to nobody else. */
export const hub = 'push-queue'

/** All actors in the order in which they are started, and the names of those that are sources. */
export function actorTable({ options, features, writers, listen, mode, module }: TableParts): { actors: ActorSpec[]; sources: string[] } {
  const { configDir, meshConfig, networksConfig, trustDomain, domain, plugins } = options
  const files: FileWatcherConfig = { features, configDir, meshConfig, networksConfig, trustDomain }
  const mock: MockRegistryConfig = { features, domain }
  const resolver: JwksResolverConfig = { features }
  // An actor that only waits needs no thread of its own: the watcher without a directory, beside the two files of settings.
  const filesMode = configDir === '' ? 'in-thread' : mode
  const mockMode = features.PILOT_MOCK_CHURN_PER_SECOND > 0 ? mode : 'in-thread'
  const sources: ActorSpec[] = [
    { name: 'registry-watcher/files', module: module('sources/files/file-watcher'), config: files, mode: filesMode },
    ...(options.registries.includes('Mock')
      ? [{ name: 'registry-watcher/mock', module: module('sources/mock/mock-registry'), config: mock, mode: mockMode } as const]
      : []),
  ]
  const names = sources.map(({ name }) => name)
  const secrets = processSecrets()
  const queue: PushQueueConfig = { features, secrets, domain, trustDomain, plugins, sources: names }
  const permits = permitWords(writers)
  const writer = (index: number): ActorSpec => {
    const { keepaliveInterval, keepaliveTimeout, keepaliveMaxServerConnectionAge: maxConnectionAge } = options
    const { versionKey } = secrets
    const config: XdsWriterConfig = {
      features,
      ...listen,
      writers,
      index,
      versionKey,
      permits,
      keepaliveInterval,
      keepaliveTimeout,
      maxConnectionAge,
    }
    return { name: `xds-writer/${index}`, module: module('xds-writer/xds-writer'), config, ended: () => reclaimPermits(permits, index) }
  }
  const actors: ActorSpec[] = [
    { name: hub, module: module('push-queue/push-queue'), config: queue },
    ...sources,
    { name: 'jwks-resolver', module: module('key-sets/jwks-resolver'), config: resolver, mode: 'in-thread' },
    ...Array.from({ length: writers }, (_, index) => writer(index)),
  ]
  return { actors, sources: names }
}
