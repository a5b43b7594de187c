/** Finds labels of the mesh on Namespaces and pods that are misspelt, or whose values say nothing. */
import { nearest } from '../model/edit-distance.ts'
import type { MeshNames } from '../names/mesh-names.ts'

/** The labels by which namespaces have injection, which belong to no domain. */
const ofInjection = ['mesh-injection', 'istio-injection'] as const

/** The labels of the mesh, without the domain of their prefix; also those of parts that are not built here, which other tools read. */
const known = [
  ...['/rev', '/tag', '/gateway-name', '/dataplane-mode', '/use-waypoint', '/use-waypoint-namespace', '/ingress-use-waypoint', '/waypoint-for'],
  ...['sidecar./inject', 'security./tlsMode', 'service./canonical-name', 'service./canonical-revision', 'service./workload-name'],
  ...['topology./network', 'topology./cluster', 'topology./subzone', 'networking./gatewayPort', 'networking./tunnel'],
]

/** Subdomains whose annotations and labels tools of the installation set as they like. */
export const ofTools = new Set(['operator.', 'install.operator.', 'internal.', 'ambient.', 'gateway.', 'istio-release.'])

/** Returns the name of an annotation or label without the domain of its prefix; undefined for one that is not the mesh's. */
export function ownName(key: string, domain: string): string | undefined {
  const slash = key.indexOf('/')
  const owner = key.slice(0, Math.max(slash, 0))
  if (owner !== domain && !owner.endsWith(`.${domain}`)) return undefined
  return owner.slice(0, -domain.length) + key.slice(slash)
}

/** Returns what is wrong with each label of a Namespace, or of a Pod or template, that has no effect. */
export function labelRemarks(
  kind: 'Namespace' | 'Pod',
  given: Readonly<Record<string, string>>,
  names: MeshNames,
): { readonly key: string; readonly reason: string }[] {
  return Object.entries(given).flatMap(([key, value]) => {
    const name = ownName(names.canonicalKey(key), names.domain)
    if (name === 'sidecar./inject' && kind === 'Pod' && value !== 'true' && value !== 'false')
      return { key, reason: `${JSON.stringify(value.slice(0, 100))} is neither "true" nor "false", so it has no effect on injection` }
    const meant = name === undefined ? (kind === 'Namespace' ? meantBare(key) : undefined) : meantOf(name)
    if (meant === undefined) return []
    const [mesh, alias] = names.keySpellings(meant.replace('/', `${names.domain}/`))
    const spelled = (names.canonicalKey(key) === key ? mesh : alias) ?? mesh
    return { key, reason: `it is no label of the mesh, so it has no effect; did you mean ${JSON.stringify(spelled)}?` }
  })
}

/** The label for injection that a misspelt one may mean. */
const meantBare = (key: string): string | undefined =>
  (ofInjection as readonly string[]).includes(key) || key.includes('/') ? undefined : nearest(key, ofInjection)

/** The label of the mesh that one of its domain may mean: of the same prefix by a near name, or of another prefix by the same name. */
function meantOf(name: string): string | undefined {
  const slash = name.indexOf('/')
  const [prefix, own] = [name.slice(0, slash), name.slice(slash + 1)]
  if (known.includes(name) || ofTools.has(prefix)) return undefined
  const near = nearest(
    own,
    known.flatMap((each) => (each.startsWith(`${prefix}/`) ? each.slice(prefix.length + 1) : [])),
  )
  return near === undefined ? known.find((each) => each.endsWith(`/${own}`)) : `${prefix}/${near}`
}
