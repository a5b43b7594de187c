/** `pilot-discovery proxy-status`: whether proxies have what they are sent. */
import { toJson } from '@bufbuild/protobuf'
import { timestampMs } from '@bufbuild/protobuf/wkt'
import { type Fault, ListProxiesResponseSchema, type Proxy as ShownProxy, type TypeState } from '../../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { AdminClient } from '../../../src/cli/admin-client.ts'
import { printAnswer } from '../../../src/cli/folding.ts'
import { isColoured, printJson } from '../../../src/cli/print.ts'
import { type Cell, span, table } from '../../../src/cli/table.ts'
import { oneLine } from '../../../src/logging/layout.ts'
import { count } from '../../../src/model/counts.ts'
import { compare } from '../../../src/model/order.ts'
import { nameOfNode } from '../../../src/model/proxy.ts'
import { pushOrder, shortType } from '../../../src/xds/type-urls.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import { type ServerFlags, serverOf, warnOfSilent } from './asked-server.ts'
import { objectText } from './object-rows.ts'
import { cellOf, type State, stateOf, stateText, typeState } from './type-state.ts'

/** How two types compare: as they are sent to a proxy, others after those. */
const place = ({ typeUrl }: TypeState): number => (pushOrder.includes(typeUrl) ? pushOrder.indexOf(typeUrl) : pushOrder.length)

/** Types as they are sent to a proxy. */
const inOrder = (types: readonly TypeState[]): TypeState[] => [...types].sort((one, other) => place(one) - place(other))

/** The fields of a proxy in JSON that are added to. */
interface ProxyJson {
  readonly nodeId: string
  readonly types?: readonly object[]
}

/** Prints the proxies, or one of them in detail. */
export async function proxyStatus(flags: ServerFlags & { readonly namespace: string }, proxy: string): Promise<void> {
  const client = new AdminClient(await serverOf(flags))
  const { namespace } = flags
  const answer = await client.asked(client.rpcs.listProxies({ namespace, proxy }))
  const rows = answer.proxies.map((row) => ({ ...row, name: nameOfNode(row.nodeId), state: stateOf(row) }))
  rows.sort((one, other) => compare(one.name, other.name))
  if (flags.json) {
    const sorted = { ...answer, proxies: rows.map((row) => ({ ...row, types: inOrder(row.types) })) }
    const { proxies = [], replicas = [] } = toJson(ListProxiesResponseSchema, sorted) as { proxies?: ProxyJson[]; replicas?: object[] }
    const shown = proxies.map(({ types = [], ...row }, index) => {
      const states = sorted.proxies[index]?.types.map(typeState) ?? []
      return { name: nameOfNode(row.nodeId), status: rows[index]?.state, ...row, types: types.map((type, at) => ({ status: states[at], ...type })) }
    })
    return printJson({ proxies: shown, replicas })
  }
  warnOfSilent(answer.replicas)
  if (rows.length === 0) return printAnswer(namespace === '' ? 'No proxy is connected.' : `No proxy of namespace ${namespace} is connected.`)
  const now = wallClockMs()
  printAnswer(proxy === '' ? overview(rows, now) : rows.map((row) => details(row, now)).join('\n\n'))
  for (const row of rows) for (const line of complaints(row)) printAnswer(line)
  process.stderr.write(`${summary(rows)}\n`)
}

interface Row extends ShownProxy {
  readonly name: string
  readonly state: State
}

function overview(rows: readonly Row[], now: number): string {
  const types = [...new Map(rows.flatMap((row) => row.types.map((type) => [shortType(type.typeUrl), place(type)] as const)))]
  const columns = types.sort(([, one], [, other]) => one - other).map(([short]) => short)
  const hasReplicas = rows.some(({ replica }) => replica !== '')
  const lines = rows.map(({ name, state, types, connectedAt, version, replica }): Cell[] => [
    name,
    cellOf(state),
    ...columns.map((column) => {
      const type = types.find(({ typeUrl }) => shortType(typeUrl) === column)
      return type ? cellOf(typeState(type)) : '-'
    }),
    connectedAt ? span(now - timestampMs(connectedAt)) : '-',
    version || '-',
    ...(hasReplicas ? [replica] : []),
  ])
  const head = ['PROXY', 'STATUS', ...columns.map((column) => column.toUpperCase()), 'CONNECTED', 'AGENT', ...(hasReplicas ? ['REPLICA'] : [])]
  return table(head, lines, isColoured())
}

function details(row: Row, now: number): string {
  const { name, nodeId, connectionId, address, identities, version, connectedAt, delta, replica } = row
  const facts: readonly (readonly [string, string])[] = [
    ['Proxy', name],
    ['Status', stateText(row.state, isColoured())],
    ['Node', nodeId],
    ['Connection', `${connectionId} from ${address}, ${delta ? 'delta' : 'state of the world'}`],
    ['Connected', connectedAt ? `${span(now - timestampMs(connectedAt))} ago` : '-'],
    ['Identity', identities.join(', ') || 'none (plain text)'],
    ['Agent', version || '-'],
    ...(replica === '' ? [] : [['Replica', replica] as const]),
  ]
  const lines = inOrder(row.types).map((type): Cell[] => [
    shortType(type.typeUrl),
    cellOf(typeState(type)),
    type.version || '-',
    type.waitingMs === undefined ? '-' : span(type.waitingMs),
    type.subscribed.length === 0 ? 'all' : count(type.subscribed.length, 'name'),
  ])
  const told = facts.map(([fact, value]) => `${fact}:`.padEnd(12) + (fact === 'Status' ? value : oneLine(value)))
  return `${told.join('\n')}\n\n${table(['TYPE', 'STATUS', 'ACKNOWLEDGED VERSION', 'UNANSWERED FOR', 'SUBSCRIBED'], lines, isColoured())}`
}

/** What is wrong with a proxy, in lines. */
function complaints({ name, refusals, types, missingSecrets }: Row): string[] {
  const unnamed = types.filter(({ typeUrl, error }) => error !== '' && !refusals.some(({ resource }) => isOfType(resource, typeUrl)))
  const silent = types.filter(({ waitingMs }) => waitingMs !== undefined)
  return [
    ...refusals.flatMap((refusal) => ['', ...refusalLines(name, refusal)]),
    ...unnamed.flatMap(({ typeUrl, error }) => ['', `${oneLine(name)} refused ${shortType(typeUrl)}: ${oneLine(error)}`]),
    ...missingSecrets.map(
      (secret) =>
        `${oneLine(name)} asks for ${oneLine(secret)}, which does not exist for it: listeners and clusters that need it refuse connections, or go on with what it was sent before`,
    ),
    ...silent.map(({ typeUrl, waitingMs }) => `${oneLine(name)} has not answered ${shortType(typeUrl)} for ${span(waitingMs ?? 0)}`),
  ]
}

/** Whether the resource of a fault, `Cluster <name>`, is of a type. */
const isOfType = (resource: string, typeUrl: string): boolean => resource.split(' ')[0] === typeUrl.slice(typeUrl.lastIndexOf('.') + 1)

function refusalLines(name: string, { resource, reason, consequence, objects }: Fault): string[] {
  const shown = objects.slice(0, mostObjects).map(objectText)
  const more = objects.length > mostObjects ? [`and ${objects.length - mostObjects} more`] : []
  return [
    `${oneLine(name)} refused ${oneLine(resource)}: ${oneLine(reason)}`,
    ...(objects.length === 0 ? [] : [`  made from: ${[...shown, ...more].join(', ')}`]),
    ...(consequence === '' ? [] : [`  consequence: ${oneLine(consequence)}`]),
  ]
}

/** The maximum number of objects that are named for a refusal. */
const mostObjects = 5

function summary(rows: readonly Row[]): string {
  const states = (['REJECTED', 'STALE', 'SYNCED'] as const).map((state) => [rows.filter((row) => row.state === state).length, state] as const)
  const told = states.filter(([number]) => number > 0).map(([number, state]) => `${number} ${state}`)
  const lacking = rows.filter(({ missingSecrets }) => missingSecrets.length > 0).length
  return `${count(rows.length, 'proxy', 'proxies')}: ${told.join(', ')}${lacking > 0 ? `; ${lacking} without a secret that it needs` : ''}`
}
