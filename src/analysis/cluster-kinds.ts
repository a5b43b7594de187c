/** Which objects of a cluster analysis reads, and what follows from what could not be read. */
import { kinds } from '../config/kinds.ts'
import { groupSpellings } from '../names/mesh-names.ts'
import { coreResource, groupResource, type Resource } from '../orchestrator/resources.ts'

/** A kind of objects to be read. */
export interface ClusterKind {
  readonly kind: string
  readonly apiVersion: string
  readonly resource: Resource
  /** Whether only the metadata of its objects is read. */
  readonly isSecret?: boolean
}

const core = (kind: string, plural: string): ClusterKind => ({ kind, apiVersion: 'v1', resource: coreResource(kind, plural) })
const grouped = (kind: string, group: string, version: string, plural: string): ClusterKind => ({
  kind,
  apiVersion: `${group}/${version}`,
  resource: groupResource(kind, group, version, plural),
})

/** The kinds of a cluster that are not configuration of the mesh. */
export const foreignKinds: readonly ClusterKind[] = [
  core('Namespace', 'namespaces'),
  core('Service', 'services'),
  core('Pod', 'pods'),
  { ...core('Secret', 'secrets'), isSecret: true },
  grouped('Deployment', 'apps', 'v1', 'deployments'),
  grouped('StatefulSet', 'apps', 'v1', 'statefulsets'),
  grouped('DaemonSet', 'apps', 'v1', 'daemonsets'),
  grouped('Job', 'batch', 'v1', 'jobs'),
  grouped('CronJob', 'batch', 'v1', 'cronjobs'),
  grouped('Ingress', 'networking.k8s.io', 'v1', 'ingresses'),
]

/** The groups of the kinds of the mesh: the own spelling of each before the alias. */
export const meshGroups = (domain: string): readonly string[] => {
  const groups = [...new Set([...kinds.values()].map(({ group }) => group))]
  return [0, 1].flatMap((spelling) => groups.map((group) => groupSpellings(group, domain)[spelling] as string))
}

/** The kinds of the mesh in a group, each in its newest version that is known here and that `serves` tells. */
export function meshKindsIn(group: string, serves: (version: string, plural: string) => boolean): readonly ClusterKind[] {
  return [...kinds.values()].flatMap(({ name, plural, group: own, versions }) => {
    if (!group.startsWith(`${own}.`)) return []
    const version = versions.findLast((each) => serves(each, plural))
    return version === undefined ? [] : [grouped(name, group, version, plural)]
  })
}

/** The kinds of the mesh in a group, whatever the cluster serves. */
export const kindsOfGroup = (group: string): readonly string[] =>
  [...kinds.values()].flatMap(({ name, group: own }) => (group.startsWith(`${own}.`) ? [name] : []))

/** Returns what a finding says of objects that could not be read. `readIn`: the namespaces whose objects could. */
export function unreadMessage(reason: string, readIn: readonly string[]): string {
  const where = readIn.length === 0 ? 'not read' : `read in the namespace ${readIn.join(', ')} only`
  return `${where}: ${reason.slice(0, 300)}; nothing is said to be missing among the others: permit get and list of them`
}
