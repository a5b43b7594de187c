/** The parameters of debug pages: declared with each page, and shown by the list of pages, by forms in browsers and by usage texts. */
import { type FormField, htmlType, pageForm, textPage } from '../../http/html.ts'
import { Page } from '../../http/page-server.ts'

/** A parameter of a page. */
export interface Parameter {
  readonly name: string
  /** What it is, with its default. */
  readonly about: string
  /** The values that it may have, where these are known. */
  readonly choices?: readonly string[]
  /** Whether it may be given several times. */
  readonly isRepeated?: true
  /** Whether it counts when it is given, whatever its value. */
  readonly isSwitch?: true
}

/** The parameter that names a proxy. */
export const proxyParameter: Parameter = {
  name: 'proxyID',
  about: 'the proxy: its name <pod>.<namespace>, or any part of its name or node id that no other proxy has',
}

/** What a page is about, with the names of its parameters. */
export const aboutPage = ({ what, parameters = [] }: { readonly what: string; readonly parameters?: readonly Parameter[] }): string =>
  parameters.length === 0 ? what : `${what} (${parameters.map(({ name }) => name).join(', ')})`

/** The parameters that a request gives. A field of a form that is left empty is not given. */
export function givenParameters(query: URLSearchParams, parameters: readonly Parameter[]): URLSearchParams {
  const valued = new Set(parameters.filter(({ isSwitch }) => !isSwitch).map(({ name }) => name))
  return new URLSearchParams([...query].filter(([name, value]) => value !== '' || !valued.has(name)))
}

/** A line for each parameter, with its choices. */
function usageOf(path: string, parameters: readonly Parameter[]): string {
  const width = Math.max(...parameters.map(({ name }) => name.length))
  const lines = parameters.map((parameter) => `  ${parameter.name.padEnd(width)}  ${aboutParameter(parameter)}`)
  return [`Parameters of ${path}:`, ...lines].join('\n')
}

function aboutParameter({ about, choices, isRepeated }: Parameter): string {
  const of = choices ? ` (${choices.join(', ')})` : ''
  return `${about}${of}${isRepeated ? '; may be repeated' : ''}`
}

/** The answers that say that parameters are missing or cannot be used. */
const unusable: ReadonlySet<number> = new Set([400, 422])

/** The answers that are no answer of the page: the caller may not ask it. */
const denied: ReadonlySet<number> = new Set([401, 403])

/** The policy of a page that has nothing but a form. */
const formOnly = { 'Content-Security-Policy': "default-src 'none'; form-action 'self'; base-uri 'none'" }

/**
 * The answer of a page with parameters: for browsers below a form, which has what was given, otherwise, if something is missing or
 * cannot be used, above the usage, unless a proxy is all that it needs. Bytes and HTML stay as they are.
 */
export function withParameters(
  answer: Page,
  { path, query, isHtml }: { readonly path: string; readonly query: URLSearchParams; readonly isHtml: boolean },
  parameters: readonly Parameter[],
): Page {
  const { body, type, status, headers } = answer
  if (typeof body !== 'string' || type === htmlType || denied.has(status)) return answer
  if (!isHtml) {
    const isUsage = unusable.has(status) && parameters.some(({ name }) => name !== proxyParameter.name)
    return isUsage ? new Page(`${body}\n\n${usageOf(path, parameters)}`, type, status, headers) : answer
  }
  const form = pageForm(path, fieldsOf(parameters, query))
  return new Page(textPage(path, body, ['/', '/debug'], form), htmlType, status, { ...headers, ...formOnly })
}

/** The fields of a form: the parameters, and what else was given, unseen. */
function fieldsOf(parameters: readonly Parameter[], query: URLSearchParams): FormField[] {
  const declared = new Set(parameters.map(({ name }) => name))
  const others = [...query].filter(([name]) => !declared.has(name)).map(([name, value]) => ({ name, about: '', values: [value], isHidden: true }))
  return [...parameters.map((parameter) => fieldOf(parameter, query)), ...others]
}

function fieldOf({ name, about, choices, isRepeated, isSwitch }: Parameter, query: URLSearchParams): FormField {
  const given = query.getAll(name)
  const values = isRepeated ? [...given, ''] : [given[0] ?? '']
  return {
    ...{ name, about, values, isSwitch: isSwitch && (query.has(name) ? 'on' : 'off') },
    ...(choices && { choices: [...new Set(['', ...choices, ...values])] }),
  }
}
