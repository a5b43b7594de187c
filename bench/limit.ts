/**
 * Measures the limit that figures are compared with: a bare `node:http2` server that writes as many bytes to as many proxies in the same
 * run.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { clusterType, endpointType, listenerType, routeType } from '../src/xds/type-urls.ts'
import type { BareCommand } from './bare.ts'
import type { Shown } from './clients.ts'
import { Load, type LoadOptions, median, once, percentile } from './load.ts'
import { freePort } from './ports.ts'
import { processUsage, type TlsFiles } from './server.ts'

/** Figures of the bare server: milliseconds to the last proxy, CPU seconds, MiB resident. */
export interface Limit {
  readonly last: number
  readonly cpu: number
  readonly rss: number
}

/** The load of the bare server. */
export interface LimitOptions {
  readonly threads: number
  readonly proxies: number
  /** The bytes of all first configurations together. */
  readonly bytes: number
  readonly tls: TlsFiles | undefined
  /** The certificates of the proxies, for when `tls` names authorities. */
  readonly shown?: readonly Shown[] | undefined
  /** The rate at which each proxy reads, in bytes per second. Unlimited by default. */
  readonly bytesPerSecond: number | undefined
  /** Whether the proxies use delta xDS or SotW, whose acknowledgements repeat all names. */
  readonly delta: boolean
  /** The maximum number of proxies without their first configuration, per process of the load. Unlimited by default. */
  readonly atOnce?: number
  /** The number of endpoint names that all proxies together subscribe to. */
  readonly names: number
}

/** A bare server with its load. */
export class BareServer {
  readonly #child: ChildProcess
  readonly #load = new Load()
  readonly #proxies: number

  private constructor(child: ChildProcess, proxies: number) {
    this.#child = child
    this.#proxies = proxies
  }

  /** Starts a server and connects the proxies. `connect` are the figures of that. */
  static async start({
    threads,
    proxies,
    bytes,
    tls,
    bytesPerSecond,
    delta,
    names,
    atOnce,
    shown,
  }: LimitOptions): Promise<{ bare: BareServer; connect: Limit }> {
    const child = fork(fileURLToPath(new URL('./bare.ts', import.meta.url)))
    const port = await freePort()
    const each = bytes / proxies
    const sizes = { [clusterType]: each * 0.25, [endpointType]: each * 0.3, [listenerType]: each * 0.01, [routeType]: each * 0.44 }
    const text = (file: string) => readFileSync(file, 'utf8')
    const pem = tls && { cert: text(tls.cert), key: text(tls.key), ca: tls.ca === undefined ? undefined : text(tls.ca) }
    child.send({ type: 'start', port, threads, sizes, tls: pem } satisfies BareCommand)
    await once(child, 'listening')
    const bare = new BareServer(child, proxies)
    const before = processUsage(child.pid as number).cpu
    const options: LoadOptions = {
      port,
      tls: tls !== undefined,
      shown,
      delta,
      hosts: false,
      namespaces: 1,
      reads: 'nothing',
      asks: Math.round(names / proxies),
      own: false,
      misbehaving: 0,
      bytesPerSecond,
      atOnce,
    }
    const { times } = await bare.#load.connect(proxies, options)
    await pause(500)
    const { cpu, rss } = processUsage(child.pid as number)
    return { bare, connect: { last: percentile(times, 1), cpu: cpu - before, rss } }
  }

  /** Writes `bytes` bytes in total to the proxies, `rounds` times. Figures are per round. */
  async push(bytes: number, rounds: number): Promise<Limit> {
    const pid = this.#child.pid as number
    const size = Math.max(100, Math.round(bytes / this.#proxies))
    const before = processUsage(pid).cpu
    const lasts: number[] = []
    for (let round = 0; round < rounds; round++) {
      const marker = `bare-${round}-${Date.now()}`
      const { times } = await this.#load.mark(marker, () => this.#child.send({ type: 'push', marker, size } satisfies BareCommand))
      lasts.push(percentile(times, 1))
      await pause(300)
    }
    const { cpu, rss } = processUsage(pid)
    return { last: median(lasts), cpu: (cpu - before) / rounds, rss }
  }

  stop(): void {
    this.#load.end()
    this.#child.kill()
  }
}
