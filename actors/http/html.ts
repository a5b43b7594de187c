/** Plain pages of HTML. */

/** The media type of the pages. */
export const htmlType = 'text/html; charset=utf-8'

/** A page with a title, what stands in its head besides, and its body, both of which are HTML already. */
export function htmlPage(title: string, body: string, head = ''): string {
  const text = escaped(title)
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${text}</title>${head}<h1>${text}</h1>${body}</html>`
}

/** A link, its text, and what its page is about. */
export interface Link {
  readonly href: string
  readonly text: string
  readonly about: string
}

/** A table of links with what their pages are about. */
export function linkTable(links: readonly Link[]): string {
  const rows = links.map(({ href, text, about }) => `<tr><td><a href="${escaped(href)}">${escaped(text)}</a></td><td>${escaped(about)}</td></tr>`)
  return `<table>${rows.join('')}</table>`
}

/** The links that lead back from a debug page. */
export const wayBack = '<p><a href="/">/</a> | <a href="/debug">/debug</a></p>'

/** A field of a form. */
export interface FormField {
  readonly name: string
  readonly about: string
  /** What the field has, a control for each. */
  readonly values: readonly string[]
  readonly choices?: readonly string[]
  /** Whether it is a box, and ticked. */
  readonly isSwitch?: 'on' | 'off' | undefined
  readonly isHidden?: boolean
}

/** A form that asks a page with what is filled in. */
export function pageForm(path: string, fields: readonly FormField[]): string {
  const hidden = fields
    .filter(({ isHidden }) => isHidden)
    .map(({ name, values: [value = ''] }) => `<input type="hidden" ${nameAndValue(name, value)}>`)
  const rows = fields
    .filter(({ isHidden }) => !isHidden)
    .map((field) => {
      const controls = field.values.map((value) => formControl(field, value)).join('<br>')
      return `<tr><td>${escaped(field.name)}</td><td>${controls}</td><td>${escaped(field.about)}</td></tr>`
    })
  return `<form action="${escaped(path)}">${hidden.join('')}<table>${rows.join('')}</table><p><button>Show</button></p></form>`
}

function formControl({ name, about, choices, isSwitch }: FormField, value: string): string {
  const label = `aria-label="${escaped(`${name}: ${about}`)}"`
  if (isSwitch) return `<input type="checkbox" ${nameAndValue(name, '1')} ${label}${isSwitch === 'on' ? ' checked' : ''}>`
  if (!choices) return `<input size="50" ${nameAndValue(name, value)} ${label}>`
  const options = choices.map((choice) => `<option${choice === value ? ' selected' : ''}>${escaped(choice)}</option>`)
  return `<select name="${escaped(name)}" ${label}>${options.join('')}</select>`
}

const nameAndValue = (name: string, value: string): string => `name="${escaped(name)}" value="${escaped(value)}"`

/**
 * Plain text or JSON as a page, with links to the pages above it, and what stands before the text, which is HTML already. Text may be large: what is
 * escaped is rare in it, and quotes are not.
 */
export function textPage(path: string, text: string, above: readonly string[], before = ''): string {
  const links = above.map((href) => `<a href="${escaped(href)}">${escaped(href)}</a>`).join(' | ')
  return htmlPage(path, `<p>${links}</p>${before}<pre>${text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)}</pre>`)
}

/** Escapes text for HTML elements and quoted attributes. */
export const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
