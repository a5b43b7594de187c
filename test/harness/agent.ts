/** Starts the real `pilot-agent` in a folder of its own, with ports of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../bench/ports.ts'
import { type CommandResult, runCommand } from './service.ts'
import { type StandInOptions, standInProxy } from './stand-in-proxy.ts'
import { until } from './until.ts'

/** The command of the sources. */
export const agentScript = fileURLToPath(new URL('../../bin/pilot-agent.js', import.meta.url))

/** How an agent is run. */
export interface AgentOptions {
  /** The program of the proxy, if it is not one that stands in for Envoy. */
  readonly binary?: string
  /** How the program behaves that stands in for Envoy. */
  readonly standIn?: StandInOptions
  readonly role?: 'sidecar' | 'router'
  readonly flags?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Fields of the proxy configuration beside the program and the ports. */
  readonly proxyConfig?: Readonly<Record<string, unknown>>
  /** The command, if not that of the sources. */
  readonly script?: string
}

/** An agent. Its paths that begin with `./` are in its folder. */
export class Agent {
  readonly dir = mkdtempSync(join(tmpdir(), 'mesh-agent-'))
  readonly #options: AgentOptions
  adminPort = 0
  statusPort = 0
  /** Of the listener in front of the status server. */
  readyPort = 0
  metricsPort = 0
  /** What agent and proxy have written. */
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

  /** The variables that it is started with beside those of the process. */
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

  /** Writes a file into its folder. */
  write(path: string, content: string, mode = 0o644): string {
    const file = join(this.dir, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content, { mode })
    return file
  }

  /** Starts the command, and waits for nothing. Ports stay the same over restarts. */
  async launch(): Promise<ChildProcess> {
    const { role = 'sidecar', flags = [], script = agentScript } = this.#options
    this.adminPort ||= await freePort()
    this.statusPort ||= await freePort()
    this.readyPort ||= await freePort()
    this.metricsPort ||= await freePort()
    const child = spawn(process.execPath, [script, 'proxy', role, ...flags], { cwd: this.dir, env: { ...process.env, ...this.env } })
    this.#child = child
    this.#ended = new Promise((resolve) => child.on('close', resolve))
    child.stdout.on('data', (bytes) => (this.output += bytes))
    child.stderr.on('data', (bytes) => (this.output += bytes))
    return child
  }

  /** Starts the command and waits until the proxy answers on its admin port. */
  async start(): Promise<void> {
    const child = await this.launch()
    await until('the proxy to answer', async () => {
      return child.exitCode !== null || (await this.admin('/ready')).length > 0
    })
    if (child.exitCode !== null) throw new Error(`the agent ended: ${this.output}`)
  }

  /** A page of the proxy's admin port. */
  async admin(path: string): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.adminPort}${path}`)).text()
  }

  /** Resolves with the status of the process when it has ended, and all that it and the proxy have written is here. */
  ended(): Promise<number | null> {
    return this.#ended
  }

  /** Runs another command with the variables of this agent. */
  run(args: readonly string[]): Promise<CommandResult> {
    return runCommand(args, this.env, this.#options.script ?? agentScript)
  }

  /** Sends a signal to the agent alone. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  /** Ends the process and resolves with its status. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.signal(signal)
    return this.ended()
  }

  /** Ends the process and removes its folder. */
  async dispose(): Promise<void> {
    this.signal('SIGTERM')
    // A second signal ends the wait for connections; one that is sent at once would be taken with the first.
    const again = setInterval(() => this.signal('SIGTERM'), 100)
    await this.ended()
    clearInterval(again)
    rmSync(this.dir, { recursive: true, force: true })
  }
}
