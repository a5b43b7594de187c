/** Serves the debug pages (`debug-table.ts`), each to those who may see it. */
import { notAnswered, Page, type PageRequest, type PageServer } from '../../http/page-server.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { type DebugPage, debugPages, findConnection, noProxy } from './debug-table.ts'
import { type Admit, forbiddenNamespace, forNoOperator, type Viewer } from './page-access.ts'
import type { PageSources } from './page-sources.ts'

/** What the pages of a server need. */
export interface DebugParts {
  readonly sources: PageSources
  readonly admit: Admit
  /** Whether there are the pages that only act. */
  readonly admin: boolean
  readonly log: ScopedLogger
}

/** What no browser may guess, keep, or hand to another site. */
const guarded = { 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store', 'Cross-Origin-Resource-Policy': 'same-origin' }

/** Adds the pages below `/debug`. What is too long for a URL may come as a form. */
export function addDebugPages(server: PageServer, parts: DebugParts): void {
  const pages = Object.entries(debugPages).filter(([, { shows }]) => parts.admin || shows !== 'nothing')
  const answered = async (request: PageRequest, answer: (viewer: Viewer) => unknown) => {
    const viewer = await parts.admit(request)
    return asPage(viewer instanceof Page ? viewer : await answer(viewer))
  }
  server.add('/debug', (request) => answered(request, () => indexOf(pages)))
  for (const [name, page] of pages) {
    const path = `/debug/${name}`
    const answer = (request: PageRequest) => answered(request, async (viewer) => asked(path, page, parts, viewer, request))
    server.add(path, { get: answer, post: answer })
  }
}

/** What a viewer who was admitted is answered. */
async function asked(path: string, page: DebugPage, { sources, log }: DebugParts, viewer: Viewer, request: PageRequest): Promise<unknown> {
  const query = await request.parameters()
  const { action } = page
  if (!action?.isMeant(query)) return page.shows === 'nothing' ? notAnswered(request.method, { post: true }) : shown(page, sources, viewer, query)
  if (request.method !== 'POST') {
    const allowed = notAnswered(request.method, { post: true })
    return new Page(`this changes something: POST ${path} with ${action.form}`, undefined, allowed.status, allowed.headers)
  }
  if (!viewer.isOperator) return forNoOperator
  log.info(`POST ${path} by ${viewer.name}`)
  return action.act(sources, query)
}

async function shown(page: Exclude<DebugPage, { shows: 'nothing' }>, sources: PageSources, viewer: Viewer, query: URLSearchParams): Promise<unknown> {
  const namespace = query.get('namespace') || undefined
  switch (page.shows) {
    case 'mesh':
      return viewer.isOperator ? page.page(sources, query) : forNoOperator
    case 'namespaces':
      if (namespace === undefined) return page.page(sources, query, viewer.sees)
      return viewer.sees(namespace) ? page.page(sources, query, (of) => of === namespace) : forbiddenNamespace(namespace)
    case 'proxy': {
      const named = query.get('proxyID')
      const proxies = named ? (await sources.connections()).filter((connection) => viewer.sees(connection.namespace)) : []
      const found = findConnection(proxies, named ?? '')
      return found ? page.page(sources, query, found) : noProxy(query)
    }
  }
}

function indexOf(pages: readonly (readonly [string, DebugPage])[]): Page {
  const rows = pages.map(([path, { what }]) => `<tr><td><a href="/debug/${path}">${path}</a></td><td>${what}</td></tr>`)
  return new Page(
    `<!doctype html><html lang="en"><title>Debug pages</title><h1>Debug pages</h1><table>${rows.join('')}</table></html>`,
    'text/html; charset=utf-8',
  )
}

function asPage(value: unknown): Page {
  const page =
    value instanceof Page
      ? value
      : typeof value === 'string'
        ? new Page(value)
        : new Page(JSON.stringify(value, null, 2) ?? '', 'application/json; charset=utf-8')
  return new Page(page.body, page.type, page.status, { ...page.headers, ...guarded })
}
