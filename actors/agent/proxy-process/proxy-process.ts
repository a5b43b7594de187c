/**
 * The process of the proxy (docs/agent.md, P3 to P6). It is no actor: an actor that fails is started again, and this process is not; with it the agent ends.
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
}

/** How the proxy ends in order. */
export interface Drain {
  readonly adminPort: number
  /** Only the inbound listeners: the workload behind a sidecar may still call others. */
  readonly inboundOnly: boolean
  /** For connections to end by themselves. */
  readonly durationMs: number
}

/** Longest time for the admin port to take the order, in milliseconds. */
const orderMs = 1000
/** From SIGTERM to SIGKILL, in milliseconds. */
const killMs = 2000

/** A running proxy. */
export class ProxyProcess {
  /** Resolves when it has ended. */
  readonly ended: Promise<ProxyEnd>
  readonly #child: ChildProcess
  readonly #log: ScopedLogger

  /** Starts it, with `guard` before its command. Throws an Error that names the program when it is missing or may not be run. */
  constructor({ binary, args }: ProxyCommand, guard: readonly string[], log: ScopedLogger) {
    this.#log = log
    const program = findProgram(binary)
    const [first = program, ...rest] = [...guard, program, ...args]
    log.info(`starting the proxy: ${[program, ...args].map(shown).join(' ')}`)
    // In a process group of its own: an interrupt from the terminal is for the agent, which drains the proxy first.
    this.#child = spawn(first, rest, { stdio: ['ignore', 'inherit', 'inherit'], detached: true })
    this.ended = new Promise((resolve) => {
      this.#child.on('exit', (status, signal) => resolve({ status, signal }))
      this.#child.on('error', (error) => {
        log.error(`the proxy cannot be started: ${error.message}`)
        if (this.#child.pid === undefined) resolve({ status: 126, signal: null })
      })
    })
  }

  /** Lets connections end until `hurried`, then ends the proxy. Resolves when it has ended. */
  async drain({ adminPort, inboundOnly, durationMs }: Drain, hurried: Promise<void>): Promise<void> {
    this.#log.info(`the proxy drains its connections for ${durationMs / 1000} s`)
    const path = `/drain_listeners?${inboundOnly ? 'inboundonly&' : ''}graceful`
    const ordered = callLocal({ port: adminPort, method: 'POST', path }, orderMs).then(
      ({ status, body }) => {
        if (status !== 200) this.#log.warn(`the proxy was not told to drain: status ${status}: ${body.trim().slice(0, 200)}`)
      },
      (error: Error) => this.#log.warn(`the proxy was not told to drain: ${error.message}`),
    )
    await Promise.race([ordered.then(() => pause(durationMs)), hurried, this.ended])
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

/** An argument as the log shows it: what an override of the bootstrap holds may be secret. */
function shown(argument: string, index: number, all: readonly string[]): string {
  if (all[index - 1] === '--config-yaml') return `<${Buffer.byteLength(argument)} bytes>`
  return /^[\w@%+=:,./~-]+$/.test(argument) ? argument : JSON.stringify(argument)
}
