/** Log scopes and levels (docs/operation.md, "Logs"). */

import type { Level } from '../../protocols/messages/log.ts'

/** All levels, most verbose first. */
export const levels: readonly Level[] = ['debug', 'info', 'warn', 'error', 'fatal', 'none']

/** Scopes of `pilot-discovery`. */
export const discoveryScopes =
  'ads adsc all analysis authn authorization ca cache default klog orch mcp model pkica processing resource rootcertrotator secretcontroller serverca source spiffe status validation validationController validationServer wle'.split(
    ' ',
  )

/** Scopes of `pilot-agent`. */
export const agentScopes =
  'ads adsc all authn authorization ca cache citadelclient default dns cloudcred cloudca healthcheck klog mockcred model sds spiffe stsclient stsserver token validation validationController wle xdsproxy'.split(
    ' ',
  )

/** Levels by scope; scopes that are not in the map have the fallback. */
export interface ScopeLevels {
  readonly fallback: Level
  readonly scopes: Readonly<Record<string, Level>>
}

/** What the logging flags ask for, checked. */
export interface LogOptions {
  readonly output: ScopeLevels
  readonly stackTrace: ScopeLevels
  /** Scopes whose lines carry the caller; `all` for every scope. */
  readonly callers: readonly string[]
  readonly asJson: boolean
  readonly targets: readonly string[]
  readonly rotate: { readonly path: string; readonly maxSizeMb: number; readonly maxAgeDays: number; readonly maxBackups: number } | undefined
}

const severity = (level: Level): number => levels.indexOf(level)

/** Whether a message of a level passes a threshold. */
export function passes(level: Level, threshold: Level): boolean {
  return threshold !== 'none' && severity(level) >= severity(threshold)
}

/** The level of one scope. */
export function levelOf(scopes: ScopeLevels, scope: string): Level {
  return scopes.scopes[scope] ?? scopes.fallback
}

/** Reads `<scope>:<level>` pairs. A bare level means `default`; `all` sets every scope and ends the list. Throws an Error naming what is unknown. */
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

/** Reads a list of scopes for `--log_caller`. Throws an Error naming an unknown one. */
export function parseScopes(text: string, scopes: readonly string[]): string[] {
  const result = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
  for (const scope of result) if (!scopes.includes(scope)) throw new Error(`unknown scope ${JSON.stringify(scope)}; scopes are ${scopes.join(', ')}`)
  return result.includes('all') ? ['all'] : result
}
