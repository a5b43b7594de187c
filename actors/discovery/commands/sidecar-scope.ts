/** `pilot-discovery sidecar-scope`: the Sidecar that cuts what a proxy never uses. */
import type { JsonObject, JsonValue } from '@bufbuild/protobuf'
import { stringify } from 'yaml'
import type { ProxySidecar } from '../../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { print, printJson } from '../../../src/cli/print.ts'
import { span } from '../../../src/cli/table.ts'
import { readFeatures } from '../../../src/config/features.ts'
import { oneLine } from '../../../src/logging/layout.ts'
import { count } from '../../../src/model/counts.ts'
import { compare } from '../../../src/model/order.ts'
import { nameOfNode } from '../../../src/model/proxy.ts'
import { isObject, objectAt, objectsOf } from '../../../src/xds/json-fields.ts'
import { clusterType, routeType, virtualHostType } from '../../../src/xds/type-urls.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { ServerFlags } from './asked-server.ts'
import { checkEnvoy } from './envoy-comparison.ts'
import { type EnvoyUsage, envoyUsage } from './envoy-usage.ts'
import { isEgressProxy, narrowedSpec, routedIn } from './narrowed-sidecar.ts'
import { sentResources } from './proxy-config.ts'
import type { SentResource } from './proxy-config-rows.ts'

/** The flags of the command. */
interface Flags extends ServerFlags {
  readonly envoy: string
  readonly selector: readonly string[]
}

/** The labels by which an application is named, the first of which counts. */
const naming = ['app', 'app.kubernetes.io/name', 'service.istio.io/canonical-name']
/** The maximum number of hosts that a comment names. */
const mostNamed = 10

/** Prints the Sidecar as YAML, with what it is made from in comments. */
export async function sidecarScope(flags: Flags, proxy: string): Promise<void> {
  if (flags.envoy === '') throw new Error('--envoy: the address of the admin interface of its Envoy is needed, such as localhost:15000')
  const selector = selectorOf(flags.selector)
  const { nodeId, resources, sidecar: inForce } = await sentResources(flags, proxy, [clusterType, routeType, virtualHostType], { sidecar: true })
  const name = nameOfNode(nodeId)
  if (!nodeId.startsWith('sidecar~')) throw new Error(`${name} is a gateway: a Sidecar has no effect on it`)
  const before = sidecarBefore(inForce, name)
  if (before?.selects && flags.selector.length > 0)
    throw new Error(
      `--selector: ${before.title} selects the workload of ${name}, and another one would have no effect: without --selector it is replaced`,
    )
  const usage = await envoyUsage(flags.envoy, resources)
  checkEnvoy(flags.envoy, usage.nodeId, nodeId)
  const viewer = name.slice(name.lastIndexOf('.') + 1)
  const hosts = new Hosts(resources, usage, (host) => isEgressProxy(before?.spec ?? {}, host, viewer))
  const spec = narrowedSpec(before?.spec ?? {}, { hosts: hosts.kept, routedIn: routedIn(resources.map(({ resource }) => resource)), viewer })
  const labels = () => (flags.selector.length > 0 ? selector : ownLabels(usage.labels, name))
  const sidecar = before?.selects ? { ...before.document, spec } : newSidecar(viewer, labels(), spec, inForce?.names ?? [])
  const passed = usage.clusters.get('PassthroughCluster') ?? 0
  if (flags.json)
    return printJson({
      ...{ proxy: name, since: new Date(usage.since).toISOString(), used: hosts.used, unused: hosts.unused, connectionsToOtherHosts: passed },
      ...(before && { [before.selects ? 'replaces' : 'madeFrom']: before.title }),
      sidecar,
    })
  print(
    `${[...comments(name, usage, hosts, passed), ...origin(before)]
      .map((line) => `# ${oneLine(line)}\n`)
      .join('')}${stringify(sidecar, { lineWidth: 0 }).trimEnd()}`,
  )
}

/** Returns the labels of flags `name=value`. Throws an Error that names one that cannot be read. */
function selectorOf(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((text) => {
      const [, label = '', value = ''] = /^([^=\s]+)=([^=\s]*)$/.exec(text) ?? []
      if (label === '') throw new Error(`--selector: ${JSON.stringify(text.slice(0, 100))} is not <name>=<value>`)
      return [label, value] as const
    }),
  )
}

function ownLabels(labels: Readonly<Record<string, string>>, proxy: string): Record<string, string> {
  const label = naming.find((each) => labels[each])
  if (label === undefined) throw new Error(`${proxy} has none of the labels ${naming.join(', ')}: name one that selects its workload with --selector`)
  return { [label]: labels[label] as string }
}

/** The Sidecar in force before the one that is printed. */
interface SidecarBefore {
  /** Its kind, name and place, for people. */
  readonly title: string
  readonly document: JsonObject
  readonly spec: JsonObject
  /** Whether it selects workloads; otherwise it is that of its namespace, or of the mesh. */
  readonly selects: boolean
}

/** Returns the Sidecar in force; undefined: none is. Throws an Error when it is not told: what is printed would lose its fields. */
function sidecarBefore(told: ProxySidecar | undefined, proxy: string): SidecarBefore | undefined {
  if (!told) throw new Error('the server does not say which Sidecar is in force: it is of an earlier version')
  const { reference, object } = told
  if (!reference) return undefined
  const title = `Sidecar ${reference.namespace}/${reference.name}${reference.place === '' ? '' : ` (${reference.place})`}`
  if (!object) throw new Error(`${title} is in force for ${proxy}, and its fields are shown only to those who may see its namespace`)
  const spec = objectAt(object, 'spec')
  const selector = objectAt(spec, 'workloadSelector')
  return { title, document: object, spec, selects: isObject(selector.labels) || isObject(selector.matchLabels) }
}

/** A Sidecar for the workloads with some labels alone, with a name that no other one of the namespace has. */
function newSidecar(
  namespace: string,
  labels: Readonly<Record<string, string>>,
  { workloadSelector: _, ...spec }: JsonObject,
  taken: readonly string[],
) {
  const { MESH_DOMAIN } = readFeatures(process.env).features
  const base =
    Object.values(labels)
      .join('-')
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]+/g, '-')
      .replaceAll(/^-+|-+$/g, '') || 'scope'
  let name = base
  for (let number = 2; taken.includes(name); number++) name = `${base}-${number}`
  return {
    apiVersion: `networking.${MESH_DOMAIN}/v1`,
    kind: 'Sidecar',
    metadata: { name, namespace },
    spec: { workloadSelector: { labels }, ...spec },
  }
}

function origin(before: SidecarBefore | undefined): string[] {
  if (!before) return []
  const { title, selects } = before
  if (selects) return [`It replaces ${title}, for all workloads that this one selects; of its fields only egress.hosts are others.`]
  return [`It is ${title} with this selector and these egress.hosts; for other workloads that one stays in force.`]
}

function comments(name: string, { since, clusters }: EnvoyUsage, { used, unused }: Hosts, passed: number): string[] {
  const named = (hosts: readonly string[]) =>
    `${hosts.slice(0, mostNamed).join(', ')}${hosts.length > mostNamed ? ` and ${hosts.length - mostNamed} more` : ''}`
  return [
    `${name} uses ${used.length} of the ${count(used.length + unused.length, 'host')} that it is sent, by the statistics of its Envoy`,
    `from ${new Date(since).toISOString()} on (${span(wallClockMs() - since)}); what it has not used since is left out.`,
    ...(unused.length > 0 ? [`Not used: ${named(unused)}`] : []),
    ...(passed > 0 ? [`${count(passed, 'connection')} went to addresses of no host that it is sent; the Sidecar does not change that.`] : []),
    ...(clusters.size === 0 ? ['Its Envoy shows no statistics of clusters.'] : []),
  ]
}

/** The hosts that a proxy is sent, as a Sidecar names them: `<namespace>/<host>`. */
class Hosts {
  readonly used: readonly string[]
  readonly unused: readonly string[]
  /** Those that are used, and those that are needed all the same. */
  readonly kept: readonly string[]

  constructor(resources: readonly SentResource[], { clusters }: EnvoyUsage, isNeeded: (host: string) => boolean) {
    const namespaces = new Map(resources.flatMap(({ resource }) => (resource ? servicesOf(resource) : [])))
    const all = new Map<string, boolean>()
    const see = (host: string, isUsed: boolean) => all.set(host, isUsed || (all.get(host) ?? false))
    const isUsed = (cluster: string) => (clusters.get(cluster) ?? 0) > 0
    for (const { name } of resources) {
      const host = outboundHost(name)
      if (host !== undefined) see(host, isUsed(name))
    }
    // A route of a host may lead to others: without the host these would not be found. A host that is a resource of its own has the name of its routes
    // before a slash.
    for (const { resource } of resources) {
      const hosts = resource?.virtual_hosts ?? (resource?.domains ? [resource] : [])
      for (const host of hosts as JsonObject[]) {
        const name = String(host.name)
          .replace(/^.*[/]/, '')
          .replace(/:\d+$/, '')
        if (name.includes('.') && clustersIn(host.routes).some(isUsed)) see(name, true)
      }
    }
    const written = (isMeant: (host: string, isUsed: boolean) => boolean) =>
      [...all].flatMap(([host, is]) => (isMeant(host, is) ? `${namespaces.get(host) ?? '*'}/${host}` : [])).sort(compare)
    this.used = written((_, is) => is)
    this.unused = written((_, is) => !is)
    this.kept = written((host, is) => is || isNeeded(host))
  }
}

/** The host of an outbound cluster: `outbound|80|v1|reviews.shop.svc.cluster.local`. */
const outboundHost = (cluster: string): string | undefined => /^outbound\|\d+\|[^|]*\|(.+)$/.exec(cluster)?.[1]

/** The services that a cluster stands for, with their namespaces. */
function servicesOf(cluster: JsonObject): [host: string, namespace: string][] {
  const { services } = objectAt(cluster.metadata, 'filter_metadata', 'istio')
  return objectsOf(services).map(({ host, namespace }) => [String(host), String(namespace)])
}

/** The clusters that routes lead to, mirrors included. */
function clustersIn(value: JsonValue | undefined): string[] {
  if (Array.isArray(value)) return value.flatMap(clustersIn)
  return Object.entries(objectAt(value)).flatMap(([field, inner]) => {
    if (field === 'cluster' && typeof inner === 'string') return [inner]
    if (field === 'clusters' && Array.isArray(inner)) return objectsOf(inner).map(({ name }) => String(name))
    return clustersIn(inner)
  })
}
