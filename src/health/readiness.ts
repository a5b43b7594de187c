/** When a proxy is ready: it has its first configuration, and its workers run (docs/agent.md, H1). */

/** What the admin interface of the proxy is asked. */
export interface StatsQuestion {
  /** Path and query of a GET. */
  readonly path: string
  /** Longest time until the answer is whole, in milliseconds. */
  readonly timeoutMs: number
}

interface Step {
  readonly question: StatsQuestion
  /** Why these statistics do not pass; undefined when they do. */
  readonly fault: (value: (name: string) => number | undefined) => string | undefined
}

const question = (filter: string, timeoutMs: number): StatsQuestion => ({
  path: `/stats?usedonly&filter=${encodeURIComponent(filter)}`,
  timeoutMs,
})

const steps: readonly Step[] = [
  {
    question: question(String.raw`^(cluster_manager\.cds|listener_manager\.lds)\.(update_success|update_rejected)$`, 1000),
    fault(value) {
      const count = (name: string) => value(name) ?? 0
      const cds = { taken: count('cluster_manager.cds.update_success'), refused: count('cluster_manager.cds.update_rejected') }
      const lds = { taken: count('listener_manager.lds.update_success'), refused: count('listener_manager.lds.update_rejected') }
      if (cds.taken > 0 && lds.taken > 0) return undefined
      const told = ({ taken, refused }: typeof cds) => `${taken} accepted, ${refused} rejected`
      return `the proxy has not had its configuration from the discovery service: clusters ${told(cds)}; listeners ${told(lds)}`
    },
  },
  {
    question: question(String.raw`^(server\.state|listener_manager\.workers_started)`, 3000),
    fault(value) {
      const state = value('server.state')
      if (state !== 0)
        return `the proxy is not live: server.state is ${state === undefined ? 'not there' : `${state} (${stateNames[state] ?? 'unknown'})`}`
      return value('listener_manager.workers_started') === 1 ? undefined : 'the workers of the proxy have not started'
    },
  },
]

/** Names of the values of `server.state` (`ServerInfo.State` of `envoy.admin.v3`). */
const stateNames: Readonly<Record<number, string>> = { 0: 'LIVE', 1: 'DRAINING', 2: 'PRE_INITIALIZING', 3: 'INITIALIZING' }

/** Readiness of one proxy. Each step is passed once and for all: a proxy that was ready stays ready. */
export class Readiness {
  #passed = 0

  /** What is to be asked next; undefined once the proxy was ready. */
  get question(): StatsQuestion | undefined {
    return steps[this.#passed]?.question
  }

  /** Takes the answer to the question, lines `<name>: <number>`. Says why the proxy is not ready; undefined when the step is passed. */
  take(answer: string): string | undefined {
    const step = steps[this.#passed]
    if (!step) return undefined
    const values = readStats(answer)
    const fault = step.fault((name) => values.get(name))
    if (fault === undefined) this.#passed++
    return fault
  }
}

/** Lines that are no statistic are left out. */
function readStats(answer: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>()
  for (const [, name, value] of answer.matchAll(/^([^\s:]+): (\d+)\s*$/gm)) values.set(name as string, Number(value))
  return values
}
