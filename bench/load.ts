/** Runs the load generator in processes of its own. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { ConnectCommand, LoadCommand, LoadReport } from './clients.ts'

/** The properties of the simulated proxies, without their number. */
export type LoadOptions = Omit<ConnectCommand, 'type' | 'count' | 'first' | 'step'>

/** Milliseconds per proxy, sorted, and the bytes of all messages. */
export interface Arrivals {
  readonly times: readonly number[]
  readonly bytes: number
}

/** The arrivals of first configurations, and the number of endpoint names that the proxies have subscribed to in total. */
export interface Connected extends Arrivals {
  readonly names: number
}

const processes = 2

/** Simulated proxies, distributed over two processes. */
export class Load {
  readonly #children: ChildProcess[]

  constructor() {
    this.#children = Array.from({ length: processes }, () => fork(fileURLToPath(new URL('./clients.ts', import.meta.url))))
  }

  /** Connects proxies. Resolves when each has its first configuration. */
  async connect(count: number, options: LoadOptions): Promise<Connected> {
    // Waits for the processes to start, which would otherwise count as the server's delay.
    await this.received()
    const started = Date.now()
    const reports = await this.#all('connected', (index) => ({
      ...options,
      type: 'connect',
      first: index,
      step: processes,
      count: Math.ceil((count - index) / processes),
    }))
    const arrivals = arrivalsOf(reports.map((report) => ({ ...report, times: report.times.map((time) => time - started) })))
    return { ...arrivals, names: reports.reduce((sum, report) => sum + report.names, 0) }
  }

  /** Makes a change. Resolves when its marker has reached every counted proxy, or those with the numbers `among`. */
  async mark(marker: string, change: () => void, among?: readonly number[]): Promise<Arrivals> {
    const marked = Promise.all(this.#children.map((child) => once<Extract<LoadReport, { type: 'marked' }>>(child, 'marked')))
    // All processes must watch for the marker before the change is made.
    await this.#all('looking', () => ({ type: 'mark', marker, among }))
    const at = Date.now()
    change()
    return arrivalsOf((await marked).map((report) => ({ ...report, times: report.times.map((time) => time - at) })))
  }

  /** The digests of the proxies' stored resources, by proxy number. */
  async digests(): Promise<Map<number, string>> {
    const reports = await this.#all('digests', () => ({ type: 'digest' }))
    return new Map(reports.flatMap((report) => report.digests))
  }

  /** The bytes of messages since the last call. */
  async received(): Promise<number> {
    return (await this.#all('received', () => ({ type: 'count' }))).reduce((sum, report) => sum + report.bytes, 0)
  }

  /** The number of streams that sidecars which are not counted have lost so far, without those ended for another writer. */
  async lostStreams(): Promise<number> {
    return (await this.#all('lost', () => ({ type: 'count lost' }))).reduce((sum, report) => sum + report.streams, 0)
  }

  end(): void {
    for (const child of this.#children) {
      child.removeAllListeners('exit')
      if (child.connected) child.send({ type: 'end' } satisfies LoadCommand)
    }
  }

  #all<Type extends LoadReport['type']>(type: Type, command: (index: number) => LoadCommand): Promise<Extract<LoadReport, { type: Type }>[]> {
    return Promise.all(
      this.#children.map((child, index) => {
        const report = once<Extract<LoadReport, { type: Type }>>(child, type)
        child.send(command(index))
        return report
      }),
    )
  }
}

/** Merges the reports of several processes. */
function arrivalsOf(reports: readonly Arrivals[]): Arrivals {
  return {
    times: reports.flatMap((report) => [...report.times]).sort((one, other) => one - other),
    bytes: reports.reduce((sum, report) => sum + report.bytes, 0),
  }
}

/** Resolves with the next message of a type from a process. Rejects when the process exits. */
export function once<T>(child: ChildProcess, type: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const listen = (message: { type: string } | string) => {
      if (message !== type && (message as { type: string }).type !== type) return
      child.off('message', listen)
      child.off('exit', ended)
      resolve(message as T)
    }
    const ended = (code: number | null) => reject(new Error(`a process of the bench ended with ${code}`))
    child.on('message', listen)
    child.on('exit', ended)
  })
}

/** A percentile of sorted numbers. `share` is from 0 to 1. */
export const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.round(share * (sorted.length - 1)))] ?? 0

/** The median of unsorted numbers. */
export const median = (numbers: readonly number[]): number =>
  percentile(
    [...numbers].sort((one, other) => one - other),
    0.5,
  )
