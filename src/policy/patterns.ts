/**
 * Values of AuthorizationPolicies: `x`, `x*`, `*x`, `*` (docs/resources.md, A7), as predicates and as regular expressions for Envoy (RE2).
 */
import type { MeshSnapshot } from '../snapshot/snapshot.ts'

/** A parsed value. `any` (`*`) matches every non-empty text. */
export type Pattern = { readonly kind: 'exact' | 'prefix' | 'suffix'; readonly text: string } | { readonly kind: 'any' }

/** Parses a value. A star is special at the start, or else at the end, and nowhere else. */
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

/** Escapes a text for literal use in a regular expression. */
export function escapeRegex(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}

/** Returns a regular expression for a pattern; `character` is the expression for one character that a star may cover. */
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

/** The trust domain of the mesh and its aliases: a rule for one of them applies to all. */
export interface TrustDomains {
  readonly own: string
  readonly aliases: readonly string[]
}

/** Returns the trust domain of the mesh and its aliases. */
export const trustDomainsOf = ({ mesh }: MeshSnapshot): TrustDomains => ({ own: mesh.trustDomain, aliases: mesh.trustDomainAliases })

/** Returns the trust domains that are equivalent to a trust domain, or to a pattern of one, in a rule. */
export function equalTrustDomains(value: string, { own, aliases }: TrustDomains): string[] {
  const all = [own, ...aliases]
  return all.includes(value) ? [...new Set(all)] : [value]
}

/** Returns a principal of a rule for each trust domain that it applies to. `cluster.local` always denotes the mesh's own trust domain. */
export function inTrustDomains(value: string, { own, aliases }: TrustDomains): string[] {
  const slash = value.indexOf('/')
  const domain = value.slice(0, slash)
  if (slash < 0 || domain.includes('*')) return [value]
  const all = [own, ...aliases]
  if (domain !== 'cluster.local' && !all.includes(domain)) return [value]
  return [...new Set([...all, ...(all.includes(domain) ? [] : [own])])].map((each) => each + value.slice(slash))
}
