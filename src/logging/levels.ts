/** Log scopes and levels (docs/operation.md, "Logs"). */

import type { Level, LogLevels, ScopeLevels } from '../../protocols/messages/log.ts'
import { agentScopeTable, discoveryScopeTable } from './scopes.ts'

/** All levels, most verbose first. */
export const levels: readonly Level[] = ['debug', 'info', 'warn', 'error', 'fatal', 'none']

/** The names of scopes in flags, with `all` for every one. */
const namesOf = (table: object): readonly string[] => [...Object.keys(table), 'all'].sort((one, other) => (one < other ? -1 : 1))

/** Scopes of `pilot-discovery`. */
export const discoveryScopes = namesOf(discoveryScopeTable)

/** Scopes of `pilot-agent`. */
export const agentScopes = namesOf(agentScopeTable)

/** The parsed logging flags. */
export interface LogOptions extends LogLevels {
  readonly asJson: boolean
  readonly targets: readonly string[]
  readonly rotate: { readonly path: string; readonly maxSizeMb: number; readonly maxAgeDays: number; readonly maxBackups: number } | undefined
}

const severity = (level: Level): number => levels.indexOf(level)

/** Whether a message of a level is at or above a threshold. */
export function passes(level: Level, threshold: Level): boolean {
  return threshold !== 'none' && severity(level) >= severity(threshold)
}

/** Returns the level of a scope. */
export function levelOf(scopes: ScopeLevels, scope: string): Level {
  return scopes.scopes[scope] ?? scopes.fallback
}

/**
 * Parses `<scope>:<level>` pairs. A bare level applies to `default`; `all` sets every scope and ends the list. Throws an Error that names
 * an unknown scope or level.
 */
export function parseScopeLevels(text: string, scopes: readonly string[], fallback: Level): ScopeLevels {
  const result: Record<string, Level> = {}
  for (const pair of text.split(',').filter((part) => part.trim() !== '')) {
    const [first = '', second] = pair.trim().split(':')
    const scope = second === undefined ? 'default' : first
    const level = second === undefined ? first : second
    if (!levels.includes(level as Level)) throw new Error(`unknown level ${JSON.stringify(level)}; levels are ${levels.join(', ')}`)
    if (!scopes.includes(scope)) throw new Error(`unknown scope ${JSON.stringify(scope)}; scopes are ${scopes.join(', ')}`)
    if (scope === 'all') return { fallback: level as Level, scopes: {} }
    result[scope] = level as Level
  }
  return { fallback, scopes: result }
}

/** Parses the list of scopes of `--log_caller`. Throws an Error that names an unknown scope. */
export function parseScopes(text: string, scopes: readonly string[]): string[] {
  const result = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
  for (const scope of result) if (!scopes.includes(scope)) throw new Error(`unknown scope ${JSON.stringify(scope)}; scopes are ${scopes.join(', ')}`)
  return result.includes('all') ? ['all'] : result
}

/** The levels of one scope, in the form of ControlZ's API. */
export interface ScopeSettings {
  readonly name: string
  readonly output_level: Level
  readonly stack_trace_level: Level
  readonly log_callers: boolean
}

/** Returns the current settings of the scopes, without the pseudo-scope `all`. */
export function settingsOf(inForce: LogLevels, scopes: readonly string[]): ScopeSettings[] {
  const named = scopes.filter((name) => name !== 'all')
  return named.map((name) => ({
    name,
    output_level: levelOf(inForce.output, name),
    stack_trace_level: levelOf(inForce.stackTrace, name),
    log_callers: inForce.callers.includes('all') || inForce.callers.includes(name),
  }))
}

/**
 * Returns the levels with those of one scope, or of `all`, changed by the fields of a form: `output_level`, `stack_trace_level` and
 * `log_callers` (`true` or `false`). Settings without a field are kept. Throws an Error that names an unknown value.
 */
export function changeScope(inForce: LogLevels, scopes: readonly string[], form: URLSearchParams): LogLevels {
  const scope = form.get('scope') ?? ''
  if (!scopes.includes(scope)) throw new Error(`unknown scope ${JSON.stringify(scope)}; scopes are ${scopes.join(', ')}`)
  const changed = (before: ScopeLevels, field: string): ScopeLevels => {
    const level = form.get(field)
    if (level === null) return before
    if (!levels.includes(level as Level)) throw new Error(`${field}: unknown level ${JSON.stringify(level)}; levels are ${levels.join(', ')}`)
    return scope === 'all' ? { fallback: level as Level, scopes: {} } : { ...before, scopes: { ...before.scopes, [scope]: level as Level } }
  }
  const callers = form.get('log_callers')
  if (callers !== null && callers !== 'true' && callers !== 'false') throw new Error('log_callers: expected true or false')
  const now = inForce.callers.includes('all') ? scopes.filter((name) => name !== 'all') : inForce.callers
  const others = scope === 'all' ? [] : now.filter((name) => name !== scope)
  return {
    output: changed(inForce.output, 'output_level'),
    stackTrace: changed(inForce.stackTrace, 'stack_trace_level'),
    callers: callers === null ? inForce.callers : callers === 'true' ? [...others, scope] : others,
  }
}
