/** What replicas of discovery tell each other, as far as it has to be checked: addresses in Leases, and the form of answers (docs/operation.md, A1, A4). */
import type { ReplicaQuestion } from '../../protocols/messages/replicas.ts'
import { isMapping } from '../config/shape.ts'

/** The host and the port of `<host>:<port>`, with or without brackets around an IPv6 address; undefined: it is none. */
export function replicaAddress(text: string): { readonly host: string; readonly port: number } | undefined {
  const [, host = '', digits = ''] = /^(.{1,253}):(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits)
  return host === '' || port > 65_535 ? undefined : { host: host.replace(/^\[(.*)\]$/, '$1'), port }
}

type Row = Readonly<Record<string, unknown>>
type Form = (value: unknown) => boolean

const isText: Form = (value) => typeof value === 'string'
const isFlag: Form = (value) => typeof value === 'boolean'
const isNumber: Form = (value) => Number.isFinite(value)
const isCount: Form = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const isTime: Form = (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]{8,18}Z$/.test(value)

const isEventKind: Form = (value) => value === 'connect' || value === 'disconnect' || value === 'nack'

const listOf =
  (is: Form): Form =>
  (value) =>
    Array.isArray(value) && value.every(is)
const optional =
  (is: Form): Form =>
  (value) =>
    value === undefined || is(value)
const mapOf =
  (is: Form): Form =>
  (value) =>
    isMapping(value) && Object.values(value).every(is)
/** A mapping with these fields, and any others. */
const withFields =
  (forms: Readonly<Record<string, Form>>): Form =>
  (value) =>
    isMapping(value) && Object.entries(forms).every(([name, is]) => is((value as Row)[name]))
const fields = (is: Form, ...names: readonly string[]): Readonly<Record<string, Form>> => Object.fromEntries(names.map((name) => [name, is]))
const texts = (...names: readonly string[]) => fields(isText, ...names)
const rowsOf = (forms: Readonly<Record<string, Form>>): Form => listOf(withFields(forms))

const connection = {
  ...texts('connectionId', 'nodeId', 'namespace', 'version', 'address', 'classId', 'digest'),
  ...{ delta: isFlag, identities: listOf(isText), connectedAt: isTime, metadata: optional(isMapping) },
  types: rowsOf({ ...texts('typeUrl', 'nonceSent', 'nonceAcked', 'version', 'error'), current: isFlag, waitingMs: optional(isNumber) }),
}

const reference = withFields(texts('group', 'kind', 'namespace', 'name', 'source', 'cluster', 'uid', 'version', 'place'))

const pushProxies = rowsOf({ ...texts('connection', 'nodeId'), ms: isNumber })

const pushTally = {
  ...texts('namespace'),
  ...fields(isCount, 'acknowledged', 'refused', 'gone', 'outstanding', 'classes', 'bytesSent'),
  ...{ slowest: pushProxies, waiting: pushProxies, times: optional(listOf(isCount)) },
  refusals: rowsOf({ ...texts('connection', 'nodeId', 'typeUrl', 'reason'), ...fields(listOf(isText), 'resources', 'objects') }),
}

const push = {
  ...fields(isCount, 'id', 'otherObjects', 'resources', 'bytes'),
  ...fields(isNumber, 'startedAt', 'publishedAfterMs', 'makingMs'),
  ...{ reasons: listOf(isText), isApplied: optional(isFlag) },
  types: optional(rowsOf({ ...texts('typeUrl'), ...fields(isCount, 'resources', 'removed', 'bytes') })),
  objects: rowsOf({ ...texts('key', 'namespace', 'source', 'cluster', 'uid', 'version', 'place'), generation: isCount }),
  tallies: rowsOf(pushTally),
}

const fault = {
  ...texts('type', 'resource', 'reason', 'consequence'),
  ...{ isLoss: optional(isFlag), proxy: optional(isText), otherProxies: optional(isCount), references: listOf(reference) },
}

const followedKind = {
  ...texts('kind', 'resource', 'mode', 'version'),
  ...fields(isCount, 'objects', 'failures', 'updates', 'deletes', 'lists', 'audits', 'repairs'),
  ...fields(optional(isNumber), 'ageMs', 'lastErrorMs'),
  ...fields(optional(isText), 'lastError', 'lastAuditError'),
  isStale: isFlag,
}

const cluster = {
  ...texts('name', 'actor'),
  ...fields(optional(isText), 'server', 'lastError', 'secret', 'trouble'),
  ...{ connectedMs: optional(isNumber), connections: isCount, isComplete: isFlag, kinds: rowsOf(followedKind) },
}

/** The form of the answer to each question, as far as readers rely on it. */
const forms: Readonly<Record<ReplicaQuestion, Form>> = {
  connections: rowsOf(connection),
  proxies: rowsOf({
    ...{ ...connection, watches: mapOf(listOf(isText)), rejections: rowsOf({ ...texts('typeUrl', 'message'), at: isTime }) },
    refusals: optional(rowsOf(fault)),
  }),
  slow: rowsOf(texts('connectionId', 'namespace')),
  nodes: rowsOf({
    ...texts('nodeId'),
    node: withFields({
      ...texts('id', 'type', 'namespace', 'domain', 'network', 'clusterId', 'locality'),
      addresses: listOf(isText),
      metadata: isMapping,
      labels: optional(mapOf(isText)),
    }),
  }),
  exceeded: rowsOf(texts('proxy', 'address', 'reason', 'at')),
  shares: rowsOf({ ...texts('identity'), ...fields(isCount, 'streams', 'classes', 'nodeBytes') }),
  instances: rowsOf(texts('connection', 'namespace')),
  distribution: rowsOf(texts('proxy', 'cluster_acked', 'listener_acked', 'route_acked', 'namespace')),
  pushes: withFields({ ...texts('cursor'), dropped: isCount, pushes: rowsOf(push) }),
  proxyEvents: withFields({ ...texts('cursor'), isGap: isFlag, events: rowsOf({ ...texts('namespace', 'nodeId', 'message'), kind: isEventKind }) }),
  faults: rowsOf(fault),
  conflicts: rowsOf({ ...texts('kind', 'view', 'key', 'listener', 'host', 'object'), reference }),
  withoutEffect: rowsOf({ ...texts('kind', 'namespace', 'name', 'place'), fields: listOf(isMapping) }),
  clusters: rowsOf(cluster),
  heldClusters: listOf(isText),
  openPorts: listOf(isText),
  resources: mapOf(rowsOf(texts('name', 'version', 'element'))),
  node: (value) => value === null || withFields({ ...texts('id', 'locality'), metadata: isMapping })(value),
  counted: withFields({ all: isCount, have: listOf(isCount), withdrawn: optional(rowsOf({ ...texts('key', 'reason'), proxies: isCount })) }),
  streams: rowsOf({
    ...{ ...texts('node'), identities: listOf(isText) },
    presented: optional(withFields({ ...texts('serial', 'root'), notAfter: isNumber })),
  }),
  ofProxy: isMapping,
  disconnect: isFlag,
  explainResource: withFields({ objects: optional(rowsOf(texts('key', 'namespace', 'source', 'without', 'reason'))) }),
  load: withFields({ proxies: isCount, isReady: isFlag, most: isCount }),
  pushAgain: rowsOf({ proxies: isCount }),
}

/** The most values that an answer may have, and how deep they may be nested: within its size it could have so many that reading them takes most of a minute. */
const most = { values: 2_000_000, depth: 64 }

/** Why JSON of an answer is not read; undefined: it may be. The text need not be JSON. */
export function excessOf(text: string): string | undefined {
  let [values, depth] = [0, 0]
  for (let at = 0; at < text.length; at++) {
    const letter = text[at]
    if (letter === '"') at = endOfString(text, at)
    else if (letter === '}' || letter === ']') depth--
    else if (letter === ',') values++
    else if (letter === '{' || letter === '[') {
      values++
      if (++depth > most.depth) return `its values are nested more than ${most.depth} deep`
    }
    if (values > most.values) return `it has more than ${most.values} values`
  }
  return undefined
}

/** The place of the quotation mark that ends a string of JSON, which begins at `from`; without one the last place. */
function endOfString(text: string, from: number): number {
  for (let end = text.indexOf('"', from + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text[end - 1 - escapes] === '\\') escapes++
    if (escapes % 2 === 0) return end
  }
  return text.length
}

/** Whether an answer has the form that readers rely on. */
export const isAnswerOf = (question: ReplicaQuestion, value: unknown): boolean => forms[question](value)
