/**
 * Golden files. The first document of `<stage>/<behaviour>/in.yaml` gives the proxies and the parts of their resources that are shown; the
 * other documents are the configuration. `out.yaml` holds the shown resources. UPDATE_GOLDEN=1 rewrites the outputs and removes folders
 * without an input.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { parse, stringify } from 'yaml'
import { configDump, loadAssignments, nameTableOf } from '../../actors/discovery/admin/config-dump.ts'
import type { Endpoint, Service } from '../../protocols/data.ts'
import { configKey } from '../../src/config/kinds.ts'
import { readMeshConfig, readMeshNetworks } from '../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../src/config/parse.ts'
import { readNode } from '../../src/model/proxy.ts'
import { Planner } from '../../src/push/planner.ts'
import { registryName } from '../../src/registry/merged-services.ts'
import { slicesOf } from '../../src/registry/slices.ts'
import { resourcesByProxy } from '../harness/made.ts'
import { type GivenProxy, prepareTestProxy } from '../harness/prepared-proxy.ts'
import { names, testSettings } from '../harness/settings.ts'

const root = fileURLToPath(new URL('.', import.meta.url))

interface Asking {
  readonly id: string
  readonly metadata?: Record<string, unknown>
  /** Whether the proxy fetches virtual hosts as separate resources, as Envoy does since 1.40. */
  readonly virtualHosts?: boolean
  /** Whether the proxy says that it has the filter for MySQL. */
  readonly readsMysql?: boolean
}

/** The shown part of a section: everything, the names, some resources by name, or some of their fields (`a.b.c`, also within lists). */
type Shown = true | 'names' | readonly string[] | { readonly names?: readonly string[]; readonly fields: readonly string[] }
type Section = 'clusters' | 'endpoints' | 'listeners' | 'routes' | 'extensions' | 'names'

interface Head {
  /** One proxy. With several, `proxies` gives them by the names that the output uses. */
  readonly proxy?: Asking
  readonly proxies?: Readonly<Record<string, Asking>>
  readonly show: Readonly<Partial<Record<Section, Shown>>>
  /** Whether faults of the generation are shown. Otherwise the test fails if there is one. */
  readonly faults?: boolean
  readonly env?: Record<string, string>
  readonly mesh?: object
  readonly networks?: object
  /** Services of a registry other than ServiceEntries, with their endpoints. */
  readonly services?: readonly { readonly service: Service; readonly endpoints: readonly Endpoint[] }[]
}

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
type Resource = { [key: string]: Json }

const nameOf = (resource: Resource): string => String(resource.name ?? resource.cluster_name)

function generate(content: string): Json {
  const cut = content.indexOf('\n---\n')
  const head = parse(content.slice(0, cut)) as Head
  const settings = testSettings(head.env ?? {})
  const { objects, faults } = parseConfigFile('in.yaml', content.slice(cut + 5), names, undefined, settings.optOuts)
  expect(faults, 'faults of the input').to.deep.equal([])
  const planner = new Planner(settings)
  if (head.mesh) planner.state.setMesh(valid(readMeshConfig(JSON.stringify(head.mesh))))
  if (head.networks) planner.state.setNetworks(valid(readMeshNetworks(JSON.stringify(head.networks))))
  for (const { service, endpoints } of head.services ?? [])
    planner.state.services.set(registryName(service), `${service.namespace}/${service.hostname}`, { service, slices: slicesOf(endpoints) })
  for (const object of objects) planner.state.setConfig(configKey(object), object)
  planner.advance()
  const asking = head.proxies ?? { proxy: head.proxy as Asking }
  const agent = (virtualHosts: boolean | undefined) => ({ name: 'envoy', version: [1, virtualHosts ? 40 : 36] as const })
  for (const [connection, { id, metadata = {}, virtualHosts, readsMysql = false }] of Object.entries(asking))
    planner.connect(connection, readNode({ id, metadata, locality: undefined, agent: agent(virtualHosts), readsMysql }, names, true))
  const received = resourcesByProxy(planner)
  const reported = planner.faults.all()
  if (!head.faults) expect(reported, 'faults of the resources').to.deep.equal([])
  const shown = Object.entries(asking).map(([name]) => [name, show(head, received.get(name) ?? {})] as const)
  const made = head.proxies ? Object.fromEntries(shown) : (shown[0]?.[1] ?? null)
  return head.faults
    ? { ...(made as Resource), faults: reported.map(({ objects, reason, consequence }) => ({ objects: [...objects], reason, consequence })) }
    : made
}

function valid<T>(read: { value: T } | { error: string }): T {
  if ('error' in read) throw new Error(read.error)
  return read.value
}

function show(head: Head, resources: Parameters<typeof configDump>[0]): Json {
  const [clusters, listeners, routes, extensions] = (configDump(resources) as { configs: Record<string, Record<string, Json>[]>[] }).configs
  const sections: Record<Section, Resource[]> = {
    clusters: (clusters?.dynamic_active_clusters ?? []).map((entry) => entry.cluster as Resource),
    endpoints: loadAssignments(resources) as Resource[],
    listeners: (listeners?.dynamic_listeners ?? []).map((entry) => (entry.active_state as { listener: Resource }).listener),
    routes: (routes?.dynamic_route_configs ?? []).map((entry) => entry.route_config as Resource),
    names: [nameTableOf(resources) as Resource].filter((table) => table !== undefined),
    extensions: (extensions?.ecds_filters ?? []).map((entry) => entry.ecds_filter as Resource),
  }
  return Object.fromEntries(
    Object.entries(head.show).map(([section, shown]) => {
      const all = sections[section as Section].sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1))
      if (shown === 'names') return [section, all.map(nameOf)]
      const wanted = shown === true ? undefined : 'fields' in shown ? shown.names : shown
      const fields = typeof shown === 'object' && 'fields' in shown ? shown.fields.map((path) => path.split('.')) : undefined
      const chosen = wanted ? wanted.map((name) => found(all, name, section)) : all
      return [section, chosen.map((resource) => (fields ? { ...nameField(resource), ...(only(resource, fields) as Resource) } : typeFirst(resource)))]
    }),
  )
}

function found(all: readonly Resource[], name: string, section: string): Resource {
  const resource = all.find((candidate) => nameOf(candidate) === name)
  if (!resource) throw new Error(`the proxy has no ${name} among its ${section}: ${all.map(nameOf).join(', ')}`)
  return resource
}

const nameField = (resource: Resource): Resource =>
  'name' in resource ? { name: resource.name as Json } : { cluster_name: resource.cluster_name as Json }

/** Returns the fields at these paths, in the order of the message. */
function only(value: Json, paths: readonly (readonly string[])[]): Json {
  if (paths.some((path) => path.length === 0)) return typeFirst(value)
  if (Array.isArray(value)) return value.map((item) => only(item, paths))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, field]) => {
      const inner = paths.filter(([first]) => first === key).map((path) => path.slice(1))
      return inner.length > 0 ? [[key, only(field, inner)]] : []
    }),
  )
}

/** Returns the value with `@type` as the first field of each message. */
function typeFirst(value: Json): Json {
  if (Array.isArray(value)) return value.map(typeFirst)
  if (typeof value !== 'object' || value === null) return value
  const { '@type': type, ...rest } = value
  const fields = Object.fromEntries(Object.entries(rest).map(([key, field]) => [key, typeFirst(field)]))
  return type === undefined ? fields : { '@type': type, ...fields }
}

/** Returns the bootstrap, arguments and warnings of an agent's proxy, reduced to the paths that `show` of the input lists. */
function prepare(content: string): Json {
  const { show: paths, ...given } = parse(content) as GivenProxy & { readonly show: readonly string[] }
  const { bootstrap, args, warnings } = prepareTestProxy(given)
  return only(
    JSON.parse(JSON.stringify({ bootstrap, args, warnings })),
    paths.map((path) => path.split('.')),
  )
}

const written = (made: Json): string => stringify(made, { aliasDuplicateObjects: false, lineWidth: 140, indentSeq: false })

const folders = (path: string): string[] =>
  readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()

/** Removes behaviours without an input, and the stage if no behaviour is left. */
function prune(stage: string): void {
  for (const behaviour of folders(stage)) if (!existsSync(join(stage, behaviour, 'in.yaml'))) rmSync(join(stage, behaviour), { recursive: true })
  if (folders(stage).length === 0) rmSync(stage, { recursive: true })
}

describe('golden files', () => {
  if (process.env.UPDATE_GOLDEN) for (const stage of folders(root)) prune(join(root, stage))
  for (const stage of folders(root)) {
    describe(stage, () => {
      for (const behaviour of folders(join(root, stage))) {
        const input = join(root, stage, behaviour, 'in.yaml')
        const output = join(root, stage, behaviour, 'out.yaml')
        it(behaviour, () => {
          const make = stage === 'bootstrap' ? prepare : generate
          const made = written(make(readFileSync(input, 'utf8')))
          if (process.env.UPDATE_GOLDEN) writeFileSync(output, made)
          expect(made).to.equal(readFileSync(output, 'utf8'))
        })
      }
    })
  }
})
