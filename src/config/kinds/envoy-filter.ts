/** EnvoyFilter: patches to the resources made for the proxies that it selects. */
import { presentFilterName } from '../../model/filter-names.ts'
import { canonicalMetadata } from '../../names/mesh-names.ts'
import { regexFault } from '../patterns.ts'
import {
  anything,
  flag,
  integer,
  isMapping,
  list,
  map,
  oneOf,
  type Read,
  type Report,
  record,
  reject,
  required,
  type Shape,
  text,
  unused,
} from '../shape.ts'
import { selectorLabels } from '../shapes/hosts.ts'
import { checkTargets, idleTargets, selectedLabels, targetedBy, targets } from '../shapes/policies.ts'
import { type Kind, networkingVersions } from './kind.ts'

/** Node metadata to match. Alias keys are converted to the mesh form. */
const metadata: Shape<Record<string, string>> = (() => {
  const { form, read } = map(text())
  return {
    form,
    read(value, path, report) {
      const given = read(value, path, report)
      return given && (canonicalMetadata(given) as Record<string, string>)
    },
  }
})()

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
  vhost: record({ name: text(), domainName: text(), route: record({ name: text(), action: oneOf('ANY', 'ROUTE', 'REDIRECT', 'DIRECT_RESPONSE') }) }),
})
const clusterMatch = record({ name: text(), service: text(), subset: text(), portNumber: integer(0, 65_535) })

/** Patch kinds and operations in the order of their enum numbers in the protocol, where 0 is none. */
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
  'BOOTSTRAP',
  'LISTENER_FILTER',
] as const
const operations = ['', 'MERGE', 'ADD', 'REMOVE', 'INSERT_BEFORE', 'INSERT_AFTER', 'INSERT_FIRST', 'REPLACE', 'MERGE_AND_REPLACE_LIST'] as const
const filterClasses = ['UNSPECIFIED', 'AUTHN', 'AUTHZ', 'STATS'] as const

const listenerKinds: ReadonlySet<string> = new Set(['LISTENER', 'FILTER_CHAIN', 'NETWORK_FILTER', 'HTTP_FILTER', 'LISTENER_FILTER'])
const routeKinds: ReadonlySet<string> = new Set(['ROUTE_CONFIGURATION', 'VIRTUAL_HOST', 'HTTP_ROUTE'])
const filterKinds: ReadonlySet<string> = new Set(['NETWORK_FILTER', 'HTTP_FILTER', 'LISTENER_FILTER'])
const merging: ReadonlySet<string> = new Set(['MERGE', 'MERGE_AND_REPLACE_LIST'])

/** Returns why an operation has no effect on what it is applied to. Undefined when it has one. */
function withoutEffect(
  applyTo: string,
  operation: string,
  names: { listenerFilter: boolean; filter: boolean; subFilter: boolean },
): string | undefined {
  if (applyTo === 'BOOTSTRAP') return undefined
  if (applyTo === 'ROUTE_CONFIGURATION' && !merging.has(operation)) return 'ROUTE_CONFIGURATION takes MERGE only'
  if (applyTo === 'EXTENSION_CONFIG' && (merging.has(operation) || operation === 'REMOVE' || operation === 'REPLACE'))
    return 'EXTENSION_CONFIG takes ADD only'
  if (operation === 'REPLACE' && applyTo !== 'VIRTUAL_HOST' && !filterKinds.has(applyTo)) return `${applyTo} does not take REPLACE`
  const named = { LISTENER_FILTER: names.listenerFilter, NETWORK_FILTER: names.filter, HTTP_FILTER: names.filter && names.subFilter }
  const isNamed = !filterKinds.has(applyTo) || named[applyTo as keyof typeof named]
  return !isNamed && (operation === 'REPLACE' || operation === 'REMOVE' || (applyTo === 'LISTENER_FILTER' && merging.has(operation)))
    ? `${operation} needs a match that names the filter`
    : undefined
}

const configPatch = record(
  {
    applyTo: required(oneOf(...patchKinds)),
    match: record({
      context: oneOf('ANY', 'SIDECAR_INBOUND', 'SIDECAR_OUTBOUND', 'GATEWAY', 'WAYPOINT'),
      proxy: record({
        proxyVersion: text({
          max: 1024,
          check: (value, report) => (value === '' ? undefined : regexFault(value, report)),
          examples: ['^1\\..*', ''],
        }),
        metadata,
      }),
      listener: listenerMatch,
      routeConfiguration: routeMatch,
      cluster: clusterMatch,
      waypoint: unused(anything),
    }),
    patch: required(record({ operation: required(oneOf(...operations)), value: anything, filterClass: oneOf(...filterClasses) })),
  },
  (value, path, report) => {
    const operation = value.patch.operation
    if (operation !== 'REMOVE' && (typeof value.patch.value !== 'object' || value.patch.value === null))
      reject(report, `${path}.patch.value`, `required for operation ${operation}`)
    if (value.match?.listener && !listenerKinds.has(value.applyTo)) reject(report, `${path}.match.listener`, `does not fit applyTo ${value.applyTo}`)
    if (value.match?.routeConfiguration && !routeKinds.has(value.applyTo))
      reject(report, `${path}.match.routeConfiguration`, `does not fit applyTo ${value.applyTo}`)
    if (value.match?.cluster && value.applyTo !== 'CLUSTER') reject(report, `${path}.match.cluster`, `does not fit applyTo ${value.applyTo}`)
    if (value.match?.context === 'WAYPOINT')
      report.warnings.push({ path: `${path}.match.context`, reason: 'WAYPOINT has no effect: no proxy of that kind is served' })
    const { listenerFilter, filterChain } = value.match?.listener ?? {}
    const names = {
      listenerFilter: Boolean(listenerFilter),
      filter: Boolean(filterChain?.filter?.name),
      subFilter: Boolean(filterChain?.filter?.subFilter?.name),
    }
    const reason = withoutEffect(value.applyTo, operation, names)
    if (reason !== undefined) report.warnings.push({ path: `${path}.patch.operation`, reason: `has no effect: ${reason}` })
    const { filter } = filterChain ?? {}
    tellDeprecated(listenerFilter, `${path}.match.listener.listenerFilter`, report)
    tellDeprecated(filter?.name, `${path}.match.listener.filterChain.filter.name`, report)
    tellDeprecated(filter?.subFilter?.name, `${path}.match.listener.filterChain.filter.subFilter.name`, report)
    if (filterKinds.has(value.applyTo) && isMapping(value.patch.value)) tellDeprecated(value.patch.value.name, `${path}.patch.value.name`, report)
  },
)

/** Warns of a deprecated name of a filter. */
function tellDeprecated(name: unknown, path: string, { warnings }: Report): void {
  const present = typeof name === 'string' ? presentFilterName(name) : undefined
  if (present !== undefined) warnings.push({ path, reason: `${JSON.stringify(name)} is a deprecated name: use ${JSON.stringify(present)}` })
}

const spec = record(
  {
    workloadSelector: record({ labels: selectorLabels }),
    configPatches: list(configPatch),
    priority: integer(-2_147_483_648, 2_147_483_647),
    targetRefs: targets.targetRefs,
    strict: unused(flag),
  },
  (value, path, report) => checkTargets(targetedBy(value), path, report),
)

/** The kind EnvoyFilter. */
export const envoyFilter = {
  name: 'EnvoyFilter',
  plural: 'envoyfilters',
  group: 'networking',
  versions: networkingVersions,
  spec,
  scope: 'namespace or mesh',
  remarks({ spec }) {
    const bootstrap = (spec.configPatches ?? []).flatMap(({ applyTo }, index) =>
      applyTo === 'BOOTSTRAP'
        ? [
            {
              path: `spec.configPatches[${index}]`,
              reason: 'has no effect yet: the agent makes the bootstrap and applies no patches to it',
            },
          ]
        : [],
    )
    return [...bootstrap, ...idleTargets(targetedBy(spec))]
  },
  selects: { proxies: 'all', labels: (of) => selectedLabels(targetedBy(of)) },
} satisfies Kind<'EnvoyFilter', EnvoyFilterSpec>

export type EnvoyFilterSpec = Read<typeof spec>
export type ConfigPatch = Read<typeof configPatch>
