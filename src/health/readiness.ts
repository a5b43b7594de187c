/** The readiness of a proxy: it has received its first configuration, and its workers have started (docs/agent.md, H1). */

/** A request to the proxy's admin interface. */
export interface StatsQuestion {
  /** Path and query of a GET request. */
  readonly path: string
  /** The timeout of the whole response, in milliseconds. */
  readonly timeoutMs: number
}

interface Step {
  readonly question: StatsQuestion
  /** Returns why the statistics do not pass this step. Undefined when they do. */
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
      const counts = ({ taken, refused }: typeof cds) => `${taken} accepted, ${refused} rejected`
      return `the proxy has not had its configuration from the discovery service: clusters ${counts(cds)}; listeners ${counts(lds)}`
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

/** The names of the values of `server.state` (`ServerInfo.State` of `envoy.admin.v3`). */
const stateNames: Readonly<Record<number, string>> = { 0: 'LIVE', 1: 'DRAINING', 2: 'PRE_INITIALIZING', 3: 'INITIALIZING' }

/** The readiness of one proxy. A passed step is not checked again, so that a proxy that was ready once stays ready. */
export class Readiness {
  #passed = 0

  /** The next request. Undefined once the proxy was ready. */
  get question(): StatsQuestion | undefined {
    return steps[this.#passed]?.question
  }

  /** Evaluates a response with lines `<name>: <number>`. Returns why the proxy is not ready, or undefined when the step is passed. */
  take(answer: string): string | undefined {
    const step = steps[this.#passed]
    if (!step) return undefined
    const values = readStats(answer)
    const fault = step.fault((name) => values.get(name))
    if (fault === undefined) this.#passed++
    return fault
  }
}

/** Parses statistics. Other lines are ignored. */
function readStats(answer: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>()
  for (const [, name, value] of answer.matchAll(/^([^\s:]+): (\d+)\s*$/gm)) values.set(name as string, Number(value))
  return values
}
