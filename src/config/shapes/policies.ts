/** What the kinds that say who may call whom have in common (docs/resources.md, A1 to A10). Unknown fields are faults in them: a policy without a misspelt condition allows more. */
import { map, record, reject, text } from '../shape.ts'

/** A record whose unknown fields are faults. */
export const strict: <F extends Parameters<typeof record>[0]>(fields: F, check?: Parameters<typeof record<F>>[1]) => ReturnType<typeof record<F>> = (
  fields,
  check,
) => record(fields, check, 'fault')

/** Which workloads a policy is for. */
export const selector = strict({ matchLabels: map(text({ max: 63 })) }, (value, path, report) => {
  for (const [key, label] of Object.entries(value.matchLabels ?? {})) {
    if (key === '') reject(report, `${path}.matchLabels`, 'a label needs a name')
    if (key.includes('*') || label.includes('*')) reject(report, `${path}.matchLabels[${key}]`, 'wildcards are not allowed here')
  }
})

/** The labels that a policy, or a stand-in for one, asks of workloads. */
export const selectorLabels = (spec: { readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> } }) =>
  spec.selector?.matchLabels

/** Whether text is the number of a port. */
export const isPort = (given: string): boolean => /^\d{1,5}$/.test(given) && Number(given) >= 1 && Number(given) <= 65_535
