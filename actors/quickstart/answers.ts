/** Waits for answers of servers on this machine. */
import { callLocal, type LocalAnswer } from '../http/local-call.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { pause } from '../runtime/timers.ts'

/** How long a server may take until it answers, how long one answer may take, and the time between two requests, in milliseconds. */
const times = { all: 120_000, one: 5000, between: 200 }

/** What is waited for. */
export interface Awaited {
  readonly port: number
  readonly path: string
  readonly status: number
}

/** Gets a page. Rejects when there is no answer. */
export const get = (port: number, path: string): Promise<LocalAnswer> => callLocal({ port, method: 'GET', path }, times.one)

/** Resolves when a page answers with the status, or the signal is aborted. Rejects with the last answer when that takes too long. */
export async function untilAnswered({ port, path, status }: Awaited, signal: AbortSignal): Promise<void> {
  const deadline = monotonicMs() + times.all
  while (!signal.aborted) {
    const answer = await get(port, path).catch((error: Error) => error)
    if ('status' in answer && answer.status === status) return
    if (monotonicMs() > deadline)
      throw new Error(`http://127.0.0.1:${port}${path} does not answer with ${status} within ${times.all / 1000} s: ${shownAnswer(answer)}`)
    await pause(times.between)
  }
}

/** Returns an answer in one line: its status and the beginning of its text, or why there is none. */
export const shownAnswer = (answer: LocalAnswer | Error): string =>
  'status' in answer ? `${answer.status} ${answer.body.trim().slice(0, 200)}` : answer.message
