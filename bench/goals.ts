/** Goals for the figures of a mesh. */

/** A figure and its maximum, in the same unit. A figure that could not be measured is infinite. */
export interface Goal {
  readonly what: string
  readonly seen: number
  readonly most: number
  readonly unit: 'CPU s' | 'ms' | 'KiB' | 'MB' | 'times bare' | 'times' | 'streams' | 'KB' | '%' | 'writes' | 'objects'
}

/** Whether the figure is at most its maximum. */
export const isMet = ({ seen, most }: Goal): boolean => seen <= most

/** The compared figures: CPU seconds per round, and milliseconds until a change has arrived. */
export interface Figures {
  readonly cpu: number
  readonly last?: number
  readonly p99?: number
}

/** The maximum ratio of a figure to that of the compared mesh. */
const maxRatio = 1.3
/** Differences up to these are accepted whatever the ratio. */
const smallCpu = 0.02
const smallMs = 20

const atMost = (figure: number, small: number): number => Math.max(figure * maxRatio, figure + small)

/**
 * Returns goals for the CPU and, with `time`, for the milliseconds to the last proxy or to the 99th percentile: at most 1.3 times the
 * figures of another mesh, or 20 ms more. `to` names that mesh.
 */
export function comparable(seen: Figures, other: Figures, to: string, time?: 'last' | 'p99'): Goal[] {
  const goals: Goal[] = [{ what: `CPU ${to}`, seen: seen.cpu, most: atMost(other.cpu, smallCpu), unit: 'CPU s' }]
  if (time !== undefined)
    goals.push({
      what: `${time === 'last' ? 'last proxy' : 'p99'} ${to}`,
      seen: seen[time] ?? Number.POSITIVE_INFINITY,
      most: atMost(other[time] ?? 0, smallMs),
      unit: 'ms',
    })
  return goals
}

const viewKib = 30

/** Per view, at most 30 KiB of the push queue's memory more than a mesh in which all proxies see the same. */
export const memoryGoal = (kib: number, plainKib: number): Goal => ({ what: 'memory a view', seen: kib - plainKib, most: viewKib, unit: 'KiB' })

/** Per view that is built, less than one millisecond of the push queue's CPU. */
export const buildGoal = (ms: number, plainMs: number): Goal => ({ what: 'building a view', seen: ms - plainMs, most: 1, unit: 'ms' })

/** Megabytes per mebibyte. */
const megabytes = 1.048576

/** For the mesh of 1,000 namespaces: connecting takes at most 3 times the CPU of the bare server. */
export const bareGoal = (ratio: number | undefined): Goal => ({
  what: 'connect',
  seen: ratio ?? Number.POSITIVE_INFINITY,
  most: 3,
  unit: 'times bare',
})

/** For the mesh of 1,000 namespaces: at most 1.5 GB resident. `rss` is in MiB. */
export const residentGoal = (rss: number): Goal => ({ what: 'resident', seen: rss * megabytes, most: 1500, unit: 'MB' })

/** For the mesh of 1,000 namespaces: an endpoint change reaches the last proxy that sees it within 100 ms after the debounce of 100 ms. */
export const lastGoal = (ms: number | undefined): Goal => ({ what: 'last proxy', seen: ms ?? Number.POSITIVE_INFINITY, most: 200, unit: 'ms' })

/** The maximum CPU time of the push queue for a policy that selects no proxy. */
export const quietGoal = (queueCpu: number): Goal => ({ what: 'push queue', seen: queueCpu * 1000, most: 5, unit: 'ms' })

/** For the large mesh with one sidecar: ready after at most 1.2 times what parsing the same files takes. */
export const readyGoal = (ratio: number): Goal => ({ what: 'ready', seen: ratio, most: 1.2, unit: 'times bare' })

const largestChangeMs = 20
const growth = { ratio: 1.5, ms: 3 }

/** For one change in a large mesh: at most 20 ms of the push queue's CPU, and at most 1.5 times what it costs in a small mesh or 3 ms more. */
export const growthGoals = (small: number, large: number): Goal[] => [
  { what: 'push queue', seen: large, most: largestChangeMs, unit: 'ms' },
  { what: 'growth', seen: large, most: Math.max(small * growth.ratio, small + growth.ms), unit: 'ms' },
]

/** A rollout of one large service costs the push queue at most 1.5 times one of as many workloads in small services. */
export const growthOf = (what: string, large: number, small: number): Goal => ({ what, seen: large, most: small * growth.ratio, unit: 'CPU s' })

/** Writers take at most twice the CPU of bare writing of the same bytes. */
export const writersGoal = (what: string, seen: number, bare: number): Goal => ({ what, seen, most: 2 * bare, unit: 'CPU s' })

/** For 10,000 services and older Envoys: a change costs at most 0.1 CPU seconds and twice bare writing of the same bytes. */
export const wholeRouteGoal = (seen: number, bare: number): Goal => ({ what: 'a change', seen, most: 0.1 + 2 * bare, unit: 'CPU s' })

/** At most 35 KB resident for each service more. */
export const serviceMemoryGoal = (kb: number): Goal => ({ what: 'resident a service', seen: kb, most: 35, unit: 'KB' })

/** A start beside a cluster takes at most twice the CPU of a bare client that lists, watches and parses the same objects. */
export const clusterReadyGoal = (seen: number, bare: number): Goal => ({ what: 'start until ready', seen, most: 2 * bare, unit: 'CPU s' })

/** A start beside three clusters takes at most 1.3 times the CPU of bare clients that list, watch and parse the same objects, one for each cluster. */
export const clustersReadyGoal = (seen: number, bare: number): Goal => ({ what: 'start until ready', seen, most: maxRatio * bare, unit: 'CPU s' })

/** A cluster whose API server hangs adds nothing to what a change in another one takes: the same goal as without it; and nearly no CPU at rest. */
export const hangingGoals = (ms: number, share: number): Goal[] => [podReadyGoal(ms), { what: 'CPU at rest', seen: share * 100, most: 10, unit: '%' }]

/** At most 12 KB resident for each pod. */
export const podMemoryGoal = (kb: number): Goal => ({ what: 'resident a pod', seen: kb, most: 12, unit: 'KB' })

/** A pod that turns ready is an endpoint of all sidecars within the debounce of 100 ms and 100 ms more. */
export const podReadyGoal = (ms: number): Goal => ({ what: 'last proxy after the watch event', seen: ms, most: 200, unit: 'ms' })

/** With 100 changes of pods a second. */
export const podChurnGoal = (ms: number): Goal => ({ what: 'p99 after the event', seen: ms, most: 1000, unit: 'ms' })

/**
 * A rolling restart of three replicas: no sidecar is without a stream for more than 5 s, all replicas together take at most 1.3 times the CPU of
 * one storm of connects, and delta sidecars are sent less than 1 % of their configuration.
 */
export const rollingRestartGoals = (restart: { longestMs: number; cpu: number; storm: number; share: number }): Goal[] => [
  { what: 'longest without a stream', seen: restart.longestMs, most: 5000, unit: 'ms' },
  { what: 'CPU of a restart', seen: restart.cpu, most: restart.storm * maxRatio, unit: 'CPU s' },
  { what: 'bytes of a restart', seen: restart.share * 100, most: 1, unit: '%' },
]

/** Writes of statuses beside what the rate permits in the time, and objects whose last state is not in their status. */
export const statusGoals = (writes: number, permitted: number, lost: number): Goal[] => [
  { what: 'statuses written', seen: writes, most: permitted, unit: 'writes' },
  { what: 'objects without their last state', seen: lost, most: 0, unit: 'objects' },
]

/** From the start of the process to ready: at most 1.3 times what parsing the same files takes. */
export const largeReadyGoal = (ratio: number): Goal => ({ what: 'ready', seen: ratio, most: 1.3, unit: 'times bare' })

/** Analysis of files at most 1.5 times reading and parsing them, and of one change at most 10 ms of CPU; undefined: not measured. */
export const analysisGoals = (ratio: number | undefined, ms: number | undefined): Goal[] => [
  ...(ratio === undefined ? [] : [{ what: 'analysis of files', seen: ratio, most: 1.5, unit: 'times bare' } as const]),
  ...(ms === undefined ? [] : [{ what: 'analysis of a change', seen: ms, most: 10, unit: 'ms' } as const]),
]

/** 50 admissions a second for a minute on one core: the 99th percentile under 30 ms, and no growth of memory; `grown` is in MiB. */
export const admissionGoals = (p99: number, grown: number): Goal[] => [
  { what: 'p99 of an admission', seen: p99, most: 30, unit: 'ms' },
  { what: 'growth of memory', seen: grown * megabytes, most: 5, unit: 'MB' },
]

/** Changes beside admissions, and without: the same times to the last proxy, and the same work of the push queue. */
export const besideGoals = (last: Beside, queueMs: Beside): Goal[] => [
  { what: 'last proxy beside admissions', seen: last.with, most: atMost(last.without, smallMs), unit: 'ms' },
  { what: 'push queue beside admissions', seen: queueMs.with, most: Math.max(queueMs.without * maxRatio, queueMs.without + 1), unit: 'ms' },
]

/** A figure without and with admissions at the same time. */
export interface Beside {
  readonly without: number
  readonly with: number
}

/** A simulated figure differs from the measured one by at most 20 %; `seen` is in percent. */
export const simulationGoal = (what: string, seen: number): Goal => ({ what: `${what}, deviation of the simulation`, seen, most: 20, unit: '%' })
