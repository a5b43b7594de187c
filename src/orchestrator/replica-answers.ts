/** What replicas of discovery tell each other, as far as it has to be checked: addresses in Leases, and the form of answers (docs/operation.md, A1, A4). */
import type { ReplicaQuestion } from '../../protocols/messages/replicas.ts'
import { isMapping } from '../config/shape.ts'

/** The host and the port of `<host>:<port>`, with or without brackets around an IPv6 address; undefined: it is none. */
export function replicaAddress(text: string): { readonly host: string; readonly port: number } | undefined {
  const [, host = '', digits = ''] = /^(.{1,253}):(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits)
  return host === '' || port > 65_535 ? undefined : { host: host.replace(/^\[(.*)\]$/, '$1'), port }
}

/** Whether an answer has the form that readers rely on. */
export function isAnswerOf(question: ReplicaQuestion, value: unknown): boolean {
  switch (question) {
    case 'connections':
      return isRows(value, isConnection)
    case 'proxies':
      return isRows(
        value,
        (row) => isConnection(row) && isMapping(row.watches) && Object.values(row.watches).every(isTexts) && isRows(row.rejections, isRejection),
      )
    case 'slow':
      return isRows(value, (row) => hasTexts(row, ['connectionId', 'namespace']))
    case 'instances':
      return isRows(value, (row) => hasTexts(row, ['connection', 'namespace']))
    case 'distribution':
      return isRows(value, (row) => hasTexts(row, ['proxy', 'cluster_acked', 'listener_acked', 'route_acked', 'namespace']))
    case 'resources':
      return isMapping(value) && Object.values(value).every((list) => isRows(list, (row) => hasTexts(row, ['name', 'version', 'element'])))
    case 'counted':
      return isMapping(value) && isNumber(value.all) && Array.isArray(value.have) && value.have.every(isNumber)
    case 'ofProxy':
      return isMapping(value)
    case 'disconnect':
      return typeof value === 'boolean'
    case 'explainResource':
      return (
        isMapping(value) &&
        (value.objects === undefined || isRows(value.objects, (row) => hasTexts(row, ['key', 'namespace', 'source', 'without', 'reason'])))
      )
    case 'pushAgain':
      return isRows(value, ({ proxies }) => isNumber(proxies))
  }
}

const isNumber = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0

type Row = Readonly<Record<string, unknown>>

const isRows = (value: unknown, isRow: (row: Row) => boolean): boolean => Array.isArray(value) && value.every((row) => isMapping(row) && isRow(row))
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((text) => typeof text === 'string')
const hasTexts = (row: Row, names: readonly string[]): boolean => names.every((name) => typeof row[name] === 'string')
const isTime = (value: unknown): boolean => typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]{8,18}Z$/.test(value)

function isConnection(row: Row): boolean {
  const { types, delta, identities, connectedAt } = row
  const texts = ['connectionId', 'nodeId', 'namespace', 'version', 'address', 'classId', 'digest']
  return hasTexts(row, texts) && typeof delta === 'boolean' && isTexts(identities) && isTime(connectedAt) && isRows(types, isType)
}

const isType = (row: Row): boolean => hasTexts(row, ['typeUrl', 'nonceSent', 'nonceAcked', 'version', 'error']) && typeof row.current === 'boolean'

const isRejection = (row: Row): boolean => hasTexts(row, ['typeUrl', 'message']) && isTime(row.at)
