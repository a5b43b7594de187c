/**
 * ControlZ (docs/operation.md, "ControlZ"): pages about this process, where operators change log levels and send signals. Each topic is
 * served as HTML at `/<topic>z` and as JSON at `/<topic>j`; changes are POST requests to the latter.
 */
import { hostname } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import type { ActorStats } from '../../../protocols/messages/envelope.ts'
import { changeHeader } from '../../../protocols/messages/pages.ts'
import { buildInfo } from '../../../src/cli/build-info.ts'
import { discoveryVariables } from '../../../src/config/features.ts'
import { changeScope, discoveryScopes, settingsOf } from '../../../src/logging/levels.ts'
import { htmlType } from '../../http/html.ts'
import { type Answers, Page, type PageRequest } from '../../http/page-server.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import { type Control, homePage, script, style, topicPage } from './introspection-html.ts'
import type { LevelsInForce } from './levels-in-force.ts'
import { type Admit, forNoOperator, notDeliberate, notEntitled, type Viewer } from './page-access.ts'
import { processHome, putScope, scopePage } from './reference-pages.ts'
import type { Scraper } from './scrape.ts'

/** Dependencies of the pages. */
export interface IntrospectionParts {
  readonly supervisor: Supervisor
  readonly scraper: Scraper
  readonly admit: Admit
  readonly log: ScopedLogger
  readonly levels: LevelsInForce
  /** Sends this process a signal. */
  readonly signal: (signal: Signal) => void
}

const signals = ['SIGHUP', 'SIGTERM'] as const
type Signal = (typeof signals)[number]

/** What the page asks before it sends a signal after which the service is gone. */
const questions: Partial<Record<Signal, { readonly question: string }>> = { SIGTERM: { question: 'End this service?' } }

interface Topic {
  readonly title: string
  readonly about: string
  readonly data: (parts: IntrospectionParts) => unknown
  /** The controls on the HTML page. */
  readonly controls?: (parts: IntrospectionParts) => readonly Control[]
  /** Makes a change and returns a description of it. Throws an Error with the reason when the form is invalid. */
  readonly change?: (parts: IntrospectionParts, form: URLSearchParams) => string | Promise<string>
}

const topics: Readonly<Record<string, Topic>> = {
  scope: {
    title: 'Logging Scopes',
    about: 'levels of each scope of the log, which hold until the process ends; POST with scope and output_level, stack_trace_level or log_callers',
    data: ({ levels }) => settingsOf(levels.get(), discoveryScopes),
    controls: ({ levels }) => settingsOf(levels.get(), discoveryScopes).map(({ name, output_level }) => levelChoice(name, output_level)),
    async change({ levels }, form) {
      const scope = form.get('scope') ?? ''
      await levels.set(changeScope(levels.get(), discoveryScopes, form))
      const changed = [...form].filter(([name]) => name !== 'scope').map(([name, value]) => `${name}=${value}`)
      return `scope ${scope}: ${changed.join(', ')}`
    },
  },
  mem: {
    title: 'Memory Usage',
    about: 'bytes: of the process, of the main thread, and of the heap of every actor (0 where it shares the main thread)',
    data: async ({ supervisor }) => ({ process: process.memoryUsage(), mainThread: getHeapStatistics(), actors: heaps(await stats(supervisor)) }),
  },
  env: {
    title: 'Environment Variables',
    about: 'what is set: values of the variables that this program declares, names alone of all others',
    data: environment,
  },
  proc: {
    title: 'Process Info',
    about: 'this process and its threads',
    data: async ({ supervisor }) => ({
      ...processInfo(),
      actors: (await stats(supervisor)).map(({ name, utilisation, cpuSeconds }) => ({ name, utilisation, cpuSeconds })),
    }),
  },
  arg: { title: 'Command-Line Arguments', about: 'as given', data: () => process.argv },
  version: { title: 'Version Info', about: 'what was built', data: buildInfo },
  metric: {
    title: 'Metrics',
    about: 'the metrics of all threads at this moment',
    data: async ({ scraper }) => samples(await scraper.scrape()),
  },
  signal: {
    title: 'Signals',
    about: 'POST with signal: SIGHUP reads configuration and certificate files again and opens log files anew, SIGTERM ends the process in order',
    data: () => signals,
    controls: () => signals.map((signal) => ({ label: signal, post: '/signalj', form: { signal }, ...questions[signal] })),
    change({ signal }, form) {
      const wanted = signals.find((known) => known === form.get('signal'))
      if (wanted === undefined) throw new Error(`signal: expected ${signals.join(' or ')}`)
      signal(wanted)
      return `${wanted} was sent`
    },
  },
}

/** The topics of ControlZ, each with what its page is about. */
export const pageTopics: Readonly<Record<string, string>> = Object.fromEntries(Object.entries(topics).map(([name, { about }]) => [name, about]))

/** The pages, by path. */
export function introspectionPages(parts: IntrospectionParts): Map<string, Answers> {
  const forOperators: ForOperators = (answer) => async (request) => {
    const viewer = await parts.admit(request)
    const page = viewer instanceof Page ? viewer : viewer.isOperator ? await answer(request, viewer) : forNoOperator
    return new Page(page.body, page.type, page.status, { ...page.headers, ...guarded })
  }
  const html = (body: string) => new Page(body, htmlType)
  const list = Object.entries(topics).map(([name, { title, about }]) => ({ href: `/${name}z`, text: title, about }))
  const pages = new Map<string, Answers>([
    ['/', { get: forOperators(() => html(homePage(list))) }],
    ['/style.css', { get: forOperators(() => new Page(style, 'text/css; charset=utf-8')) }],
    ['/script.js', { get: forOperators(() => new Page(script(changeHeader), 'text/javascript; charset=utf-8')) }],
  ])
  for (const [name, { title, about, data, controls, change }] of Object.entries(topics)) {
    const shown = forOperators(async (_, { mayAct }) =>
      html(
        topicPage(
          {
            ...{ title, data: await data(parts), controls: (mayAct && controls?.(parts)) || [] },
            // Whoever is shown no controls is told who is.
            about: mayAct || !change ? about : `${about}. You may only look: ${notEntitled(changeOf(name)).body}`,
          },
          list,
        ),
      ),
    )
    const json = forOperators(async () => new Page(JSON.stringify(await data(parts), null, 2), 'application/json; charset=utf-8'))
    const post = change && forOperators(async (request, viewer) => changed(parts, await answerOf(request, parts, name, change, viewer), viewer))
    // Both with and without a trailing slash, as users of the reference expect.
    for (const slash of ['', '/']) {
      pages.set(`/${name}z${slash}`, { get: shown })
      pages.set(`/${name}j${slash}`, { get: json, ...(post ? { post } : {}) })
    }
  }
  for (const [path, answers] of pagesOfReference(parts, forOperators)) pages.set(path, answers)
  return pages
}

/** The pages that only tools of the reference ask. Their changes are answered with 202. */
function pagesOfReference(parts: IntrospectionParts, forOperators: ForOperators): [string, Answers][] {
  const home = forOperators(() => new Page(JSON.stringify(processHome(), null, 2), 'application/json; charset=utf-8'))
  const accepted = (change: (request: PageRequest) => Promise<Page | string>) =>
    forOperators(async (request, viewer) => {
      const answer = changed(parts, refusal(`PUT ${request.path}`, viewer) ?? (await change(request)), viewer)
      return answer.status === 200 ? new Page(answer.body, answer.type, 202, answer.headers) : answer
    })
  const exit = async () => {
    parts.signal('SIGTERM')
    return 'SIGTERM was sent'
  }
  return [
    ['/homej', { get: home }],
    ['/homej/', { get: home }],
    ['/homej/exit', { put: accepted(exit) }],
    ['/scopej/*', { get: forOperators((request) => scopePage(parts.levels, request)), put: accepted((request) => putScope(parts.levels, request)) }],
  ]
}

/** Makes an answer for admitted operators. */
type ForOperators = (answer: (request: PageRequest, viewer: Viewer) => Page | Promise<Page>) => (request: PageRequest) => Promise<Page>

/** Response headers against content sniffing, caching, framing, and inclusion by other sites; only scripts of this server may run. */
const guarded = {
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}

/** How a change of a topic is asked for. */
const changeOf = (name: string): string => `POST /${name}j '<name>=<value>&<name>=<value>'`

async function answerOf(
  request: PageRequest,
  parts: IntrospectionParts,
  name: string,
  change: NonNullable<Topic['change']>,
  viewer: Viewer,
): Promise<Page | string> {
  const refused = refusal(changeOf(name), viewer)
  if (refused) return refused
  const form = await request.parameters()
  try {
    return await change(parts, form)
  } catch (error) {
    return new Page((error as Error).message, undefined, 422)
  }
}

/** The answer to a caller who may not change anything; `what` is the request. Undefined for one who may. */
function refusal(what: string, { mayAct, isDeliberate }: Viewer): Page | undefined {
  if (!mayAct) return notEntitled(what)
  return isDeliberate ? undefined : notDeliberate
}

/** Logs a change and who requested it. */
function changed({ log }: IntrospectionParts, answer: Page | string, viewer: Viewer): Page {
  if (answer instanceof Page) return answer
  log.warn(`ControlZ, by ${viewer.name}: ${answer}`)
  return new Page(answer)
}

function levelChoice(scope: string, level: string): Control {
  return { label: scope, post: '/scopej', form: { scope }, choice: { name: 'output_level', value: level } }
}

const stats = (supervisor: Supervisor): Promise<ActorStats[]> => supervisor.askAll<ActorStats>('*', 'stats')
const heaps = (all: readonly ActorStats[]) => Object.fromEntries(all.map(({ name, heapBytes, cpuSeconds }) => [name, cpuSeconds > 0 ? heapBytes : 0]))

/** Values are shown of declared variables that are no secrets: other variables may hold some. */
function environment(): { name: string; value: string }[] {
  const isShown = (name: string) => Object.hasOwn(discoveryVariables, name) && discoveryVariables[name]?.isSecret !== true
  const names = Object.keys(process.env).sort()
  return names.map((name) => ({ name, value: isShown(name) ? (process.env[name] ?? '') : '(not shown)' }))
}

function processInfo() {
  const { pid, ppid, platform, arch, version, execPath } = process
  const { user, system } = process.cpuUsage()
  return {
    ...{
      pid,
      ppid,
      hostname: hostname(),
      uid: process.getuid?.(),
      gid: process.getgid?.(),
      cwd: process.cwd(),
      execPath,
      platform,
      arch,
      runtime: `node ${version}`,
    },
    ...{ uptimeSeconds: Math.round(process.uptime()), cpuSeconds: (user + system) / 1e6 },
  }
}

/** Parses the Prometheus text format into values by metric and labels. */
function samples(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), line.slice(line.lastIndexOf(' ') + 1)]))
}
