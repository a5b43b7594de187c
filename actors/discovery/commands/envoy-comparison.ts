/** `pilot-discovery proxy-config --envoy`: what an Envoy has, beside what it was sent. */
import type { JsonObject, JsonValue } from '@bufbuild/protobuf'
import { isColoured, print, printJson } from '../../../src/cli/print.ts'
import { type Cell, table } from '../../../src/cli/table.ts'
import { oneLine } from '../../../src/logging/layout.ts'
import { count } from '../../../src/model/counts.ts'
import { compare } from '../../../src/model/order.ts'
import { nameOfNode } from '../../../src/model/proxy.ts'
import { type Difference, differences } from '../../../src/xds/differences.ts'
import { virtualHostType } from '../../../src/xds/type-urls.ts'
import { type EnvoyConfig, envoyConfig, type HeldResource } from './envoy-admin.ts'
import { endpointRows, type SentResource, type ShownKind } from './proxy-config-rows.ts'

/** How a resource that an Envoy has compares with the one that it was sent. */
type Comparison = 'SAME' | 'DIFFERS' | 'MISSING' | 'WARMING' | 'NOT SENT' | 'UNKNOWN'

interface Row {
  readonly name: string
  readonly status: Comparison
  readonly differences: readonly Difference[]
}

const meanings = { SAME: 'good', DIFFERS: 'bad', MISSING: 'bad', WARMING: 'warning', 'NOT SENT': 'bad', UNKNOWN: 'warning' } as const
const explained: Readonly<Record<Comparison, string>> = {
  SAME: '-',
  DIFFERS: '',
  MISSING: 'it was sent, and the Envoy does not have it',
  WARMING: 'it waits for endpoints, routes or secrets; the one before is in force, if there was one',
  'NOT SENT': 'the Envoy has it, and it is not sent any more',
  UNKNOWN: 'it has a type that is not known here, and is not compared',
}

/** Reads what the Envoy of a proxy has. Throws an Error when the Envoy at the address is another one. */
export async function configOfEnvoy(address: string, nodeId: string): Promise<EnvoyConfig> {
  const held = await envoyConfig(address)
  checkEnvoy(address, held.nodeId, nodeId)
  return held
}

/** Throws an Error when the Envoy at an address is not that of a proxy. */
export function checkEnvoy(address: string, heldId: string, nodeId: string): void {
  if (heldId !== nodeId) throw new Error(`--envoy: the Envoy at ${address} is ${nameOfNode(heldId)}, not ${nameOfNode(nodeId)}`)
}

/** Prints how resources of a kind compare. The exit status is 1 when some differ. */
export function printComparison(kind: ShownKind, proxy: string, sent: readonly SentResource[], held: readonly HeldResource[], isJson: boolean): void {
  const rows = compared(kind, sent, held)
  const differing = rows.filter(({ status }) => status !== 'SAME')
  if (isJson) printJson({ proxy, [kind]: rows })
  else {
    const lines = differing.flatMap(({ name, status, differences: found }): Cell[][] => {
      const cell = { text: status, means: meanings[status] }
      return found.length === 0
        ? [[name, cell, explained[status]]]
        : found.map((one, index) => [index === 0 ? name : '', index === 0 ? cell : '', differenceText(one)])
    })
    if (lines.length > 0) print(`${table([kind.slice(0, -1).toUpperCase(), 'STATUS', 'DIFFERENCE'], lines, isColoured())}\n`)
    print(oneLine(`${proxy} has ${rows.length - differing.length} of ${count(rows.length, kind.slice(0, -1))} as sent`))
  }
  if (differing.length > 0) process.exitCode = 1
}

const differenceText = ({ field, sent, held }: Difference): string => `${field}: sent ${shown(sent)}, has ${shown(held)}`

/** The maximum length of a value in a table, in characters. */
const longestValue = 100

function shown(value: JsonValue | undefined): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value)
  return text.length > longestValue ? `${text.slice(0, longestValue)}…` : text
}

function compared(kind: ShownKind, sent: readonly SentResource[], held: readonly HeldResource[]): Row[] {
  const wanted = new Map((kind === 'routes' ? withOwnHosts(sent) : sent).map((each) => [each.name, each.resource]))
  const active = new Map(held.filter(({ state }) => state === 'active').map((each) => [each.name, each.resource]))
  const warming = new Map(held.filter(({ state }) => state === 'warming').map((each) => [each.name, each.resource]))
  const names = [...new Set([...wanted.keys(), ...active.keys(), ...warming.keys()])].sort(compare)
  return names.map((name): Row => {
    const none = { name, differences: [] }
    if (!wanted.has(name)) return { ...none, status: 'NOT SENT' }
    if (warming.has(name)) return { ...none, status: 'WARMING' }
    if (!active.has(name)) return { ...none, status: 'MISSING' }
    const [one, other] = [wanted.get(name), active.get(name)]
    if (!one || !other) return { ...none, status: 'UNKNOWN' }
    const found = differences(comparable(kind, one), comparable(kind, other))
    return { name, status: found.length === 0 ? 'SAME' : 'DIFFERS', differences: found }
  })
}

/** Routes with the virtual hosts that are resources of their own, as an Envoy has them. */
function withOwnHosts(sent: readonly SentResource[]): SentResource[] {
  const isHost = ({ resource }: SentResource) => resource?.['@type'] === virtualHostType
  const hosts = sent.filter(isHost)
  return sent
    .filter((each) => !isHost(each))
    .map((each) => {
      const own = hosts.filter(({ name }) => name.startsWith(`${each.name}/`)).flatMap(({ resource }): JsonObject[] => (resource ? [resource] : []))
      if (own.length === 0 || !each.resource) return each
      const { virtual_hosts: others = [] } = each.resource as { virtual_hosts?: JsonValue[] }
      return { ...each, resource: { ...each.resource, virtual_hosts: [...others, ...own.map(({ '@type': _, ...host }) => host)] } }
    })
}

/** The part of a resource that counts: of endpoints, what is in their rows, since an Envoy has more fields of them; of routes, hosts in any order. */
function comparable(kind: ShownKind, resource: JsonObject): JsonValue {
  if (kind === 'endpoints') {
    const rows = endpointRows
      .rows(resource)
      .map(([address = '', health = '', weight = '', priority = '', locality = '']) => [address, { health, weight, priority, locality }] as const)
    return Object.fromEntries(rows.sort(([one], [other]) => compare(one, other)))
  }
  if (kind !== 'routes') return resource
  const hosts = (resource.virtual_hosts ?? []) as JsonObject[]
  return { ...resource, virtual_hosts: Object.fromEntries(hosts.map((host) => [String(host.name), host])) }
}
