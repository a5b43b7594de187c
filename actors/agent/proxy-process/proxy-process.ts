/**
 * The process of the proxy (docs/agent.md, P3 to P6). It is not an actor: a failed actor is restarted, whereas the agent exits when the
 * proxy exits.
 */
import type { ProxyEnd } from '../../../src/agent/proxy-end.ts'
import { callLocal } from '../../http/local-call.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { pause } from '../../runtime/timers.ts'
import { GuardedProcess } from './guarded-process.ts'
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
  readonly #process: GuardedProcess
  readonly #log: ScopedLogger

  /**
   * Starts the process. `guard` is prepended to the command. Throws an Error that names the program when it is missing or not executable.
   */
  constructor({ binary, args, variables }: ProxyCommand, guard: readonly string[], log: ScopedLogger) {
    this.#log = log
    const path = findProgram(binary)
    log.info(`starting the proxy: ${[path, ...args].map(shown).join(' ')}`)
    this.#process = new GuardedProcess({ path, args, env: { ...variables, ...process.env } }, guard, (error) =>
      log.error(`the proxy cannot be started: ${error.message}`),
    )
    this.ended = this.#process.ended
  }

  /** The process id, also of a program that `guard` becomes; undefined when the process could not be started. */
  get pid(): number | undefined {
    return this.#process.pid
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
    await this.#process.end(killMs, () => this.#log.warn(`the proxy did not end within ${killMs / 1000} s of SIGTERM and is ended by SIGKILL`))
  }
}

/** Formats an argument for the log. The override of the bootstrap is replaced by its size, because it may contain secrets. */
function shown(argument: string, index: number, all: readonly string[]): string {
  if (all[index - 1] === '--config-yaml') return `<${Buffer.byteLength(argument)} bytes>`
  return /^[\w@%+=:,./~-]+$/.test(argument) ? argument : JSON.stringify(argument)
}
