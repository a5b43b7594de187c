/** Answers that several analyzers need, from what a world is asked. */

import type { ConfigObject, Service } from '../../protocols/data.ts'
import type { PodDetails } from '../../protocols/messages/analysis.ts'
import type { DestinationRuleSpec } from '../config/kinds/destination-rule.ts'
import type { KindName } from '../config/kinds.ts'
import { isYes, orchestratorNamespaces } from '../inject/decision.ts'
import { someOf } from '../model/counts.ts'
import { suggestion } from '../model/edit-distance.ts'
import { completeHost, hostCovers, isExported, labelsMatch } from '../model/match.ts'
import { compare } from '../model/order.ts'
import { injectedContainers } from '../names/mesh-names.ts'
import { rulesOf, wildcardRules } from './claims.ts'
import type { Tell } from './finding.ts'
import type { World } from './world.ts'

type Labels = Readonly<Record<string, string>>

/** The most names that a message lists. */
export const mostNames = 5

/** Names for a message; of very many, the first ones and the number of the others. `count`: their number, where only the first ones are given. */
export const listed = (names: readonly string[], count = names.length): string => someOf(names, mostNames, count)

/**
 * Says that an object to which another one refers is not in force, and what follows: there is none, with one that may be meant, or it is there and has
 * faults of its own.
 */
export function tellMissing(kind: KindName, path: string, consequence: string, { at, world, tell }: { at: string; world: World; tell: Tell }): void {
  if (world.isRefused(kind, path)) tell('IST0101', at, `the ${kind} ${path} is invalid, as is told of itself${consequence}`)
  else tell('IST0101', at, `there is no ${kind} ${path}${consequence}`, () => suggestion(path, world.paths(kind)))
}

/** Tells a namespace that is certain, or for files likely, not to exist, and what follows. Returns whether it is. */
export function tellNoNamespace(name: string, consequence: string, { at, world, tell }: { at: string; world: World; tell: Tell }): boolean {
  if (world.hasNamespace(name)) return false
  tell('IST0101', at, `there is no namespace ${name}${consequence}`, () => suggestion(name, world.namespaces()))
  return true
}

/** Returns the services with a host; else those of the wildcards that cover it. */
export function servicesOf(host: string, world: World): readonly Service[] {
  const exact = world.services(host)
  if (exact.length > 0) return exact
  return world
    .wildcards()
    .filter((pattern) => hostCovers(pattern, host))
    .flatMap((pattern) => world.services(pattern))
}

/** Returns the subsets of a host that a namespace may use: those of its own rules, of the namespace of the service, and of the root namespace. */
export function subsetsOf(host: string, namespace: string, world: World): ReadonlySet<string> {
  return subsetNames(host, world, new Set([namespace, world.mesh.rootNamespace, ...servicesOf(host, world).map((service) => service.namespace)]))
}

/** Returns the subsets of a host that rules define: those of some namespaces, or of all. */
export function subsetNames(host: string, world: World, owners?: ReadonlySet<string>): ReadonlySet<string> {
  const wild = (world.claimants(wildcardRules) as readonly ConfigObject<DestinationRuleSpec>[]).filter(({ namespace: owner, spec }) => {
    const pattern = completeHost(spec.host, owner, world.domain)
    return pattern !== host && hostCovers(pattern, host)
  })
  const found = new Set<string>()
  for (const rule of [...(world.claimants(rulesOf(host)) as readonly ConfigObject<DestinationRuleSpec>[]), ...wild])
    if (owners?.has(rule.namespace) !== false) for (const { name } of rule.spec.subsets ?? []) found.add(name)
  return found
}

/** The kinds of objects that are workloads. */
export const workloadKinds: readonly string[] = ['Pod', 'Deployment', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob', 'WorkloadEntry', 'WorkloadGroup']

/** Whether a workload has the labels, in a namespace or, without one, anywhere; undefined: workloads are not known, or were not all read. */
export function someWorkload(labels: Labels, namespace: string | undefined, world: World): boolean | undefined {
  const found = world.workloads(labels, namespace)
  if (found && found.length > 0) return true
  return found && workloadKinds.every((kind) => world.isRead(kind, namespace)) ? false : undefined
}

/** Labels for a message, in order. Of a name of the mesh both spellings are there, since which of them an object has is not known. */
export const labelText = (labels: Labels, { names }: World): string =>
  Object.entries(labels)
    .sort(([one], [other]) => compare(one, other))
    .map(([key, value]) =>
      names
        .keySpellings(key)
        .map((spelling) => `${spelling}=${value}`)
        .join(' or '),
    )
    .join(',')

/** Whether it is certain that no service has a host: all objects that could give it were read, and it is not that of the API server of every cluster. */
export function isAbsent(host: string, world: World): boolean {
  if (!world.isRead('ServiceEntry') || host === `kubernetes.default.svc.${world.domain}`) return false
  const suffix = `.svc.${world.domain}`
  if (!host.endsWith(suffix)) return host.startsWith('*') ? world.isRead('Service') : true
  const [namespace, ...more] = host.slice(0, -suffix.length).split('.').reverse()
  return more.length === 1 && namespace ? world.isRead('Service', namespace) : world.isRead('Service')
}

/** Whether the labels of a namespace ask for injection; undefined: they say nothing of it. */
export function isInjectedNamespace(labels: Labels, { names }: World): boolean | undefined {
  const asked = labels['mesh-injection'] ?? labels['istio-injection']
  if (asked !== undefined) return asked === 'enabled'
  return names.canonicalKeys(labels)[`${names.domain}/rev`] === undefined ? undefined : true
}

/** Whether pods with such labels and details get a sidecar in a namespace; undefined: that is not known. */
export function isInjected(namespace: string, labels: Labels, pod: PodDetails | undefined, world: World): boolean | undefined {
  if (pod?.hostNetwork || orchestratorNamespaces.has(namespace)) return false
  const key = `sidecar.${world.names.domain}/inject`
  const asked = world.names.canonicalKeys(labels)[key] ?? world.names.canonicalKeys(pod?.annotations ?? {})[key]
  if (asked !== undefined) return isYes(asked)
  const given = world.knowsNamespaces ? world.namespaceLabels(namespace) : undefined
  return given && (isInjectedNamespace(given, world) ?? false)
}

/** Whether a workload is itself a proxy of the mesh, such as a gateway. */
export const isProxy = ({ containers }: PodDetails): boolean =>
  containers.some(({ name }) => (injectedContainers.proxy as readonly string[]).includes(name))

/** Whether some namespace may see both of two objects of a kind with `exportTo`. */
export function mayMeet(one: ConfigObject, other: ConfigObject, fallback: readonly string[]): boolean {
  const listOf = ({ spec }: ConfigObject) => (spec as { exportTo?: readonly string[] }).exportTo
  const targets = [one, other].flatMap((object) =>
    (listOf(object)?.length ? (listOf(object) as readonly string[]) : fallback).map((target) => (target === '.' ? object.namespace : target)),
  )
  const sees = (viewer: string) => [one, other].every((object) => isExported(listOf(object), fallback, object.namespace, viewer))
  return sees('\0any') || targets.some((viewer) => viewer !== '*' && viewer !== '~' && sees(viewer))
}

/** The selector of a service, if it has labels. */
export function selectorOf({ selector }: Pick<Service, 'selector'>): Labels | undefined {
  return selector && Object.keys(selector).length > 0 ? selector : undefined
}

/** Whether a service has workloads with these labels. */
export const serves = (service: Pick<Service, 'selector'>, labels: Labels): boolean => {
  const selector = selectorOf(service)
  return selector !== undefined && labelsMatch(selector, labels)
}
