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

/** Plain text or JSON as a page, with links to the pages above it. Text may be large: what is escaped is rare in it, and quotes are not. */
export function textPage(path: string, text: string, above: readonly string[]): string {
  const links = above.map((href) => `<a href="${escaped(href)}">${escaped(href)}</a>`).join(' | ')
  return htmlPage(path, `<p>${links}</p><pre>${text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)}</pre>`)
}

/** Escapes text for HTML elements and quoted attributes. */
export const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
