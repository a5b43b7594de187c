/** The server under test: the real command as it is installed, in a process of its own, and its resource usage. */
import { type ChildProcess, type SpawnSyncOptions, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { buildCommands } from '../test/commands.js'
import { freePort } from './ports.ts'

/** CPU seconds and resident memory (MiB) of a process, and CPU seconds of its actors. */
export interface Usage {
  readonly cpu: number
  readonly rss: number
  readonly threads: Readonly<Record<string, number>>
}

/** User and system CPU seconds of a process, and its resident memory in MiB. */
export function processUsage(pid: number): { cpu: number; rss: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  const rss = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0'
  return { cpu: (Number(fields[11]) + Number(fields[12])) / 100, rss: Number(rss) / 1024 }
}

/** The CPU seconds of the threads that a process has, which the kernel counts in nanoseconds. Threads that have ended are missing. */
export function threadSeconds(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`)
  return tasks.reduce((sum, task) => {
    try {
      return sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]) / 1e9
    } catch {
      // The thread has ended since.
      return sum
    }
  }, 0)
}

/** Returns the mean CPU seconds of several runs of a Node script, because the CPU clock in /proc has a resolution of 10 ms. */
export function cpuOfRuns(args: readonly string[], runs: number, options: SpawnSyncOptions = {}): number {
  const before = childrenCpu()
  for (let run = 0; run < runs; run++) spawnSync(process.execPath, args, { ...options, stdio: 'ignore' })
  return (childrenCpu() - before) / runs
}

/** The CPU seconds of child processes that have exited. */
export function childrenCpu(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[13]) + Number(fields[14])) / 100
}

/** The files of a TLS port. */
export interface TlsFiles {
  readonly cert: string
  readonly key: string
  /** Authorities of client certificates. Without them clients are not authenticated. */
  readonly ca?: string
}

/** The configuration of the server. */
export interface ServerOptions {
  readonly writers: number
  readonly files: readonly (readonly [name: string, text: string])[]
  readonly env?: Readonly<Record<string, string>>
  /** The log levels. The default is `all:warn`. */
  readonly logLevel?: string
  /** Certificate and key files of the secured port, to which proxies connect. */
  readonly tls?: TlsFiles | undefined
  /** The same for a secured port that proxies do not use: they connect in plaintext. */
  readonly certificates?: TlsFiles | undefined
  /** The text of the mesh configuration. None by default. */
  readonly mesh?: string | undefined
  /** The file that connects to a cluster, which is then the registry instead of Mock, and has the configuration instead of files. */
  readonly orchconfig?: string | undefined
  /** The port of webhooks. Without it they are not served over TLS. */
  readonly httpsPort?: number
  /** The maximum time until the server is ready, in seconds. Unlimited by default. */
  readonly readyWithin?: number
}

/**
 * Starts a script of the project in a process that ends when this process ends, even when killed: the script treats this process like the
 * wrapper in `bin/runtime.js`. `output` is the destination of its output.
 */
export function startCommand(args: readonly string[], output: 'inherit' | 'ignore', env: Readonly<Record<string, string>> = {}): ChildProcess {
  return spawn(process.execPath, args, {
    env: { ...process.env, ...env, MESH_WRAPPER: String(process.pid) },
    stdio: ['ignore', output, output, 'ipc'],
  })
}

/**
 * The folder of the commands as they are installed, which are built once: started from source, a thread looks for, reads and strips each of its modules, which
 * took most of a start and is no figure of what users have.
 */
let commands = process.env.TEST_COMMANDS

/** The running servers. They are stopped and their directories removed when this process exits, unless it is killed. */
const running = new Set<DiscoveryServer>()
process.on('exit', () => {
  for (const server of running) server.stop()
})

/** A running `pilot-discovery discovery`. */
export class DiscoveryServer {
  /** The port that proxies connect to: the secured port if there is one. */
  port = 0
  /** The secured port; 0 when there is none. */
  securePort = 0
  /** Seconds from the start of the process until it was ready. */
  readyAfter = 0
  /** CPU seconds of the process until then. */
  readyCpu = 0
  readonly dir = mkdtempSync(join(tmpdir(), 'mesh-bench-'))
  /** The directory of the certificate authority's state. */
  readonly #authorityDir = mkdtempSync(join(tmpdir(), 'mesh-bench-ca-'))
  #child: ChildProcess | undefined
  #monitoring = 0

  static async start(options: ServerOptions): Promise<DiscoveryServer> {
    const server = new DiscoveryServer()
    for (const [name, text] of options.files) writeFileSync(join(server.dir, name), text)
    try {
      await server.#start(options)
    } catch (error) {
      await server.kill()
      throw error
    }
    return server
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Writes a configuration file atomically. */
  put(name: string, text: string): void {
    writeFileSync(join(this.dir, `.${name}`), text)
    renameSync(join(this.dir, `.${name}`), join(this.dir, name))
  }

  remove(name: string): void {
    rmSync(join(this.dir, name), { force: true })
  }

  async usage(): Promise<Usage> {
    const text = await this.metrics()
    const threads = [...text.matchAll(/^actor_cpu_seconds\{actor="([^"]+)"\} (\S+)$/gm)]
    return { ...processUsage(this.pid), threads: Object.fromEntries(threads.map(([, actor, seconds]) => [actor as string, Number(seconds)])) }
  }

  async metrics(): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.#monitoring}/metrics`)).text()
  }

  /** The sum of a metric over all label values. */
  async metric(name: string): Promise<number> {
    const lines = [...(await this.metrics()).matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))]
    return lines.reduce((sum, [, value]) => sum + Number(value), 0)
  }

  /** Ends the process at once. One that is asked to end may still write into its directory, where it listens on a socket again that was removed. */
  stop(): void {
    running.delete(this)
    this.#child?.kill('SIGKILL')
    for (const dir of [this.dir, this.#authorityDir]) rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
  }

  /** Ends the process in order, as the orchestrator does. Resolves when it has exited. */
  async drain(): Promise<void> {
    const ended = new Promise((resolve) => this.#child?.once('exit', resolve))
    this.#child?.kill()
    await ended
    this.stop()
  }

  /** Kills the process. Resolves when it has exited, and its memory is free. */
  async kill(): Promise<void> {
    if (this.isRunning) {
      const ended = new Promise((resolve) => this.#child?.once('exit', resolve))
      this.#child?.kill('SIGKILL')
      await ended
    }
    this.stop()
  }

  async #start(options: ServerOptions): Promise<void> {
    const [grpc, secure, http, monitoring] = [await freePort(), await freePort(), await freePort(), await freePort()]
    const certificates = options.tls ?? options.certificates
    const flags = {
      registries: options.orchconfig === undefined ? 'Mock' : 'Orchestrator',
      ...(options.orchconfig === undefined ? {} : { orchconfig: options.orchconfig }),
      configDir: options.orchconfig === undefined ? this.dir : '',
      grpcAddr: `127.0.0.1:${grpc}`,
      httpAddr: `127.0.0.1:${http}`,
      httpsAddr: options.httpsPort === undefined ? '' : `127.0.0.1:${options.httpsPort}`,
      monitoringAddr: `127.0.0.1:${monitoring}`,
      ctrlz_port: '0',
      writers: String(options.writers),
      log_output_level: options.logLevel ?? 'all:warn',
      secureGRPCAddr: certificates ? `127.0.0.1:${secure}` : '',
      ...(certificates ? { tlsCertFile: certificates.cert, tlsKeyFile: certificates.key, caCertFile: certificates.ca ?? '' } : {}),
      ...(options.mesh === undefined ? {} : { meshConfig: join(this.dir, '.mesh') }),
    }
    // A file whose name begins with a dot is not read as a configuration object.
    if (options.mesh !== undefined) writeFileSync(join(this.dir, '.mesh'), options.mesh)
    commands ??= buildCommands()
    const entry = join(commands, 'pilot-discovery.js')
    const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
    const started = performance.now()
    const env = {
      PILOT_MOCK_SERVICES: '0',
      XDS_AUTH: String(options.tls?.ca !== undefined),
      MESHD_CA_STATE_DIR: this.#authorityDir,
      MESHD_ADMIN_SOCKET: join(this.dir, '.run/admin.sock'),
      ...options.env,
    }
    this.#child = startCommand([entry, 'discovery', ...args], 'inherit', env)
    running.add(this)
    this.port = options.tls ? secure : grpc
    this.securePort = certificates ? secure : 0
    this.#monitoring = monitoring
    for (;;) {
      const ready = await fetch(`http://127.0.0.1:${http}/ready`).catch(() => undefined)
      if (ready?.ok) break
      const seconds = (performance.now() - started) / 1000
      if (seconds > (options.readyWithin ?? Number.POSITIVE_INFINITY)) throw new Error(`the server was not ready within ${options.readyWithin} s`)
      if (this.#child.exitCode !== null) throw new Error('the server ended before it was ready')
      await pause(20)
    }
    this.readyAfter = (performance.now() - started) / 1000
    this.readyCpu = processUsage(this.pid).cpu
  }
}

/** Returns the CPU seconds between two readings, in total and per thread. */
export function spent(now: Usage, then: Usage): { cpu: number; threads: Record<string, number> } {
  const threads = Object.entries(now.threads).map(([name, seconds]) => [name, Math.max(0, seconds - (then.threads[name] ?? 0))] as const)
  return { cpu: now.cpu - then.cpu, threads: Object.fromEntries(threads) }
}
