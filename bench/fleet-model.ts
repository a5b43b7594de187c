/**
 * What a replica spends, from the work of a simulated one (bench/simulated-replica.ts) and the cost of what the simulation leaves out: sockets,
 * HTTP/2, messages between threads, files. These are constants that are fitted to measured runs of the real service.
 */

/** What was done: counts, and the CPU seconds of the planner and of each writer. `pushes` are those that writers are sent. */
export interface Work {
  readonly connections: number
  readonly changes: number
  readonly requests: number
  readonly pushes: number
  readonly planner: number
  readonly writers: readonly WriterWork[]
}

/** What a writer did: responses and their bytes, and the bytes of requests. */
export interface WriterWork {
  readonly responses: number
  readonly bytes: number
  readonly received: number
  readonly cpu: number
}

/**
 * Costs outside the simulated code, in CPU seconds: of one connection, one response with its acknowledgement, one byte, one change of a file, and one
 * push that writers are sent, whatever the number of proxies.
 */
export interface Constants {
  readonly connection: number
  readonly response: number
  readonly byte: number
  readonly change: number
  readonly push: number
}

/** The CPU seconds of a measured run, and the simulated work of the same run. */
export interface Measured {
  readonly cpu: number
  readonly work: Work
}

/** The CPU seconds of the simulated code. */
export const pureCpu = ({ planner, writers }: Work): number => planner + writers.reduce((sum, { cpu }) => sum + cpu, 0)

/** The number of responses. */
export const responsesOf = ({ writers }: Work): number => writers.reduce((sum, { responses }) => sum + responses, 0)

/** The bytes of all responses. */
export const bytesOf = ({ writers }: Work): number => writers.reduce((sum, { bytes }) => sum + bytes, 0)

/** The bytes that pass sockets, in both directions. */
const passed = ({ writers }: Work): number => writers.reduce((sum, { bytes, received }) => sum + bytes + received, 0)

/** How often each cost occurs in a work. */
const countsOf = (work: Work): Constants => ({
  ...{ connection: work.connections, response: responsesOf(work), byte: passed(work), change: work.changes, push: work.pushes },
})

const costs = ['connection', 'response', 'byte', 'change', 'push'] as const

/**
 * The constants that explain measured runs best: the sum of the squares of relative deviations is the least. None is negative: what would be is zero,
 * and the others are fitted without it. A cost that occurs in no run is zero.
 */
export function calibrate(runs: readonly Measured[]): Constants {
  const rows = runs.map(({ cpu, work }) => ({ counts: countsOf(work), weight: 1 / cpu }))
  const beside = runs.map(({ cpu, work }) => (cpu - pureCpu(work)) / cpu)
  let used = costs.filter((cost) => rows.some(({ counts }) => counts[cost] > 0))
  for (;;) {
    // Each column is divided by its largest number, since bytes and pushes differ by nine orders of magnitude.
    const scale = used.map((cost) => Math.max(...rows.map(({ counts, weight }) => counts[cost] * weight)))
    const cells = rows.map(({ counts, weight }) => used.map((cost, at) => (counts[cost] * weight) / (scale[at] as number)))
    const sum = (of: (row: readonly number[], index: number) => number) => cells.reduce((total, row, index) => total + of(row, index), 0)
    const square = used.map((_, one) => used.map((_, other) => sum((row) => (row[one] as number) * (row[other] as number))))
    const right = used.map((_, one) => sum((row, index) => (row[one] as number) * (beside[index] as number)))
    const found = solved(square, right).map((value, at) => value / (scale[at] as number))
    const least = Math.min(0, ...found)
    if (least === 0)
      return { connection: 0, response: 0, byte: 0, change: 0, push: 0, ...Object.fromEntries(used.map((cost, at) => [cost, found[at]])) }
    used = used.filter((_, at) => found[at] !== least)
  }
}

/** Solves linear equations by elimination. An unknown that the equations do not determine is zero. */
function solved(square: readonly (readonly number[])[], right: readonly number[]): number[] {
  const rows = square.map((row, index) => [...row, right[index] as number])
  const [size, tiny] = [rows.length, 1e-12]
  const cell = (row: number, column: number) => (rows[row] as number[])[column] as number
  for (let at = 0; at < size; at++) {
    let pivot = at
    for (let row = at + 1; row < size; row++) if (Math.abs(cell(row, at)) > Math.abs(cell(pivot, at))) pivot = row
    ;[rows[at], rows[pivot]] = [rows[pivot] as number[], rows[at] as number[]]
    if (Math.abs(cell(at, at)) < tiny) continue
    for (let row = 0; row < size; row++) {
      const factor = row === at ? 0 : cell(row, at) / cell(at, at)
      rows[row] = (rows[row] as number[]).map((value, column) => value - factor * cell(at, column))
    }
  }
  return rows.map((row, at) => (Math.abs(cell(at, at)) < tiny ? 0 : (row[size] as number) / cell(at, at)))
}

/** The CPU seconds that a replica spends on work. */
export function cpuOf(work: Work, constants: Constants): number {
  const counts = countsOf(work)
  return costs.reduce((sum, cost) => sum + counts[cost] * constants[cost], pureCpu(work))
}

/**
 * Milliseconds from a change until the last proxy has it, after the debounce, where each writer has a core of its own: the planner's work, and then
 * that of the busiest writer.
 */
export const lastMs = (work: Work, { response, byte, change, push }: Constants): number =>
  1000 *
  (work.planner +
    work.changes * change +
    work.pushes * push +
    Math.max(0, ...work.writers.map((each) => each.cpu + each.responses * response + (each.bytes + each.received) * byte)))

/** The resident memory of a process in MiB, as a straight line through two measured points. */
export interface MemoryLine {
  readonly baseMib: number
  readonly proxyKib: number
}

/**
 * The line through the memory with few and with more proxies, in MiB. Collections of garbage make single figures lower than the ones before: the
 * slope is at least `leastKib` a proxy, what the simulated code holds.
 */
export function memoryLine(few: { proxies: number; mib: number }, more: { proxies: number; mib: number }, leastKib: number): MemoryLine {
  const proxyMib = Math.max(leastKib / 1024, (more.mib - few.mib) / (more.proxies - few.proxies))
  return { baseMib: more.mib - more.proxies * proxyMib, proxyKib: proxyMib * 1024 }
}

/** The memory of a process with so many proxies, in MiB. */
export const memoryOf = ({ baseMib, proxyKib }: MemoryLine, proxies: number): number => baseMib + (proxies * proxyKib) / 1024

/** By how many percent a figure differs from the real one. */
export const deviation = (simulated: number, real: number): number => (100 * Math.abs(simulated - real)) / real
