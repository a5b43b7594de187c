/** The limit beside which figures stand: a bare `node:http2` server that writes as many bytes to as many proxies in the same run. */
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

/** What the bare server took: milliseconds to the last proxy, CPU seconds, MiB resident. */
export interface Limit {
  readonly last: number
  readonly cpu: number
  readonly rss: number
}

/** What is to be connected to it. */
export interface LimitOptions {
  readonly threads: number
  readonly proxies: number
  /** Bytes of all first configurations together. */
  readonly bytes: number
  readonly tls: TlsFiles | undefined
  /** The certificates that the proxies show, where the files of TLS name authorities. */
  readonly shown?: readonly Shown[] | undefined
  /** Bytes a second that each proxy reads; as fast as it can by default. */
  readonly bytesPerSecond: number | undefined
  /** The proxies ask as over delta; as over the state of the world by default. */
  readonly delta?: boolean
  /** How many proxies of each process of the load may be without their first configuration at a time; all by default. */
  readonly atOnce?: number
  /** Names of endpoints that all of them together subscribe to; one each by default. */
  readonly names?: number
}

/** A bare server with its own load. */
export class BareServer {
  readonly #child: ChildProcess
  readonly #load = new Load()
  readonly #proxies: number

  private constructor(child: ChildProcess, proxies: number) {
    this.#child = child
    this.#proxies = proxies
  }

  /** Starts one and connects the proxies; `connect` is what that took. */
  static async start({
    threads,
    proxies,
    bytes,
    tls,
    bytesPerSecond,
    delta = false,
    names = proxies,
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

  /** Writes so many bytes in all to the proxies, some rounds. Figures are a round's. */
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
