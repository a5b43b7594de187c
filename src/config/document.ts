/**
 * Writes a parsed spec as the document that it could have come from: the inverse of shapes, for those who are sent configuration objects.
 * Reading the result gives the same spec (`test/unit/config/document.test.ts`).
 */
import { type Form, isMapping } from './shape.ts'

/** Returns the spec in the form of documents. `form` is that of the shape that has read it: durations are text there. */
export function writtenSpec(form: Form, value: unknown): unknown {
  switch (form.type) {
    case 'duration':
      return typeof value === 'number' ? durationText(value) : value
    case 'list':
      return Array.isArray(value) ? value.map((item) => writtenSpec(form.item, item)) : value
    case 'map':
      return isMapping(value) ? withValues(value, (_, item) => writtenSpec(form.item, item)) : value
    case 'record':
      return isMapping(value)
        ? withValues(value, (name, item) => {
            const field = Object.hasOwn(form.fields, name) ? form.fields[name] : undefined
            return field ? writtenSpec(field.form, item) : item
          })
        : value
    default:
      return value
  }
}

const withValues = (value: Readonly<Record<string, unknown>>, written: (name: string, item: unknown) => unknown): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).map(([name, item]) => [name, written(name, item)]))

/** Formats milliseconds. Decimals are written out: durations have no exponents. */
function durationText(ms: number): string {
  const text = String(ms)
  return `${text.includes('e') ? ms.toFixed(20) : text}ms`
}
