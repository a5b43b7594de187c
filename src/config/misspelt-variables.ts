/** Environment variables whose names were misspelt. */
import { nearest } from '../model/edit-distance.ts'
import { canonicalEnvironment } from '../names/mesh-names.ts'
import { agentVariables } from './agent-features.ts'
import { discoveryVariables } from './features.ts'

/** A variable that is not known, and the nearest one that is. */
export interface Misspelt {
  readonly name: string
  readonly nearest: string
}

const firstWord = (name: string): string => name.split('_', 1)[0] as string

/**
 * Returns the variables of an environment that neither binary knows and that are near one of `pilot-discovery` with the same first word: those
 * of other programs have other ones.
 */
export function misspeltVariables(environment: Readonly<Record<string, string | undefined>>): Misspelt[] {
  const names = Object.keys(discoveryVariables)
  const known = new Set([...names, ...Object.keys(agentVariables)])
  return Object.keys(canonicalEnvironment(environment))
    .filter((name) => !known.has(name))
    .flatMap((name) => {
      const near = nearest(
        name,
        names.filter((known) => firstWord(known) === firstWord(name)),
      )
      return near === undefined ? [] : [{ name, nearest: near }]
    })
}
