/** What a process costs while it is attacked, as the kernel counts it. */
import { readdirSync, readFileSync } from 'node:fs'

/** The memory of a process in MiB, of which it has touched the pages. */
export const residentMib = (pid: number): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

/** The number of open files of a process. */
export const descriptors = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

/** Records the highest memory and number of open files of a process until it is stopped. */
export class CostRecorder {
  readonly #before: { readonly mib: number; readonly descriptors: number }
  readonly #pid: number
  readonly #timer: NodeJS.Timeout
  mib = 0
  descriptors = 0

  constructor(pid: number) {
    this.#pid = pid
    this.#before = { mib: residentMib(pid), descriptors: descriptors(pid) }
    this.#timer = setInterval(() => this.#look(), 20)
  }

  /** Stops recording, and returns what was added to memory and open files at the highest. */
  stop(): { readonly mib: number; readonly descriptors: number } {
    this.#look()
    clearInterval(this.#timer)
    return { mib: this.mib - this.#before.mib, descriptors: this.descriptors - this.#before.descriptors }
  }

  #look(): void {
    this.mib = Math.max(this.mib, residentMib(this.#pid))
    this.descriptors = Math.max(this.descriptors, descriptors(this.#pid))
  }
}
