/** Pods as JSON: the parts that injection reads, checked, and everything else as it was given. */
import { isMapping, noText } from '../config/shape.ts'

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

/** Checks a value, and returns it; a copy where something in it had to be changed. */
type Check = (value: unknown, path: string) => unknown

function mappingAt(value: unknown, path: string): Readonly<Record<string, unknown>> {
  return isMapping(value) ? value : fail(path, 'expected a mapping')
}

/** Returns a mapping whose fields are checked, without those of them that are null. */
function fieldsAt(value: unknown, path: string, fields: Readonly<Record<string, Check>>): Readonly<Record<string, unknown>> {
  const given = mappingAt(value, path)
  let own: Record<string, unknown> | undefined
  for (const field in fields) {
    if (!Object.hasOwn(given, field)) continue
    const known = given[field]
    if (known === undefined || known === null) {
      own ??= { ...given }
      delete own[field]
      continue
    }
    const checked = fields[field]?.(known, path === '' ? field : `${path}.${field}`)
    if (checked === known) continue
    own ??= { ...given }
    own[field] = checked
  }
  return own ?? given
}

function textAt(value: unknown, path: string): unknown {
  return typeof value === 'string' ? value : fail(path, value === undefined ? 'expected text, but it is missing' : noText(value))
}

function textsAt(value: unknown, path: string): unknown {
  for (const [key, item] of Object.entries(mappingAt(value, path))) if (typeof item !== 'string') textAt(item, `${path}[${key.slice(0, 100)}]`)
  return value
}

const listAt =
  (check: Check): Check =>
  (value, path) => {
    if (!Array.isArray(value)) return fail(path, 'expected a list')
    let own: unknown[] | undefined
    for (const [index, item] of value.entries()) {
      const checked = check(item, `${path}[${index}]`)
      if (checked === item) continue
      own ??= [...value]
      own[index] = checked
    }
    return own ?? value
  }

/** Checks something with a name. */
function namedAt(value: unknown, path: string): unknown {
  textAt(mappingAt(value, path).name, `${path}.name`)
  return value
}

const variableFields = { value: textAt }
const variableAt: Check = (value, path) => fieldsAt(namedAt(value, path), path, variableFields)
const containerFields = { image: textAt, args: listAt(textAt), ports: listAt(mappingAt), env: listAt(variableAt) }
const containerAt: Check = (value, path) => fieldsAt(namedAt(value, path), path, containerFields)
const secretFields = { name: textAt }

const metadataFields = {
  ...{ name: textAt, generateName: textAt, namespace: textAt, labels: textsAt, annotations: textsAt, ownerReferences: listAt(mappingAt) },
}

const specFields = {
  containers: listAt(containerAt),
  initContainers: listAt(containerAt),
  volumes: listAt(namedAt),
  imagePullSecrets: listAt((value, path) => fieldsAt(value, path, secretFields)),
  hostNetwork: (value: unknown, path: string): unknown => (typeof value === 'boolean' ? value : fail(path, 'expected true or false')),
  securityContext: mappingAt,
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

/** Whether mappings and lists are nested deeper than `most` levels in a JSON value. It does not recur. */
export function isNestedDeeper(value: unknown, most: number): boolean {
  const isObject = (item: unknown): item is object => typeof item === 'object' && item !== null
  let level = [value].filter(isObject)
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > most) return true
    level = level.flatMap((item) => Object.values(item).filter(isObject))
  }
  return false
}

/**
 * Returns a pod whose parts have the types that injection reads, and none of these parts is null. What is as it should be is not copied. Throws
 * an {@link InjectionError} that names the field.
 */
export function readPod(value: unknown): Pod {
  const given = mappingAt(value, 'the pod')
  const metadata = fieldsAt(given.metadata ?? {}, 'metadata', metadataFields)
  const spec = fieldsAt(given.spec ?? {}, 'spec', specFields)
  return (metadata === given.metadata && spec === given.spec ? given : { ...given, metadata, spec }) as unknown as Pod
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
