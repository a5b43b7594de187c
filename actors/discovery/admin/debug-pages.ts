/** Serves the debug pages (`debug-table.ts`) with their access control. */
import type { PageQuestion, PageReply } from '../../../protocols/messages/pages.ts'
import type { MeshIdentityNames } from '../../../src/identity/access.ts'
import { notAnswered, Page, type PageRequest, type PageServer } from '../../http/page-server.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { type DebugPage, debugPages, noProxy, unbuiltPages } from './debug-table.ts'
import { proxyNamed } from './mesh-answers.ts'
import { SilentReplica } from './other-replicas.ts'
import { type Admit, forbiddenNamespace, forNoOperator, notDeliberate, notEntitled, type Viewer, viewerOf } from './page-access.ts'
import type { PageSources } from './page-sources.ts'
import { profilePages } from './profile-pages.ts'

/** Dependencies of the pages. */
export interface DebugParts {
  readonly sources: PageSources
  /** Whether pages that have only an action are served. */
  readonly admin: boolean
  readonly log: ScopedLogger
}

/** Response headers against content sniffing, caching, and inclusion by other sites. */
const guarded = { 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store', 'Cross-Origin-Resource-Policy': 'same-origin' }

/** Adds the pages below `/debug` for admitted callers. Parameters may be sent in the URL or, if too long for it, as a form. */
export function addDebugPages(server: PageServer, parts: DebugParts & { readonly admit: Admit }): void {
  const answered = async (request: PageRequest, answer: (viewer: Viewer) => unknown) => {
    const viewer = await parts.admit(request)
    return asPage(viewer instanceof Page ? viewer : await answer(viewer))
  }
  for (const path of ['/debug', '/debug/']) server.add(path, (request) => answered(request, () => indexOf(parts)))
  for (const [name, page] of pagesOf(parts)) {
    const answer = (request: PageRequest) =>
      answered(request, async (viewer) => asked(`/debug/${name}`, page, parts, viewer, request.method, await request.parameters()))
    server.add(`/debug/${name}`, { get: answer, post: answer })
  }
  for (const [name, reason] of unbuiltPages) server.add(`/debug/${name}`, (request) => answered(request, () => new Page(reason, undefined, 404)))
}

/** Answers a caller of the secured port. `names`: the mesh names. Parameters are read from the path only. */
export async function answerCaller(
  parts: DebugParts,
  { method, path, caller, isMarked }: PageQuestion,
  names: MeshIdentityNames,
): Promise<PageReply> {
  const { status, type, headers, body } = asPage(
    await answerPath(parts, method === 'HEAD' ? 'GET' : method, path, viewerOf(caller, names, isMarked || caller.via === 'token')),
  )
  const all = Object.entries({ ...headers, 'content-type': type }).map(([name, value]) => [name.toLowerCase(), value])
  return { status, headers: Object.fromEntries(all), body }
}

async function answerPath(parts: DebugParts, method: string, path: string, viewer: Viewer): Promise<unknown> {
  const url = URL.parse(path, 'http://localhost')
  const [, name] = /^\/debug\/?(?:(?<=\/)(\w+))?$/.exec(url?.pathname ?? '') ?? [undefined, 'none']
  if (name === undefined) return method === 'GET' ? indexOf(parts) : notAnswered(method, { get: true })
  const [, page] = pagesOf(parts).find(([known]) => known === name) ?? []
  if (!url || !page) return new Page(unbuiltPages.get(name) ?? 'there is no such page', undefined, 404)
  if (method !== 'GET' && method !== 'POST') return notAnswered(method, { get: true, post: true })
  return asked(url.pathname, page, parts, viewer, method, url.searchParams)
}

const pagesOf = ({ admin, sources }: DebugParts) =>
  Object.entries({ ...debugPages, ...(sources.profiles ? profilePages : {}) }).filter(([, { shows }]) => admin || shows !== 'nothing')

/** Answers an admitted viewer. A replica that was found to have what the page is about, and does not answer meanwhile, is named. */
async function asked(...request: Parameters<typeof answerTo>): Promise<unknown> {
  try {
    return await answerTo(...request)
  } catch (error) {
    if (error instanceof SilentReplica) return new Page(error.message, undefined, 503)
    throw error
  }
}

/** Shows a page or performs its action. */
async function answerTo(
  path: string,
  page: DebugPage,
  { sources, log }: DebugParts,
  viewer: Viewer,
  method: PageRequest['method'],
  query: URLSearchParams,
): Promise<unknown> {
  const { action } = page
  if (!action?.isMeant(query)) return page.shows === 'nothing' ? notAnswered(method, { post: true }) : shown(page, sources, viewer, query)
  if (method !== 'POST') {
    const allowed = notAnswered(method, { post: true })
    return new Page(`this action needs the method POST: POST ${path} with ${action.form}`, undefined, allowed.status, allowed.headers)
  }
  if (!viewer.isOperator) return forNoOperator
  if (!viewer.mayAct) return notEntitled(`POST ${path} '${action.form}'`)
  if (!viewer.isDeliberate) return notDeliberate
  log.info(`POST ${path} by ${viewer.name}`)
  return action.act(sources, query)
}

async function shown(page: Exclude<DebugPage, { shows: 'nothing' }>, all: PageSources, viewer: Viewer, query: URLSearchParams): Promise<unknown> {
  const sources = page.covers === 'replicas' && query.get('replicas') !== 'own' ? all : all.own
  const namespace = query.get('namespace') || undefined
  switch (page.shows) {
    case 'mesh':
      return viewer.isOperator ? page.page(sources, query) : forNoOperator
    case 'namespaces':
      if (namespace === undefined) return page.page(sources, query, viewer.sees)
      return viewer.sees(namespace) ? page.page(sources, query, (of) => of === namespace) : forbiddenNamespace(namespace)
    case 'proxy': {
      const { proxy, candidates, silent } = await proxyNamed(sources, query.get('proxyID') ?? '', viewer.sees)
      return proxy ? page.page(sources, query, proxy, viewer.sees) : noProxy(query, silent, candidates)
    }
  }
}

function indexOf(parts: DebugParts): Page {
  const rows = pagesOf(parts).map(([path, { what }]) => `<tr><td><a href="/debug/${path}">${path}</a></td><td>${what}</td></tr>`)
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
