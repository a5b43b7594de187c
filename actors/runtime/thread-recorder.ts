/** Records profiles of the thread that it is used on, with V8's own profilers. */
import { Session } from 'node:inspector/promises'
import { type ProfileKind, sampling, type ThreadProfile } from '../../protocols/messages/profile.ts'
import { deadlineAfter } from './timers.ts'

/** A recording is dropped when it was not fetched this many milliseconds after its time. */
const keptMs = 10_000

interface Recording {
  readonly kind: ProfileKind
  readonly session: Session
  readonly limit: { cancel(): void }
}

/** Records one profile at a time. */
export class ThreadRecorder {
  #recording: Recording | undefined

  /** Starts to record. A recording that was not fetched is dropped. */
  async start(kind: ProfileKind, seconds: number): Promise<void> {
    this.#end()
    const session = new Session()
    session.connect()
    const limit = deadlineAfter(seconds * 1000 + keptMs, () => this.#end())
    this.#recording = { kind, session, limit }
    if (kind === 'heap') return session.post('HeapProfiler.startSampling', { samplingInterval: sampling.heapBytes })
    await session.post('Profiler.enable')
    await session.post('Profiler.setSamplingInterval', { interval: sampling.cpuMicros })
    await session.post('Profiler.start')
  }

  /** Ends the recording. Resolves with the profile, or with undefined if nothing is recorded. */
  async stop(): Promise<ThreadProfile | undefined> {
    if (!this.#recording) return undefined
    const { kind, session } = this.#recording
    try {
      if (kind === 'heap') return { kind, profile: (await session.post('HeapProfiler.stopSampling')).profile }
      return { kind, profile: (await session.post('Profiler.stop')).profile }
    } finally {
      this.#end()
    }
  }

  #end(): void {
    this.#recording?.limit.cancel()
    this.#recording?.session.disconnect()
    this.#recording = undefined
  }
}
