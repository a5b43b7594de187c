/** HTML of the ControlZ topics: plain tables, and one script for the controls. */
import { levels } from '../../../src/logging/levels.ts'

/** A topic in the list of topics. */
export interface Entry {
  readonly href: string
  readonly title: string
  readonly about: string
}

/** A button, or a selection of a log level, that posts a form. */
export interface Control {
  readonly label: string
  readonly post: string
  readonly form: Readonly<Record<string, string>>
  /** The field that the selection sets, with its present value. */
  readonly choice?: { readonly name: string; readonly value: string }
}

/** The page that lists all topics. */
export function homePage(entries: readonly Entry[]): string {
  const rows = entries.map(({ href, title, about }) => `<tr><td><a href="${href}">${escaped(title)}</a></td><td>${escaped(about)}</td></tr>`)
  return page('ControlZ', `<table>${rows.join('')}</table>`)
}

/** The page of one topic, with links to the others. */
export function topicPage(topic: { title: string; about: string; data: unknown; controls: readonly Control[] }, entries: readonly Entry[]): string {
  const links = entries.map(({ href, title }) => `<a href="${href}">${escaped(title)}</a>`).join(' | ')
  const controls = topic.controls.length === 0 ? '' : `<p>${topic.controls.map(control).join('<br>')}</p><p id="answer"></p>`
  return page(topic.title, `<p>${links}</p><p>${escaped(topic.about)}</p>${controls}${table(topic.data)}`)
}

/** The script of all pages: posts the form of a control, with the header by which the server recognizes requests of its own pages. */
export function script(header: string): string {
  return `for (const one of document.querySelectorAll('[data-post]'))
  one.addEventListener(one.tagName === 'SELECT' ? 'change' : 'click', async () => {
    const body = new URLSearchParams(one.dataset.form)
    if (one.tagName === 'SELECT') body.set(one.name, one.value)
    const answer = await fetch(one.dataset.post, { method: 'POST', headers: { '${header}': '1' }, body })
    document.getElementById('answer').textContent = await answer.text()
  })
`
}

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escaped(title)}</title><script src="/script.js" defer></script><h1>${escaped(title)}</h1>${body}</html>`
}

function control({ label, post, form, choice }: Control): string {
  const data = `data-post="${escaped(post)}" data-form="${escaped(new URLSearchParams(form).toString())}"`
  if (!choice) return `<button ${data}>${escaped(label)}</button>`
  const options = levels.map((level) => `<option${level === choice.value ? ' selected' : ''}>${level}</option>`)
  return `<label>${escaped(label)} <select name="${escaped(choice.name)}" ${data}>${options.join('')}</select></label>`
}

/** Renders plain data as a table: lists of objects by column, objects by key, strings as they are. */
function table(data: unknown): string {
  if (typeof data !== 'object' || data === null) return escaped(String(data))
  if (!Array.isArray(data)) return rows(Object.entries(data).map(([name, value]) => [escaped(name), table(value)]))
  const columns = [...new Set(data.flatMap((one) => (typeof one === 'object' && one !== null ? Object.keys(one) : [])))]
  if (columns.length === 0) return rows(data.map((one) => [table(one)]))
  return rows([columns.map(escaped), ...data.map((one) => columns.map((column) => table((one as Record<string, unknown>)[column])))])
}

const rows = (cells: readonly (readonly string[])[]): string =>
  `<table border="1">${cells.map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join('')}</tr>`).join('')}</table>`

/** Escapes text for HTML elements and quoted attributes. */
const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
