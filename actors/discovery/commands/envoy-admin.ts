/** The admin interface of an Envoy: what it has, by `/config_dump?include_eds`. */
import { fromJson, type JsonObject } from '@bufbuild/protobuf'
import { AnySchema } from '@bufbuild/protobuf/wkt'
import { contain } from '../../../src/model/faults.ts'
import { objectAt, objectsOf, textOf } from '../../../src/xds/json-fields.ts'
import { ask, reasonOf } from '../../http/single-request.ts'
import { resourceJson, resourceTypes } from '../admin/resource-types.ts'

/** The maximum size of an answer in bytes, and the time that it may take in milliseconds. */
const largestAnswer = 256 * 1_048_576
const longestMs = 30_000

/** A resource that an Envoy has. */
export interface HeldResource {
  readonly name: string
  /** `active`, or `warming`: it waits for what it needs, and the one before is in force. */
  readonly state: 'active' | 'warming'
  /** As {@link import('./proxy-config-rows.ts').SentResource}. */
  readonly resource: JsonObject | undefined
}

/** A secret that an Envoy has, without its value. */
interface HeldSecret {
  readonly name: string
  readonly state: 'active' | 'warming'
  readonly version: string
  readonly updated: string
}

/** What an Envoy has from its control plane. */
export interface EnvoyConfig {
  /** The id of its node. */
  readonly nodeId: string
  readonly clusters: readonly HeldResource[]
  readonly listeners: readonly HeldResource[]
  readonly routes: readonly HeldResource[]
  readonly endpoints: readonly HeldResource[]
  readonly secrets: readonly HeldSecret[]
}

/** Reads what the Envoy at an address has. Rejects with an Error that names the flag and the address. */
export async function envoyConfig(address: string): Promise<EnvoyConfig> {
  const page = (await envoyPage(address, '/config_dump?include_eds')) as { configs?: JsonObject[] }
  const all = page.configs ?? []
  const lists = (field: string) => all.flatMap((config) => objectsOf(config[field]))
  const { nodeId } = bootstrapIn(address, all)
  const held = (state: HeldResource['state'], rows: readonly JsonObject[], field: string, naming = 'name') =>
    rows.map((row): HeldResource => ({ name: textOf(objectAt(row, field)[naming]), state, resource: decoded(objectAt(row, field)) }))
  const states = lists('dynamic_listeners')
  // Endpoints of clusters of other types were not sent as resources.
  const others = new Set(
    lists('dynamic_active_clusters')
      .map((row) => objectAt(row, 'cluster'))
      .filter(({ type }) => type !== 'EDS')
      .map(({ name }) => textOf(name)),
  )
  return {
    nodeId,
    clusters: [...held('active', lists('dynamic_active_clusters'), 'cluster'), ...held('warming', lists('dynamic_warming_clusters'), 'cluster')],
    listeners: (['active', 'warming'] as const).flatMap((state) =>
      held(
        state,
        states.map((row) => objectAt(row, `${state}_state`)).filter((row) => row.listener !== undefined),
        'listener',
      ),
    ),
    routes: held('active', lists('dynamic_route_configs'), 'route_config'),
    endpoints: held('active', lists('dynamic_endpoint_configs'), 'endpoint_config', 'cluster_name').filter(({ name }) => !others.has(name)),
    secrets: [...secrets('active', lists('dynamic_active_secrets')), ...secrets('warming', lists('dynamic_warming_secrets'))],
  }
}

/** Reads what the Envoy at an address was started with. Rejects as {@link envoyConfig} does. */
export async function envoyBootstrap(address: string): Promise<{ nodeId: string; bootstrap: JsonObject }> {
  return bootstrapIn(address, objectsOf(objectAt(await envoyPage(address, '/config_dump')).configs))
}

/** The bootstrap among the parts of a configuration. */
function bootstrapIn(address: string, parts: readonly JsonObject[]): { nodeId: string; bootstrap: JsonObject } {
  const bootstrap = objectAt(
    parts.find((part) => part.bootstrap !== undefined),
    'bootstrap',
  )
  const nodeId = textOf(objectAt(bootstrap, 'node').id)
  if (nodeId === '') throw new Error(`--envoy: ${address} has no configuration of an Envoy`)
  return { nodeId, bootstrap }
}

const secrets = (state: HeldSecret['state'], rows: readonly JsonObject[]): HeldSecret[] =>
  rows.map((row) => ({ name: textOf(row.name), state, version: textOf(row.version_info), updated: textOf(row.last_updated) }))

/** Reads a page of an Envoy as JSON. Rejects with an Error that names the flag and the address. */
export async function envoyPage(address: string, path: string): Promise<unknown> {
  const url = URL.parse(`http://${address.replace(/^http:\/\//, '')}`)
  if (!url || url.hostname === '' || url.pathname !== '/' || url.search !== '')
    throw new Error(`--envoy: ${JSON.stringify(address.slice(0, 100))} is not the address of an admin interface, such as localhost:15000`)
  try {
    const { status, body } = await ask({ url: new URL(path, url) }, { ms: longestMs, bytes: largestAnswer })
    if (status !== 200) throw new Error(`status ${status}`)
    return JSON.parse(body)
  } catch (error) {
    throw new Error(`--envoy: ${url.host}${path}: ${reasonOf(error)}`, { cause: error })
  }
}

/** Reads a resource with the schemas here, so that it is written as what was sent is; undefined: the schema of a type within it is not known. */
const decoded = (resource: JsonObject): JsonObject | undefined =>
  contain<JsonObject | undefined>(
    () => resourceJson(fromJson(AnySchema, resource, { registry: resourceTypes, ignoreUnknownFields: true })),
    () => undefined,
  )
