/**
 * The source actor for one directory of `configSources`: emits `ConfigChanged` to the push queue, and secrets to the writers that subscribed
 * to them (`SecretsWanted`, `SecretChanged`), like the watcher of `--configDir`. It reads no settings.
 */
import type { SeenEvent } from '../../../../protocols/messages/analysis.ts'
import type { DirectorySourceConfig } from '../../../../protocols/messages/config.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { SecretCommand, SecretEvent } from '../../../../protocols/messages/secrets.ts'
import type { ActorDefinition } from '../../../runtime/actor.ts'
import { FileWatcher } from './file-watcher.ts'

/** The actor definition of a source that reads a directory. */
export const actor: ActorDefinition<DirectorySourceConfig, SecretCommand, SourceEvent | SecretEvent | SeenEvent> = {
  kind: 'source',
  start: ({ config, ...context }) => new FileWatcher({ ...context, config: { ...config, meshConfig: '', networksConfig: '', trustDomain: '' } }),
}
