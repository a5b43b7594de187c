/** Converts configuration to the JSON of its message: the inverse of parsing it by its shape. */
import type { Form } from '../config/shape.ts'

/** Converts a parsed value by its form. Durations become text in seconds; fields that are zero, false or empty are omitted. */
export function protoJson(form: Form, value: unknown): unknown {
  if (form.type === 'duration') return `${Number(value) / 1000}s`
  if (form.type === 'list') return (value as readonly unknown[]).map((item) => protoJson(form.item, item))
  if (form.type === 'map') return Object.fromEntries(Object.entries(value as object).map(([key, item]) => [key, protoJson(form.item, item)]))
  if (form.type !== 'record') return value
  const given = value as Readonly<Record<string, unknown>>
  const fields = Object.entries(form.fields).filter(([name]) => !isZero(given[name]))
  return Object.fromEntries(fields.map(([name, field]) => [name, protoJson(field.form, given[name])]))
}

function isZero(value: unknown): boolean {
  if (value === undefined || value === 0 || value === '' || value === false) return true
  return Array.isArray(value) ? value.length === 0 : typeof value === 'object' && Object.keys(value as object).length === 0
}
