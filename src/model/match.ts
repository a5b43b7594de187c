/** Matching of labels, host names and namespaces. */

/** Whether all wanted labels are present with the wanted values. Without wanted labels it is always true. */
export function labelsMatch(wanted: Readonly<Record<string, string>> | undefined, labels: Readonly<Record<string, string>>): boolean {
  for (const key in wanted) if (labels[key] !== wanted[key]) return false
  return true
}

/** Whether a host name or wildcard (`*.example.com`, `*`) covers another host name or wildcard. */
export function hostCovers(pattern: string, host: string): boolean {
  if (pattern === '*' || pattern === host) return true
  return pattern.startsWith('*.') && host.length > pattern.length - 1 && host.endsWith(pattern.slice(1))
}

/** Whether two host names or wildcards cover a common host name. */
export function hostsOverlap(one: string, other: string): boolean {
  return hostCovers(one, other) || hostCovers(other, one)
}

/** Compares two patterns that cover the same host: exact names come first, then longer wildcards before shorter ones. */
export function bySpecificity(one: string, other: string): number {
  const wild = Number(one.startsWith('*')) - Number(other.startsWith('*'))
  return wild !== 0 ? wild : other.length - one.length
}

/** Completes a short host name (`reviews`) with the namespace of the object that contains it. A name with a dot is returned unchanged. */
export function completeHost(host: string, namespace: string, domain: string): string {
  if (host.includes('.') || host === '*' || host === '' || namespace === '') return host
  return `${host}.${namespace}.svc.${domain}`
}

/**
 * Returns the namespace in a host name of the form `<name>.<namespace>.svc.<domain>`, regardless of the namespace that defines the service.
 * Callers in that namespace may use short names for the host. Undefined for other names.
 */
export function namespaceInHost(host: string, domain: string): string | undefined {
  const suffix = `.svc.${domain}`
  const dot = host.indexOf('.')
  return host.endsWith(suffix) && dot > 0 && dot < host.length - suffix.length ? host.slice(dot + 1, -suffix.length) : undefined
}

/**
 * Whether an object in the namespace `owner` with this `exportTo` list is visible from the namespace `viewer`. An empty list means
 * `fallback`, the mesh default.
 */
export function isExported(exportTo: readonly string[] | undefined, fallback: readonly string[], owner: string, viewer: string): boolean {
  const targets = exportTo?.length ? exportTo : fallback
  return targets.some((target) => target === '*' || target === viewer || (target === '.' && owner === viewer))
}

/** Whether an object with this `exportTo` list is visible from every namespace. */
export function isPublic(exportTo: readonly string[] | undefined, fallback: readonly string[]): boolean {
  return (exportTo?.length ? exportTo : fallback).includes('*')
}
