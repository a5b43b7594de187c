/** Finds the patches that may have affected a resource that a proxy refused. */
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import { clusterType, extensionConfigType, listenerType, routeType, virtualHostType } from '../type-urls.ts'

const routeKinds = ['ROUTE_CONFIGURATION', 'VIRTUAL_HOST', 'HTTP_ROUTE'] as const
const kindsOf: ReadonlyMap<string, readonly ConfigPatch['applyTo'][]> = new Map<string, readonly ConfigPatch['applyTo'][]>([
  [clusterType, ['CLUSTER']],
  // Routes of inbound ports are inlined in their listeners.
  [listenerType, ['LISTENER', 'LISTENER_FILTER', 'FILTER_CHAIN', 'NETWORK_FILTER', 'HTTP_FILTER', ...routeKinds]],
  [routeType, routeKinds],
  [virtualHostType, routeKinds],
  [extensionConfigType, ['EXTENSION_CONFIG']],
])

/**
 * Whether a patch may have affected a resource of a type, judged by the name of the resource and the context that it was made in. For an
 * empty name: whether the patch is about the type.
 */
export function mayTouch(patch: ConfigPatch, typeUrl: string, name: string, context?: string): boolean {
  if (!kindsOf.get(typeUrl)?.includes(patch.applyTo)) return false
  const wanted = patch.match?.context ?? 'ANY'
  if (context !== undefined && wanted !== 'ANY' && wanted !== context) return false
  if (typeUrl === listenerType) return mayTouchListener(patch, name)
  if (name === '') return true
  const added = addedName(patch)
  if (added !== undefined) return added === name
  const { cluster } = patch.match ?? {}
  return typeUrl !== clusterType || !cluster?.name || cluster.name === name
}

/** Returns the name of the resource that a patch adds; undefined for a patch that changes existing resources. */
export function addedName({ applyTo, patch: { operation, value } }: ConfigPatch): string | undefined {
  const isResource = applyTo === 'CLUSTER' || applyTo === 'LISTENER' || applyTo === 'EXTENSION_CONFIG'
  if (!isResource || (operation !== 'ADD' && !operation.startsWith('INSERT_'))) return undefined
  return String((value as { name?: unknown } | undefined)?.name ?? '')
}

function mayTouchListener(patch: ConfigPatch, name: string): boolean {
  const context = patch.match?.context ?? 'ANY'
  if (routeKinds.some((kind) => kind === patch.applyTo) && context !== 'ANY' && context !== 'SIDECAR_INBOUND') return false
  if (name === '') return true
  const added = addedName(patch)
  if (added !== undefined) return added === name
  const { name: wanted, portNumber } = patch.match?.listener ?? {}
  if (wanted && wanted !== name) return false
  const port = /_(\d+)$/.exec(name)?.[1]
  return !portNumber || port === undefined || String(portNumber) === port
}

/** Whether an error message of a proxy contains the name of what a patch adds, or the type of its configuration. */
export function isNamedIn(detail: string, { patch: { value } }: ConfigPatch): boolean {
  const { name, typed_config: snake, typedConfig: camel } = (value ?? {}) as Record<string, unknown>
  const typed = (snake ?? camel ?? {}) as Record<string, unknown>
  const types = [typed['@type'], typed.type_url, typed.typeUrl].flatMap((url) => (typeof url === 'string' ? url.slice(url.lastIndexOf('/') + 1) : []))
  const isIncluded = (text: unknown) => typeof text === 'string' && text.length > 4 && detail.includes(text)
  return isIncluded(name) || types.some((type) => !type.endsWith('.TypedStruct') && isIncluded(type))
}
