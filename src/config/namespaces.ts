/** The namespace of an object whose document names none (docs/operation.md, F22). */
import type { MeshNames } from '../names/mesh-names.ts'
import { spellingsOf } from './lists.ts'
import { assumedNamespace } from './metadata.ts'
import { meantPolicy } from './recognise.ts'
import { isMapping, isMissing, mapping } from './shape.ts'

/** Returns an object with a namespace, as if it were applied there; as it is where it names one, in whatever spelling, or has no metadata. */
export function inNamespace(value: unknown, namespace: string | undefined): unknown {
  if (namespace === undefined || !isMapping(value) || !isMapping(value.metadata)) return value
  const { metadata } = value
  const isNamed = !isMissing(metadata.namespace) || spellingsOf(metadata, 'namespace').some((field) => field !== 'namespace')
  return isNamed ? value : { ...value, metadata: { ...metadata, namespace } }
}

/** Whether an object of a group, as those of the mesh are, has metadata and names no namespace. */
export const isWithoutNamespace = (value: unknown): value is { readonly metadata: Readonly<Record<string, unknown>> } =>
  isMapping(value) && String(value.apiVersion).includes('/') && isMapping(value.metadata) && isMissing(value.metadata.namespace)

/** Returns an object without a namespace as one of {@link assumedNamespace}; a policy as it is, since it has to name what it is meant for. */
export function inAssumedNamespace(value: { readonly metadata: object }, names: MeshNames): unknown {
  const { kind, apiVersion } = mapping(value)
  if (meantPolicy(String(kind), String(apiVersion), names) !== undefined) return value
  return { ...value, metadata: { ...value.metadata, namespace: assumedNamespace } }
}
