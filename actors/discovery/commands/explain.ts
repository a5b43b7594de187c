/** `pilot-discovery explain`: where a proxy sends a request and why, or why it has a resource. */
import { toJson } from '@bufbuild/protobuf'
import {
  type ExplainedObject,
  ExplainedObjectSchema,
  type ExplainResourceResponse,
  ExplainResourceResponseSchema,
  type JudgedProxy,
  type RouteRequestResponse,
  RouteRequestResponseSchema,
  type Routing,
} from '../../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { noEffect, ofAnotherPort } from '../../../protocols/messages/explain.ts'
import { AdminClient } from '../../../src/cli/admin-client.ts'
import { printAnswer } from '../../../src/cli/folding.ts'
import { isColoured, printJson } from '../../../src/cli/print.ts'
import { type Cell, coloured, table } from '../../../src/cli/table.ts'
import { oneLine } from '../../../src/logging/layout.ts'
import { count } from '../../../src/model/counts.ts'
import { nameOfNode } from '../../../src/model/proxy.ts'
import { serverNameOf } from '../../../src/push/explain/asked-host.ts'
import { type ServerFlags, serverOf } from './asked-server.ts'
import { consideredLines, objectText } from './object-rows.ts'
import { headersOf } from './request-flags.ts'

/** The flags of the command. */
interface Flags extends ServerFlags {
  /** The type of a resource; empty: the target is a request, or a cluster if it has a bar. */
  readonly type: string
  readonly method: string
  readonly header: readonly string[]
  readonly sni: string
  readonly 'source-ip': string
}

/** Whether a target is the name of a cluster. A URL may have a bar in its path or query. */
const isClusterName = (target: string): boolean => target.includes('|') && !target.includes('://')

/** Explains a resource or a request, whichever the target names. The exit status is 1 when the request fails. */
export async function explain(flags: Flags, proxy: string, target: string): Promise<void> {
  const client = new AdminClient(await serverOf(flags))
  const type = flags.type || (isClusterName(target) ? 'cds' : '')
  if (type === '') return explainRoute(client, flags, proxy, target)
  const answer = await client.askedAgain(() => client.rpcs.explainResource({ proxy, type, name: target }))
  if (flags.json)
    return printJson({
      proxy: nameOf(answer.nodeId, proxy),
      ...(toJson(ExplainResourceResponseSchema, answer, { alwaysEmitImplicit: true }) as object),
    })
  printAnswer(resourceText(nameOf(answer.nodeId, proxy), target, answer))
}

/** The name of the proxy that was found; servers of older releases do not say which it was. */
const nameOf = (nodeId: string, asked: string): string => (nodeId === '' ? asked : nameOfNode(nodeId))

/** A resource that a request takes, and the objects with a part in it. */
interface MadeFrom {
  readonly type: string
  readonly name: string
  readonly objects: readonly ExplainedObject[]
}

async function explainRoute(client: AdminClient, flags: Flags, proxy: string, target: string): Promise<void> {
  const request = requestTo(target, flags)
  const answer = await client.askedAgain(() => client.rpcs.routeRequest({ proxy, ...request }))
  const { routing } = answer
  if (!routing) throw new Error('the server does not say where requests go: it is of an older release')
  const madeFrom = await madeFromOf(client, proxy, routing)
  const isAnswered = wordOf(answer).means === 'good'
  // What is at other ports of the gateway is no reason to look for where a request is answered.
  const hidden = (await hiddenFrom(client, proxy, routing, request.port)).filter(({ reason }) => !isAnswered || !reason.endsWith(ofAnotherPort))
  if (flags.json) {
    const made = madeFrom.map(({ objects, ...resource }) => ({ ...resource, objects: objectsJson(objects) }))
    printJson({
      proxy: nameOf(answer.nodeId, proxy),
      request,
      ...(toJson(RouteRequestResponseSchema, answer, { alwaysEmitImplicit: true }) as object),
      madeFrom: made,
      hidden: objectsJson(hidden),
    })
  } else printAnswer(requestText(nameOf(answer.nodeId, proxy), request, answer, routing, madeFrom, hidden))
  if (wordOf(answer).means === 'bad') process.exitCode = 1
}

const objectsJson = (objects: readonly ExplainedObject[]) => objects.map((each) => toJson(ExplainedObjectSchema, each, { alwaysEmitImplicit: true }))

/** A request as it is asked about. */
interface AskedRequest {
  readonly method: string
  readonly scheme: string
  readonly host: string
  readonly port: number
  readonly path: string
  /** The server name of the TLS connection. */
  readonly sni: string
  /** The address of the client of a gateway; empty: it is not known. */
  readonly sourceIp: string
  readonly headers: { name: string; value: string }[]
}

/** Returns the request that a URL or host means. Throws an Error for what is neither. */
function requestTo(target: string, { method, header, sni, 'source-ip': sourceIp }: Flags): AskedRequest {
  // A URL takes a number for an address, and a path without a host for one with its first part as the host.
  const isHost = !/^(\d*$|\/)/.test(target)
  const url = isHost ? URL.parse(/^[a-z]+:\/\//i.test(target) ? target : `http://${target}`) : null
  if (!url || !/^https?:$/.test(url.protocol) || url.hostname === '')
    throw new Error(
      `${JSON.stringify(target.slice(0, 100))} is neither a host, nor a URL of http or https, nor a resource: the type of a resource is given by --type`,
    )
  const headers = headersOf(header)
  const scheme = url.protocol.slice(0, -1)
  if (sni !== '' && scheme !== 'https') throw new Error('--sni: a request of http has no TLS, and so no server name: name a URL of https')
  return {
    ...{ method: method.toUpperCase(), scheme, path: pathOf(target), headers: headers.filter(({ name }) => name !== 'host') },
    host: headers.find(({ name }) => name === 'host')?.value ?? url.host,
    port: Number(url.port) || (scheme === 'https' ? 443 : 80),
    sourceIp,
    sni: scheme === 'https' ? sni || serverNameOf(url.host) : '',
  }
}

/** The path and the query as they are written: clients other than browsers send them so. */
function pathOf(target: string): string {
  const [, path = '', query = ''] = /^(?:[a-z]+:\/\/)?[^/?#]*([^?#]*)(\?[^#]*)?/i.exec(target) ?? []
  return `${path || '/'}${query}`
}

/** The objects that made the resources that a request takes. */
async function madeFromOf(client: AdminClient, proxy: string, { listener, routes, clusters }: Routing): Promise<MadeFrom[]> {
  const wanted = [
    ...[{ type: 'lds', name: listener }],
    ...[{ type: 'rds', name: routes }],
    ...clusters.slice(0, mostClusters).flatMap(({ name }) => [
      { type: 'cds', name },
      { type: 'eds', name },
    ]),
  ]
  const made: MadeFrom[] = []
  for (const { type, name } of wanted) {
    if (name === '') continue
    const { objects } = await client.askedAgain(() => client.rpcs.explainResource({ proxy, type, name }))
    const having = objects.filter(({ without }) => without === 'removed' || without === 'changed')
    if (having.length > 0) made.push({ type, name, objects: having })
  }
  return made
}

/** The maximum number of clusters of a request whose objects are named. */
const mostClusters = 3

/** The objects that concern the host of a request and that the proxy does not have, with reasons. */
async function hiddenFrom(client: AdminClient, proxy: string, { routes, hosts, isKnown }: Routing, port: number): Promise<ExplainedObject[]> {
  const asked = hosts.flatMap((host) => [
    ...(isKnown ? [] : [{ type: 'cds', name: `outbound|${port}||${host}` }]),
    { type: 'vhds', name: `${routes || port}/${host}:${port}` },
  ])
  const found = new Map<string, ExplainedObject>()
  for (const { type, name } of asked) {
    const { objects } = await client.askedAgain(() => client.rpcs.explainResource({ proxy, type, name }))
    const ofHost = objects.filter(({ object, reason }) => reason !== '' && reason !== noEffect && hosting[type]?.has(object?.kind ?? ''))
    for (const each of ofHost) found.set(each.object ? objectText(each.object) : '', each)
  }
  return [...found.values()]
}

/** The kinds that give a proxy hosts, by the type of resource that is asked about: a VirtualService has a part in routes. */
const hosting: Readonly<Record<string, ReadonlySet<string>>> = {
  cds: new Set(['Service', 'ServiceEntry']),
  vhds: new Set(['Service', 'ServiceEntry', 'VirtualService']),
}

function requestText(
  proxy: string,
  { method, scheme, host, path }: AskedRequest,
  answer: RouteRequestResponse,
  routing: Routing,
  madeFrom: readonly MadeFrom[],
  hidden: readonly ExplainedObject[],
): string {
  const { listener, filterChain, routes, virtualHost, domain, clusters, untold, unused, changes, unjudged, destinations, assumed } = routing
  const facts = [
    ['listener', listener === '' ? '' : `${listener}${filterChain === '' ? '' : `, filter chain ${filterChain}`}`],
    ['routes', routes],
    ['virtual host', virtualHost === '' ? '' : `${virtualHost} (domain ${domain})`],
    ['policy', answer.policy ? `${objectText(answer.policy)}${answer.rule === undefined ? '' : `, rule ${answer.rule}`}` : ''],
    ...changes.map((change, index) => [index === 0 ? 'on the way' : '', change]),
    ...assumed.map((each, index) => [index === 0 ? 'assumed' : '', each]),
    ['not judged', unjudged.length === 0 ? '' : `what these filters do: ${unjudged.join(', ')}`],
  ].flatMap(([fact, value]) => (value === '' ? [] : [`${(fact === '' ? '' : `${fact}:`).padEnd(14)}${oneLine(value as string)}`]))
  const made = madeFrom.flatMap(({ type, name, objects }) =>
    objects.map(({ object, without }) => [type, name, parts[without] ?? without, object ? objectText(object) : '-']),
  )
  return [
    oneLine(`${method} ${scheme}://${host}${path} from ${proxy}`),
    outcome(answer),
    ...(facts.length === 0 ? [] : ['', ...facts]),
    ...routeLines(routing),
    ...(untold > 0 ? [`${count(untold, 'further route')} are not shown`] : []),
    ...unused.map(({ object, field, reason }) => oneLine(`${object ? objectText(object) : ''} ${field} is in no route: ${reason}`)),
    ...section(
      ['CLUSTER', 'WEIGHT', 'CONNECTION', 'ENDPOINTS', 'BECAUSE'],
      clusters.map(({ name, weight, tls, endpoints, healthy, because }) => [
        name,
        String(weight),
        tls || '-',
        endpoints === healthy ? String(endpoints) : `${healthy} of ${endpoints} healthy`,
        because || '-',
      ]),
    ),
    ...section(['DESTINATION', 'ENDPOINT', 'RESULT', 'DECIDED BY', 'BECAUSE'], destinations.map(destinationRow)),
    ...(wordOf(answer).text === 'DENIED' ? consideredLines(answer) : []),
    ...section(['TYPE', 'RESOURCE', 'PART', 'OBJECT'], made),
    ...section(
      ['OBJECT', 'HAS NO PART IN IT, BECAUSE'],
      hidden.map(({ object, reason }) => [object ? objectText(object) : '-', reason]),
    ),
  ].join('\n')
}

/** What a proxy of the destination does with a request. */
function destinationRow({ nodeId, address, port, status, decidedBy, policy, rule, reason }: JudgedProxy): Cell[] {
  const isAsked = decidedBy === 'external authorizer'
  const means = isAsked ? 'warning' : status === 200 ? 'good' : 'bad'
  const by = policy ? `${objectText(policy)}${rule === undefined ? '' : `, rule ${rule}`}` : decidedBy
  const text = isAsked ? 'asks the authorizer' : status === 200 ? 'lets it in' : status === 0 ? 'closes the connection' : `client receives ${status}`
  return [nameOfNode(nodeId), `${address}:${port}`, { text, means }, by, reason || '-']
}

/** What becomes of a request, in a word, and whether that is good. */
function wordOf({ status, decidedBy }: RouteRequestResponse): Exclude<Cell, string> {
  if (decidedBy === 'unknown') return { text: 'UNKNOWN', means: 'warning' }
  if (decidedBy === 'external authorizer') return { text: 'ASKED', means: 'warning' }
  // With a status the proxy itself refuses what is no request to it; without one it refuses the caller.
  const isDenied = deciders.has(decidedBy) && !(decidedBy === 'proxy' && status > 0)
  if (status === 0 || status >= 400) return { text: isDenied ? 'DENIED' : 'FAILS', means: 'bad' }
  return { text: isSentOn(decidedBy) ? 'ROUTED' : 'ANSWERED', means: 'good' }
}

/** Those that decide by policies. */
const deciders: ReadonlySet<string> = new Set(['proxy', 'PeerAuthentication', 'RequestAuthentication', 'AuthorizationPolicy'])

const isSentOn = (decidedBy: string): boolean => decidedBy === 'destination' || decidedBy === 'cluster'

/** What the client receives, in the first line. */
function outcome(answer: RouteRequestResponse): string {
  const { status, reason, decidedBy } = answer
  const isAny = decidedBy === 'external authorizer' || (status === 200 && (isSentOn(decidedBy) || decidedBy === 'unknown'))
  const received = isAny ? '' : status === 0 ? 'the connection is closed: ' : `the client receives ${status}: `
  const { text, means } = wordOf(answer)
  return `${coloured(text, means, isColoured())}: ${received}${oneLine(reason)}`
}

function routeLines({ tried }: Routing): string[] {
  return section(
    ['ROUTE', 'NAME', 'RESULT', 'BECAUSE', 'MADE FROM'],
    tried.map(({ name, object, field, matched, because }, index): Cell[] => [
      String(index + 1),
      name || '-',
      matched ? { text: 'takes it', means: 'good' } : { text: 'does not', means: 'warning' },
      because || '-',
      object ? `${objectText(object)}${field === '' ? '' : `, ${field}`}` : '-',
    ]),
  )
}

const section = (head: readonly string[], rows: readonly (readonly Cell[])[]): string[] =>
  rows.length === 0 ? [] : ['', table(head, rows, isColoured())]

/** What an object does for a resource, by what would become of the resource without it. */
const parts: Readonly<Record<string, string>> = { removed: 'makes it', changed: 'changes it', added: 'keeps it from the proxy', same: 'has no part' }

function resourceText(proxy: string, name: string, { exists, isComplete, objects, untried, otherHosts, hidden }: ExplainResourceResponse): string {
  const rows = objects.map(({ object, without, reason }) => [parts[without] ?? without, object ? objectText(object) : '-', reason || '-'])
  const left = [
    ...(hidden > 0 ? [`${count(hidden, 'object')} of other namespaces not shown`] : []),
    ...(untried > 0 ? [`${count(untried, 'object')} not tried for lack of time`] : []),
    ...(otherHosts > 0 ? [`${count(otherHosts, 'further host')} not looked at`] : []),
    ...(isComplete ? [] : ['other objects may have a part in it too']),
  ]
  return [
    oneLine(`${proxy} ${exists ? 'has' : 'does not have'} ${name}`),
    ...(rows.length === 0 ? ['No object concerns it.'] : section(['PART', 'OBJECT', 'REASON'], rows)),
    ...(left.length === 0 ? [] : ['', left.join('; ')]),
  ].join('\n')
}
