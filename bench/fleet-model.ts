/**
 * What a replica spends, from the work of a simulated one (bench/simulated-replica.ts) and the cost of what the simulation leaves out: sockets,
 * HTTP/2, messages between threads, files. These are constants that are calibrated with measured runs of the real service.
 */

/** What was done: counts, and the CPU seconds of the planner and of each writer. */
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

/** Costs outside the simulated code, in CPU seconds: of one connection, one response with its acknowledgement, one byte, one change of a file. */
export interface Constants {
  readonly connection: number
  readonly response: number
  readonly byte: number
  readonly change: number
}

/** The CPU seconds of a measured run, and the simulated work of the same run. */
export interface Measured {
  readonly cpu: number
  readonly work: Work
}

/** What is measured for the calibration. */
export interface Calibration {
  /** Changes that no proxy sees. */
  readonly invisible: Measured
  /** Endpoint changes, which all proxies are sent in small responses. */
  readonly endpoint: Measured
  /** Connections in a mesh of few services, which are sent few bytes. */
  readonly small: Measured
  /** Connections in the mesh itself. */
  readonly large: Measured
}

/** The CPU seconds of the simulated code. */
export const pureCpu = ({ planner, writers }: Work): number => planner + writers.reduce((sum, { cpu }) => sum + cpu, 0)

/** The number of responses. */
export const responsesOf = ({ writers }: Work): number => writers.reduce((sum, { responses }) => sum + responses, 0)

/** The bytes of all responses. */
export const bytesOf = ({ writers }: Work): number => writers.reduce((sum, { bytes }) => sum + bytes, 0)

/** The bytes that pass sockets, in both directions. */
const passed = ({ writers }: Work): number => writers.reduce((sum, { bytes, received }) => sum + bytes + received, 0)

const share = (seconds: number, count: number): number => (count > 0 ? Math.max(0, seconds) / count : 0)

/** The constants that explain measured runs. A run that took less than the simulated code gives none, rather than a negative one. */
export function calibrate({ invisible, endpoint, small, large }: Calibration): Constants {
  const beside = ({ cpu, work }: Measured) => cpu - pureCpu(work)
  const change = share(beside(invisible), invisible.work.changes)
  const response = share(beside(endpoint) - endpoint.work.changes * change, responsesOf(endpoint.work))
  const connecting = ({ work, cpu }: Measured) => beside({ work, cpu }) - responsesOf(work) * response
  // Two equations: of each, what is left are its connections and its bytes.
  const [few, many] = [passed(small.work) / small.work.connections, passed(large.work) / large.work.connections]
  const [least, most] = [connecting(small) / small.work.connections, connecting(large) / large.work.connections]
  const byte = share(most - least, many - few)
  return { change, response, byte, connection: Math.max(0, least - few * byte) }
}

/** The CPU seconds that a replica spends on work. */
export const cpuOf = (work: Work, { connection, response, byte, change }: Constants): number =>
  pureCpu(work) + work.connections * connection + responsesOf(work) * response + passed(work) * byte + work.changes * change

/**
 * Milliseconds from a change until the last proxy has it, after the debounce, where each writer has a core of its own: the planner's work, and then
 * that of the busiest writer.
 */
export const lastMs = (work: Work, { response, byte, change }: Constants): number =>
  1000 *
  (work.planner +
    work.changes * change +
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
