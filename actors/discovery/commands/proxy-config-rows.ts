/** The rows in which `pilot-discovery proxy-config` shows resources. Resources are JSON with the names of their schema. */
import type { JsonObject, JsonValue } from '@bufbuild/protobuf'
import { objectAt, objectsOf, textOf } from '../../../src/xds/json-fields.ts'

/** A kind of resources that `proxy-config` shows. */
export type ShownKind = 'clusters' | 'listeners' | 'routes' | 'endpoints'

/** A resource as a proxy is sent it. */
export interface SentResource {
  readonly name: string
  readonly version: string
  /** With the names of its schema; undefined: the schema of a type within it is not known. */
  readonly resource: JsonObject | undefined
}

type Rows = { readonly head: readonly string[]; readonly rows: (resource: JsonObject) => string[][] }

const text = (value: JsonValue | undefined, otherwise = '-'): string => textOf(value, otherwise)

/** `outbound|80|v1|reviews.shop.svc.cluster.local`: direction, port, subset and host. */
const clusterName = /^(inbound|outbound)\|(\d*)\|([^|]*)\|(.*)$/

export const clusterRows: Rows = {
  head: ['HOST', 'PORT', 'SUBSET', 'DIRECTION', 'TYPE', 'CLUSTER'],
  rows: (cluster) => {
    const name = text(cluster.name)
    const [, direction = '-', port = '', subset = '', host = ''] = clusterName.exec(name) ?? []
    const type = text(objectAt(cluster, 'cluster_type').name, text(cluster.type, 'STATIC'))
    return [[host || '-', port || '-', subset || '-', direction, type, name]]
  },
}

export const listenerRows: Rows = {
  head: ['ADDRESS', 'PORT', 'MATCH', 'DESTINATION', 'LISTENER'],
  rows: (listener) => {
    const { address, port_value: port, named_port: named } = objectAt(listener, 'address', 'socket_address')
    const pipe = objectAt(listener, 'address', 'pipe').path
    const chains = [...objectsOf(listener.filter_chains), ...objectsOf(listener.default_filter_chain ? [listener.default_filter_chain] : [])]
    const lines = chains.map((chain) => [matchText(chain), destinationOfChain(chain)])
    const name = text(listener.name)
    return (lines.length === 0 ? [['all', '-']] : lines).map(([match = '', destination = '']) => [
      text(address, text(pipe)),
      text(port, text(named)),
      match,
      destination,
      name,
    ])
  },
}

/** What a filter chain matches. */
function matchText(chain: JsonObject): string {
  const match = objectAt(chain, 'filter_chain_match')
  const names = (field: string) => (Array.isArray(match[field]) ? (match[field] as JsonValue[]).map((each) => text(each)).join(',') : '')
  const ranges = objectsOf(match.prefix_ranges).map(({ address_prefix: address, prefix_len: length }) => `${text(address)}/${text(length, '0')}`)
  const parts = [
    ['port', text(match.destination_port, '')],
    ['address', ranges.join(',')],
    ['sni', names('server_names')],
    ['transport', text(match.transport_protocol, '')],
    ['alpn', names('application_protocols')],
  ]
  const told = parts.filter(([, value]) => value !== '').map(([part, value]) => `${part} ${value}`)
  return told.join('; ') || 'all'
}

/** Where the last filter of a chain sends what comes. */
function destinationOfChain(chain: JsonObject): string {
  const filters = objectsOf(chain.filters)
  const config = objectAt(filters.at(-1), 'typed_config')
  const inline = objectAt(config, 'route_config')
  const routes = text(objectAt(config, 'rds').route_config_name, '')
  if (routes !== '') return `routes ${routes}`
  if (Object.keys(inline).length > 0) return `routes of its own: ${text(inline.name, 'without a name')}`
  const weighted = objectsOf(objectAt(config, 'weighted_clusters').clusters).map(({ name, weight }) => `${text(name)} (${text(weight, '0')})`)
  const cluster = text(config.cluster, weighted.join(', '))
  return cluster === '' ? text(filters.at(-1)?.name) : `cluster ${cluster}`
}

export const routeRows: Rows = {
  head: ['ROUTES', 'VIRTUAL HOST', 'DOMAINS', 'MATCH', 'DESTINATION'],
  rows: (configuration) => {
    const isHost = text(configuration['@type'], '').endsWith('.VirtualHost')
    // A host that is a resource of its own is named after the routes that it belongs to.
    const name = text(configuration.name)
    const hosts = isHost ? [configuration] : objectsOf(configuration.virtual_hosts)
    return hosts.flatMap((host) => {
      const domains = Array.isArray(host.domains) ? host.domains.map((domain) => text(domain)) : []
      const shown =
        domains.length > mostDomains ? `${domains.slice(0, mostDomains).join(', ')} and ${domains.length - mostDomains} more` : domains.join(', ')
      const of = isHost ? name.slice(0, Math.max(0, name.indexOf('/'))) || name : name
      return objectsOf(host.routes).map((route) => [of, text(host.name), shown, routeMatch(objectAt(route, 'match')), routeDestination(route)])
    })
  },
}

/** The maximum number of domains in a row. */
const mostDomains = 3

function routeMatch(match: JsonObject): string {
  const path =
    [
      ['prefix', match.prefix],
      ['path', match.path],
      ['prefix', match.path_separated_prefix],
      ['regex', objectAt(match, 'safe_regex').regex],
    ].flatMap(([kind, value]) => (typeof value === 'string' ? [`${kind} ${value}`] : []))[0] ?? 'all'
  const also = [
    ...objectsOf(match.headers).map(({ name }) => `header ${text(name)}`),
    ...objectsOf(match.query_parameters).map(({ name }) => `parameter ${text(name)}`),
  ]
  return [path, ...also].join('; ')
}

function routeDestination(route: JsonObject): string {
  const { redirect, direct_response: direct } = route
  if (redirect !== undefined) return 'redirect'
  if (direct !== undefined) return `response ${text(objectAt(direct).status)}`
  const action = objectAt(route, 'route')
  const weighted = objectsOf(objectAt(action, 'weighted_clusters').clusters).map(({ name, weight }) => `${text(name)} (${text(weight, '0')})`)
  return text(action.cluster, weighted.join(', ') || '-')
}

export const endpointRows: Rows = {
  head: ['ENDPOINT', 'HEALTH', 'WEIGHT', 'PRIORITY', 'LOCALITY', 'CLUSTER'],
  rows: (assignment) =>
    objectsOf(assignment.endpoints).flatMap((group) => {
      const { region, zone, sub_zone: subZone } = objectAt(group, 'locality')
      const locality = [region, zone, subZone].map((part) => text(part, '')).join('/')
      return objectsOf(group.lb_endpoints).map((each) => [
        addressText(objectAt(each, 'endpoint', 'address')),
        text(each.health_status, 'HEALTHY'),
        text(each.load_balancing_weight, '1'),
        text(group.priority, '0'),
        locality.replace(/\/+$/, '') || '-',
        text(assignment.cluster_name),
      ])
    }),
}

/** `<address>:<port>`, the path of a socket, or the listener within the proxy. */
export function addressText(address: JsonObject): string {
  const { address: host, port_value: port } = objectAt(address, 'socket_address')
  if (host !== undefined) return text(host).includes(':') ? `[${text(host)}]:${text(port, '0')}` : `${text(host)}:${text(port, '0')}`
  const internal = objectAt(address, 'envoy_internal_address')
  return text(objectAt(address, 'pipe').path, text(internal.server_listener_name))
}
