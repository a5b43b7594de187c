/** Finds the host that somebody may have meant who wrote one that no service has. */
import { distance, nearest } from '../model/edit-distance.ts'
import { compare } from '../model/order.ts'
import type { World } from './world.ts'

/** The clause that suggests the host that is meant, short or in full as the unknown one is written; empty without one. */
export function hostSuggestion(unknown: string, namespace: string, world: World): string {
  const meant = unknown.includes('.') ? meantInFull(unknown, namespace, world) : meantShort(unknown, namespace, world)
  return meant === undefined ? '' : `; did you mean ${JSON.stringify(meant)}?`
}

/** A short name is one of the namespace, else the host of the name in another namespace. */
function meantShort(unknown: string, namespace: string, world: World): string | undefined {
  const own: string[] = []
  const elsewhere: string[] = []
  for (const host of world.hosts()) {
    const [name, owner] = nameInCluster(host, world.domain) ?? []
    if (name === undefined) continue
    if (owner === namespace) own.push(name)
    else if (name === unknown) elsewhere.push(host)
  }
  return nearest(unknown, own) ?? elsewhere.sort()[0]
}

/** How much farther a host is that has the name of the unknown one, and a namespace that is not like its own. */
const otherNamespace = 1000

/**
 * A host with dots is one that differs in one label; of the services of the cluster also where only their name and namespace are written, and
 * those of that name in another namespace, the own one first.
 */
function meantInFull(unknown: string, namespace: string, world: World): string | undefined {
  const given = unknown.split('.')
  const short = withoutSuffix(unknown, world.domain)
  let best: { readonly host: string; readonly changes: number } | undefined
  for (const host of world.hosts()) {
    const own = nameInCluster(host, world.domain)
    const changes = Math.min(
      changesBetween(given, host.split('.')),
      short && own ? changesBetween(short, own) : Number.POSITIVE_INFINITY,
      short && own && short[0] === own[0] ? otherNamespace - Number(own[1] === namespace) : Number.POSITIVE_INFINITY,
    )
    if (changes === Number.POSITIVE_INFINITY) continue
    if (!best || changes < best.changes || (changes === best.changes && compare(host, best.host) < 0)) best = { host, changes }
  }
  return best?.host
}

/** The name and namespace of a host of the cluster; undefined for other hosts. */
function nameInCluster(host: string, domain: string): readonly [string, string] | undefined {
  const suffix = `.svc.${domain}`
  if (!host.endsWith(suffix)) return undefined
  const [name = '', owner, ...more] = host.slice(0, -suffix.length).split('.')
  return owner === undefined || more.length > 0 ? undefined : [name, owner]
}

/** The name and namespace that a host may be, which ends with them, with `svc`, or with the domain; undefined: it is none. */
function withoutSuffix(host: string, domain: string): readonly [string, string] | undefined {
  const [name = '', owner = '', ...rest] = host.split('.')
  const end = rest.join('.')
  return owner !== '' && ['', 'svc', `svc.${domain}`].includes(end) ? [name, owner] : undefined
}

/** The changes between two lists of labels that differ in one label at most, if that one may be misspelt; otherwise infinite. */
function changesBetween(one: readonly string[], other: readonly string[]): number {
  if (one.length !== other.length) return Number.POSITIVE_INFINITY
  const differing = one.flatMap((label, index) => (label === other[index] ? [] : [index]))
  const [index] = differing
  if (index === undefined) return 0
  const [written = '', meant = ''] = [one[index], other[index]]
  return differing.length > 1 || nearest(written, [meant]) === undefined ? Number.POSITIVE_INFINITY : distance(written, meant)
}

/**
 * Returns the host of a service that a name with dots stands for that is no name of the cluster: with name and namespace alone, with a misspelt
 * domain, or with a misspelt label of a host outside of the cluster. Names that differ in digits only are names of a series.
 */
export function meantOutside(host: string, world: World): string | undefined {
  const [name = '', owner = '', svc, ...domain] = host.split('.')
  const full = `${name}.${owner}.svc.${world.domain}`
  const isNearDomain = domain.length === 0 || changesBetween(domain, world.domain.split('.')) < Number.POSITIVE_INFINITY
  if (owner !== '' && (svc === undefined || svc === 'svc') && isNearDomain && world.services(full).length > 0) return full
  const labels = host.split('.')
  return world
    .similarHosts(host)
    .map((other) => ({ other, changes: changesBetween(labels, other.split('.')) }))
    .filter(({ other, changes }) => changes < Number.POSITIVE_INFINITY && withoutDigits(other) !== withoutDigits(host))
    .sort((one, another) => one.changes - another.changes || compare(one.other, another.other))[0]?.other
}

const withoutDigits = (text: string): string => text.replace(/\d+/g, '')
