/** The messages of `mesh.admin.v1.AdminService` made from answers. */
import { create, type DescMessage, fromJson, type JsonValue, type MessageShape, toJson } from '@bufbuild/protobuf'
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt'
import {
  type ExplainRequestRequest,
  type ExplainRequestResponse,
  ExplainRequestResponseSchema,
  type ExplainResourceResponse,
  ExplainResourceResponseSchema,
  type GetFilesResponse,
  GetFilesResponseSchema,
  type GetProxyConfigRequest,
  type ListActorsResponse,
  ListActorsResponseSchema,
  type ListClustersResponse,
  ListClustersResponseSchema,
  type ListFaultsResponse,
  ListFaultsResponseSchema,
  type ListFindingsResponse,
  ListFindingsResponseSchema,
  type ListProxiesResponse,
  ListProxiesResponseSchema,
  type ListPushesResponse,
  ListPushesResponseSchema,
  type PreviewChangesResponse,
  PreviewChangesResponseSchema,
  type ResourceJson,
  type RouteRequestRequest,
  type RouteRequestResponse,
  RouteRequestResponseSchema,
} from '../../../protocols/gen/mesh/admin/v1/admin_pb.js'
import type { FoundNow } from '../../../protocols/messages/analysis.ts'
import type { DescribedRequest, SentRequest } from '../../../protocols/messages/described-request.ts'
import type { DryRun } from '../../../protocols/messages/dry-run.ts'
import type { ReplicaState } from '../../../protocols/messages/replicas.ts'
import { configKey, type KindName, keyAt, readKey } from '../../../src/config/kinds.ts'
import { redacted } from '../../../src/logging/redaction.ts'
import { nameOfNode } from '../../../src/model/proxy.ts'
import { decidingKind, type ReferencedExplanation } from '../../../src/policy/explain.ts'

import { resourceIn } from '../../../src/xds/resource-element.ts'
import { nodeMessage, type ShownNode } from '../../../src/xds/status/status-messages.ts'
import { nodeType } from '../../../src/xds/type-urls.ts'
import type { FilesPage } from '../sources/files/file-watcher.ts'
import type { ProxyResources } from './config-dump.ts'
import { addressFault } from './described-request.ts'
import type { ExplainAnswer } from './explain-answers.ts'
import type { ActorAnswer, ClusterAnswer, FaultAnswer, ProxyAnswer } from './mesh-answers.ts'
import type { Placed, RowsOfAll } from './page-sources.ts'
import type { PushAnswers } from './push-answers.ts'
import { resourceTypes } from './resource-types.ts'
import { type RoutingAnswer, sentRequestOf } from './routing-answers.ts'

/**
 * Returns the message with the fields of an answer in which they have the same names as in the schema's JSON. Other properties of the answer
 * are left out.
 */
export function messageOf<Schema extends DescMessage>(schema: Schema, answer: object): MessageShape<Schema> {
  return fromJson(schema, JSON.parse(JSON.stringify(answer)) as JsonValue, { ignoreUnknownFields: true })
}

/** Returns the answer about proxies. `replicas`: those that were asked. */
export function proxiesMessage(proxies: readonly Placed<ProxyAnswer>[], replicas: readonly ReplicaState[]): ListProxiesResponse {
  const rows = proxies.map(({ types, watches, refusals = [], ...proxy }) => ({
    ...proxy,
    types: types.map((type) => ({ ...type, subscribed: watches[type.typeUrl] ?? [] })),
    refusals: refusals.map(({ proxy: _, ...refusal }) => faultRow(refusal)),
  }))
  return messageOf(ListProxiesResponseSchema, { proxies: rows, replicas })
}

/** Resources that are converted to JSON for one answer at most, in bytes as encoded: a megabyte blocks the main thread for 0.15 s. */
const mostJsonBytes = 2 * 1024 * 1024

/**
 * Returns the chosen resources of a proxy, or a string with the reason when they are too many for an answer in JSON. In JSON, each must be
 * printable: one that is not has the reason in its place.
 */
export function resourcesMessage(resources: ProxyResources, { typeUrls, names }: GetProxyConfigRequest, isJson: boolean) {
  const isMeant = (chosen: readonly string[], name: string) => chosen.length === 0 || chosen.includes(name)
  const chosen = Object.entries(resources)
    .filter(([typeUrl]) => isMeant(typeUrls, typeUrl))
    .flatMap(([typeUrl, list]) =>
      list
        .filter(({ name }) => isMeant(names, name))
        .map(({ name, version, element }) => ({ typeUrl, name, version, element: Buffer.from(element, 'base64') })),
    )
  const bytes = chosen.reduce((sum, { element }) => sum + element.length, 0)
  if (isJson && bytes > mostJsonBytes)
    return `${bytes} bytes of resources are too many for JSON (at most ${mostJsonBytes}): choose some by typeUrls or names, or ask for protocol buffers`
  return chosen.map(({ element, ...resource }) => ({ ...resource, ...anyOf(element, isJson) }))
}

/** Returns what a proxy told of itself, without secrets, as a row of its resources. */
export function nodeRow({ metadata, ...node }: ShownNode) {
  const value = nodeMessage({ ...node, metadata: redacted(metadata) as ShownNode['metadata'] })
  return { typeUrl: nodeType, name: node.id, resource: create(AnySchema, { typeUrl: nodeType, value }) }
}

/** Decodes an element of a response. */
function anyOf(element: Buffer, isJson: boolean): { readonly resource?: Any } & Pick<ResourceJson, 'error'> {
  const resource = resourceIn(element)
  if (!isJson) return { resource }
  try {
    toJson(AnySchema, resource, { registry: resourceTypes })
    return { resource }
  } catch (error) {
    return { error: (error as Error).message }
  }
}

/** Returns the request that a caller describes, or a string with the reason when it is invalid. */
export function describedRequest(request: Omit<ExplainRequestRequest, '$typeName' | 'proxy'>): DescribedRequest | string {
  const { protocol, method, host, path, headers, principal, claims, metadata, sourceIp, remoteIp, destinationIp, port, sni } = request
  if (protocol !== '' && protocol !== 'http' && protocol !== 'tcp') return `protocol: ${JSON.stringify(protocol)} is neither http nor tcp`
  if (port > 65_535) return `port: ${port} is not a port`
  const fault = addressFault({ sourceIp, remoteIp, destinationIp })
  if (fault !== undefined) return fault
  const values: Record<string, string[]> = Object.create(null)
  for (const { name, value } of headers) values[name.toLowerCase()] = [...(values[name.toLowerCase()] ?? []), value]
  return {
    protocol: protocol || 'http',
    method: method || 'GET',
    host,
    path: path || '/',
    headers: values,
    sourceIp,
    remoteIp: remoteIp || sourceIp,
    destinationIp,
    destinationPort: port,
    sni,
    peer: principal === '' ? undefined : principal.replace(/^spiffe:\/\//, ''),
    claims,
    metadata: metadata ?? {},
  }
}

/** Returns the answer about a request. */
export function explanationMessage(explanation: ReferencedExplanation): ExplainRequestResponse {
  const { policy, decidedBy, considered, references } = explanation
  const policyOf = (path: string | undefined, kind: KindName) => path && references[keyAt(kind, path)]
  return messageOf(ExplainRequestResponseSchema, {
    ...explanation,
    policy: policyOf(policy, decidingKind(decidedBy)),
    considered: considered.map((rule) => ({ ...rule, policy: policyOf(rule.policy, 'AuthorizationPolicy') })),
  })
}

/** Returns the request that a caller describes as sent by a workload or a client, or a string with the reason when it is invalid. */
export function sentRequest({ scheme, ...request }: RouteRequestRequest): SentRequest | string {
  const described = describedRequest({ ...request, protocol: 'http', principal: '', remoteIp: '', destinationIp: '' })
  return typeof described === 'string' ? described : sentRequestOf(described, scheme)
}

/** Returns the answer about where a request goes. Policies of a gateway decide if they do not let it pass, then those of the destination. */
export function routingMessage({ policies, destinations, isRefused, assumed, routing }: RoutingAnswer): RouteRequestResponse {
  const judged = destinations.map(({ explanation, ...proxy }) => {
    const { policy, rule, decidedBy, reason, considered } = explanationMessage(explanation)
    return { ...proxy, ...{ policy, rule, decidedBy, reason, considered } }
  })
  const { status, decidedBy, reason } = routing
  const message = messageOf(RouteRequestResponseSchema, { status, decidedBy, reason, routing: { ...routing, assumed, destinations: judged } })
  const [refusing] = isRefused ? judged : []
  if (policies?.status === 200 || !policies) {
    const considered = policies ? explanationMessage(policies) : undefined
    const passed = { ...message, considered: considered?.considered ?? [] }
    if (!refusing) return passed
    const { nodeId, cluster: _, address: __, port: ___, sourceIp: ____, ...decision } = refusing
    return { ...passed, ...decision, reason: `${nameOfNode(nodeId)} refuses it: ${decision.reason || decision.decidedBy}` }
  }
  const { $typeName: _, requestPrincipal: __, nodeId: ___, ...decision } = explanationMessage(policies)
  return { ...message, ...decision }
}

/** Returns the answer about pushes. */
export function pushesMessage({ pushes, ...answer }: PushAnswers, domain: string): Omit<ListPushesResponse, '$typeName'> {
  const rows = pushes.map(({ objects, refusals, slowest, isApplied, ...push }) => ({
    ...push,
    applied: isApplied,
    objects: objects.map(({ key, generation, source, cluster, uid, version, place }) => ({
      object: { ...readKey(key, domain), source, cluster, uid, version, place },
      generation,
    })),
    slowest: slowest.map(({ connection, ...proxy }) => ({ ...proxy, connectionId: connection })),
    refusals: refusals.map(({ connection, ...refusal }) => ({
      ...refusal,
      connectionId: connection,
      objects: refusal.objects.map((key) => readKey(key, domain)),
    })),
  }))
  const { $typeName: _, ...message } = messageOf(ListPushesResponseSchema, { ...answer, pushes: rows })
  return message
}

/** Returns the explanation of a resource. */
export function explainedMessage({ objects, ...answer }: ExplainAnswer, domain: string): ExplainResourceResponse {
  const rows = objects.map(({ key, source, cluster, uid, version, place, without, reason }) => ({
    object: { ...readKey(key, domain), source, cluster, uid, version, place },
    without,
    reason,
  }))
  return messageOf(ExplainResourceResponseSchema, { ...answer, objects: rows })
}

/** Returns the result of a dry run. */
export function previewMessage(
  { faults, objects, newFaults, foreign, ...run }: DryRun,
  replicas: readonly ReplicaState[],
  domain: string,
): PreviewChangesResponse {
  return messageOf(PreviewChangesResponseSchema, {
    ...{ ...run, foreign, replicas },
    faults: faults.map(({ key, ...fault }) => ({ ...fault, ...(key === '' ? {} : { object: readKey(key, domain) }) })),
    objects: objects.map(({ reference, change }) => ({ object: reference, change })),
    newFaults: newFaults.map(({ references, ...fault }) => ({ ...fault, objects: references })),
  })
}

/** Returns the answer about faults. */
export function faultsMessage({ rows: faults, replicas }: RowsOfAll<FaultAnswer>): ListFaultsResponse {
  return messageOf(ListFaultsResponseSchema, { faults: faults.map(faultRow), replicas })
}

const faultRow = ({ references, ...fault }: FaultAnswer) => ({ ...fault, objects: references })

/** Returns the answer about findings. */
export function findingsMessage({ findings, due, isComplete }: FoundNow, domain: string): ListFindingsResponse {
  const rows = findings.map(({ kind, namespace, object: name, place, ...finding }) => {
    const { group } = readKey(configKey({ kind, namespace, name }), domain)
    return { ...finding, object: { group, kind, namespace, name, place } }
  })
  return messageOf(ListFindingsResponseSchema, { findings: rows, due, isComplete })
}

/** Returns the answer about files. */
export function filesMessage(files: FilesPage, domain: string): GetFilesResponse {
  const standIns = files.standIns.map(({ key, source, place, reason }) => ({ object: { ...readKey(key, domain), source, place }, reason }))
  return messageOf(GetFilesResponseSchema, { ...files, standIns })
}

/** Returns the answer about followed clusters. */
export function clustersMessage({ rows: clusters, replicas }: RowsOfAll<ClusterAnswer>): ListClustersResponse {
  return messageOf(ListClustersResponseSchema, { clusters, replicas })
}

/** Returns the answer about actors. */
export function actorsMessage(actors: readonly ActorAnswer[]): ListActorsResponse {
  return messageOf(ListActorsResponseSchema, { actors })
}
