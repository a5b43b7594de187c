/** What was injected: the annotation that lists it, and a pod without it (docs/injection.md, N7 and N8). */
import { isMapping, mapping } from '../config/shape.ts'
import { documentLimits } from '../config/yaml-documents.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { givenIn, meshKey, writtenKey } from './annotations.ts'
import { restoreMetrics } from './metrics-merge.ts'
import { type Container, InjectionError, isNestedDeeper, mapContainers, type Named, type Pod, readPod, withMetadata, withSpec } from './pod.ts'
import { restoreProbes } from './probes.ts'

/** The names of what was added to a pod. */
export interface InjectionStatus {
  readonly initContainers: readonly string[]
  readonly containers: readonly string[]
  readonly volumes: readonly string[]
  readonly imagePullSecrets: readonly string[]
  readonly revision: string
  /** The group that was set for the volumes of the pod; absent: none was. */
  readonly fsGroup?: number
}

/** Containers of the user with names of injected ones: what they set is set in these. */
export interface Overrides {
  readonly containers?: readonly Container[]
  readonly initContainers?: readonly Container[]
}

/** The annotations that injection writes, without the domain of their prefix. */
export const statusKey = (names: MeshNames): string => meshKey(names, 'sidecar', 'status')
export const overridesKey = (names: MeshNames): string => meshKey(names, 'proxy', 'overrides')

/**
 * Returns the names of what a rendered pod adds to one (`original`, injected or not). Containers of the user with names of injected ones are among them,
 * since these are merged; volumes and secrets that the pod has of its own are not.
 */
export function statusOf({ spec }: Pod, original: Pod, revision: string, names: MeshNames): InjectionStatus {
  const before = readStatus(original, names)
  const namesOf = (items: readonly Named[] = []) => [...new Set(items.map(({ name }) => name))]
  const added = (field: 'volumes' | 'imagePullSecrets') => {
    const own = namesOf(original.spec[field]).filter((name) => !before?.[field].includes(name))
    return namesOf(spec[field]).filter((name) => !own.includes(name))
  }
  return {
    initContainers: namesOf(spec.initContainers),
    containers: namesOf(spec.containers),
    volumes: added('volumes'),
    imagePullSecrets: added('imagePullSecrets'),
    revision: revision === '' ? 'default' : revision,
  }
}

/** Returns a pod with a group for its volumes where it has none, and what its status has of that. */
export function withFsGroup(pod: Pod, fsGroup: number): readonly [Pod, Pick<InjectionStatus, 'fsGroup'>] {
  const context = mapping(pod.spec.securityContext)
  if (context.fsGroup !== undefined && context.fsGroup !== null) return [pod, {}]
  return [withSpec(pod, { securityContext: { ...context, fsGroup } }), { fsGroup }]
}

/** Returns a pod without the group that its status says it was given. An empty security context means the same as none, which API servers write as one. */
function withoutFsGroup(pod: Pod, { fsGroup }: InjectionStatus): Pod {
  const { fsGroup: given, ...context } = mapping(pod.spec.securityContext)
  if (fsGroup === undefined || given !== fsGroup) return pod
  return withSpec(pod, { securityContext: Object.keys(context).length === 0 ? undefined : context })
}

/** Reads the status of a pod. Undefined for a pod without one, and for one that cannot be read: nothing is known to be injected then. */
export function readStatus(pod: Pod, names: MeshNames): InjectionStatus | undefined {
  const text = givenIn(pod.metadata.annotations, statusKey(names), names)
  if (text === undefined) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isMapping(value)) return undefined
  const given = value
  const list = (field: string): string[] => {
    const items = given[field]
    return Array.isArray(items) ? items.filter((item): item is string => typeof item === 'string') : []
  }
  const revision = typeof value.revision === 'string' ? value.revision : ''
  const lists = { initContainers: list('initContainers'), containers: list('containers'), volumes: list('volumes') }
  const group = typeof value.fsGroup === 'number' && { fsGroup: value.fsGroup }
  return {
    ...lists,
    imagePullSecrets: list('imagePullSecrets'),
    revision,
    ...group,
  }
}

/** Reads the annotation with the overrides of a pod. Throws an {@link InjectionError} that names it when it cannot be used. */
export function readOverrides(pod: Pod, names: MeshNames): Overrides {
  const key = overridesKey(names)
  const text = givenIn(pod.metadata.annotations, key, names)
  if (text === undefined || text === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    if (!isMapping(value)) throw new Error('is not a JSON object')
    if (isNestedDeeper(value, documentLimits.depth)) throw new Error(`is nested deeper than ${documentLimits.depth} levels`)
    const { containers, initContainers } = readPod({ spec: { containers: value.containers, initContainers: value.initContainers } }).spec
    return { ...(containers && { containers }), ...(initContainers && { initContainers }) }
  } catch (error) {
    const reason = error instanceof SyntaxError ? 'is not JSON' : (error as Error).message
    throw new InjectionError(`annotation ${writtenKey(pod.metadata.annotations, key, names)}: ${JSON.stringify(text.slice(0, 100))}: ${reason}`)
  }
}

/**
 * Returns a pod as it was before it was injected: without the containers, secrets, unused volumes and group of volumes that its status lists, with
 * the probes and annotations of the application, and with the user's own containers of injected names. A pod without a status is returned unchanged.
 */
export function strippedPod(pod: Pod, statusPort: number, names: MeshNames): Pod {
  const status = readStatus(pod, names)
  if (!status) return pod
  const overrides = readOverrides(pod, names)
  const restored = withoutFsGroup(restoreMetrics(restoreProbes(pod), statusPort), status)
  const { initContainers, containers, volumes, imagePullSecrets } = restored.spec
  const listed = new Set([...status.initContainers, ...status.containers])
  const [secrets, added] = [new Set(status.imagePullSecrets), new Set(status.volumes)]
  // A container of the user takes the place of the injected one of its name, or comes last where that one was moved.
  const without = (items: readonly Container[] = [], own: readonly Container[] = []) => {
    const again = new Map(own.flatMap((container) => (listed.has(container.name) ? [[container.name, container] as const] : [])))
    const kept = items.flatMap((item) => (listed.has(item.name) ? (again.get(item.name) ?? []) : item))
    const there = new Set(kept.map(({ name }) => name))
    return [...kept, ...[...again.values()].filter(({ name }) => !there.has(name))]
  }
  const cut = withSpec(restored, {
    initContainers: emptyAsNone(without(initContainers, overrides.initContainers), initContainers),
    containers: without(containers, overrides.containers),
    imagePullSecrets: emptyAsNone(
      imagePullSecrets?.filter(({ name }) => !secrets.has(name)),
      imagePullSecrets,
    ),
  })
  const mounted = new Set<unknown>()
  mapContainers(cut, (container) => {
    for (const mount of Array.isArray(container.volumeMounts) ? container.volumeMounts : []) if (isMapping(mount)) mounted.add(mount.name)
    return container
  })
  const left = withSpec(cut, {
    volumes: emptyAsNone(
      volumes?.filter(({ name }) => mounted.has(name) || !added.has(name)),
      volumes,
    ),
  })
  const own = Object.entries(left.metadata.annotations ?? {}).filter(([key]) => names.canonicalKey(key) !== statusKey(names))
  return withMetadata(left, { annotations: Object.fromEntries(own) })
}

/** A list that has lost its last item is none; one that had none stays. */
const emptyAsNone = <T>(items: readonly T[] | undefined, before: readonly T[] | undefined): readonly T[] | undefined =>
  items?.length === 0 && (before === undefined || before.length > 0) ? undefined : items
