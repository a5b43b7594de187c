/** Runs the real command on ports of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { askServer } from '../../actors/http/admin-request.ts'
import { freePort } from '../../bench/ports.ts'
import { discoveryScript } from './commands.ts'
import { Output } from './output.ts'
import { until } from './until.ts'

/** The outcome of a command. */
export interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  readonly ms: number
}

/** Runs the command to its end, with its own directory for the state of a certificate authority. */
export function runCommand(args: readonly string[], env: Record<string, string> = {}, script = discoveryScript, input = ''): Promise<CommandResult> {
  const started = performance.now()
  const dir = mkdtempSync(join(tmpdir(), 'mesh-test-ca-'))
  const places = { MESHD_CA_STATE_DIR: dir, MESHD_ADMIN_SOCKET: join(dir, 'run/admin.sock') }
  const child = spawn(process.execPath, [script, ...args], { env: { ...process.env, ...places, ...env } })
  child.stdin.end(input)
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (bytes) => (stdout += bytes))
  child.stderr.on('data', (bytes) => (stderr += bytes))
  return new Promise((resolve) =>
    child.on('close', (code) => {
      rmSync(dir, { recursive: true, force: true })
      resolve({ code, stdout, stderr, ms: performance.now() - started })
    }),
  )
}

/** A running discovery service with its own directories. It has no secured port unless its flags set one. */
export class Service {
  readonly dir: string
  /** The directory of the certificate authority's state. */
  readonly authorityDir: string
  readonly env: Record<string, string>
  readonly flags: string[]
  grpcPort = 0
  httpPort = 0
  httpsPort = 0
  monitoringPort = 0
  readonly output = new Output()
  readonly #script: string
  readonly #runtime: string
  readonly #cwd: string | undefined
  readonly #descriptors: number | undefined
  #child: ChildProcess | undefined

  /**
   * `script` is the command to run instead of that of `commands.ts`, `runtime` the Node that runs it instead of this one, `descriptors` the limit
   * of open files instead of the system's, `cwd` the working directory.
   */
  constructor(
    options: { env?: Record<string, string>; flags?: readonly string[]; script?: string; runtime?: string; descriptors?: number; cwd?: string } = {},
  ) {
    this.#runtime = options.runtime ?? process.execPath
    this.#cwd = options.cwd
    this.#script = options.script ?? discoveryScript
    this.#descriptors = options.descriptors
    this.dir = mkdtempSync(join(tmpdir(), 'mesh-test-'))
    this.authorityDir = mkdtempSync(join(tmpdir(), 'mesh-test-ca-'))
    this.env = {
      PILOT_MOCK_SERVICES: '0',
      MESHD_CA_STATE_DIR: this.authorityDir,
      MESHD_ADMIN_SOCKET: join(this.dir, '.run/admin.sock'),
      ...options.env,
    }
    this.flags = [...(options.flags ?? [])]
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** Writes a configuration file. */
  write(name: string, content: string): void {
    writeFileSync(join(this.dir, name), content)
  }

  remove(name: string): void {
    rmSync(join(this.dir, name), { force: true })
  }

  /** Starts the command and waits until it is ready. Ports stay the same over restarts. */
  async start(): Promise<void> {
    this.grpcPort ||= await freePort()
    this.httpPort ||= await freePort()
    this.httpsPort ||= await freePort()
    this.monitoringPort ||= await freePort()
    // Configured files must exist.
    for (const name of ['mesh-config', 'networks']) if (!existsSync(join(this.dir, name))) this.write(name, '')
    const address = (port: number) => `127.0.0.1:${port}`
    const args = [
      'discovery',
      ...(this.flags.includes('--registries') ? [] : ['--registries', 'Mock']),
      '--configDir',
      this.dir,
      '--meshConfig',
      join(this.dir, 'mesh-config'),
      '--networksConfig',
      join(this.dir, 'networks'),
    ]
    args.push(
      '--grpcAddr',
      address(this.grpcPort),
      '--secureGRPCAddr',
      '',
      '--httpAddr',
      address(this.httpPort),
      '--httpsAddr',
      address(this.httpsPort),
      '--monitoringAddr',
      address(this.monitoringPort),
      '--ctrlz_port',
      '0',
      ...this.flags,
    )
    const command = [this.#runtime, this.#script, ...args]
    const limited = this.#descriptors === undefined ? command : ['sh', '-c', `ulimit -n ${this.#descriptors}; exec "$@"`, 'sh', ...command]
    const child = spawn(limited[0] as string, limited.slice(1), { env: { ...process.env, ...this.env }, cwd: this.#cwd })
    this.#child = child
    this.output.follow(child)
    const isReady = () => fetch(`http://127.0.0.1:${this.httpPort}/ready`).then(({ status }) => status === 200)
    await until('the service to be ready', () => child.exitCode !== null || isReady()).catch(async (error: Error) => {
      const body = await fetch(`http://127.0.0.1:${this.httpPort}/ready`).then((answer) => answer.text(), String)
      throw new Error(`${error.message}: ${body}`)
    })
    if (child.exitCode !== null) throw new Error(`the service ended: ${await this.output.whole()}`)
  }

  /** Fetches a debug page as JSON over the admin socket. */
  async debug<T>(page: string): Promise<T> {
    const { status, body } = await askServer({ method: 'GET', path: `/debug/${page}` }, this.env)
    if (status !== 200) throw new Error(`${page}: ${status} ${body}`)
    return JSON.parse(body) as T
  }

  /** Fetches all metrics as text. */
  async metrics(): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.monitoringPort}/metrics`)).text()
  }

  /** The responses that proxies rejected, as text. */
  async rejections(): Promise<string[]> {
    const { clients } = await this.debug<{ clients: { connectionId: string; rejections: { typeUrl: string; message: string }[] }[] }>('adsz')
    return clients.flatMap((client) => client.rejections.map((rejection) => `${client.connectionId} ${rejection.typeUrl}: ${rejection.message}`))
  }

  /** Stops the process. SIGKILL simulates a crash. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.#child
    this.#child = undefined
    if (!child || child.exitCode !== null) return child?.exitCode ?? null
    const closed = new Promise<number | null>((resolve) => child.on('exit', (code) => resolve(code)))
    child.kill(signal)
    return closed
  }

  /** Stops the process and removes its directories. */
  async dispose(): Promise<void> {
    await this.stop()
    for (const dir of [this.dir, this.authorityDir]) rmSync(dir, { recursive: true, force: true })
  }
}
