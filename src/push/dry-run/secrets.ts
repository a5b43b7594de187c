/** The secrets of this control plane that proxies would ask for, or ask for no longer: those that their listeners and clusters name. */
import type { JsonValue } from '@bufbuild/protobuf'
import type { ResourceChange } from '../../../protocols/messages/dry-run.ts'
import { compare } from '../../model/order.ts'
import { clusterType, listenerType, secretType } from '../../xds/type-urls.ts'
import type { Differing } from './tables.ts'

/** The two states of the resources of a class. */
export interface States {
  readonly json: (differs: Differing, state: 'before' | 'now') => JsonValue | undefined
  /** Whether another resource than those that `isChanged` names has a text in it. */
  readonly has: (state: 'before' | 'now', text: string, isChanged: (typeUrl: string, name: string) => boolean) => boolean
}

/** Returns a change for each secret of which a resource that differs is the first or the last to name it. */
export function changedSecrets(resources: readonly Differing[], { json, has }: States): ResourceChange[] {
  const naming = resources.filter(({ typeUrl }) => typeUrl === listenerType || typeUrl === clusterType)
  const names = (state: 'before' | 'now') => new Set(naming.flatMap((each) => secretsIn(json(each, state))))
  const [before, now] = [names('before'), names('now')]
  const changed = new Set(resources.map(({ typeUrl, name }) => `${typeUrl} ${name}`))
  const isChanged = (typeUrl: string, name: string) => changed.has(`${typeUrl} ${name}`)
  const told = (name: string, change: ResourceChange['change']): ResourceChange => ({ typeUrl: secretType, name, change, fields: [], otherFields: 0 })
  const added = [...now].filter((name) => !before.has(name) && !has('before', name, isChanged)).map((name) => told(name, 'added'))
  const removed = [...before].filter((name) => !now.has(name) && !has('now', name, isChanged)).map((name) => told(name, 'removed'))
  return [...added, ...removed].sort((one, other) => compare(one.name, other.name))
}

/** The names of secrets in a resource that come from this control plane: others come from agents. */
function secretsIn(value: JsonValue | undefined): string[] {
  if (typeof value !== 'object' || value === null) return []
  if (Array.isArray(value)) return value.flatMap(secretsIn)
  const { name, sds_config: source } = value
  if (source !== undefined && typeof name === 'string') return name.includes('://') ? [name] : []
  return Object.values(value).flatMap(secretsIn)
}
