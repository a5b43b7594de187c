/** Configuration as templates see it: messages of Go. */
import type { Form } from '../config/shape.ts'
import { fromJson, GoStruct, type Value } from '../template/values.ts'

/** Returns the configuration of a form as a message of Go with this name, with all fields of the form. */
export const goConfig = (form: Form, value: object, name: string): Value => goValue(form, value, name)

/**
 * Converts a value to Go's representation: messages with all their fields under Go's names. Durations and `Concurrency` are messages, too.
 */
function goValue(form: Form, value: unknown, name: string): Value {
  if (form.type === 'record') return value === undefined ? null : goStruct(form, (value ?? {}) as Record<string, unknown>, name)
  if (form.type === 'duration') return value === undefined ? null : durationValue(Number(value))
  if (name === 'Concurrency') return value === undefined ? null : new GoStruct('*types.Int32Value', new Map([['Value', Number(value)]]))
  if (form.type === 'list') return ((value ?? []) as unknown[]).map((item) => goValue(form.item, item, name))
  if (form.type === 'map') return new Map(Object.entries((value ?? {}) as object).map(([key, item]) => [key, goValue(form.item, item, name)]))
  if (value !== undefined) return fromJson(value)
  if (form.type === 'number') return 0
  return form.type === 'flag' ? false : ''
}

function goStruct(form: Extract<Form, { type: 'record' }>, value: Readonly<Record<string, unknown>>, name: string): GoStruct {
  const fields = Object.entries(form.fields).map(([field, { form: inner }]): [string, Value] => {
    const goName = field.slice(0, 1).toUpperCase() + field.slice(1)
    return [goName, goValue(inner, value[field], goName)]
  })
  return new GoStruct(`*v1alpha1.${name}`, new Map(fields))
}

const durationValue = (ms: number): GoStruct =>
  new GoStruct(
    '*types.Duration',
    new Map([
      ['Seconds', Math.trunc(ms / 1000)],
      ['Nanos', Math.round((ms % 1000) * 1e6)],
    ]),
  )
