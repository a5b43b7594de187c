/** `pilot-discovery proxy-config`: what a proxy is sent. */
import type { JsonObject } from '@bufbuild/protobuf'
import type { ProxySidecar } from '../../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { AdminClient } from '../../../src/cli/admin-client.ts'
import { isColoured, print, printJson } from '../../../src/cli/print.ts'
import { type Cell, table } from '../../../src/cli/table.ts'
import { compare } from '../../../src/model/order.ts'
import { nameOfNode } from '../../../src/model/proxy.ts'
import { clusterType, endpointType, listenerType, routeType, secretType, virtualHostType } from '../../../src/xds/type-urls.ts'
import { resourceJson } from '../admin/resource-types.ts'
import { type ServerFlags, serverOf } from './asked-server.ts'
import { configOfEnvoy, printComparison } from './envoy-comparison.ts'
import { clusterRows, endpointRows, listenerRows, routeRows, type SentResource, type ShownKind } from './proxy-config-rows.ts'
import { cellOf, typeState } from './type-state.ts'

/** The flags of the commands. */
interface Flags extends ServerFlags {
  readonly name: string
  /** The admin interface of the proxy's Envoy; empty: it is not asked. */
  readonly envoy: string
}

/** How the resources of each kind are shown: their types, and their rows below a head. */
const kinds = {
  clusters: { typeUrls: [clusterType], ...clusterRows },
  listeners: { typeUrls: [listenerType], ...listenerRows },
  routes: { typeUrls: [routeType, virtualHostType], ...routeRows },
  endpoints: { typeUrls: [endpointType], ...endpointRows },
} satisfies Record<ShownKind, { typeUrls: readonly string[]; head: readonly string[]; rows: (resource: JsonObject) => readonly (readonly Cell[])[] }>

/** Prints the resources of a kind that a proxy is sent. */
export async function proxyConfig(kind: ShownKind, flags: Flags, proxy: string): Promise<void> {
  const { typeUrls, head, rows } = kinds[kind]
  const { nodeId, resources } = await sentResources(flags, proxy, typeUrls)
  const isMeant = ({ name }: { readonly name: string }) => name.includes(flags.name)
  if (flags.envoy !== '') {
    const held = (await configOfEnvoy(flags.envoy, nodeId))[kind]
    // A virtual host that is a resource of its own belongs to the routes that its name begins with.
    const sent = kind === 'routes' ? resources.filter(({ name }) => name.split('/')[0]?.includes(flags.name)) : resources.filter(isMeant)
    return printComparison(kind, nameOfNode(nodeId), sent, held.filter(isMeant), flags.json)
  }
  const shown = resources.filter(isMeant)
  if (flags.json) return printJson({ proxy: nameOfNode(nodeId), [kind]: shown })
  if (shown.length === 0)
    return print(`${nameOfNode(nodeId)} is sent no ${kind}${flags.name === '' ? '' : ` with ${JSON.stringify(flags.name)} in the name`}.`)
  const lines = shown.flatMap(({ name, resource }) => (resource ? rows(resource) : [[name, 'a type within it is not known']]))
  print(table(head, lines, isColoured()))
}

/** The resources of some types that a proxy is sent, by name. `sidecar`: with the Sidecar in force for it, if the server knows the question. */
export async function sentResources(
  flags: ServerFlags,
  proxy: string,
  typeUrls: readonly string[],
  { sidecar: asked = false } = {},
): Promise<{ nodeId: string; resources: SentResource[]; sidecar: ProxySidecar | undefined }> {
  const client = AdminClient.ofConfigurations(await serverOf(flags))
  const { nodeId, resources, sidecar } = await client.asked(client.rpcs.getProxyConfig({ proxy, typeUrls: [...typeUrls], sidecar: asked }))
  const decoded = resources.map(({ name, version, resource }) => ({ name, version, resource: resource && resourceJson(resource) }))
  return { nodeId, resources: decoded.sort((one, other) => compare(one.name, other.name)), sidecar }
}

/** Prints which secrets a proxy asks for. Their values are not asked of the server. */
export async function proxySecrets(flags: Flags, proxy: string): Promise<void> {
  const client = new AdminClient(await serverOf(flags))
  const { proxies } = await client.asked(client.rpcs.listProxies({ proxy }))
  const [{ nodeId, types } = { nodeId: proxy, types: [] }] = proxies
  const type = types.find(({ typeUrl }) => typeUrl === secretType)
  const secrets = (type?.subscribed ?? []).filter((name) => name.includes(flags.name)).sort()
  const status = type && typeState(type)
  if (flags.envoy !== '') return printHeldSecrets(flags, nodeId)
  if (flags.json)
    return printJson({ proxy: nameOfNode(nodeId), secrets: secrets.map((name) => ({ name, status: status ?? '', error: type?.error ?? '' })) })
  if (secrets.length === 0 || !status)
    return print(
      `${nameOfNode(nodeId)} asks this server for no secrets: those of workloads come from their agents (--envoy shows which its Envoy has).`,
    )
  print(
    table(
      ['SECRET', 'STATUS', 'VERSION'],
      secrets.map((name) => [name, cellOf(status), type.version || '-']),
      isColoured(),
    ),
  )
}

/** Prints which secrets the Envoy of a proxy has, wherever they come from. */
async function printHeldSecrets({ envoy, name, json }: Flags, nodeId: string): Promise<void> {
  const secrets = (await configOfEnvoy(envoy, nodeId)).secrets.filter((secret) => secret.name.includes(name))
  if (json) return printJson({ proxy: nameOfNode(nodeId), secrets })
  if (secrets.length === 0) return print(`The Envoy of ${nameOfNode(nodeId)} has no secrets.`)
  const lines = secrets.map(({ name: of, state, version, updated }): Cell[] => [
    of,
    state === 'active' ? { text: 'ACTIVE', means: 'good' } : { text: 'WARMING', means: 'warning' },
    version || '-',
    updated || '-',
  ])
  print(table(['SECRET', 'STATUS', 'VERSION', 'UPDATED'], lines, isColoured()))
}
