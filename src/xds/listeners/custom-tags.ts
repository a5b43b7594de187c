/** Tags of trace spans (docs/resources.md, L19). */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { CustomTagSchema } from '../../../protocols/gen/envoy/type/tracing/v3/custom_tag_pb.js'
import type { CustomTag } from '../../config/proxy-config.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { Traits } from '../traits.ts'

type Tag = MessageInitShape<typeof CustomTagSchema>

/** Returns the tags, sorted by name: those of the mesh, and those of the proxy configuration, which replace others of the same name. */
export function customTags({ mesh, settings }: MeshSnapshot, { meshId, proxyConfig }: Traits): Tag[] {
  const configured = proxyConfig.tracing?.customTags ?? mesh.defaultConfig.tracing?.customTags ?? {}
  const tags = { ...(settings.features.PILOT_ENABLE_MESH_TAGS ? meshTags(meshId) : {}), ...configured }
  return Object.entries(tags)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([tag, source]) => tagOf(tag, source))
}

/**
 * The tags of the mesh. What differs between the workloads of a namespace is read from the proxy's environment, so that their listeners are
 * the same.
 */
const meshTags = (meshId: string): Readonly<Record<string, CustomTag>> => ({
  'istio.canonical_revision': { environment: { name: 'CANONICAL_REVISION', defaultValue: 'latest' } },
  'istio.canonical_service': { environment: { name: 'CANONICAL_SERVICE', defaultValue: 'unknown' } },
  ...(meshId === '' ? {} : { 'istio.mesh_id': { literal: { value: meshId } } }),
  'istio.namespace': { environment: { name: 'POD_NAMESPACE', defaultValue: 'unknown' } },
})

function tagOf(tag: string, { literal, environment, header }: CustomTag): Tag {
  if (literal) return { tag, type: { case: 'literal', value: literal } }
  if (environment) return { tag, type: { case: 'environment', value: environment } }
  return { tag, type: { case: 'requestHeader', value: header as NonNullable<typeof header> } }
}
