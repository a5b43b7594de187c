/**
 * Measures a mesh of many services in three namespaces with 50 sidecars of older Envoys, which take whole route configurations, beside the
 * same mesh with a tenth of the services: changes beside bare writing, resident memory a service, and the start beside bare parsing.
 */
import { largeReadyGoal, serviceMemoryGoal, wholeRouteGoal } from '../goals.ts'
import { median } from '../load.ts'
import * as mesh from '../mesh.ts'
import type { Measure } from '../report.ts'
import { DiscoveryServer } from '../server.ts'
import { type ConvergenceOptions, convergence } from './convergence.ts'
import { bareParse } from './scale.ts'

const namespaces = 3
const proxies = 50
/** Bytes in a MiB, in KB. */
const kbInMib = 1_048_576 / 1000

/** Measures all of it. Starts are made `rounds` times. */
export async function large(writers: number, services: number, rounds: number): Promise<Measure[]> {
  const options: Omit<ConvergenceOptions, 'services'> = {
    ...{ delta: true, hosts: false, proxies, rounds, writers, misbehaving: 0, namespaces },
    ...{ variant: 'Envoy before 1.40', changes: ['endpoint change', 'route change', 'service added'] },
  }
  const variant = (count: number) => `${options.variant}, ${count} services`
  const small = await convergence({ ...options, services: services / 10, variant: variant(services / 10) })
  const whole = await convergence({ ...options, services, variant: variant(services) })
  const measures = [...small, ...whole].map((measure) => {
    const isWhole = measure.scenario === 'route change' || measure.scenario === 'service added'
    return isWhole && measure.limit ? { ...measure, goals: [wholeRouteGoal(measure.cpu, measure.limit.cpu)] } : measure
  })
  const growth = (((whole.at(-1)?.rss ?? Number.NaN) - (small.at(-1)?.rss ?? Number.NaN)) * kbInMib) / (services * 0.9)
  const last = measures.pop() as Measure
  return [...measures, { ...last, goals: [...(last.goals ?? []), serviceMemoryGoal(growth)] }, await started(writers, services, rounds)]
}

/** Starts the server as often as `rounds` says, each time beside a process that parses the same files. */
async function started(writers: number, services: number, rounds: number): Promise<Measure> {
  const files = mesh.files(services, namespaces)
  const starts: { readonly ready: number; readonly cpu: number; readonly rss: number; readonly bare: number; readonly bareCpu: number }[] = []
  while (starts.length < rounds) {
    const server = await DiscoveryServer.start({ writers, files })
    const { cpu, rss } = await server.usage()
    const limit = bareParse(server.dir)
    await server.kill()
    starts.push({ ready: server.readyAfter * 1000, cpu, rss, bare: limit.last, bareCpu: limit.cpu })
  }
  const of = (key: keyof (typeof starts)[number]) => median(starts.map((start) => start[key]))
  return {
    ...{ scenario: 'start until ready', variant: `${services} services`, last: of('ready'), cpu: of('cpu'), mib: 0, rss: of('rss'), threads: {} },
    limit: { last: of('bare'), cpu: of('bareCpu'), rss: Number.NaN },
    goals: [largeReadyGoal(median(starts.map(({ ready, bare }) => ready / bare)))],
  }
}
