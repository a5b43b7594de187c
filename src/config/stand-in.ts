/** Stand-ins: what takes the place of a policy that cannot be used and has no last good state, as the strictest it could have meant. */
import type { ConfigObject } from '../../protocols/data.ts'

/** Spec of a stand-in. Of the fields of its kind it has the selector alone. */
interface StandInSpec {
  readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> }
  /** Why the policy cannot be used. */
  readonly invalid: string
  /** What could be read of the spec; nothing is enforced by it. */
  readonly given?: unknown
}

/** A policy that was never valid. */
export type StandIn = ConfigObject<StandInSpec>

/** Whether an object stands in for a policy that was never valid. Where it does not, it is of its own kind. */
export function isStandIn(object: ConfigObject): object is StandIn {
  return typeof (object.spec as { invalid?: unknown }).invalid === 'string'
}
