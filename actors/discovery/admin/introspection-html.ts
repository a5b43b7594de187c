/** HTML of the ControlZ topics: plain tables, and one script for the controls. */
import { levels } from '../../../src/logging/levels.ts'
import { escaped, htmlPage, type Link, linkTable } from '../../http/html.ts'

/** A button, or a selection of a log level, that posts a form. */
export interface Control {
  readonly label: string
  readonly post: string
  readonly form: Readonly<Record<string, string>>
  /** The field that the selection sets, with its present value. */
  readonly choice?: { readonly name: string; readonly value: string }
  /** What the page asks before it posts the form. */
  readonly question?: string
}

/** The page that lists all topics. */
export function homePage(links: readonly Link[]): string {
  return page('ControlZ', linkTable(links))
}

/** The page of one topic, with links to the others. */
export function topicPage(topic: { title: string; about: string; data: unknown; controls: readonly Control[] }, others: readonly Link[]): string {
  const links = [{ href: '/', text: 'ControlZ' }, ...others].map(({ href, text }) => `<a href="${href}">${escaped(text)}</a>`).join(' | ')
  const controls = topic.controls.length === 0 ? '' : `<p>${topic.controls.map(control).join('<br>')}</p><p id="answer"></p>`
  return page(topic.title, `<p>${links}</p><p>${escaped(topic.about)}</p>${controls}<div id="data">${table(topic.data)}</div>`)
}

/**
 * The script of all pages: posts the form of a control, with the header by which the server recognizes requests of its own pages, and shows
 * what the page has afterwards.
 */
export function script(header: string): string {
  return `const shown = (id) => document.getElementById(id)
for (const one of document.querySelectorAll('[data-post]'))
  one.addEventListener(one.tagName === 'SELECT' ? 'change' : 'click', async () => {
    if (one.dataset.question && !confirm(one.dataset.question)) return
    const body = new URLSearchParams(one.dataset.form)
    if (one.tagName === 'SELECT') body.set(one.name, one.value)
    const answer = await fetch(one.dataset.post, { method: 'POST', headers: { '${header}': '1' }, body })
    shown('answer').textContent = await answer.text()
    const now = new DOMParser().parseFromString(await (await fetch(location.href)).text(), 'text/html')
    shown('data').replaceWith(now.getElementById('data'))
  })
`
}

/** The style of all pages: long words, such as the labels of metrics, are broken, so that the column after them stays on the screen. */
export const style = `td { overflow-wrap: anywhere; vertical-align: top }
`

const page = (title: string, body: string): string =>
  htmlPage(title, body, '<link rel="stylesheet" href="/style.css"><script src="/script.js" defer></script>')

function control({ label, post, form, choice, question }: Control): string {
  const asked = question === undefined ? '' : ` data-question="${escaped(question)}"`
  const data = `data-post="${escaped(post)}" data-form="${escaped(new URLSearchParams(form).toString())}"${asked}`
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
