/** Records profiles of the threads of the service. */
import { type ProfileKind, profileAsks, type ThreadProfile } from '../../../protocols/messages/profile.ts'
import { Page } from '../../http/page-server.ts'
import { monotonicMs, wallClockMs } from '../../runtime/clock.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import { ThreadRecorder } from '../../runtime/thread-recorder.ts'
import { pause } from '../../runtime/timers.ts'

const mainThread = 'main'

/** Records profiles of the main thread and of all threads of actors, one at a time. */
export class Profiles {
  readonly #supervisor: Supervisor
  #isRecording = false

  constructor(supervisor: Supervisor) {
    this.#supervisor = supervisor
  }

  /** Resolves with a profile of the next seconds in the format of pprof; with a page that says why there is none if one is recorded already. */
  async record(kind: ProfileKind, seconds: number): Promise<Page> {
    if (this.#isRecording) return new Page('a profile is being recorded already', undefined, 503)
    this.#isRecording = true
    try {
      const [startedAt, since] = [wallClockMs(), monotonicMs()]
      const threads = await this.#threads(kind, seconds)
      const { pprofOf } = await import('./pprof.ts')
      const body = await pprofOf({ kind, threads, startedAt, durationMs: monotonicMs() - since })
      return new Page(body, 'application/octet-stream', 200, { 'Content-Disposition': `attachment; filename="${kind}.pb.gz"` })
    } finally {
      this.#isRecording = false
    }
  }

  async #threads(kind: ProfileKind, seconds: number): Promise<Map<string, ThreadProfile>> {
    const own = new ThreadRecorder()
    const names = this.#supervisor.states().map(({ name }) => name)
    const ask = <Answer>(question: string, ...details: unknown[]) =>
      Promise.all(names.map((name) => this.#supervisor.ask<Answer | undefined>(name, question, ...details).catch(() => undefined)))
    // Actors on the main thread do not answer: it is recorded once.
    await Promise.all([own.start(kind, seconds), ask(profileAsks.start, kind, seconds)])
    await pause(seconds * 1000)
    const [main, others] = await Promise.all([own.stop(), ask<ThreadProfile>(profileAsks.stop)])
    const all = [[mainThread, main] as const, ...names.map((name, index) => [name, others[index]] as const)]
    return new Map(all.flatMap(([name, profile]) => (profile ? [[name, profile]] : [])))
  }
}
