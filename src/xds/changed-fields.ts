/**
 * What differs between two states of a resource, by meaning: items of lists are found again by their names or addresses, and not by their places.
 * Resources are JSON with the names of their schema.
 */
import type { JsonValue } from '@bufbuild/protobuf'
import { isObject } from './json-fields.ts'

/** A field that differs; a value is undefined where the field is not set. */
export interface ChangedField {
  readonly field: string
  readonly before: JsonValue | undefined
  readonly now: JsonValue | undefined
}

/** The lists whose order means nothing. */
const unordered: ReadonlySet<string> = new Set(['virtual_hosts', 'endpoints', 'lb_endpoints', 'filter_chains', 'clusters', 'domains'])

/** Returns the first `most` fields that differ, and the number of others. */
export function changedFields(
  before: JsonValue,
  now: JsonValue,
  most: number,
): { readonly fields: readonly ChangedField[]; readonly others: number } {
  const found = new Found(most)
  found.compare('', before, now)
  return found
}

class Found {
  readonly fields: ChangedField[] = []
  others = 0
  readonly #most: number

  constructor(most: number) {
    this.#most = most
  }

  compare(field: string, before: JsonValue | undefined, now: JsonValue | undefined): void {
    if (before === now) return
    if (Array.isArray(before) && Array.isArray(now)) return this.#lists(field, before, now)
    if (!isObject(before) || !isObject(now) || before['@type'] !== now['@type']) return this.#add(field, before, now)
    for (const name of new Set([...Object.keys(before), ...Object.keys(now)]))
      this.compare(field === '' ? name : `${field}.${name}`, before[name], now[name])
  }

  #add(field: string, before: JsonValue | undefined, now: JsonValue | undefined): void {
    if (this.fields.length < this.#most) this.fields.push({ field, before, now })
    else this.others++
  }

  #lists(field: string, before: readonly JsonValue[], now: readonly JsonValue[]): void {
    const [old, own] = [byKey(before), byKey(now)]
    if (old && own) this.#named(field, old, own)
    else this.#placed(field, before, now)
  }

  #named(field: string, before: ReadonlyMap<string, JsonValue>, now: ReadonlyMap<string, JsonValue>): void {
    for (const key of new Set([...before.keys(), ...now.keys()])) this.compare(`${field}[${key}]`, before.get(key), now.get(key))
    if (unordered.has(field.slice(field.lastIndexOf('.') + 1))) return
    const [old, own] = [[...before.keys()].filter((key) => now.has(key)), [...now.keys()].filter((key) => before.has(key))]
    if (old.join('\n') !== own.join('\n')) this.#add(`${field} (order)`, old, own)
  }

  /** Compares lists whose items have no names: what both begin and end with is left out. */
  #placed(field: string, before: readonly JsonValue[], now: readonly JsonValue[]): void {
    const [old, own] = [before.map((item) => JSON.stringify(item)), now.map((item) => JSON.stringify(item))]
    const least = Math.min(old.length, own.length)
    let start = 0
    while (start < least && old[start] === own[start]) start++
    let end = 0
    while (end < least - start && old.at(-1 - end) === own.at(-1 - end)) end++
    const most = Math.max(old.length, own.length) - end
    for (let index = start; index < most; index++)
      this.compare(`${field}[${index}]`, index < before.length - end ? before[index] : undefined, index < now.length - end ? now[index] : undefined)
  }
}

/** The items of a list by their keys; undefined where some item has none, or two have the same. */
function byKey(items: readonly JsonValue[]): ReadonlyMap<string, JsonValue> | undefined {
  const found = new Map<string, JsonValue>()
  for (const item of items) {
    const key = keyOf(item)
    if (key === undefined || found.has(key)) return undefined
    found.set(key, item)
  }
  return found
}

/** What identifies an item of a list: a name, the address of an endpoint, the place of a group of endpoints, or, of a text, itself. */
function keyOf(item: JsonValue): string | undefined {
  if (typeof item === 'string') return item
  if (!isObject(item)) return undefined
  if (typeof item.name === 'string' && item.name !== '') return item.name
  const { endpoint, locality, lb_endpoints: endpoints, priority = 0 } = item
  if (isObject(endpoint)) return addressOf(endpoint.address)
  if (endpoints === undefined && locality === undefined) return undefined
  const { region = '', zone = '', sub_zone: subZone = '' } = isObject(locality) ? locality : {}
  return `${[region, zone, subZone].join('/').replace(/\/+$/, '')} priority ${priority}`.trim()
}

function addressOf(address: JsonValue | undefined): string | undefined {
  if (!isObject(address)) return undefined
  const { socket_address: socket, pipe, envoy_internal_address: internal } = address
  if (isObject(socket)) return `${socket.address}:${socket.port_value ?? 0}`
  if (isObject(pipe)) return String(pipe.path)
  return isObject(internal) ? `${internal.server_listener_name}/${internal.endpoint_id ?? ''}` : undefined
}
