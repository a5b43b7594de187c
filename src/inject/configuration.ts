/** The configuration of injection: the keys `config` and `values` of a ConfigMap or a directory (docs/injection.md, N1 and N2). */
import type { InjectorTexts } from '../../protocols/messages/injection.ts'
import { labelSelectorShape, type MeshConfig } from '../config/mesh-config.ts'
import { anything, isMapping, list, map, type Report, record, type Shape, text, unused } from '../config/shape.ts'
import { readDocuments } from '../config/yaml-documents.ts'
import type { Functions } from '../template/function.ts'
import { parseTemplate, type Template } from '../template/template.ts'
import { TemplateError } from '../template/values.ts'
import { injectionFunctions } from './functions.ts'

/** A selector of labels. */
export type Selector = NonNullable<MeshConfig['discoverySelectors']>[number]

/** What decides about injection, and what is injected. */
export interface InjectionConfiguration {
  /** `enabled` or `disabled`; injects nothing by itself with any other text. */
  readonly policy: string
  readonly defaultTemplates: readonly string[]
  /** Go templates by name. */
  readonly templates: ReadonlyMap<string, Template>
  /** The names of templates that a name stands for. */
  readonly aliases: Readonly<Record<string, readonly string[]>>
  readonly neverInjectSelector: readonly Selector[]
  readonly alwaysInjectSelector: readonly Selector[]
  readonly injectedAnnotations: Readonly<Record<string, string>>
  /** The values that templates read. */
  readonly values: Readonly<Record<string, unknown>>
}

/** The longest text of a key, in characters: an object of the orchestrator has at most a mebibyte. */
const longestText = 1024 * 1024

const templateName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/

const named = <T>(item: Shape<T>): Shape<Record<string, T>> => {
  const { form, read } = map(item)
  return {
    form,
    read(value, path, report) {
      for (const name of isMapping(value) ? Object.keys(value) : [])
        if (!templateName.test(name)) report.faults.push({ path, reason: `${JSON.stringify(name.slice(0, 100))} is not a name of a template` })
      return read(value, path, report)
    },
  }
}

const configShape = record({
  policy: text({ max: 100 }),
  defaultTemplates: list(text({ max: 253 }), { max: 100 }),
  template: text({ max: longestText }),
  templates: named(text({ max: longestText })),
  aliases: named(list(text({ max: 253 }), { max: 100 })),
  neverInjectSelector: list(labelSelectorShape, { max: 1000 }),
  alwaysInjectSelector: list(labelSelectorShape, { max: 1000 }),
  injectedAnnotations: map(text({ max: 65_536 })),
  rawTemplates: unused(anything, 'a field of no release'),
})

/** A configuration, or the reason why it cannot be used, which names the key. */
export type ReadConfiguration = { readonly configuration: InjectionConfiguration; readonly warnings: readonly string[] } | { readonly error: string }

/** Reads a configuration. `library`: the functions of templates besides those of Go and of injection. Never throws. */
export function readInjectionConfiguration({ config, values }: InjectorTexts, library: Functions): ReadConfiguration {
  const given = documentOf('config', config)
  if ('error' in given) return given
  const valued = documentOf('values', values)
  if ('error' in valued) return valued
  const report: Report = { faults: [], warnings: [] }
  const read = configShape.read(given.value, '', report)
  const describe = ({ path, reason }: { path: string; reason: string }) => (path === '' ? `config: ${reason}` : `config: field ${path}: ${reason}`)
  if (!read || report.faults.length > 0) return { error: report.faults.map(describe).join('; ').slice(0, 2000) }
  const templates = new Map<string, Template>()
  const functions = new Map([...library, ...injectionFunctions])
  for (const [name, template] of Object.entries({ ...(read.template !== undefined && { sidecar: read.template }), ...read.templates })) {
    try {
      templates.set(name, parseTemplate(name, template, functions))
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error
      return { error: `config: field templates: ${error.message}` }
    }
  }
  const { policy = 'enabled', defaultTemplates = [], aliases = {}, injectedAnnotations = {} } = read
  const { neverInjectSelector = [], alwaysInjectSelector = [] } = read
  return {
    configuration: {
      ...{ policy, templates, aliases, neverInjectSelector, alwaysInjectSelector, injectedAnnotations, values: valued.value },
      defaultTemplates: defaultTemplates.length > 0 ? defaultTemplates : ['sidecar'],
    },
    warnings: [...report.warnings.map(describe), ...policyWarning(policy)],
  }
}

const policyWarning = (policy: string): string[] =>
  policy === 'enabled' || policy === 'disabled'
    ? []
    : [
        `config: field policy: ${JSON.stringify(policy)} is neither enabled nor disabled: pods are injected by annotation or alwaysInjectSelector only`,
      ]

function documentOf(key: string, content: string): { readonly value: Readonly<Record<string, unknown>> } | { readonly error: string } {
  if (content.length > longestText) return { error: `${key}: longer than ${longestText} characters` }
  const [document = { value: {} }, another] = readDocuments(content)
  if (another) return { error: `${key}: holds more than one document` }
  if ('error' in document) return { error: `${key}: ${document.error}` }
  const value = document.value ?? {}
  return isMapping(value) ? { value } : { error: `${key}: expected a mapping` }
}
