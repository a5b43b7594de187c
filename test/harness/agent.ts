/** Starts the real `pilot-agent` in a directory of its own, with ports of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { freePort } from '../../bench/ports.ts'
import { agentScript } from './commands.ts'
import { type CommandResult, runCommand } from './service.ts'
import { type StandInOptions, standInProxy } from './stand-in-proxy.ts'
import { until } from './until.ts'

/** How an agent is started. */
export interface AgentOptions {
  /** The proxy's program. Without it a stand-in for Envoy is used. */
  readonly binary?: string
  /** The behaviour of the stand-in for Envoy. */
  readonly standIn?: StandInOptions
  readonly role?: 'sidecar' | 'router'
  readonly flags?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Fields of the proxy configuration other than the program and the ports. */
  readonly proxyConfig?: Readonly<Record<string, unknown>>
  /** The command. The default is that of `commands.ts`. */
  readonly script?: string
  /** The Node that runs the command. The default is that of this process. */
  readonly runtime?: string
}

/** An agent. Its relative paths are in its directory. */
export class Agent {
  readonly dir = mkdtempSync(join(tmpdir(), 'mesh-agent-'))
  readonly #options: AgentOptions
  adminPort = 0
  statusPort = 0
  /** The port of the readiness listener, which forwards to the status server. */
  readyPort = 0
  metricsPort = 0
  /** The output of the agent and the proxy. */
  output = ''
  #child: ChildProcess | undefined
  #ended: Promise<number | null> = Promise.resolve(null)

  constructor(options: AgentOptions = {}) {
    this.#options = options
    if (options.binary === undefined) this.write('proxy', standInProxy(options.standIn), 0o755)
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** The environment variables that are added to those of the process. */
  get env(): Record<string, string> {
    const { binary, env, proxyConfig } = this.#options
    const config = { binaryPath: binary ?? './proxy', proxyAdminPort: this.adminPort, statusPort: this.statusPort, concurrency: 1, ...proxyConfig }
    return {
      PROXY_CONFIG: JSON.stringify(config),
      PROXY_STATUS_PORT: String(this.readyPort),
      PROXY_PROMETHEUS_PORT: String(this.metricsPort),
      ...env,
    }
  }

  /** Writes a file in the agent's directory. */
  write(path: string, content: string, mode = 0o644): string {
    const file = join(this.dir, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content, { mode })
    return file
  }

  /** Starts the command without waiting. Ports stay the same over restarts. */
  async launch(): Promise<ChildProcess> {
    const { role = 'sidecar', flags = [], script = agentScript, runtime = process.execPath } = this.#options
    this.adminPort ||= await freePort()
    this.statusPort ||= await freePort()
    this.readyPort ||= await freePort()
    this.metricsPort ||= await freePort()
    const child = spawn(runtime, [script, 'proxy', role, ...flags], { cwd: this.dir, env: { ...process.env, ...this.env } })
    this.#child = child
    this.#ended = new Promise((resolve) => child.on('close', resolve))
    child.stdout.on('data', (bytes) => (this.output += bytes))
    child.stderr.on('data', (bytes) => (this.output += bytes))
    return child
  }

  /** Starts the command and waits until the proxy responds on its admin port. */
  async start(): Promise<void> {
    const child = await this.launch()
    await until('the proxy to answer', async () => {
      return child.exitCode !== null || (await this.admin('/ready')).length > 0
    })
    // What the agent wrote before its proxy answered is in the pipe, which is read once more.
    for (let turns = 0; turns < 3; turns++) await turn()
    if (child.exitCode !== null) throw new Error(`the agent ended: ${this.output}`)
  }

  /** Fetches a page of the proxy's admin port. */
  async admin(path: string): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.adminPort}${path}`)).text()
  }

  /** Resolves with the exit status of the process when it has exited and all its output has been read. */
  ended(): Promise<number | null> {
    return this.#ended
  }

  /** Runs another command with the agent's variables. */
  run(args: readonly string[]): Promise<CommandResult> {
    return runCommand(args, this.env, this.#options.script ?? agentScript)
  }

  /** Sends a signal to the agent's process only. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  /** Sends a signal and resolves with the exit status. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.signal(signal)
    return this.ended()
  }

  /** Stops the process and removes its directory. */
  async dispose(): Promise<void> {
    this.signal('SIGTERM')
    // A second signal ends the draining. It is sent later, because two signals at once would be merged into one.
    const again = setInterval(() => this.signal('SIGTERM'), 100)
    await this.ended()
    clearInterval(again)
    rmSync(this.dir, { recursive: true, force: true })
  }
}
