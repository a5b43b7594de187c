/** A child process that ends with its parent. */
import { type ChildProcess, spawn } from 'node:child_process'
import type { ProxyEnd } from '../../../src/agent/proxy-end.ts'
import { after } from '../../runtime/timers.ts'

/** A program and how it is started. */
export interface Program {
  readonly path: string
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** The working directory; that of this process when undefined. */
  readonly cwd?: string | undefined
  /** The descriptor of the file that takes its output; without it the output is that of this process. */
  readonly output?: number | undefined
}

/** A running program in a process group of its own. */
export class GuardedProcess {
  /** Resolves when the process has exited. */
  readonly ended: Promise<ProxyEnd>
  readonly #child: ChildProcess

  /** Starts the process. `guard` is prepended to the command; `failed` is called with an error of the start, or of a signal to the process. */
  constructor({ path, args, env, cwd, output }: Program, guard: readonly string[], failed: (error: Error) => void) {
    const [first = path, ...rest] = [...guard, path, ...args]
    // With its own process group, an interrupt from the terminal reaches only the parent, which ends the process in order.
    this.#child = spawn(first, rest, { stdio: ['ignore', output ?? 'inherit', output ?? 'inherit'], detached: true, env, cwd })
    this.ended = new Promise((resolve) => {
      this.#child.on('exit', (status, signal) => resolve({ status, signal }))
      this.#child.on('error', (error) => {
        failed(error)
        if (this.#child.pid === undefined) resolve({ status: 126, signal: null })
      })
    })
  }

  /** The process id, also of a program that `guard` becomes; undefined when the process could not be started. */
  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Ends the process by SIGTERM, or by SIGKILL after `ms` milliseconds, of which `late` is told. Resolves when it has exited. */
  async end(ms: number, late: () => void): Promise<void> {
    this.#child.kill('SIGTERM')
    const kill = after(ms, () => {
      late()
      this.#child.kill('SIGKILL')
    })
    await this.ended
    kill.cancel()
  }
}
