/** Matching of labels, host names and namespaces. */

/** Whether every wanted label is there with the wanted value; no wanted labels match everything. */
export function labelsMatch(wanted: Readonly<Record<string, string>> | undefined, labels: Readonly<Record<string, string>>): boolean {
  for (const key in wanted) if (labels[key] !== wanted[key]) return false
  return true
}

/** Whether a host name or wildcard (`*.example.com`, `*`) covers another host name or wildcard. */
export function hostCovers(pattern: string, host: string): boolean {
  if (pattern === '*' || pattern === host) return true
  return pattern.startsWith('*.') && host.length > pattern.length - 1 && host.endsWith(pattern.slice(1))
}

/** Whether two host names or wildcards have a name in common. */
export function hostsOverlap(one: string, other: string): boolean {
  return hostCovers(one, other) || hostCovers(other, one)
}

/** The more specific of two patterns that cover the same host comes first: exact names, then longer wildcards. */
export function bySpecificity(one: string, other: string): number {
  const wild = Number(one.startsWith('*')) - Number(other.startsWith('*'))
  return wild !== 0 ? wild : other.length - one.length
}

/** A short host name as users write it (`reviews`, `reviews.prod`), completed with the namespace of the object that names it. */
export function completeHost(host: string, namespace: string, domain: string): string {
  if (host.includes('.') || host === '*' || host === '' || namespace === '') return host
  return `${host}.${namespace}.svc.${domain}`
}

/**
 * The namespace in a host name of the form `<name>.<namespace>.svc.<domain>`, in which its short names hold, whoever defines the service; undefined for other
 * names.
 */
export function namespaceInHost(host: string, domain: string): string | undefined {
  const suffix = `.svc.${domain}`
  const dot = host.indexOf('.')
  return host.endsWith(suffix) && dot > 0 && dot < host.length - suffix.length ? host.slice(dot + 1, -suffix.length) : undefined
}

/** Whether an object of `owner` with this `exportTo` list can be seen from `viewer`; an empty list means the mesh default. */
export function isExported(exportTo: readonly string[] | undefined, fallback: readonly string[], owner: string, viewer: string): boolean {
  const targets = exportTo?.length ? exportTo : fallback
  return targets.some((target) => target === '*' || target === viewer || (target === '.' && owner === viewer))
}

/** Whether an object with this `exportTo` list can be seen from every namespace. */
export function isPublic(exportTo: readonly string[] | undefined, fallback: readonly string[]): boolean {
  return (exportTo?.length ? exportTo : fallback).includes('*')
}
