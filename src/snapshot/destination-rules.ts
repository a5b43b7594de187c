/** Finds the DestinationRule of a service, and merges several for one host (docs/resources.md, V3 to V5). */

import type { Service } from '../../protocols/data.ts'
import type { TrafficPolicy } from '../config/kinds/destination-rule.ts'
import { sameItems } from '../model/lists.ts'
import { bySpecificity, completeHost, hostCovers, isExported, isPublic } from '../model/match.ts'
import { byAge } from '../model/order.ts'
import type { DestinationRule } from './objects.ts'

/** A named subset of a service's endpoints with its own policy. */
export interface Subset {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly policy: TrafficPolicy | undefined
}

/** The rules of one namespace for one host, merged. */
export interface MergedRule {
  readonly host: string
  readonly namespace: string
  /** The name of the oldest rule. It names the object in metadata. */
  readonly name: string
  readonly policy: TrafficPolicy | undefined
  readonly subsets: readonly Subset[]
  readonly exportTo: readonly string[]
  /** Subset names that more than one rule defines. */
  readonly duplicateSubsets: readonly string[]
  /** The rules that were merged. */
  readonly sources: readonly DestinationRule[]
}

/** All rules, indexed by namespace and host. */
export interface DestinationRuleIndex {
  readonly byNamespace: ReadonlyMap<string, NamespaceRules>
  /** Namespaces with a rule that has settings for TCP connections ({@link hasTcpSettings}). */
  readonly withTcpSettings: ReadonlyMap<string, true>
  /** The merged rule of a namespace for a host. */
  of(namespace: string, host: string): MergedRule | undefined
  /** The same for readers of its settings for TCP connections only: they are not outdated by a rule with other settings. */
  tcpOf(namespace: string, host: string): MergedRule | undefined
  /** Namespaces with a rule. */
  readonly namespaces: ReadonlyMap<string, true>
}

/** The rules of one namespace. */
export interface NamespaceRules {
  readonly exact: ReadonlyMap<string, MergedRule>
  /** Most specific first. */
  readonly wildcards: readonly MergedRule[]
  /** The number of merged rules that have settings for TCP connections. */
  readonly withTcpSettings: number
}

/** An index with the rules that it was made of, the oldest first. */
export interface KeptRules extends DestinationRuleIndex {
  readonly rules: readonly DestinationRule[]
}

/**
 * Builds the index from the one before. Only the rules of hosts are merged of which a rule came or went; all others, and the entries of other
 * namespaces, keep their identity.
 */
export function indexDestinationRules(given: Iterable<DestinationRule>, domain: string, previous: KeptRules | undefined): KeptRules {
  const rules = [...given]
  const changes = changesOf(rules, previous?.rules ?? [], domain)
  const byNamespace = new Map(previous?.byNamespace)
  const withTcpSettings = new Map(previous?.withTcpSettings)
  for (const [namespace, hosts] of changes) {
    const changed = changedRules(byNamespace.get(namespace), hosts)
    if (changed) byNamespace.set(namespace, changed)
    else byNamespace.delete(namespace)
    if (changed && changed.withTcpSettings > 0) withTcpSettings.set(namespace, true)
    else withTcpSettings.delete(namespace)
  }
  const known = previous?.namespaces
  const namespaces =
    known && known.size === byNamespace.size && [...changes.keys()].every((namespace) => known.has(namespace) === byNamespace.has(namespace))
      ? known
      : new Map([...byNamespace.keys()].map((namespace) => [namespace, true] as const))
  // Whether the set is empty is recorded as a read of the whole set, so the set keeps its identity while it is equal.
  const tcp = previous?.withTcpSettings
  const isSame = tcp && [...changes.keys()].every((namespace) => tcp.has(namespace) === withTcpSettings.has(namespace))
  return {
    rules,
    byNamespace,
    namespaces,
    withTcpSettings: isSame ? tcp : withTcpSettings,
    of: (namespace, host) => findRule(byNamespace.get(namespace), host),
    tcpOf: (namespace, host) => findRule(byNamespace.get(namespace), host),
  }
}

/** Rules that came and went, by namespace and host. */
type RuleChanges = Map<string, Map<string, { readonly added: DestinationRule[]; readonly removed: Set<DestinationRule> }>>

function changesOf(now: readonly DestinationRule[], before: readonly DestinationRule[], domain: string): RuleChanges {
  const [is, was] = [new Set(now), new Set(before)]
  const changes: RuleChanges = new Map()
  const at = (rule: DestinationRule) => {
    let hosts = changes.get(rule.namespace)
    if (!hosts) changes.set(rule.namespace, (hosts = new Map()))
    const host = completeHost(rule.spec.host, rule.namespace, domain).toLowerCase()
    let change = hosts.get(host)
    if (!change) hosts.set(host, (change = { added: [], removed: new Set() }))
    return change
  }
  for (const rule of before) if (!is.has(rule)) at(rule).removed.add(rule)
  for (const rule of now) if (!was.has(rule)) at(rule).added.push(rule)
  return changes
}

/** Returns the rules of a namespace with changed sources; undefined if none is left. */
function changedRules(
  before: NamespaceRules | undefined,
  hosts: RuleChanges extends Map<string, infer Hosts> ? Hosts : never,
): NamespaceRules | undefined {
  const exact = new Map(before?.exact)
  const wildcards = new Map(before?.wildcards.map((rule) => [rule.host, rule]))
  let withTcpSettings = before?.withTcpSettings ?? 0
  for (const [host, { added, removed }] of hosts) {
    const of = host.startsWith('*') ? wildcards : exact
    const known = of.get(host)
    const sources = [...(known?.sources ?? []).filter((rule) => !removed.has(rule)), ...added].sort(byAge)
    const rule = sources.length > 0 ? merge(host, sources) : undefined
    withTcpSettings += Number(rule !== undefined && hasTcpSettings(rule)) - Number(known !== undefined && hasTcpSettings(known))
    if (rule) of.set(host, rule)
    else of.delete(host)
  }
  if (exact.size + wildcards.size === 0) return undefined
  return { exact, wildcards: [...wildcards.values()].sort((one, other) => bySpecificity(one.host, other.host)), withTcpSettings }
}

/**
 * Returns the questions (`<namespace> <host>`) to which two indexes may answer differently. Undefined when a wildcard is in only one of them,
 * which may cover any host.
 */
export function differingRules(before: DestinationRuleIndex, now: DestinationRuleIndex): string[] | undefined {
  const found: string[] = []
  for (const namespace of new Set([...before.byNamespace.keys(), ...now.byNamespace.keys()])) {
    const [one, other] = [before.byNamespace.get(namespace), now.byNamespace.get(namespace)]
    if (one === other) continue
    if (!sameItems(one?.wildcards ?? [], other?.wildcards ?? [])) return undefined
    for (const [host, rule] of other?.exact ?? []) if (one?.exact.get(host) !== rule) found.push(`${namespace} ${host}`)
    for (const host of one?.exact.keys() ?? []) if (!other?.exact.has(host)) found.push(`${namespace} ${host}`)
  }
  return found
}

/** Whether a rule sets, on any of its levels, the idle timeout or maximum duration of TCP connections, or load balancing by source IP. */
export function hasTcpSettings({ policy, subsets }: MergedRule): boolean {
  return [policy, ...subsets.map((subset) => subset.policy)]
    .flatMap((each) => (each ? [each, ...(each.portLevelSettings ?? [])] : []))
    .some(
      ({ connectionPool: { tcp } = {}, loadBalancer }) =>
        tcp?.idleTimeout !== undefined || tcp?.maxConnectionDuration !== undefined || loadBalancer?.consistentHash?.useSourceIp,
    )
}

/** Whether two rules are equal for readers of settings for TCP connections only. */
export function sameTcpSettings(one: MergedRule | undefined, other: MergedRule | undefined): boolean {
  if (one === other) return true
  return !!one && !!other && !hasTcpSettings(one) && !hasTcpSettings(other) && sameItems(one.exportTo, other.exportTo)
}

/**
 * Returns the rule for a service as seen from the namespace `viewer` (undefined: what is visible to all): first the viewer's own rule, then
 * one of the service's namespace, then one of the root namespace. `find` returns the rule of a namespace for the service.
 */
export function ruleFor(
  find: (namespace: string) => MergedRule | undefined,
  service: Service,
  viewer: string | undefined,
  rootNamespace: string,
  defaultExportTo: readonly string[],
): MergedRule | undefined {
  if (viewer !== undefined && viewer !== rootNamespace) {
    const own = find(viewer)
    if (own) return own
  }
  for (const namespace of [service.namespace, rootNamespace]) {
    const rule = find(namespace)
    if (!rule) continue
    const visible = viewer === undefined ? isPublic(rule.exportTo, defaultExportTo) : isExported(rule.exportTo, defaultExportTo, namespace, viewer)
    if (visible) return rule
  }
  return undefined
}

/** Returns the rule of a namespace for a host: an exact one, or the most specific wildcard. */
export function findRule(rules: NamespaceRules | undefined, hostname: string): MergedRule | undefined {
  return rules?.exact.get(hostname) ?? rules?.wildcards.find((rule) => hostCovers(rule.host, hostname))
}

function merge(host: string, sources: DestinationRule[]): MergedRule {
  const first = sources[0] as DestinationRule
  const subsets = new Map<string, Subset>()
  const duplicateSubsets: string[] = []
  for (const source of sources) {
    for (const subset of source.spec.subsets ?? []) {
      if (subsets.has(subset.name)) duplicateSubsets.push(subset.name)
      else subsets.set(subset.name, { name: subset.name, labels: subset.labels ?? {}, policy: subset.trafficPolicy })
    }
  }
  return {
    host,
    namespace: first.namespace,
    name: first.name,
    policy: sources.find((source) => source.spec.trafficPolicy)?.spec.trafficPolicy,
    subsets: [...subsets.values()],
    exportTo: first.spec.exportTo ?? [],
    duplicateSubsets,
    sources,
  }
}
