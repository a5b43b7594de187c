/** Pods as JSON: the parts that injection reads, checked, and everything else as it was given. */
import { isMapping } from '../config/shape.ts'

/** An injection that is not possible. The message names what is wrong, and is shown to the user. */
export class InjectionError extends Error {}

/** A container, of whose fields only the listed ones are read. */
export interface Container {
  readonly [field: string]: unknown
  readonly name: string
  readonly image?: string
  readonly args?: readonly string[]
  readonly env?: readonly Variable[]
  readonly ports?: readonly Readonly<Record<string, unknown>>[]
}

/** A variable of a container. */
export interface Variable {
  readonly [field: string]: unknown
  readonly name: string
  readonly value?: string
}

/** The metadata of a pod. */
export interface Metadata {
  readonly [field: string]: unknown
  readonly name?: string
  readonly generateName?: string
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly ownerReferences?: readonly Readonly<Record<string, unknown>>[]
}

/** Something with a name: a volume, a secret. */
export interface Named {
  readonly [field: string]: unknown
  readonly name: string
}

/** The specification of a pod. */
export interface PodSpec {
  readonly [field: string]: unknown
  readonly containers?: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly volumes?: readonly Named[]
  readonly imagePullSecrets?: readonly Named[]
  readonly hostNetwork?: boolean
}

/** A pod. Never changed in place. */
export interface Pod {
  readonly [field: string]: unknown
  readonly metadata: Metadata
  readonly spec: PodSpec
}

const fail = (path: string, reason: string): never => {
  throw new InjectionError(`${path}: ${reason}`)
}

function mappingAt(value: unknown, path: string): Record<string, unknown> {
  return isMapping(value) ? (value as Record<string, unknown>) : fail(path, 'expected a mapping')
}

function optional(of: Record<string, unknown>, field: string, path: string, check: (value: unknown, path: string) => void): void {
  const value = of[field]
  if (value !== undefined && value !== null) check(value, `${path}.${field}`)
  else delete of[field]
}

function textAt(value: unknown, path: string): void {
  if (typeof value !== 'string') fail(path, 'expected text')
}

function textsAt(value: unknown, path: string): void {
  for (const [key, item] of Object.entries(mappingAt(value, path))) textAt(item, `${path}[${key.slice(0, 100)}]`)
}

const listAt =
  (check: (value: unknown, path: string) => void) =>
  (value: unknown, path: string): void => {
    if (!Array.isArray(value)) return fail(path, 'expected a list')
    for (const [index, item] of value.entries()) check(item, `${path}[${index}]`)
  }

function namedAt(value: unknown, path: string): void {
  textAt(mappingAt(value, path).name, `${path}.name`)
}

function containerAt(value: unknown, path: string): void {
  const container = mappingAt(value, path)
  namedAt(container, path)
  optional(container, 'image', path, textAt)
  optional(container, 'args', path, listAt(textAt))
  optional(container, 'ports', path, listAt(mappingAt))
  optional(
    container,
    'env',
    path,
    listAt((item, at) => {
      namedAt(item, at)
      optional(mappingAt(item, at), 'value', at, textAt)
    }),
  )
}

/** Whether a JSON value has more than `most` values in it, mappings and lists included. */
export function hasMoreValues(value: unknown, most: number): boolean {
  const left: unknown[] = [value]
  let count = 0
  for (let item = left.pop(); item !== undefined || left.length > 0; item = left.pop()) {
    if (++count > most) return true
    if (typeof item === 'object' && item !== null) for (const each of Object.values(item)) left.push(each)
  }
  return false
}

/** Returns a copy of a pod whose parts have the types that injection reads. Throws an {@link InjectionError} that names the field. */
export function readPod(value: unknown): Pod {
  const pod = mappingAt(structuredClone(value), 'the pod')
  pod.metadata ??= {}
  pod.spec ??= {}
  const metadata = mappingAt(pod.metadata, 'metadata')
  for (const field of ['name', 'generateName', 'namespace']) optional(metadata, field, 'metadata', textAt)
  for (const field of ['labels', 'annotations']) optional(metadata, field, 'metadata', textsAt)
  optional(metadata, 'ownerReferences', 'metadata', listAt(mappingAt))
  const spec = mappingAt(pod.spec, 'spec')
  for (const field of ['containers', 'initContainers']) optional(spec, field, 'spec', listAt(containerAt))
  optional(spec, 'volumes', 'spec', listAt(namedAt))
  optional(
    spec,
    'imagePullSecrets',
    'spec',
    listAt((item, at) => optional(mappingAt(item, at), 'name', at, textAt)),
  )
  optional(spec, 'hostNetwork', 'spec', (item, at) => {
    if (typeof item !== 'boolean') fail(at, 'expected true or false')
  })
  optional(spec, 'securityContext', 'spec', mappingAt)
  return pod as unknown as Pod
}

/** Returns a pod with other fields in its metadata. */
export const withMetadata = (pod: Pod, metadata: Partial<Metadata>): Pod => ({ ...pod, metadata: { ...pod.metadata, ...metadata } })

/** Returns a pod with other fields in its specification. Fields that are undefined are removed. */
export function withSpec(pod: Pod, spec: Partial<PodSpec>): Pod {
  const all = Object.entries({ ...pod.spec, ...spec }).filter(([, value]) => value !== undefined)
  return { ...pod, spec: Object.fromEntries(all) as PodSpec }
}

/** All containers of a pod, those that run before the others first. */
export const allContainers = ({ spec }: Pod): readonly Container[] => [...(spec.initContainers ?? []), ...(spec.containers ?? [])]

/** Returns a pod whose containers of any kind are replaced by what `change` returns; one that is undefined is left out. */
export function mapContainers(pod: Pod, change: (container: Container) => Container | undefined): Pod {
  const changed = (containers: readonly Container[] | undefined) => containers?.flatMap((container) => change(container) ?? [])
  const { initContainers, containers } = pod.spec
  return withSpec(pod, { ...(initContainers && { initContainers: changed(initContainers) }), ...(containers && { containers: changed(containers) }) })
}
