/** EnvoyFilter: patches to what is made for the proxies that it selects. */
import { regexFault } from '../patterns.ts'
import { anything, flag, integer, list, map, oneOf, type Read, record, reject, required, text, unused } from '../shape.ts'
import { labels } from '../shapes/hosts.ts'
import { type Kind, networkingVersions } from './kind.ts'

const listenerMatch = record({
  name: text(),
  portNumber: integer(0, 65_535),
  portName: text(),
  listenerFilter: text(),
  filterChain: record({
    name: text(),
    sni: text(),
    transportProtocol: text(),
    applicationProtocols: text(),
    destinationPort: integer(0, 65_535),
    filter: record({ name: text(), subFilter: record({ name: text() }) }),
  }),
})
const routeMatch = record({
  name: text(),
  portNumber: integer(0, 65_535),
  portName: text(),
  gateway: text(),
  vhost: record({ name: text(), route: record({ name: text(), action: oneOf('ANY', 'ROUTE', 'REDIRECT', 'DIRECT_RESPONSE') }) }),
})
const clusterMatch = record({ name: text(), service: text(), subset: text(), portNumber: integer(0, 65_535) })

/** In the order of their numbers in the protocol, where 0 is no kind, and no operation. */
const patchKinds = [
  '',
  'LISTENER',
  'FILTER_CHAIN',
  'NETWORK_FILTER',
  'HTTP_FILTER',
  'ROUTE_CONFIGURATION',
  'VIRTUAL_HOST',
  'HTTP_ROUTE',
  'CLUSTER',
  'EXTENSION_CONFIG',
] as const
const operations = ['', 'MERGE', 'ADD', 'REMOVE', 'INSERT_BEFORE', 'INSERT_AFTER', 'INSERT_FIRST', 'REPLACE'] as const

const configPatch = record(
  {
    applyTo: required(oneOf(...patchKinds)),
    match: record({
      context: oneOf('ANY', 'SIDECAR_INBOUND', 'SIDECAR_OUTBOUND', 'GATEWAY'),
      proxy: record({
        proxyVersion: text({
          max: 1024,
          check: (value, report) => (value === '' ? undefined : regexFault(value, report)),
          examples: ['^1\\..*', ''],
        }),
        metadata: map(text()),
      }),
      listener: listenerMatch,
      routeConfiguration: routeMatch,
      cluster: clusterMatch,
    }),
    patch: required(record({ operation: required(oneOf(...operations)), value: anything, filterClass: unused(anything) })),
  },
  (value, path, report) => {
    const operation = value.patch.operation
    if (operation !== 'REMOVE' && (typeof value.patch.value !== 'object' || value.patch.value === null))
      reject(report, `${path}.patch.value`, `required for operation ${operation}`)
    const listenerSide = ['LISTENER', 'FILTER_CHAIN', 'NETWORK_FILTER', 'HTTP_FILTER'].includes(value.applyTo)
    const routeSide = ['ROUTE_CONFIGURATION', 'VIRTUAL_HOST', 'HTTP_ROUTE'].includes(value.applyTo)
    if (value.match?.listener && !listenerSide) reject(report, `${path}.match.listener`, `does not fit applyTo ${value.applyTo}`)
    if (value.match?.routeConfiguration && !routeSide) reject(report, `${path}.match.routeConfiguration`, `does not fit applyTo ${value.applyTo}`)
    if (value.match?.cluster && value.applyTo !== 'CLUSTER') reject(report, `${path}.match.cluster`, `does not fit applyTo ${value.applyTo}`)
    if (value.applyTo === 'ROUTE_CONFIGURATION' && operation !== 'MERGE')
      reject(report, `${path}.patch.operation`, 'ROUTE_CONFIGURATION takes MERGE only')
    if (value.applyTo === 'EXTENSION_CONFIG' && operation !== 'ADD') reject(report, `${path}.patch.operation`, 'EXTENSION_CONFIG takes ADD only')
    if (operation === 'REPLACE' && !['NETWORK_FILTER', 'HTTP_FILTER'].includes(value.applyTo))
      reject(report, `${path}.patch.operation`, `${value.applyTo} does not take REPLACE`)
  },
)

const spec = record({
  workloadSelector: record({ labels }),
  configPatches: list(configPatch),
  priority: integer(-2_147_483_648, 2_147_483_647),
  targetRefs: unused(anything),
  strict: flag,
})

/** The kind EnvoyFilter. */
export const envoyFilter = {
  name: 'EnvoyFilter',
  plural: 'envoyfilters',
  group: 'networking',
  versions: networkingVersions,
  spec,
  scope: 'namespace or mesh',
  selects: { proxies: 'all', labels: ({ workloadSelector }) => workloadSelector?.labels },
} satisfies Kind<'EnvoyFilter', EnvoyFilterSpec>

export type EnvoyFilterSpec = Read<typeof spec>
export type ConfigPatch = Read<typeof configPatch>
