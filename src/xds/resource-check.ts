/**
 * Checks messages against the validation rules in Envoy's schemas (`validate.rules` options), and against rules that the schemas do not
 * state, so that a resource that Envoy would refuse, or that would end Envoy, is never sent. The rules of a message type are compiled once,
 * on first use.
 */
import { type DescField, type DescMessage, type DescOneof, getOption, hasOption, type Message } from '@bufbuild/protobuf'
import type { ScalarValue } from '@bufbuild/protobuf/reflect'
import type { Duration } from '@bufbuild/protobuf/wkt'
import type { Listener } from '../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import {
  type FieldRules,
  KnownRegex,
  disabled as messageDisabled,
  required as oneofRequired,
  rules as rulesOption,
} from '../../protocols/gen/validate/validate_pb.js'
import { count } from '../model/counts.ts'
import { markOfBound, optionWithoutSocket } from './listeners/unbound.ts'

/** Thrown for a message that violates a validation rule; has the path of the field and the reason. */
export class InvalidResource extends Error {
  readonly path: string
  readonly reason: string
  constructor(path: string, reason: string) {
    super(`${path}: ${reason}`)
    this.path = path
    this.reason = reason
  }
}

/** A message by property names as `@bufbuild/protobuf` represents it: a oneof is one property with the name of the case and the value. */
type Fields = Readonly<Record<string, unknown>>
/** Throws {@link InvalidResource} with a path relative to the message. */
type Check = (message: Fields) => void

const compiled = new WeakMap<DescMessage, Check | null>()

/** Throws {@link InvalidResource} at the first rule that the message violates. */
export function checkMessage(schema: DescMessage, message: Message): void {
  if (!needsCheck(schema)) return
  try {
    checkFields(schema, message as unknown as Fields)
  } catch (error) {
    throw below(schema.name, error)
  }
}

function checkFields(schema: DescMessage, message: Fields): void {
  compile(schema)?.(message)
}

/** Returns an error with the path extended by the field that contains the message. Paths are built for errors only. */
function below(part: string, error: unknown): unknown {
  if (!(error instanceof InvalidResource)) return error
  return new InvalidResource(error.path === '' ? part : `${part}.${error.path}`, error.reason)
}

/** Whether a message type has rules in itself or in any nested type, by type. */
const rulesBelow = new Map<DescMessage, boolean>()
function needsCheck(schema: DescMessage): boolean {
  const known = rulesBelow.get(schema)
  if (known !== undefined) return known
  const seen = new Set<DescMessage>()
  const visit = (type: DescMessage): boolean => {
    if (seen.has(type)) return false
    seen.add(type)
    if (type.oneofs.some((oneof) => hasOption(oneof, oneofRequired))) return true
    return type.fields.some((field) => hasOption(field, rulesOption) || (field.message !== undefined && visit(field.message)))
  }
  const found = visit(schema)
  rulesBelow.set(schema, found)
  return found
}

function compile(schema: DescMessage): Check | null {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  compiled.set(schema, null)
  const checks: Check[] = []
  if (!(hasOption(schema, messageDisabled) && getOption(schema, messageDisabled))) {
    for (const oneof of schema.oneofs) if (hasOption(oneof, oneofRequired) && getOption(oneof, oneofRequired)) checks.push(oneofCheck(oneof))
    for (const field of schema.fields) {
      const check = fieldCheck(field)
      if (check) checks.push(check)
    }
    const unstated = unstatedChecks.get(schema.typeName)
    if (unstated) checks.push(unstated)
  }
  const all: Check | null =
    checks.length === 0
      ? null
      : (message) => {
          for (const check of checks) check(message)
        }
  compiled.set(schema, all)
  return all
}

/** Rules that Envoy's schemas do not state, by message type. */
const unstatedChecks: ReadonlyMap<string, Check> = new Map([
  [
    'envoy.config.listener.v3.Listener',
    (message) => {
      const option = optionWithoutSocket(message as unknown as Listener)
      if (option)
        throw new InvalidResource('bind_to_port', `must be true with ${option}: Envoy crashes when it sets an option on a socket that is not there`)
      const mark = markOfBound(message as unknown as Listener)
      if (mark) throw new InvalidResource(mark, 'must be another text: this one marks listeners that are not bound')
    },
  ],
])

interface OneofValue {
  readonly case: string | undefined
  readonly value?: unknown
}

function oneofCheck({ name, localName }: DescOneof): Check {
  return (message) => {
    if ((message[localName] as OneofValue).case === undefined) throw new InvalidResource(name, 'one of its fields must be set')
  }
}

function fieldCheck(field: DescField): Check | undefined {
  const rules = hasOption(field, rulesOption) ? getOption(field, rulesOption) : undefined
  const nested = field.message && needsCheck(field.message) && !rules?.message?.skip ? field.message : undefined
  if (!rules && !nested) return undefined
  if (field.fieldKind === 'list') return listCheck(field, rules, nested)
  if (field.fieldKind === 'map') return mapCheck(field, rules, nested)
  if (field.fieldKind === 'message') return messageCheck(field, rules, nested)
  const check = rules ? valueCheck(rules) : undefined
  if (!check) return undefined
  const { name, localName } = field
  if (!field.oneof && field.presence !== 1) return (message) => check(message[localName] as ScalarValue, name)
  return (message) => {
    const value = setValue(message, field)
    if (value !== undefined) check(value as ScalarValue, name)
  }
}

/** Returns the value of a singular field with presence; undefined if it is not set. Defaults of proto2 are in the prototype. */
function setValue(message: Fields, { localName, oneof }: DescField): unknown {
  if (!oneof) return Object.hasOwn(message, localName) ? message[localName] : undefined
  const set = message[oneof.localName] as OneofValue
  return set.case === localName ? set.value : undefined
}

function listCheck({ name, localName, message: type }: DescField, rules: FieldRules | undefined, nested: DescMessage | undefined): Check {
  const repeated = rules?.type.case === 'repeated' ? rules.type.value : undefined
  const item = repeated?.items ? valueCheck(repeated.items) : undefined
  const mustDiffer = repeated?.unique && !type
  return (message) => {
    const values = message[localName] as readonly unknown[]
    if (repeated) checkCount(values.length, repeated.minItems, repeated.maxItems, repeated.ignoreEmpty, name)
    if (mustDiffer && new Set(values).size !== values.length) throw new InvalidResource(name, 'entries must differ')
    if (!item && !nested) return
    for (let index = 0; index < values.length; index++) {
      try {
        item?.(values[index] as ScalarValue, '')
        if (nested) checkFields(nested, values[index] as Fields)
      } catch (error) {
        throw below(`${name}[${index}]`, error)
      }
    }
  }
}

function mapCheck({ name, localName }: DescField, rules: FieldRules | undefined, nested: DescMessage | undefined): Check {
  const map = rules?.type.case === 'map' ? rules.type.value : undefined
  const keyCheck = map?.keys ? valueCheck(map.keys) : undefined
  return (message) => {
    const entries = Object.entries(message[localName] as Fields)
    if (map) checkCount(entries.length, map.minPairs, map.maxPairs, map.ignoreEmpty, name)
    for (const [key, value] of entries) {
      try {
        keyCheck?.(key, '')
        if (nested) checkFields(nested, value as Fields)
      } catch (error) {
        throw below(`${name}[${key}]`, error)
      }
    }
  }
}

function messageCheck(field: DescField & { fieldKind: 'message' }, rules: FieldRules | undefined, nested: DescMessage | undefined): Check {
  const { name } = field
  const type = rules?.type
  const required = rules?.message?.required || (type?.case === 'any' && type.value.required) || (type?.case === 'duration' && type.value.required)
  const wrapped =
    rules && field.message.typeName.startsWith('google.protobuf.') && field.message.typeName.endsWith('Value') ? valueCheck(rules) : undefined
  return (message) => {
    const value = setValue(message, field)
    if (value === undefined) {
      if (required && !field.oneof) throw new InvalidResource(name, 'required, but missing')
      return
    }
    if (type?.case === 'duration') checkDuration(value as Duration, type.value, name)
    // Outside a oneof, `@bufbuild/protobuf` represents a wrapper by its value.
    if (wrapped) wrapped((field.oneof ? (value as { value: unknown }).value : value) as ScalarValue, name)
    try {
      if (nested) checkFields(nested, value as Fields)
    } catch (error) {
      throw below(name, error)
    }
  }
}

const nanosOf = (duration: Duration): bigint => duration.seconds * 1_000_000_000n + BigInt(duration.nanos)

function checkDuration(value: Duration, rules: { lt?: Duration; lte?: Duration; gt?: Duration; gte?: Duration }, path: string): void {
  const nanos = nanosOf(value)
  const fail = (reason: string): never => {
    throw new InvalidResource(path, reason)
  }
  if (rules.gt && nanos <= nanosOf(rules.gt)) fail(`must be longer than ${nanosOf(rules.gt)} ns`)
  if (rules.gte && nanos < nanosOf(rules.gte)) fail(`must be at least ${nanosOf(rules.gte)} ns`)
  if (rules.lt && nanos >= nanosOf(rules.lt)) fail(`must be shorter than ${nanosOf(rules.lt)} ns`)
  if (rules.lte && nanos > nanosOf(rules.lte)) fail(`must be at most ${nanosOf(rules.lte)} ns`)
}

function checkCount(size: number, min: bigint, max: bigint, ignoreEmpty: boolean, path: string): void {
  if (ignoreEmpty && size === 0) return
  if (min > 0n && size < min) throw new InvalidResource(path, `needs at least ${count(min, 'entry', 'entries')}`)
  if (max > 0n && size > max) throw new InvalidResource(path, `takes at most ${count(max, 'entry', 'entries')}`)
}

type ValueCheck = (value: ScalarValue, path: string) => void

function valueCheck(rules: FieldRules): ValueCheck | undefined {
  const type = rules.type
  switch (type.case) {
    case 'string':
      return stringCheck(type.value)
    case 'bytes':
      return (value, path) => {
        if (type.value.minLen > 0n && (value as Uint8Array).length < type.value.minLen)
          throw new InvalidResource(path, `needs at least ${count(type.value.minLen, 'byte')}`)
      }
    case 'bool':
      return (value, path) => {
        if (value !== type.value.const) throw new InvalidResource(path, `must be ${type.value.const}`)
      }
    case 'enum':
      return (value, path) => {
        if (type.value.notIn.includes(value as number)) throw new InvalidResource(path, `may not be ${value}`)
        if (type.value.in.length > 0 && !type.value.in.includes(value as number)) throw new InvalidResource(path, `${value} is not allowed`)
      }
    case 'float':
    case 'double':
    case 'int32':
    case 'int64':
    case 'uint32':
    case 'uint64':
      return numberCheck(type.value as unknown as NumberRules)
    default:
      return undefined
  }
}

interface NumberRules {
  readonly $typeName: string
  readonly lt: number | bigint
  readonly lte: number | bigint
  readonly gt: number | bigint
  readonly gte: number | bigint
  readonly ignoreEmpty: boolean
}

function numberCheck(rules: NumberRules): ValueCheck {
  const set = (name: 'lt' | 'lte' | 'gt' | 'gte') => Object.hasOwn(rules, name)
  const bounds = { lt: set('lt'), lte: set('lte'), gt: set('gt'), gte: set('gte') }
  return (given, path) => {
    const value = given as number | bigint
    if (rules.ignoreEmpty && Number(value) === 0) return
    if (bounds.gt && !(value > rules.gt)) throw new InvalidResource(path, `${value} must be greater than ${rules.gt}`)
    if (bounds.gte && !(value >= rules.gte)) throw new InvalidResource(path, `${value} must be at least ${rules.gte}`)
    if (bounds.lt && !(value < rules.lt)) throw new InvalidResource(path, `${value} must be less than ${rules.lt}`)
    if (bounds.lte && !(value <= rules.lte)) throw new InvalidResource(path, `${value} must be at most ${rules.lte}`)
  }
}

function stringCheck(rules: Extract<FieldRules['type'], { case: 'string' }>['value']): ValueCheck {
  return (given, path) => {
    const value = given as string
    if (rules.ignoreEmpty && value === '') return
    const fail = (reason: string): never => {
      throw new InvalidResource(path, reason)
    }
    if (rules.minLen > 0n && value.length < rules.minLen)
      fail(value === '' ? 'required, but empty' : `needs at least ${count(rules.minLen, 'character')}`)
    if (rules.minBytes > 0n && Buffer.byteLength(value) < rules.minBytes) fail('required, but empty')
    if (rules.maxBytes > 0n && Buffer.byteLength(value) > rules.maxBytes) fail(`takes at most ${count(rules.maxBytes, 'byte')}`)
    if (rules.maxLen > 0n && value.length > rules.maxLen) fail(`takes at most ${count(rules.maxLen, 'character')}`)
    if (rules.prefix !== '' && !value.startsWith(rules.prefix)) fail(`must start with ${rules.prefix}`)
    if (rules.in.length > 0 && !rules.in.includes(value)) fail(`must be one of ${rules.in.join(', ')}`)
    if (rules.wellKnownRegex === KnownRegex.HTTP_HEADER_NAME && badHeader(value, rules.strict, true))
      fail(`${JSON.stringify(value)} is not an HTTP header name`)
    if (rules.wellKnownRegex === KnownRegex.HTTP_HEADER_VALUE && badHeader(value, rules.strict, false))
      fail(`${JSON.stringify(value)} is not an HTTP header value`)
  }
}

/**
 * Whether a text is no valid header name or value. Strict: a name is an RFC 7230 token with an optional leading colon, for pseudo headers.
 * Otherwise only NUL, CR and LF are invalid.
 */
function badHeader(value: string, strict: boolean, name: boolean): boolean {
  if (!strict) return /[\u0000\n\r]/.test(value)
  return name ? !/^:?[0-9A-Za-z!#$%&'*+.^_|~\u0060-]+$/.test(value) : /[\u0000-\u0008\u000a-\u001f\u007f]/.test(value)
}
