/** The pages below `/debug/pprof`, which `--profile` enables (docs/operation.md, "Debug pages"). */
import type { ProfileKind } from '../../../protocols/messages/profile.ts'
import { htmlPage, htmlType, linkTable, wayBack } from '../../http/html.ts'
import { Page } from '../../http/page-server.ts'
import type { DebugPage } from './debug-table.ts'
import { aboutPage, type Parameter } from './page-parameters.ts'
import type { PageSources } from './page-sources.ts'

/** How long a profile is recorded unless the request says otherwise, and at most, in seconds. */
const duration = { usual: 30, longest: 60 }

const recorded = (kind: ProfileKind) => async (sources: PageSources, query: URLSearchParams) => {
  const seconds = Number(query.get('seconds') ?? duration.usual)
  if (!(seconds > 0 && seconds <= duration.longest)) return new Page(`seconds must be above 0 and at most ${duration.longest}`, undefined, 400)
  return sources.profiles?.record(kind, seconds)
}

const bounds = 'of the next seconds, by thread, in the format of pprof'
const parameters: readonly Parameter[] = [{ name: 'seconds', about: `${duration.usual} by default, at most ${duration.longest}` }]

/** The table of debug pages with what they are about. */
export const pageTable = (pages: readonly (readonly [name: string, page: Pick<DebugPage, 'what' | 'parameters'>])[]): string =>
  linkTable(pages.map(([name, page]) => ({ href: `/debug/${name}`, text: name, about: aboutPage(page) })))

/** The pages, by their names below `/debug/`. */
export const profilePages: Readonly<Record<string, DebugPage>> = {
  'pprof/': {
    what: 'the pages with profiles',
    shows: 'mesh',
    covers: 'process',
    page: async () => {
      return new Page(htmlPage('Profiles', wayBack + pageTable(Object.entries(profilePages))), htmlType)
    },
  },
  'pprof/profile': { what: `CPU profile ${bounds}`, parameters, shows: 'mesh', covers: 'process', page: recorded('cpu') },
  'pprof/heap': {
    what: `allocations that are still in use at the end ${bounds}`,
    parameters,
    shows: 'mesh',
    covers: 'process',
    page: recorded('heap'),
  },
  'pprof/cmdline': { what: 'the command line', shows: 'mesh', covers: 'process', page: async () => process.argv.join('\n') },
}
