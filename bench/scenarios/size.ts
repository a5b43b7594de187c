/**
 * Measures what one change costs the push queue in meshes of 1,000 and of 10,000 services: the cost must not depend on the number of
 * services.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { growthGoals } from '../goals.ts'
import { once } from '../load.ts'
import type { Measure } from '../report.ts'
import { type Row, rowByRow } from '../rows.ts'
import { sizeScenarios } from '../size.ts'
import type { SizeCommand, SizeReport } from '../size-planner.ts'

const sizes = [1000, 10_000] as const

/** Measures all scenarios with services in few and in many namespaces, with proxies of present and of older Envoys. */
export async function size(rounds: number, proxies: number): Promise<Measure[]> {
  const measures: Measure[] = []
  const scenarios = sizeScenarios.map(({ name }) => name)
  for (const hosts of [true, false])
    for (const namespaces of [3, 300]) {
      const variant = `${namespaces} namespaces${hosts ? '' : ', Envoy before 1.40'}`
      const reports: SizeReport[] = []
      const rows = sizes.map((services): Row => {
        const scenario = `${services} services, ${variant}`
        const measure = async (): Promise<Measure> => {
          const report = await planned({ services, namespaces, proxies, hosts, rounds, scenarios })
          reports.push(report)
          return { scenario, variant, cpu: 0, mib: 0, rss: Number.NaN, threads: {}, figures: report.ms }
        }
        return { scenario, measure }
      })
      const measured = await rowByRow('size', rows)
      measures.push(...measured.filter(({ failed }) => failed !== undefined))
      const [small, large] = reports
      for (const scenario of small && large ? scenarios : []) {
        const [before = Number.NaN, after = Number.NaN] = [small?.ms[scenario], large?.ms[scenario]]
        const figures = { variant, '1,000 services, ms': before.toFixed(1), '10,000 services, ms': after.toFixed(1) }
        const goals = growthGoals(before, after)
        measures.push({ scenario, variant, cpu: after / 1000, mib: 0, rss: Number.NaN, threads: {}, figures, goals })
      }
    }
  return measures
}

async function planned(command: SizeCommand): Promise<SizeReport> {
  const child = fork(fileURLToPath(new URL('../size-planner.ts', import.meta.url)), { execArgv: ['--max-old-space-size=8192'] })
  try {
    child.send(command)
    return await once<SizeReport>(child, 'sized')
  } finally {
    child.kill()
  }
}
