/** Request and answer between a supervisor and its actors: comlink over a message port. */
import type { MessagePort } from 'node:worker_threads'
import * as comlink from 'comlink'
import nodeEndpoint from 'comlink/dist/esm/node-adapter.mjs'
import { deadlineAfter } from './timers.ts'

/** The questions that the other side answers. */
export type Asks = comlink.Remote<Record<string, (...details: unknown[]) => unknown>>

/** Answers questions on a port. */
export function serveAsks(port: MessagePort, answers: Readonly<Record<string, unknown>>): void {
  comlink.expose(answers, nodeEndpoint(port))
}

/** Asks questions on a port. */
export function useAsks(port: MessagePort): Asks {
  return comlink.wrap(nodeEndpoint(port)) as Asks
}

/** Timeout of an answer, in milliseconds. */
const deadlineMs = 5000

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

/** Asks one question. Rejects on timeout, and as soon as the actor to which the `open` questions belong ends. */
export async function askWithin<Answer>(
  asks: Asks | undefined,
  question: string,
  details: readonly unknown[],
  open = new OpenQuestions(),
): Promise<Answer> {
  const answer = asks?.[question]
  if (!answer) throw new Error(`request ${question} failed: no actor that answers it is running`)
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const timer = deadlineAfter(deadlineMs, () => reject(new Error(`no answer to request ${question} within ${deadlineMs} ms`)))
  open.add(reject)
  try {
    answer(...details).then(resolve as (value: unknown) => void, reject)
    return await promise
  } finally {
    open.delete(reject)
    timer.cancel()
  }
}
