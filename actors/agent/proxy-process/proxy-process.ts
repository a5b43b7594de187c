/**
 * The process of the proxy (docs/agent.md, P3 to P6). It is not an actor: a failed actor is restarted, whereas the agent exits when the
 * proxy exits.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import type { ProxyEnd } from '../../../src/agent/proxy-end.ts'
import { callLocal } from '../../http/local-call.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after, pause } from '../../runtime/timers.ts'
import { findProgram } from './programs.ts'

/** The program and its arguments. */
export interface ProxyCommand {
  readonly binary: string
  readonly args: readonly string[]
  /** Environment variables for the proxy, where the agent's own environment has none of the name. */
  readonly variables: Readonly<Record<string, string>>
}

/** How the proxy is drained before it is terminated. */
export interface Drain {
  readonly adminPort: number
  /** Whether only inbound listeners are drained, so that the workload behind a sidecar can still open outbound connections. */
  readonly inboundOnly: boolean
  /** How long connections may take to end, in milliseconds. */
  readonly durationMs: number
}

/** The timeout of the drain request to the admin port, in milliseconds. */
const orderMs = 1000
/** The time between SIGTERM and SIGKILL, in milliseconds. */
const killMs = 2000

/** A running proxy. */
export class ProxyProcess {
  /** Resolves when the process has exited. */
  readonly ended: Promise<ProxyEnd>
  readonly #child: ChildProcess
  readonly #log: ScopedLogger

  /**
   * Starts the process. `guard` is prepended to the command. Throws an Error that names the program when it is missing or not executable.
   */
  constructor({ binary, args, variables }: ProxyCommand, guard: readonly string[], log: ScopedLogger) {
    this.#log = log
    const program = findProgram(binary)
    const [first = program, ...rest] = [...guard, program, ...args]
    log.info(`starting the proxy: ${[program, ...args].map(shown).join(' ')}`)
    // The process gets its own process group, so that an interrupt from the terminal reaches only the agent, which drains the proxy first.
    this.#child = spawn(first, rest, { stdio: ['ignore', 'inherit', 'inherit'], detached: true, env: { ...variables, ...process.env } })
    this.ended = new Promise((resolve) => {
      this.#child.on('exit', (status, signal) => resolve({ status, signal }))
      this.#child.on('error', (error) => {
        log.error(`the proxy cannot be started: ${error.message}`)
        if (this.#child.pid === undefined) resolve({ status: 126, signal: null })
      })
    })
  }

  /** The process id, also of a program that `guard` becomes; undefined when the process could not be started. */
  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Drains connections for the configured time or until `immediate` resolves, then terminates the proxy. Resolves when it has exited. */
  async drain({ adminPort, inboundOnly, durationMs }: Drain, immediate: Promise<void>): Promise<void> {
    this.#log.info(`the proxy drains its connections for ${durationMs / 1000} s`)
    const path = `/drain_listeners?${inboundOnly ? 'inboundonly&' : ''}graceful`
    const ordered = callLocal({ port: adminPort, method: 'POST', path }, orderMs).then(
      ({ status, body }) => {
        if (status !== 200) this.#log.warn(`the proxy could not be drained: status ${status}: ${body.trim().slice(0, 200)}`)
      },
      (error: Error) => this.#log.warn(`the proxy could not be drained: ${error.message}`),
    )
    await Promise.race([ordered.then(() => pause(durationMs)), immediate, this.ended])
    await this.#end()
  }

  async #end(): Promise<void> {
    this.#child.kill('SIGTERM')
    const late = after(killMs, () => {
      this.#log.warn(`the proxy did not end within ${killMs / 1000} s of SIGTERM and is ended by SIGKILL`)
      this.#child.kill('SIGKILL')
    })
    await this.ended
    late.cancel()
  }
}

/** Formats an argument for the log. The override of the bootstrap is replaced by its size, because it may contain secrets. */
function shown(argument: string, index: number, all: readonly string[]): string {
  if (all[index - 1] === '--config-yaml') return `<${Buffer.byteLength(argument)} bytes>`
  return /^[\w@%+=:,./~-]+$/.test(argument) ? argument : JSON.stringify(argument)
}
