/** What the figures of a mesh are held to. */

/** A figure and its bound, in the same unit. A figure that could not be measured is infinite. */
export interface Goal {
  readonly what: string
  readonly seen: number
  readonly most: number
  readonly unit: 'CPU s' | 'ms' | 'KiB' | 'MB' | 'times bare'
}

/** Whether the figure is within its bound. */
export const isMet = ({ seen, most }: Goal): boolean => seen <= most

/** The figures that are compared: CPU seconds a round, and milliseconds where a change is waited for. */
export interface Figures {
  readonly cpu: number
  readonly last?: number
  readonly p99?: number
}

/** How many times the figure of the mesh it is compared with a figure may be. */
const mostRatio = 1.3
/** Below this difference a ratio means nothing. */
const smallCpu = 0.02
const smallMs = 20

const atMost = (figure: number, small: number): number => Math.max(figure * mostRatio, figure + small)

/**
 * CPU, and the milliseconds to the last proxy or to 99 in 100 as `time` says, at most 1.3 times those of another mesh, or 20 ms more.
 * `to` says which one that is.
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

/** At most 30 KiB of the push queue's memory for each view above a mesh in which all see the same. */
export const memoryGoal = (kib: number, plainKib: number): Goal => ({ what: 'memory a view', seen: kib - plainKib, most: viewKib, unit: 'KiB' })

/** Less than a millisecond of the push queue for each view that is built. */
export const buildGoal = (ms: number, plainMs: number): Goal => ({ what: 'building a view', seen: ms - plainMs, most: 1, unit: 'ms' })

/** A mebibyte in megabytes. */
const megabytes = 1.048576

/** The mesh of 1,000 namespaces: connecting at most 3 times bare. */
export const bareGoal = (ratio: number | undefined): Goal => ({
  what: 'connect',
  seen: ratio ?? Number.POSITIVE_INFINITY,
  most: 3,
  unit: 'times bare',
})

/** The mesh of 1,000 namespaces: at most 1.5 GB resident; given in MiB. */
export const residentGoal = (rss: number): Goal => ({ what: 'resident', seen: rss * megabytes, most: 1500, unit: 'MB' })

/** The mesh of 1,000 namespaces: an endpoint is with the last proxy that sees it 100 ms after the debounce of 100 ms. */
export const lastGoal = (ms: number | undefined): Goal => ({ what: 'last proxy', seen: ms ?? Number.POSITIVE_INFINITY, most: 200, unit: 'ms' })

/** What a policy that concerns no proxy may take in the push queue. */
export const quietGoal = (queueCpu: number): Goal => ({ what: 'push queue', seen: queueCpu * 1000, most: 5, unit: 'ms' })
