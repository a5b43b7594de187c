/** Serves the debug pages (`debug-table.ts`) with their access control. */
import type { PageQuestion, PageReply } from '../../../protocols/messages/pages.ts'
import type { MeshIdentityNames } from '../../../src/identity/access.ts'
import { compare } from '../../../src/model/order.ts'
import { nameOfNode } from '../../../src/model/proxy.ts'
import { htmlPage, htmlType, linkTable, wayBack } from '../../http/html.ts'
import { acceptsHtml, notAnswered, Page, type PageRequest, type PageServer } from '../../http/page-server.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import type { ConnectionStatus } from '../xds-writer/connection-debug.ts'
import { type DebugPage, debugPages, noProxy, proxyWanted, unbuiltPages } from './debug-table.ts'
import { proxyNamed } from './mesh-answers.ts'
import { type Admit, forbiddenNamespace, forNoOperator, notDeliberate, notEntitled, type Viewer, viewerOf } from './page-access.ts'
import { aboutPage, givenParameters, withParameters } from './page-parameters.ts'
import type { PageSources } from './page-sources.ts'
import { pageTable, profilePages } from './profile-pages.ts'
import { Unavailable } from './unavailable.ts'

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
  const index = (request: PageRequest) => answered(request, () => indexOf(parts, acceptsHtml(request.headers)))
  server.add('/debug', index, 'what this server knows of the mesh, its proxies and itself: the list of pages')
  server.add('/debug/', index)
  for (const [name, page] of pagesOf(parts)) {
    const answer = (request: PageRequest) =>
      answered(request, async (viewer) => {
        const { method, headers } = request
        return asked(
          { path: `/debug/${name}`, method, query: await request.parameters(), isHtml: method === 'GET' && acceptsHtml(headers) },
          page,
          parts,
          viewer,
        )
      })
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
  if (name === undefined) return method === 'GET' ? indexOf(parts, false) : notAnswered(method, { get: true })
  const [, page] = pagesOf(parts).find(([known]) => known === name) ?? []
  if (!url || !page) return new Page(unbuiltPages.get(name) ?? 'there is no such page', undefined, 404)
  if (method !== 'GET' && method !== 'POST') return notAnswered(method, { get: true, post: true })
  return asked({ path: url.pathname, method, query: url.searchParams, isHtml: false }, page, parts, viewer)
}

const pagesOf = ({ admin, sources }: DebugParts) =>
  Object.entries({ ...debugPages, ...(sources.profiles ? profilePages : {}) }).filter(([, { shows }]) => admin || shows !== 'nothing')

/** What is asked of a page. `isHtml`: by a browser. */
interface Question {
  readonly path: string
  readonly method: PageRequest['method']
  readonly query: URLSearchParams
  readonly isHtml: boolean
}

/** Answers an admitted viewer. A replica that was found to have what the page is about, and does not answer meanwhile, is named. */
async function asked(question: Question, page: DebugPage, parts: DebugParts, viewer: Viewer): Promise<Page> {
  const { parameters } = page
  const given = parameters ? { ...question, query: givenParameters(question.query, parameters) } : question
  try {
    const answer = asPage(await answerTo(given, page, parts, viewer))
    return parameters ? withParameters(answer, given, parameters) : answer
  } catch (error) {
    if (error instanceof Unavailable) return new Page(error.message, undefined, 503)
    throw error
  }
}

/** Shows a page or performs its action. */
async function answerTo(question: Question, page: DebugPage, { sources, log }: DebugParts, viewer: Viewer): Promise<unknown> {
  const { path, method, query } = question
  const { action } = page
  if (!action?.isMeant(query)) return page.shows === 'nothing' ? notAnswered(method, { post: true }) : shown(page, sources, viewer, question)
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

async function shown(page: Exclude<DebugPage, { shows: 'nothing' }>, all: PageSources, viewer: Viewer, question: Question): Promise<unknown> {
  const { query } = question
  const sources = page.covers === 'replicas' && query.get('replicas') !== 'own' ? all : all.own
  const namespace = query.get('namespace') || undefined
  switch (page.shows) {
    case 'mesh':
      return viewer.isOperator ? page.page(sources, query) : forNoOperator
    case 'namespaces':
      if (namespace === undefined) return page.page(sources, query, viewer.sees)
      return viewer.sees(namespace) ? page.page(sources, query, (of) => of === namespace) : forbiddenNamespace(namespace)
    case 'proxy': {
      if (!query.get('proxyID')) return proxyChoice(question, (await sources.allConnections()).rows, viewer)
      const { proxy, candidates, silent } = await proxyNamed(sources, query.get('proxyID') ?? '', viewer.sees)
      return proxy ? page.page(sources, query, proxy, viewer.sees) : noProxy(query, silent, candidates)
    }
  }
}

/** How many proxies a page offers that needs one. */
const mostOffered = 100

/** The answer of a page that needs a proxy to a request without one: the page for each connected proxy that the viewer sees. */
function proxyChoice({ path, query, isHtml }: Question, connected: readonly Pick<ConnectionStatus, 'nodeId' | 'namespace'>[], viewer: Viewer): Page {
  const names = [...new Set(connected.filter(({ namespace }) => viewer.sees(namespace)).map(({ nodeId }) => nameOfNode(nodeId)))].sort(compare)
  const links = names.slice(0, mostOffered).map((name) => {
    const asked = new URLSearchParams(query)
    asked.set('proxyID', name)
    return { href: `${path}?${asked}`, text: name, about: '' }
  })
  const more = names.length > links.length ? `and ${names.length - links.length} more` : ''
  if (isHtml) return new Page(htmlPage(proxyWanted, `${wayBack}${linkTable(links)}<p>${more}</p>`), htmlType, 400)
  return new Page([proxyWanted, ...links.map(({ href }) => href), ...(more === '' ? [] : [more])].join('\n'), undefined, 400)
}

/** The list of the pages, for browsers in HTML, otherwise a line each. */
function indexOf(parts: DebugParts, isHtml: boolean): Page {
  if (!isHtml)
    return new Page(['Debug pages:', ...pagesOf(parts).map(([name, page]) => `${`/debug/${name}`.padEnd(28)} ${aboutPage(page)}`)].join('\n'))
  return new Page(htmlPage('Debug pages', `<p><a href="/">all pages of this port</a></p>${pageTable(pagesOf(parts))}`), htmlType)
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
