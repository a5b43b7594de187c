/** Values of AuthorizationPolicies: `x`, `x*`, `*x`, `*` (docs/resources.md, A7), as predicates and as regular expressions of Envoy's (RE2). */
import type { MeshSnapshot } from '../snapshot/snapshot.ts'

/** A value taken apart. `*` is any text but the empty one. */
export type Pattern = { readonly kind: 'exact' | 'prefix' | 'suffix'; readonly text: string } | { readonly kind: 'any' }

/** Takes a value apart. A star counts at the start, else at the end, and nowhere else. */
export function patternOf(value: string): Pattern {
  if (value === '*') return { kind: 'any' }
  if (value.startsWith('*')) return { kind: 'suffix', text: value.slice(1) }
  if (value.endsWith('*')) return { kind: 'prefix', text: value.slice(0, -1) }
  return { kind: 'exact', text: value }
}

/** Whether a pattern matches a text. */
export function patternMatches(pattern: Pattern, text: string): boolean {
  switch (pattern.kind) {
    case 'any':
      return text !== ''
    case 'exact':
      return text === pattern.text
    case 'prefix':
      return text.startsWith(pattern.text)
    case 'suffix':
      return text.endsWith(pattern.text)
  }
}

/** Text that a regular expression takes literally. */
export function escapeRegex(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}

/** A regular expression for a pattern; `character` stands for one character that a star may cover. */
export function patternRegex(pattern: Pattern, character: string): string {
  switch (pattern.kind) {
    case 'any':
      return `${character}+`
    case 'exact':
      return escapeRegex(pattern.text)
    case 'prefix':
      return `${escapeRegex(pattern.text)}${character}*`
    case 'suffix':
      return `${character}*${escapeRegex(pattern.text)}`
  }
}

/** A trust domain and the others that count as the same: what is granted to one is granted to all of them. */
export interface TrustDomains {
  readonly own: string
  readonly aliases: readonly string[]
}

/** The trust domain of the mesh and its aliases. */
export const trustDomainsOf = ({ mesh }: MeshSnapshot): TrustDomains => ({ own: mesh.trustDomain, aliases: mesh.trustDomainAliases })

/** A trust domain as users write it, or a pattern of some, with those that count as the same. */
export function equalTrustDomains(value: string, { own, aliases }: TrustDomains): string[] {
  const all = [own, ...aliases]
  return all.includes(value) ? [...new Set(all)] : [value]
}

/** A principal as users write it, in every trust domain that it stands for; `cluster.local` always means the own one. */
export function inTrustDomains(value: string, { own, aliases }: TrustDomains): string[] {
  const slash = value.indexOf('/')
  const domain = value.slice(0, slash)
  if (slash < 0 || domain.includes('*')) return [value]
  const all = [own, ...aliases]
  if (domain !== 'cluster.local' && !all.includes(domain)) return [value]
  return [...new Set([...all, ...(all.includes(domain) ? [] : [own])])].map((each) => each + value.slice(slash))
}
