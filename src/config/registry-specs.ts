/** The documents that add services and workloads, and EnvoyFilter. */
import { isIp, isIpOrCidr } from './addresses.ts'
import { regexFault } from './patterns.ts'
import { anything, flag, integer, list, map, oneOf, type Read, record, reject, required, text, unused } from './shape.ts'

const labels = map(text({ max: 1024 }))
const address = text({ max: 1024 })

const workload = record({
  address,
  ports: map(integer(1, 65_535)),
  labels,
  network: text(),
  locality: text(),
  weight: integer(0, 4_294_967_295),
  serviceAccount: text(),
})

/** Shape of a WorkloadEntry's spec. */
export const workloadEntrySpec = record({
  address: required(address),
  ports: map(integer(1, 65_535)),
  labels,
  network: text(),
  locality: text(),
  weight: integer(0, 4_294_967_295),
  serviceAccount: text(),
})

/** Shape of a ServiceEntry's spec. */
export const serviceEntrySpec = record(
  {
    hosts: required(list(text({ max: 253, pattern: /^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$/, what: 'a host name' }), { min: 1 })),
    addresses: list(address),
    ports: required(
      list(record({ number: required(integer(1, 65_535)), protocol: text(), name: required(text({ max: 256 })), targetPort: integer(0, 65_535) }), {
        min: 1,
        max: 4096,
      }),
    ),
    location: oneOf('MESH_EXTERNAL', 'MESH_INTERNAL'),
    resolution: oneOf('NONE', 'STATIC', 'DNS', 'DNS_ROUND_ROBIN'),
    endpoints: list(workload),
    workloadSelector: record({ labels }),
    exportTo: list(text()),
    subjectAltNames: list(text()),
  },
  (value, path, report) => {
    const numbers = new Set<number>()
    const names = new Set<string>()
    for (const [index, port] of value.ports.entries()) {
      if (numbers.has(port.number)) reject(report, `${path}.ports[${index}].number`, `${port.number} is used twice`)
      if (names.has(port.name)) reject(report, `${path}.ports[${index}].name`, `${port.name} is used twice`)
      numbers.add(port.number)
      names.add(port.name)
    }
    if (value.workloadSelector && value.endpoints?.length) reject(report, `${path}.endpoints`, 'excluded by workloadSelector')
    const resolution = value.resolution ?? 'NONE'
    if (resolution === 'NONE' && value.endpoints?.length) reject(report, `${path}.endpoints`, 'not allowed with resolution NONE')
    for (const [index, entry] of (value.addresses ?? []).entries()) {
      if (!isIpOrCidr(entry)) reject(report, `${path}.addresses[${index}]`, `${JSON.stringify(entry)} is not an IP address or CIDR`)
      else if (entry.includes('/') && resolution.startsWith('DNS'))
        reject(report, `${path}.addresses[${index}]`, 'a CIDR needs resolution NONE or STATIC')
    }
    for (const [index, endpoint] of (value.endpoints ?? []).entries()) {
      const at = `${path}.endpoints[${index}].address`
      if (!endpoint.address) {
        if (!endpoint.network) reject(report, at, 'required, but missing')
      } else if (resolution === 'STATIC' && !endpoint.address.startsWith('unix://') && !isIp(endpoint.address)) {
        reject(report, at, `${JSON.stringify(endpoint.address)} is not an IP address (resolution STATIC)`)
      } else if (resolution.startsWith('DNS') && !/^[A-Za-z0-9_.:-]+$/.test(endpoint.address)) {
        reject(report, at, `${JSON.stringify(endpoint.address)} is not a host name or IP address`)
      }
    }
    if (resolution.startsWith('DNS') && !value.endpoints?.length && !value.workloadSelector && value.hosts.some((name) => name.startsWith('*'))) {
      reject(report, `${path}.hosts`, 'a wildcard host needs endpoints when resolution is DNS')
    }
  },
)

/** Shape of a WorkloadGroup's spec. */
export const workloadGroupSpec = record({ metadata: record({ labels, annotations: labels }), template: required(workload), probe: anything })

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
      proxy: record({ proxyVersion: text({ max: 1024, check: regexFault, examples: ['^1\\..*', ''] }), metadata: map(text()) }),
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

/** Shape of an EnvoyFilter's spec. */
export const envoyFilterSpec = record({
  workloadSelector: record({ labels }),
  configPatches: list(configPatch),
  priority: integer(-2_147_483_648, 2_147_483_647),
  targetRefs: unused(anything),
  strict: flag,
})

export type ServiceEntrySpec = Read<typeof serviceEntrySpec>
export type WorkloadEntrySpec = Read<typeof workloadEntrySpec>
export type WorkloadGroupSpec = Read<typeof workloadGroupSpec>
export type EnvoyFilterSpec = Read<typeof envoyFilterSpec>
export type ConfigPatch = Read<typeof configPatch>
