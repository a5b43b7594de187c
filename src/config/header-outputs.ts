/** Headers that a RequestAuthentication sets from accepted tokens, found in valid and invalid documents. */
import type { JwtRule } from './kinds/request-authentication.ts'
import { isMapping } from './shape.ts'

/** Names of the headers that a rule sets. */
export function headerOutputs({ outputPayloadToHeader, outputClaimToHeaders }: JwtRule): string[] {
  return [...(outputPayloadToHeader ? [outputPayloadToHeader] : []), ...(outputClaimToHeaders ?? []).map(({ header }) => header)]
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/
/** The maximum depth that is searched in a spec, and the maximum number of names. */
const limits = { depth: 8, names: 500 }

/**
 * Returns the header names that an invalid spec would set: those under any field whose name begins with `output`, whatever its spelling and
 * structure. The result may contain names that the spec would not set: removing a header from requests needlessly does less harm than
 * trusting a forged one.
 */
export function headerOutputsOfAny(spec: unknown): string[] {
  const found = new Set<string>()
  const take = (value: unknown, depth: number): void => {
    if (depth > limits.depth || found.size >= limits.names) return
    if (typeof value === 'string') {
      if (headerName.test(value.trim())) found.add(value.trim())
    } else if (Array.isArray(value)) for (const item of value) take(item, depth + 1)
    else if (isMapping(value)) {
      const named = Object.entries(value).filter(([key]) => /^header/i.test(key.trim()))
      for (const [, item] of named.length > 0 ? named : Object.entries(value)) take(item, depth + 1)
    }
  }
  const visit = (value: unknown, depth: number): void => {
    if (depth > limits.depth) return
    if (Array.isArray(value)) for (const item of value) visit(item, depth + 1)
    else if (isMapping(value))
      for (const [key, item] of Object.entries(value)) {
        if (/^output/i.test(key.trim())) take(item, 0)
        else visit(item, depth + 1)
      }
  }
  visit(spec, 0)
  return [...found]
}

/** Returns the same for text that cannot be parsed: the words behind such a field, and behind `header` fields. */
export function headerOutputsOfText(text: string): string[] {
  const found = new Set<string>()
  for (const [, name = ''] of text.matchAll(/(?:\boutput\w*|[\s{,"'-]header)["']?\s*:\s*["']?([!#$%&'*+.^_`|~0-9A-Za-z-]{1,256})/gi)) {
    if (found.size >= limits.names) break
    found.add(name)
  }
  return [...found]
}
