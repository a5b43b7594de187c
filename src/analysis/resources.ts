/** Cuts objects of a cluster that are not configuration of the mesh to what analyzers look at. */
import type { Container, IngressBackend, PodDetails, Resource, Workload } from '../../protocols/messages/analysis.ts'
import { isMapping, mapping } from '../config/shape.ts'

type Mapping = Readonly<Record<string, unknown>>

/** Kinds of objects that contain a template of pods. */
const templated: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'ReplicationController', 'Job', 'CronJob'])

/** Where an object of a kind has its template of pods. */
export const templatePath = (kind: string): string => (kind === 'CronJob' ? 'spec.jobTemplate.spec.template' : 'spec.template')

/** Returns the kind, name and metadata of an object; undefined for a value without them. */
export function resourceOf(value: Mapping, place: string): Resource | undefined {
  const metadata = mapping(value.metadata)
  const { name } = metadata
  const kind = value.kind
  if (typeof kind !== 'string' || typeof name !== 'string' || name === '') return undefined
  const namespace = kind === 'Namespace' ? '' : (metadata.namespace ?? 'default')
  if (typeof namespace !== 'string') return undefined
  return { kind, namespace, name, labels: texts(metadata.labels), annotations: texts(metadata.annotations), place }
}

/** Returns what an Ingress leads to. */
export function backendsOf({ spec: given }: Mapping): IngressBackend[] {
  const spec = mapping(given)
  const paths = listOf(spec.rules).flatMap(({ http }, rule) =>
    listOf(mapping(http).paths).map(({ backend }, index) => ({ backend, path: `spec.rules[${rule}].http.paths[${index}].backend` })),
  )
  return [{ backend: spec.defaultBackend, path: 'spec.defaultBackend' }, ...paths].flatMap(({ backend, path }) => {
    const { name, port } = mapping(mapping(backend).service)
    const { number, name: named } = mapping(port)
    return typeof name === 'string'
      ? { service: name, port: typeof number === 'number' ? number : typeof named === 'string' ? named : undefined, path }
      : []
  })
}

/**
 * Returns an object as the workload that it is: a pod, or the pods of a template, which kinds of extensions may have as well. Undefined for other
 * objects.
 */
export function workloadOf(value: Mapping, resource: Resource): Workload | undefined {
  const { kind } = resource
  if (kind === 'Pod') return { ...resource, pod: detailsOf(value, resource) }
  const pod = templatePath(kind)
    .split('.')
    .reduce<unknown>((at, field) => mapping(at)[field], value)
  if (!templated.has(kind) && (kind === 'Service' || !Array.isArray(mapping(mapping(pod).spec).containers))) return undefined
  const metadata = mapping(mapping(pod).metadata)
  const own = { labels: texts(metadata.labels), annotations: texts(metadata.annotations) }
  return { ...resource, labels: own.labels, pod: detailsOf(mapping(pod), own) }
}

function detailsOf({ spec: given, status }: Mapping, { labels, annotations }: Pick<PodDetails, 'labels' | 'annotations'>): PodDetails {
  const spec = mapping(given)
  const { phase } = mapping(status)
  return {
    labels,
    annotations,
    containers: [...listOf(spec.containers), ...listOf(spec.initContainers)].map(containerOf),
    hostNetwork: spec.hostNetwork === true,
    hasEnded: phase === 'Succeeded' || phase === 'Failed',
  }
}

function containerOf({ name, image, ports }: Mapping): Container {
  return {
    name: String(name ?? ''),
    image: String(image ?? ''),
    ports: listOf(ports).flatMap(({ name: named, containerPort: number }) =>
      typeof number === 'number' ? { name: String(named ?? ''), number } : [],
    ),
  }
}

const listOf = (value: unknown): readonly Mapping[] => (Array.isArray(value) ? value.filter(isMapping) : [])

/** The entries of a mapping whose values are texts. */
function texts(value: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(mapping(value)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}
