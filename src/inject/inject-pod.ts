/** Injection: what a pod becomes (docs/injection.md). */
import { lineDocument } from '../config/line-yaml.ts'
import type { MeshConfig } from '../config/mesh-config.ts'
import { notPlain } from '../config/plain-yaml.ts'
import type { GivenProxyConfig } from '../config/proxy-config.ts'
import { isMapping } from '../config/shape.ts'
import { documentLimits, readDocuments } from '../config/yaml-documents.ts'
import { containerSpellings, type MeshNames } from '../names/mesh-names.ts'
import { Budget } from '../template/budget.ts'
import type { AgentDefaults } from './agent-defaults.ts'
import { checkAnnotations, givenIn, isOn, meshKey, writtenKey } from './annotations.ts'
import type { InjectionConfiguration } from './configuration.ts'
import { decideInjection } from './decision.ts'
import { mergeMetrics } from './metrics-merge.ts'
import { orderedContainers } from './order.ts'
import { type Owner, ownerOf } from './owner.ts'
import { allContainers, type Container, hasMoreValues, InjectionError, mapContainers, type Pod, readPod, withMetadata, withSpec } from './pod.ts'
import { unknownPodFields } from './pod-fields.ts'
import { rewriteProbes } from './probes.ts'
import { fieldText, readProxySettings } from './proxy-settings.ts'
import { renderTemplate } from './render.ts'
import { isSidecar, sidecarOf, withVariables } from './sidecar.ts'
import { overridesKey, readOverrides, statusKey, statusOf, strippedPod, withFsGroup } from './status.ts'
import { MergeError, mergePod } from './strategic-merge.ts'
import { templateData } from './template-data.ts'

/** A pod to inject. */
export interface InjectionRequest {
  readonly pod: unknown
  /** The namespace of the pod, which a new pod may not name. */
  readonly namespace: string
  /** Its workload; undefined: what its owner references say. */
  readonly owner?: Owner
  /** Variables of the agent that the caller sets. */
  readonly variables?: Readonly<Record<string, string>>
}

/** What injection depends on besides the pod. */
export interface InjectionSettings {
  readonly configuration: InjectionConfiguration
  readonly mesh: MeshConfig
  readonly revision: string
  readonly hasNativeSidecars: boolean
  /** Whether pods get the group of the agent as that of their volumes. */
  readonly setsFsGroup: boolean
  /** Settings of agents for pods that have none of their own. */
  readonly agent: AgentDefaults
  readonly names: MeshNames
  /** What slow functions of the templates of one pod may take, in milliseconds as they are assumed; 0: none (docs/templates.md, T11). */
  readonly slow: number
}

/** What has no effect in a pod that is injected. */
export interface Remarks {
  /** What the pod itself says, for whoever makes it. */
  readonly pod: readonly string[]
  /** What templates put out, for whoever writes them. */
  readonly templates: readonly string[]
}

/** The pod before and after injection, or the reason why it gets no sidecar. */
export type Injection = { readonly skipped: string } | { readonly original: Pod; readonly pod: Pod; readonly remarks: Remarks }

/**
 * The most values and containers in a pod that is injected, since what templates and merging do takes time for each, and the most remarks about
 * its settings of the proxy.
 */
const most = { values: 20_000, containers: 500, remarks: 10 } as const

/**
 * Injects a pod. Throws an {@link InjectionError} that says what is wrong, and `SlowCall` where a template calls a slow function and none
 * may run.
 */
export function injectPod(request: InjectionRequest, settings: InjectionSettings): Injection {
  if (hasMoreValues(request.pod, most.values)) throw new InjectionError(`the pod has more than ${most.values} values`)
  const original = readPod(request.pod)
  if (allContainers(original).length > most.containers) throw new InjectionError(`the pod has more than ${most.containers} containers`)
  const { names, configuration } = settings
  const namespace = request.namespace || original.metadata.namespace || 'default'
  const { isInjected, reason } = decideInjection(original, namespace, configuration, names)
  if (!isInjected) return { skipped: reason }
  const { annotations = {} } = original.metadata
  checkAnnotations(annotations, names)
  const remarks = { pod: [] as string[], templates: [] as string[] }
  const proxyConfig = proxyConfigOf(annotations, settings, remarks.pod)
  const statusPort = statusPortOf(annotations, proxyConfig, names)
  // In order, so that templates see the containers of a pod that was injected before as they did then.
  const before = orderedContainers(strippedPod(original, statusPort, names), proxyConfig.holdApplicationUntilProxyStarts === true)
  const { merged, added } = runTemplates(before, namespace, { request, settings, proxyConfig }, remarks.templates)
  const kept = withOverrides(merged, before, added, names)
  const pod = finished(kept, { original, added, request, settings, proxyConfig, statusPort })
  return { original, pod, remarks }
}

/** The settings of the mesh for proxies, with those of discovery and then of the pod; what of these is unknown or has no effect is added to `remarks`. */
function proxyConfigOf(
  annotations: Readonly<Record<string, string>>,
  { mesh, names, agent }: InjectionSettings,
  remarks: string[],
): GivenProxyConfig {
  const key = meshKey(names, 'proxy', 'config')
  const text = givenIn(annotations, key, names)
  const { terminationDrainDuration } = agent
  const usual = { ...mesh.defaultConfig, ...(terminationDrainDuration !== undefined && { terminationDrainDuration }) }
  if (text === undefined || text === '') return usual
  const place = `annotation ${writtenKey(annotations, key, names)}`
  const read = readProxySettings(text)
  if ('fault' in read) throw new InjectionError(`${place}: ${JSON.stringify(text.slice(0, 100))}: ${read.fault}`)
  for (const remark of read.remarks.slice(0, most.remarks)) remarks.push(`${place}: ${fieldText(remark)}`)
  return { ...usual, ...read.given }
}

function statusPortOf(annotations: Readonly<Record<string, string>>, { statusPort = 15_020 }: GivenProxyConfig, names: MeshNames): number {
  const given = givenIn(annotations, meshKey(names, 'status.sidecar', 'port'), names)
  return given === undefined ? statusPort : Number(given)
}

interface Work {
  readonly request: InjectionRequest
  readonly settings: InjectionSettings
  readonly proxyConfig: GivenProxyConfig
}

/** Renders the templates of a pod and merges them into it, and into an empty pod. Unknown fields of their outputs are added to `remarks`. */
function runTemplates(
  before: Pod,
  namespace: string,
  { request, settings, proxyConfig }: Work,
  remarks: string[],
): { readonly merged: Pod; readonly added: Pod } {
  const { configuration, mesh, revision, hasNativeSidecars, names, slow } = settings
  const budget = new Budget({ slow })
  const owner = request.owner ?? ownerOf(before)
  const data = templateData({ pod: before, namespace, owner, mesh, proxyConfig, values: configuration.values, revision, hasNativeSidecars, names })
  let merged = before
  let added: Pod = { metadata: {}, spec: {} }
  for (const name of templatesOf(before, configuration, names)) {
    const template = configuration.templates.get(name)
    if (template === undefined)
      throw new InjectionError(
        `there is no template ${JSON.stringify(name)}; the configuration of injection has ${[...configuration.templates.keys()].sort().join(', ') || 'none'}`,
      )
    const output = patchOf(name, renderTemplate(template, data, budget))
    for (const unknown of unknownPodFields(output)) remarks.push(`template ${name}: its output has the ${unknown}`)
    const patch = asPlaced(output, merged)
    const more = mergedPod(name, added, patch)
    added = withMovedSidecar(more, more)
    merged = mergedPod(name, withMovedSidecar(merged, added), patch)
  }
  checkNames(merged, added)
  return { merged, added }
}

/** Returns a pod with a part merged into it. What the part has besides directives is checked in the result, since these are no part of a pod. */
function mergedPod(template: string, pod: Pod, patch: Mapping): Pod {
  try {
    return readPod(mergePod(pod, patch))
  } catch (error) {
    if (error instanceof MergeError) throw new InjectionError(`template ${template}: its output cannot be merged into the pod: ${error.message}`)
    if (error instanceof InjectionError) throw new InjectionError(`template ${template}: its output is not part of a pod: ${error.message}`)
    throw error
  }
}

/** Refuses a pod in which a volume or a container of the user and an injected one of its name cannot be one, which the API server would do without the reason. */
function checkNames(merged: Pod, { spec }: Pod): void {
  const injectedVolumes = new Set(spec.volumes?.map(({ name }) => name))
  for (const { name, ...types } of merged.spec.volumes ?? []) {
    const given = Object.keys(types)
    if (injectedVolumes.has(name) && given.length > 1)
      throw new InjectionError(
        `volume ${name}: the pod and the templates have a volume of this name, of other types (${given.join(', ')}): rename that of the pod`,
      )
  }
  const before = new Set(merged.spec.initContainers?.map(({ name }) => name))
  const injected = new Set([...(spec.initContainers ?? []), ...(spec.containers ?? [])].map(({ name }) => name))
  const twice = merged.spec.containers?.find(({ name }) => before.has(name) && injected.has(name))
  if (twice)
    throw new InjectionError(
      `container ${twice.name}: one of containers and one of initContainers have this name, of which templates inject one: rename that of the pod`,
    )
}

/** The names of the templates of a pod: those of its annotation, else the configured ones; aliases stand for the names that they list. */
function templatesOf({ metadata }: Pod, { defaultTemplates, aliases }: InjectionConfiguration, names: MeshNames): readonly string[] {
  const asked = givenIn(metadata.annotations, meshKey(names, 'inject', 'templates'), names)
  const chosen = asked === undefined ? defaultTemplates : asked.split(',').map((name) => name.trim())
  const named = chosen.flatMap((name) => (Object.hasOwn(aliases, name) ? (aliases[name] ?? []) : name === '' ? [] : [name]))
  // Once each, at its last place: whoever makes a pod could otherwise have a template rendered thousands of times.
  return [...new Set(named.reverse())].reverse()
}

type Mapping = Readonly<Record<string, unknown>>

/** Reads the output of a template: a part of a pod with directives of the merge, and nulls for what it removes. */
function patchOf(name: string, text: string): Mapping {
  const fail = (reason: string): never => {
    throw new InjectionError(`template ${name}: its output is not part of a pod: ${reason}`)
  }
  const quick = lineDocument(text, documentLimits.depth)
  const [document = { value: {} }, another] = quick === notPlain ? readDocuments(text) : [{ value: quick }]
  if (another) return fail('more than one document')
  if ('error' in document) return fail(document.error)
  const patch = document.value ?? {}
  return isMapping(patch) ? patch : fail('expected a mapping')
}

/** The lists of a patch that name containers. */
const containerLists = ['containers', 'initContainers', '$setElementOrder/containers', '$setElementOrder/initContainers'] as const

/** Returns the patch with containers named in the spelling that the pod has, and the agent among those that run before the others if it is there. */
function asPlaced(patch: Mapping, pod: Pod): Mapping {
  if (!isMapping(patch.spec)) return patch
  const { spec } = patch
  const there = new Set(allContainers(pod).map(({ name }) => name))
  const named = (container: unknown) => {
    if (!isMapping(container) || typeof container.name !== 'string') return container
    const name = containerSpellings(container.name).find((spelling) => there.has(spelling))
    return name === undefined || name === container.name ? container : { ...container, name }
  }
  const lists = containerLists.flatMap((list) => (Array.isArray(spec[list]) ? [[list, spec[list].map(named)] as const] : []))
  return { ...patch, spec: withAgentBefore({ ...spec, ...Object.fromEntries(lists) }, pod) }
}

/** Returns the specification of a patch with its agent among the containers that run before the others, where that of the pod is. */
function withAgentBefore(spec: Mapping, pod: Pod): Mapping {
  const target = pod.spec.initContainers?.find(isSidecar)
  const { containers, initContainers } = spec
  if (!target || !Array.isArray(containers)) return spec
  const isAgent = (container: unknown) => isMapping(container) && container.name === target.name
  const agents = containers.filter(isAgent)
  if (agents.length === 0) return spec
  const before: readonly unknown[] = Array.isArray(initContainers) ? initContainers : []
  return { ...spec, containers: containers.filter((container) => !isAgent(container)), initContainers: [...before, ...agents] }
}

/** Returns the pod with its container of the agent among those that run before the others, where another pod has it. */
function withMovedSidecar(pod: Pod, other: Pod): Pod {
  const target = other.spec.initContainers?.find(isSidecar)
  const moved = target && pod.spec.containers?.find(({ name }) => name === target.name)
  if (!moved) return pod
  return withSpec(pod, {
    containers: pod.spec.containers?.filter((container) => container !== moved) ?? [],
    initContainers: [...(pod.spec.initContainers ?? []), moved],
  })
}

/** The image of a user's container that leaves the choice to injection. */
const automatic = 'auto'

/** Returns the pod with what the user's containers of injected names set, which is also noted in an annotation. */
function withOverrides(merged: Pod, before: Pod, added: Pod, names: MeshNames): Pod {
  const known = readOverrides(before, names)
  const find = (containers: readonly Container[] | undefined, name: string) => containers?.find((container) => container.name === name)
  const noted: { containers: Container[]; initContainers: Container[] } = { containers: [], initContainers: [] }
  let pod = merged
  for (const { name } of allContainers(added)) {
    for (const field of ['containers', 'initContainers'] as const) {
      const own = find(known[field], name) ?? find(before.spec[field], name)
      if (!own) continue
      noted[field].push(own)
      const { image, ...others } = own
      const overlay: Container = image === undefined || image === automatic ? others : own
      const place = find(pod.spec.initContainers, name) ? 'initContainers' : 'containers'
      pod = readPod(mergePod(pod, { spec: { [place]: [overlay] } }))
    }
  }
  const lists = Object.entries(noted).filter(([, containers]) => containers.length > 0)
  if (lists.length === 0) return pod
  return withUser(annotated(pod, { [overridesKey(names)]: JSON.stringify(Object.fromEntries(lists)) }, names), before)
}

/** Returns a pod with other annotations, which replace those of the same name in either spelling. */
function annotated(pod: Pod, annotations: Readonly<Record<string, string>>, names: MeshNames): Pod {
  const others = Object.entries(pod.metadata.annotations ?? {}).filter(([key]) => !Object.hasOwn(annotations, names.canonicalKey(key)))
  return withMetadata(pod, { annotations: { ...Object.fromEntries(others), ...annotations } })
}

/** Returns the pod with redirect rules for the user that the pod's own container of the agent runs as. */
function withUser(pod: Pod, before: Pod): Pod {
  const { securityContext } = (sidecarOf(before) ?? {}) as { securityContext?: unknown }
  const user = isMapping(securityContext) ? securityContext.runAsUser : undefined
  if (typeof user !== 'number' || user === 0) return pod
  return mapContainers(pod, (container) => {
    const { args = [] } = container
    const at = args.indexOf('-u')
    return args[0] !== 'mesh-iptables' || at < 0 ? container : { ...container, args: args.with(at + 1, String(user)) }
  })
}

/** The group of the agent. */
const agentGroup = 1337

/** Does what templates cannot: variables of the caller, metrics, probes, metadata, order. */
function finished(
  merged: Pod,
  {
    original,
    added,
    request: { variables = {} },
    settings,
    proxyConfig,
    statusPort,
  }: Work & { readonly original: Pod; readonly added: Pod; readonly statusPort: number },
): Pod {
  const { names, mesh, configuration, revision } = settings
  const { annotations = {} } = merged.metadata
  const switchOf = (prefix: string, name: string, otherwise: boolean) => {
    const given = givenIn(annotations, meshKey(names, prefix, name), names)
    return given === undefined ? otherwise : isOn(given)
  }
  let pod = withVariables(merged, variables)
  if (switchOf('prometheus', 'merge-metrics', mesh.enablePrometheusMerge)) pod = mergeMetrics(pod, statusPort, settings.agent.metrics)
  if (switchOf('sidecar', 'rewriteAppHTTPProbers', rewritesProbes(configuration.values))) pod = rewriteProbes(pod, statusPort)
  const network = variables.MESH_META_NETWORK
  if (network !== undefined) {
    const key = meshKey(names, 'topology', 'network')
    const labels = Object.entries(pod.metadata.labels ?? {}).filter(([name]) => names.canonicalKey(name) !== key)
    pod = withMetadata(pod, { labels: { ...Object.fromEntries(labels), [key]: network } })
  }
  const absent = Object.entries(configuration.injectedAnnotations).filter(([key]) => givenIn(pod.metadata.annotations, key, names) === undefined)
  const [grouped, group] = settings.setsFsGroup && sidecarOf(pod) ? withFsGroup(pod, agentGroup) : [pod, {}]
  const status = JSON.stringify({ ...statusOf(added, original, revision, names), ...group })
  pod = annotated(grouped, { ...Object.fromEntries(absent), [statusKey(names)]: status }, names)
  return orderedContainers(pod, proxyConfig.holdApplicationUntilProxyStarts === true)
}

/** Whether probes are rewritten where the pod does not say: the value `sidecarInjectorWebhook.rewriteAppHTTPProbe`, true by default. */
function rewritesProbes({ sidecarInjectorWebhook }: Readonly<Record<string, unknown>>): boolean {
  return !(isMapping(sidecarInjectorWebhook) && sidecarInjectorWebhook.rewriteAppHTTPProbe === false)
}
