/** `pilot-discovery proxy-config`: what a proxy is sent. */
import { type JsonObject, toJson } from '@bufbuild/protobuf'
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt'
import { AdminClient } from '../../../src/cli/admin-client.ts'
import { isColoured, print, printJson } from '../../../src/cli/print.ts'
import { type Cell, table } from '../../../src/cli/table.ts'
import { compare } from '../../../src/model/order.ts'
import { clusterType, endpointType, listenerType, routeType, secretType, virtualHostType } from '../../../src/xds/type-urls.ts'
import { resourceTypes } from '../admin/resource-types.ts'
import { nameOfNode } from '../named-connection.ts'
import { type ServerFlags, serverOf } from './asked-server.ts'
import { clusterRows, endpointRows, listenerRows, routeRows } from './config-rows.ts'
import { cellOf, typeState } from './type-state.ts'

type Flags = ServerFlags & { readonly name: string }

/** A resource as a proxy is sent it. */
export interface SentResource {
  readonly name: string
  readonly version: string
  /** With the names of its schema; undefined: the schema of a type within it is not known. */
  readonly resource: JsonObject | undefined
}

/** How the resources of each kind are shown: their types, and their rows below a head. */
const kinds = {
  clusters: { typeUrls: [clusterType], ...clusterRows },
  listeners: { typeUrls: [listenerType], ...listenerRows },
  routes: { typeUrls: [routeType, virtualHostType], ...routeRows },
  endpoints: { typeUrls: [endpointType], ...endpointRows },
} satisfies Record<string, { typeUrls: readonly string[]; head: readonly string[]; rows: (resource: JsonObject) => readonly (readonly Cell[])[] }>

/** A kind of resources that `proxy-config` shows. */
export type ShownKind = keyof typeof kinds

/** Prints the resources of a kind that a proxy is sent. */
export async function proxyConfig(kind: ShownKind, flags: Flags, proxy: string): Promise<void> {
  const { typeUrls, head, rows } = kinds[kind]
  const { nodeId, resources } = await sentResources(flags, proxy, typeUrls)
  const shown = resources.filter(({ name }) => name.includes(flags.name))
  if (flags.json) return printJson({ proxy: nameOfNode(nodeId), [kind]: shown })
  if (shown.length === 0)
    return print(`${nameOfNode(nodeId)} is sent no ${kind}${flags.name === '' ? '' : ` with ${JSON.stringify(flags.name)} in the name`}.`)
  const lines = shown.flatMap(({ name, resource }) => (resource ? rows(resource) : [[name, 'a type within it is not known']]))
  print(table(head, lines, isColoured()))
}

/** The resources of some types that a proxy is sent, by name. */
export async function sentResources(
  flags: Flags,
  proxy: string,
  typeUrls: readonly string[],
): Promise<{ nodeId: string; resources: SentResource[] }> {
  const client = AdminClient.ofConfigurations(serverOf(flags))
  const { nodeId, resources } = await client.asked(client.rpcs.getProxyConfig({ proxy, typeUrls: [...typeUrls] }))
  const decoded = resources.map(({ name, version, resource }) => ({ name, version, resource: resource && decodedAny(resource) }))
  return { nodeId, resources: decoded.sort((one, other) => compare(one.name, other.name)) }
}

/** Decodes a resource to JSON; undefined: the schema of a type within it is not known. */
function decodedAny(resource: Any): JsonObject | undefined {
  try {
    return toJson(AnySchema, resource, { registry: resourceTypes, useProtoFieldName: true }) as JsonObject
  } catch {
    return undefined
  }
}

/** Prints which secrets a proxy asks for. Their values are not asked of the server. */
export async function proxySecrets(flags: Flags, proxy: string): Promise<void> {
  const client = new AdminClient(serverOf(flags))
  const { proxies } = await client.asked(client.rpcs.listProxies({ proxy }))
  const [{ nodeId, types } = { nodeId: proxy, types: [] }] = proxies
  const type = types.find(({ typeUrl }) => typeUrl === secretType)
  const secrets = (type?.subscribed ?? []).filter((name) => name.includes(flags.name)).sort()
  const status = type && typeState(type)
  if (flags.json)
    return printJson({ proxy: nameOfNode(nodeId), secrets: secrets.map((name) => ({ name, status: status ?? '', error: type?.error ?? '' })) })
  if (secrets.length === 0 || !status)
    return print(`${nameOfNode(nodeId)} asks this server for no secrets: those of workloads come from their agents.`)
  print(
    table(
      ['SECRET', 'STATUS', 'VERSION'],
      secrets.map((name) => [name, cellOf(status), type.version || '-']),
      isColoured(),
    ),
  )
}
