/** Request and answer between a supervisor and its actors: comlink over a message port. */
import type { MessagePort } from 'node:worker_threads'
import * as comlink from 'comlink'
import nodeEndpoint from 'comlink/dist/esm/node-adapter.mjs'
import { type BoundedQuestions, boundedQuestions, usualDeadline } from '../../protocols/messages/questions.ts'
import { monotonicMs } from './clock.ts'
import { deadlineAfter } from './timers.ts'

/**
 * What bounds an answer. Whoever waits, or passes the question on, looks at it: work that goes on without an asker is lost, and an effect
 * that the asker never hears of is wrong.
 */
export interface Asking {
  /** Aborted when nobody waits for the answer any more: the asker has ended or given up, or the deadline has passed. */
  readonly signal: AbortSignal
  /** What is left until the deadline, in milliseconds. A duration and not a time: threads need not agree on their clocks. */
  restMs(): number
}

/** An asker who waits for any length of time. */
export const patient: Asking = { signal: new AbortController().signal, restMs: () => Number.POSITIVE_INFINITY }

/**
 * The part of a deadline that is kept back each time a question is passed on, in milliseconds, so that whoever answers gives up before the
 * asker does.
 */
const hopMs = 50

/** The other side of a port: answers questions, and is told about those that nobody waits for. */
interface Answering {
  ask(id: number, question: string, restMs: number, details: readonly unknown[]): unknown
  giveUp(id: number): void
}

/** The questions that the other side answers. */
export type Asks = comlink.Remote<Answering>

/** Whether a question is answered with an {@link Asking}. */
const isBounded = (question: string): question is keyof BoundedQuestions => Object.hasOwn(boundedQuestions, question)

/** Answers questions on a port. When the port closes, nobody waits for the open ones any more. */
export function serveAsks(port: MessagePort, answers: Readonly<Record<string, unknown>>): void {
  const open = new Map<number, AbortController>()
  const bounded = async (answer: (...details: unknown[]) => unknown, id: number, restMs: number, details: readonly unknown[]) => {
    const [controller, until] = [new AbortController(), monotonicMs() + restMs]
    const timer = deadlineAfter(restMs, () => controller.abort(new Error('the deadline has passed')))
    open.set(id, controller)
    try {
      return await answer(...details, { signal: controller.signal, restMs: () => Math.max(0, until - monotonicMs()) } satisfies Asking)
    } finally {
      open.delete(id)
      timer.cancel()
    }
  }
  const answering: Answering = {
    ask(id, question, restMs, details) {
      const answer = Object.hasOwn(answers, question) ? answers[question] : undefined
      if (typeof answer !== 'function') throw new Error(`request ${question} is not answered here`)
      return isBounded(question) ? bounded(answer as () => unknown, id, restMs, details) : answer(...details)
    },
    giveUp: (id) => open.get(id)?.abort(new Error('the asker has given up')),
  }
  port.on('close', () => {
    for (const controller of open.values()) controller.abort(new Error('the asker has ended'))
  })
  comlink.expose(answering, nodeEndpoint(port))
}

/** Asks questions on a port. */
export function useAsks(port: MessagePort): Asks {
  return comlink.wrap<Answering>(nodeEndpoint(port))
}

/**
 * The unanswered questions to one actor. A question is removed when it is answered, so that nothing that lives as long as the actor
 * refers to it.
 */
export class OpenQuestions {
  readonly #rejects = new Set<(error: Error) => void>()
  #ended: Error | undefined

  /** Number of unanswered questions. */
  get size(): number {
    return this.#rejects.size
  }

  /** Adds a question by its `reject` function, which is called at once when the actor has already ended. */
  add(reject: (error: Error) => void): void {
    if (this.#ended) reject(this.#ended)
    else this.#rejects.add(reject)
  }

  /** Removes a question that was answered or timed out. */
  delete(reject: (error: Error) => void): void {
    this.#rejects.delete(reject)
  }

  /** Called when the actor has ended: rejects all open questions and every question added later. */
  end(error: Error): void {
    this.#ended = error
    for (const reject of this.#rejects) reject(error)
    this.#rejects.clear()
  }
}

/** The number of the last question of this thread. */
let lastId = 0

/**
 * Asks one question. Rejects when its deadline has passed or the signal of `asking` is aborted, which the other side is told, and as soon
 * as the actor to which the `open` questions belong ends. The deadline is that of the question, or what is left of `asking`.
 */
export async function askWithin<Answer>(
  asks: Asks | undefined,
  question: string,
  details: readonly unknown[],
  { open = new OpenQuestions(), asking = patient }: { open?: OpenQuestions; asking?: Asking } = {},
): Promise<Answer> {
  if (!asks) throw new Error(`request ${question} failed: no actor that answers it is running`)
  const { signal } = asking
  if (signal.aborted) throw new Error(`request ${question} was not sent: nobody waits for its answer`)
  const deadlineMs = Math.min(isBounded(question) ? boundedQuestions[question] : usualDeadline, asking.restMs())
  const id = ++lastId
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const giveUp = (reason: string) => {
    if (isBounded(question)) void asks.giveUp(id)
    reject(new Error(reason))
  }
  const timer = deadlineAfter(deadlineMs, () => giveUp(`no answer to request ${question} within ${Math.round(deadlineMs)} ms`))
  const gone = () => giveUp(`request ${question} was given up: nobody waits for its answer`)
  signal.addEventListener('abort', gone)
  open.add(reject)
  try {
    asks.ask(id, question, Math.max(0, deadlineMs - hopMs), details).then(resolve as (value: unknown) => void, reject)
    return await promise
  } finally {
    open.delete(reject)
    signal.removeEventListener('abort', gone)
    timer.cancel()
  }
}
