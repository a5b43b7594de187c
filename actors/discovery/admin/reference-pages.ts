/** Pages of ControlZ with the requests and answers of the reference, for its tools: this process, its end, and each log scope. */
import { hostname, networkInterfaces } from 'node:os'
import { changeScope, discoveryScopes, settingsOf } from '../../../src/logging/levels.ts'
import { discoveryScopeTable, type Scope } from '../../../src/logging/scopes.ts'
import { Page, type PageRequest } from '../../http/page-server.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { LevelsInForce } from './levels-in-force.ts'

/** What `GET /homej` answers; sizes in bytes, the time in nanoseconds. The runtime counts no garbage collections (`NumGC`) without a cost. */
export function processHome() {
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
  return {
    ProcessName: process.argv[1] ?? '',
    HeapSize: process.memoryUsage().heapUsed,
    CurrentTime: wallClockMs() * 1e6,
    Hostname: hostname(),
    IP: addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? '',
  }
}

/** Answers `GET /scopej/<name>` with the settings of the scope; 400 for an unknown one. */
export function scopePage(levels: LevelsInForce, { path }: PageRequest): Page {
  const name = nameIn(path)
  const settings = settingsOf(levels.get(), discoveryScopes).find((scope) => scope.name === name)
  if (!settings) return unknownScope(name)
  const scope: Scope = discoveryScopeTable[name as keyof typeof discoveryScopeTable]
  const description = 'about' in scope ? scope.about : `nothing: ${scope.without}`
  return new Page(JSON.stringify({ ...settings, description }, null, 2), 'application/json; charset=utf-8')
}

/**
 * Changes a scope to what the JSON of `PUT /scopej/<name>` says; what it leaves out stays. Returns a description of the change, or 400 for an
 * unknown scope and for a body that cannot be used.
 */
export async function putScope(levels: LevelsInForce, request: PageRequest): Promise<string | Page> {
  const scope = nameIn(request.path)
  if (!discoveryScopes.includes(scope)) return unknownScope(scope)
  try {
    const given = JSON.parse(await request.body()) as Readonly<Record<string, unknown>> | null
    const changes = ['output_level', 'stack_trace_level', 'log_callers'].flatMap((field): [string, string][] => {
      const value = given?.[field]
      return value === undefined || value === null ? [] : [[field, String(value)]]
    })
    await levels.set(changeScope(levels.get(), discoveryScopes, new URLSearchParams([['scope', scope], ...changes])))
    return `scope ${scope}: ${changes.map((change) => change.join('=')).join(', ')}`
  } catch (error) {
    if (error instanceof SyntaxError) return new Page('the request body is not JSON', undefined, 400)
    return new Page((error as Error).message, undefined, 400)
  }
}

const nameIn = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

const unknownScope = (name: string): Page => new Page(`unknown scope name: ${name.slice(0, 100)}`, undefined, 400)
