/** A Sidecar with fewer hosts: what `sidecar-scope` makes of the Sidecar in force. */
import type { JsonObject } from '@bufbuild/protobuf'
import { hostCovers } from '../../../src/model/match.ts'
import { objectAt, objectsOf, textOf } from '../../../src/xds/json-fields.ts'

/** The hosts that stay, and what decides how they are written. */
export interface KeptHosts {
  /** `<namespace of the service>/<host>`; the namespace is `*` where it is not known. */
  readonly hosts: readonly string[]
  /** The namespaces of VirtualServices whose routes the proxy has. */
  readonly routedIn: ReadonlySet<string>
  /** The namespace of the proxy. */
  readonly viewer: string
}

/**
 * Returns the spec of a Sidecar that imports of the hosts of each listener only those that stay. All other fields are kept. Without listeners it
 * imports all hosts, so that one is made.
 */
export function narrowedSpec(spec: JsonObject, kept: KeptHosts): JsonObject {
  const egress = objectsOf(spec.egress)
  return {
    ...spec,
    egress: (egress.length > 0 ? egress : [{ hosts: ['*/*'] }]).map((entry) => ({ ...entry, hosts: narrowedHosts(entry.hosts, kept) })),
  }
}

/** Whether a host is the one to which a Sidecar sends what goes to unknown hosts: without it these could not be reached any more. */
export function isEgressProxy(spec: JsonObject, host: string, viewer: string): boolean {
  const proxy = textOf(objectAt(spec, 'outboundTrafficPolicy', 'egressProxy').host).toLowerCase()
  return proxy !== '' && names(proxy, host, viewer)
}

function narrowedHosts(listed: unknown, kept: KeptHosts): string[] {
  const patterns = Array.isArray(listed) ? listed.map(String) : []
  const hosts = kept.hosts.flatMap((host) => narrowedTo(host, patterns, kept))
  // Exclusions go on to hold for what a wildcard host covers.
  return hosts.length === 0 ? ['~/*'] : [...new Set(hosts), ...patterns.filter((pattern) => pattern.startsWith('~'))]
}

/** What is left of the patterns that import a host when they are to import no others. */
function narrowedTo(kept: string, patterns: readonly string[], { routedIn, viewer }: KeptHosts): string[] {
  const [namespace, host] = parts(kept)
  const left = patterns.flatMap((pattern) => {
    if (pattern.startsWith('~')) return []
    const [within, wanted] = parts(pattern)
    // VirtualServices are imported by their own namespace: those of a host may be in another one than its service.
    const of = within === '.' ? viewer : within
    if (of !== '*' && namespace !== '*' && of !== namespace && !routedIn.has(of)) return []
    if (names(wanted.toLowerCase(), host, viewer)) return [`${within}/${host}`]
    return hostCovers(host, wanted.toLowerCase()) ? [pattern] : []
  })
  const all = left.filter((pattern) => pattern.startsWith('*/'))
  return all.length > 0 ? all : left
}

/** Whether a name of a Sidecar, which may be short or a wildcard, means a host. */
function names(wanted: string, host: string, viewer: string): boolean {
  return hostCovers(wanted, host) || (!wanted.includes('.') && host.startsWith(`${wanted}.${viewer}.svc.`))
}

function parts(text: string): [namespace: string, host: string] {
  const slash = text.indexOf('/')
  return [text.slice(0, slash), text.slice(slash + 1)]
}

/** The namespaces of the VirtualServices that the routes of route configurations and virtual hosts were made from, by their metadata. */
export function routedIn(resources: readonly (JsonObject | undefined)[]): Set<string> {
  const hosts = resources.flatMap((resource) => [resource ?? {}, ...objectsOf(resource?.virtual_hosts)])
  const paths = hosts
    .flatMap(({ routes }) => objectsOf(routes))
    .map((route) => textOf(objectAt(route, 'metadata', 'filter_metadata', 'istio').config))
  return new Set(paths.flatMap((path) => /\/namespaces\/([^/]+)\/virtual-service\/[^/]+$/.exec(path)?.[1] ?? []))
}
