/** The status of a configuration object: what is read of it, what it has to say, and the patch that makes it say that (docs/status.md). */
import type { AnalysisMessage, HeldStatus, MeshObject, PatchOperation, WithdrawnObject } from '../../protocols/messages/object-status.ts'
import { isMapping, mapping } from '../config/shape.ts'

type Mapping = Readonly<Record<string, unknown>>

/** The condition that says whether proxies have an object. */
const reconciled = 'Reconciled'
/** The largest status that is touched, in characters of JSON: the rest of it is sent back with each write. */
export const longestStatus = 65_536
/** The longest fault that a condition names, in characters. */
export const longestFault = 300

/** What the condition has to say. */
export interface WantedCondition {
  readonly isReconciled: boolean
  readonly message: string
  readonly generation: number
}

/** What a status has to say. Of what is undefined it says what it said before. */
export interface WantedStatus {
  readonly condition: WantedCondition | undefined
  readonly messages: readonly AnalysisMessage[] | undefined
}

/** Reads the status of an object; undefined: it has none. `isTooLong`: it has more than {@link longestStatus}, and is left alone. */
export function heldStatus(value: unknown): { readonly status: HeldStatus | undefined; readonly isTooLong: boolean } {
  if (!isMapping(value)) return { status: undefined, isTooLong: false }
  const { observedGeneration, conditions, validationMessages } = value
  const text = (list: unknown) => (list === undefined ? '' : JSON.stringify(list))
  const status = {
    observedGeneration: typeof observedGeneration === 'number' ? observedGeneration : undefined,
    conditions: text(conditions),
    messages: text(validationMessages),
  }
  return { status, isTooLong: status.conditions.length + status.messages.length > longestStatus }
}

/** The number of replicas that a message names. */
const mostSilent = 3

/**
 * What the message of the condition says. `fault`: why the object cannot be used; empty: it can. `silent`: replicas whose proxies are not
 * known. `withdrawn`: the proxies that refuse it, if some do.
 */
export function conditionMessage(
  reached: number,
  proxies: number,
  fault: string,
  silent: readonly string[] = [],
  withdrawn?: Pick<WithdrawnObject, 'proxies' | 'reason'>,
): string {
  const named = silent.length > mostSilent ? `${silent.slice(0, mostSilent).join(', ')} and ${silent.length - mostSilent} more` : silent.join(', ')
  const missing = silent.length === 0 ? '' : ` Not counted, since there is no answer of the replica: ${named}.`
  const counts = `${reached}/${proxies} proxies up to date.${missing}`
  if (withdrawn) {
    // Proxies may say anything.
    const reason = cut(printable(withdrawn.reason))
    return `${counts} ${withdrawn.proxies} refuse it, and have their configuration without what they refuse: ${reason}`
  }
  return fault === '' ? counts : `${counts} This generation is not in use: ${cut(fault)}`
}

const cut = (text: string): string => (text.length > longestFault ? `${text.slice(0, longestFault).toWellFormed()}...` : text)
const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}]/gu, ' ')

/** Whether the status says that all proxies had this generation. */
export const isSaidReconciled = ({ status, generation }: MeshObject): boolean =>
  status?.observedGeneration === generation && ownCondition(status)?.status === 'True'

/** Whether a status says what it has to. A generation that was reconciled stays so, whatever the number of proxies was. */
export function isSaid(held: HeldStatus | undefined, { condition, messages }: WantedStatus): boolean {
  return (condition === undefined || saysCondition(held, condition)) && (messages === undefined || saysMessages(held, messages))
}

function saysCondition(held: HeldStatus | undefined, { isReconciled, message, generation }: WantedCondition): boolean {
  // Of several conditions of this type, somebody else has written one: each reader would take another.
  const [own, ...others] = held ? conditionsOf(held).filter(isOwn) : []
  if (others.length > 0 || held?.observedGeneration !== generation || own?.status !== (isReconciled ? 'True' : 'False')) return false
  return isReconciled || own.message === message
}

/** Where the project's own documentation says what each code means and what to do. */
const codesPage = 'docs/analysis.md#codes'

/** The messages of analysis as a status has them. */
function writtenMessages(messages: readonly AnalysisMessage[]): readonly Mapping[] {
  return messages.map(({ code, name, level, path, message }) => ({
    type: { name, code },
    level: levels[level],
    message: cut(printable(path === '' ? message : `${path}: ${message}`)),
    documentation_url: codesPage,
  }))
}

/** The numbers of levels in a status. */
const levels = { error: 3, warning: 8, info: 12 } as const

/** An API server may have the fields in another order. */
const saysMessages = (held: HeldStatus | undefined, messages: readonly AnalysisMessage[]): boolean =>
  sorted(held?.messages ? JSON.parse(held.messages) : []) === sorted(writtenMessages(messages))

function sorted(messages: unknown): string {
  if (!Array.isArray(messages)) return ''
  return JSON.stringify(
    messages.map((message) => {
      const { type, level, message: text, documentation_url } = mapping(message)
      return [mapping(type).code, mapping(type).name, level, text, documentation_url]
    }),
  )
}

const conditionsOf = ({ conditions }: HeldStatus): readonly unknown[] => {
  const list: unknown = conditions === '' ? [] : JSON.parse(conditions)
  return Array.isArray(list) ? list : []
}

const isOwn = (condition: unknown): condition is Mapping => isMapping(condition) && condition.type === reconciled

const ownCondition = (held: HeldStatus): Mapping | undefined => conditionsOf(held).find(isOwn)

/**
 * Returns the patch that makes a status say what it has to, and the status that it makes. It fails when somebody else has written the conditions
 * meanwhile, or when another object has the name. `now`: the date, as the API writes it.
 */
export function statusPatch(
  { uid, status: held }: Pick<MeshObject, 'uid' | 'status'>,
  { condition, messages }: WantedStatus,
  now: string,
): { readonly patch: readonly PatchOperation[]; readonly status: HeldStatus } {
  const before = held && ownCondition(held)
  const conditions = condition && [...(held ? conditionsOf(held).filter((each) => !isOwn(each)) : []), made(condition, before, now)]
  const parts: Mapping = {
    ...(condition ? { conditions, observedGeneration: condition.generation } : {}),
    ...(messages ? { validationMessages: writtenMessages(messages) } : {}),
  }
  const status = {
    observedGeneration: condition ? condition.generation : held?.observedGeneration,
    conditions: conditions ? JSON.stringify(conditions) : (held?.conditions ?? ''),
    messages: messages ? JSON.stringify(writtenMessages(messages)) : (held?.messages ?? ''),
  }
  const same: PatchOperation = { op: 'test', path: '/metadata/uid', value: uid }
  if (!held) return { patch: [same, { op: 'test', path: '/status', value: null }, { op: 'add', path: '/status', value: parts }], status }
  const seen = held.conditions === '' ? null : (JSON.parse(held.conditions) as unknown)
  const unchanged: PatchOperation[] = condition ? [{ op: 'test', path: '/status/conditions', value: seen }] : []
  const set = Object.entries(parts).map(([name, value]): PatchOperation => ({ op: 'add', path: `/status/${name}`, value }))
  return { patch: [same, ...unchanged, ...set], status }
}

function made({ isReconciled, message }: WantedCondition, before: Mapping | undefined, now: string): Mapping {
  const status = isReconciled ? 'True' : 'False'
  const since = before?.status === status && typeof before.lastTransitionTime === 'string' ? before.lastTransitionTime : now
  return { type: reconciled, status, message, lastProbeTime: now, lastTransitionTime: since }
}
