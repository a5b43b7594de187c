/** Users' regular expressions: RE2 syntax (Envoy's), checked here and never run by this process on traffic. */
import { RE2JS } from 're2js'

/** What keeps text from being a regular expression that Envoy takes, or undefined. */
export function re2Fault(pattern: string): string | undefined {
  try {
    RE2JS.compile(pattern)
    return undefined
  } catch (error) {
    return `not a valid RE2 pattern: ${(error as Error).message}`
  }
}
