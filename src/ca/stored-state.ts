/** The text in which the state of a certificate authority is stored with its version: `state.json` of a directory or of a Secret. */
import { type AuthorityState, readState } from './state.ts'

/** Version of the format. */
const format = 1

/** Returns the text of a state. */
export function stateText(state: AuthorityState, version: number): string {
  return `${JSON.stringify({ format, version, state }, null, 1)}\n`
}

/** Parses the text of a state. Throws an Error that says what is wrong with it. */
export function readStateText(text: string): { readonly state: AuthorityState; readonly version: number } {
  const { format: written, version, state } = (JSON.parse(text) ?? {}) as { format?: unknown; version?: unknown; state?: unknown }
  if (written !== format) throw new Error(`format ${JSON.stringify(written)} is not ${format}, the one that this version knows`)
  if (!Number.isSafeInteger(version)) throw new Error('version: is not a whole number')
  return { state: readState(state), version: version as number }
}
