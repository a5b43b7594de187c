/** The functions of injection templates besides those of Go and sprig (docs/injection.md, N5). */

import { isMapping } from '../config/shape.ts'
import { injectedContainers } from '../names/mesh-names.ts'
import type { Budget } from '../template/budget.ts'
import { type Functions, type TemplateFunction, templateFunction } from '../template/function.ts'
import { printed } from '../template/printed.ts'
import { fail, fromGoJson, GoFloat, GoInt, GoStruct, GoTime, isList, isMap, sortedKeys, type Value } from '../template/values.ts'
import { toYaml } from '../template/yaml.ts'
import { JsonStruct } from './go-pod.ts'

/** Returns a value as JSON, which is a copy. Messages that were made from JSON are that JSON. Its size is taken from the budget. */
export function jsonOf(budget: Budget, value: Value, depth = 0): unknown {
  budget.deep(depth)
  budget.make(1)
  if (typeof value === 'string') budget.spend(value.length)
  if (value instanceof GoFloat) return value.value
  if (value instanceof GoInt) return Number(value.value)
  if (value instanceof GoTime) return new Date(Number(value.nanos / 1_000_000n)).toISOString()
  if (value instanceof JsonStruct) return jsonOf(budget, fromGoJson(value.json), depth)
  if (value instanceof GoStruct) return Object.fromEntries([...value.fields].map(([key, field]) => [lower(key), jsonOf(budget, field, depth + 1)]))
  if (isList(value)) return value.map((item) => jsonOf(budget, item, depth + 1))
  if (isMap(value)) return Object.fromEntries(sortedKeys(value).map((key) => [key, jsonOf(budget, value.get(key) ?? null, depth + 1)]))
  return value
}

const lower = (name: string): string => name.slice(0, 1).toLowerCase() + name.slice(1)

/** JSON with the escapes of Go's `encoding/json`. */
const goJson = (value: unknown): string =>
  JSON.stringify(sorted(value)).replaceAll(/[<>&\u2028\u2029]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isMapping(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  )
}

const toJson: TemplateFunction = templateFunction(['any'], (budget, value) => (value === null ? '{}' : goJson(jsonOf(budget, value))))

const text = (budget: Budget, value: Value): string => (typeof value === 'string' ? value : printed(value, budget))

/** The TCP ports of containers, as text with commas. */
function portsOf(containers: Value, isCounted: (name: Value) => boolean): string {
  const ports: string[] = []
  for (const container of isList(containers) ? containers : []) {
    if (!(container instanceof GoStruct) || !isCounted(container.fields.get('Name') ?? null)) continue
    const listed = container.fields.get('Ports') ?? null
    for (const port of isList(listed) ? listed : []) {
      if (!(port instanceof GoStruct)) continue
      const protocol = port.fields.get('Protocol')
      if (protocol !== 'UDP' && protocol !== 'SCTP') ports.push(String(port.fields.get('ContainerPort') ?? 0))
    }
  }
  return ports.join(',')
}

/** Returns a list of ports with one more, unless it is empty, zero or in the list already. */
function withPort(port: string, excluded: string): string {
  if (port === '' || port === '0') return excluded
  const ports = excluded.split(',').map((item) => item.trim())
  return ports.includes(port) ? excluded : [...ports.filter((item) => item !== ''), port].join(',')
}

function withNetwork(existing: string, network: string): string {
  if (existing === '') return network
  const end = existing.lastIndexOf(']')
  if (end < 0) return existing.split(',').some((item) => item.trim() === network) ? existing : `${existing}, ${network}`
  try {
    const networks: unknown = JSON.parse(existing)
    if (!Array.isArray(networks) || networks.some((item) => isMapping(item) && item.name === network)) return existing
    return JSON.stringify([...networks, { name: network }])
  } catch {
    return existing
  }
}

const proxies: readonly string[] = injectedContainers.proxy

/** The text of a duration as Go prints it: `45s`, `1m0s`, `1h0m0s`, `1.5s`, `20ms`. */
function goDuration(nanos: number): string {
  if (nanos === 0) return '0s'
  const sign = nanos < 0 ? '-' : ''
  const all = Math.abs(nanos)
  if (all < 1e3) return `${sign}${all}ns`
  if (all < 1e6) return `${sign}${all / 1e3}µs`
  if (all < 1e9) return `${sign}${all / 1e6}ms`
  const seconds = all / 1e9
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  const rest = Number((seconds - hours * 3600 - minutes * 60).toFixed(9))
  return `${sign}${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${rest}s`
}

const given: Record<string, TemplateFunction> = {
  formatDuration: templateFunction(['any'], (_, value) => {
    if (value === null) return '0s'
    if (!(value instanceof GoStruct) || !value.fields.has('Seconds')) return fail('expected a duration')
    return goDuration(Number(value.fields.get('Seconds')) * 1e9 + Number(value.fields.get('Nanos') ?? 0))
  }),
  isset: templateFunction(['any', 'string'], (_, map, key) => isMap(map) && map.has(key)),
  excludeInboundPort: templateFunction(['any', 'string'], (budget, port, excluded) => withPort(text(budget, port).trim(), excluded)),
  includeInboundPorts: templateFunction(['any'], (_, containers) => portsOf(containers, () => true)),
  applicationPorts: templateFunction(['any'], (_, containers) => portsOf(containers, (name) => typeof name === 'string' && !proxies.includes(name))),
  kubevirtInterfaces: templateFunction(['string'], (_, interfaces) => interfaces),
  annotation: templateFunction(['any', 'string', 'any'], (budget, meta, name, otherwise) => {
    const annotations = meta instanceof GoStruct ? (meta.fields.get('Annotations') ?? null) : null
    if (!isMap(annotations)) return fail('expected the metadata of an object')
    return annotations.has(name) ? (annotations.get(name) ?? '') : text(budget, otherwise)
  }),
  valueOrDefault: templateFunction(['any', 'any'], (_, value, otherwise) => (value === null || value === '' ? otherwise : value)),
  toJSON: toJson,
  toJson,
  structToJSON: toJson,
  protoToJSON: toJson,
  fromJSON: templateFunction(['string'], (budget, json) => {
    budget.spend(json.length)
    try {
      return fromGoJson(JSON.parse(json))
    } catch {
      return fail('not JSON')
    }
  }),
  toYaml: templateFunction(['any'], (budget, value) => {
    const json = sorted(jsonOf(budget, value))
    const size = JSON.stringify(json)?.length ?? 0
    budget.spend(size * 4)
    return toYaml(fromGoJson(json), budget)
  }),
  indent: templateFunction(['int', 'string'], (budget, spaces, source) => {
    const lines = source.split('\n')
    if (spaces < 0 || spaces > 1000) return fail('an indent is from 0 to 1000')
    budget.text(source.length + lines.length * spaces)
    return lines.join(`\n${' '.repeat(spaces)}`)
  }),
  directory: templateFunction(['string'], (_, path) => path.slice(0, path.lastIndexOf('/') + 1)),
  contains: templateFunction(['string', 'string'], (_, needle, text) => text.includes(needle)),
  toLower: templateFunction(['string'], (_, text) => text.toLowerCase()),
  appendMultusNetwork: templateFunction(['string', 'string'], (_, existing, network) => withNetwork(existing, network)),
  // Templates see none of the variables of the process: the second argument is what they get where one is not set.
  env: templateFunction(['string', 'string'], (_, _name, otherwise) => otherwise),
  // With the template of a pod it has the data of that (render.ts).
  render: templateFunction(['string'], () => fail('there is no data to render a text with')),
}

/** The functions by name. They replace those of sprig with the same name. */
export const injectionFunctions: Functions = new Map(Object.entries(given))
