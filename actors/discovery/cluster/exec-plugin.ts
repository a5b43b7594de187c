/** Runs the plugin of a user, which gives the credential, and keeps that until it expires (docs/operation.md, C1 and C2). */
import { spawn } from 'node:child_process'
import { type ExecCredential, type ExecPlugin, execInfo, readCredential } from '../../../src/orchestrator/exec-credential.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import { deadlineAfter } from '../../runtime/timers.ts'

/** The longest time that a plugin runs, in milliseconds, and the longest texts of what it writes and of why it failed, in bytes. */
const limits = { runMs: 20_000, answerBytes: 1024 * 1024, saidBytes: 500 }

/** The plugin of a user. */
export class CredentialPlugin {
  readonly #plugin: ExecPlugin
  readonly #info: string
  readonly #runMs: number
  #kept: ExecCredential | undefined
  #running: Promise<ExecCredential> | undefined

  /** `cluster` and `caData`: the cluster as the file has it, and its authorities in base64. `runMs`: how long it may run, in milliseconds. */
  constructor(plugin: ExecPlugin, cluster: Readonly<Record<string, unknown>>, caData: string | undefined, runMs = limits.runMs) {
    this.#runMs = runMs
    this.#plugin = plugin
    this.#info = execInfo(plugin, cluster, caData)
  }

  /** Returns the credential, of which one run serves all who ask meanwhile. `isRefused`: the one that is kept is not used. */
  async credential(isRefused: boolean): Promise<ExecCredential> {
    if (!isRefused && this.#kept && this.#kept.expiresAt > wallClockMs()) return this.#kept
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
    return (this.#kept = await this.#running)
  }

  async #run(): Promise<ExecCredential> {
    const { command, apiVersion, hint } = this.#plugin
    try {
      return readCredential(await this.#written(), apiVersion)
    } catch (error) {
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      throw new Error(
        `the plugin ${command}: ${isMissing ? 'there is no such command' : (error as Error).message}${isMissing && hint ? `: ${hint}` : ''}`,
      )
    }
  }

  /** Runs the plugin in a process group of its own, which ends with it. Returns what it writes. */
  #written(): Promise<string> {
    const { command, args, env } = this.#plugin
    return new Promise((resolve, reject) => {
      const child = spawn(command, args, {
        env: { ...process.env, ...env, KUBERNETES_EXEC_INFO: this.#info },
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      })
      let [written, said] = ['', '']
      const end = (reason: string) => {
        late.cancel()
        reject(new Error(reason))
        try {
          if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
        } catch {
          // The process group has ended already.
        }
        child.stdout.destroy()
        child.stderr.destroy()
      }
      const late = deadlineAfter(this.#runMs, () => end(`it has not answered within ${this.#runMs / 1000} s, and is ended`))
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        written += text
        if (written.length > limits.answerBytes) end(`it wrote more than ${limits.answerBytes} bytes`)
      })
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said = (said + text).slice(-limits.saidBytes)
      })
      child.on('error', (error) => {
        late.cancel()
        reject(error)
      })
      child.on('close', (code, signal) => {
        late.cancel()
        if (code === 0) resolve(written)
        else reject(new Error(`it ended with ${signal ?? `status ${code}`}${said.trim() === '' ? '' : `: ${said.trim()}`}`))
      })
    })
  }
}
