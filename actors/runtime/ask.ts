/** Questions between a supervisor and its actors that expect an answer: comlink over a message port. */
import type { MessagePort } from 'node:worker_threads'
import * as comlink from 'comlink'
import nodeEndpoint from 'comlink/dist/esm/node-adapter.mjs'
import { after } from './timers.ts'

/** The questions the other side answers. */
export type Asks = comlink.Remote<Record<string, (...details: unknown[]) => unknown>>

/** Answers questions on a port. */
export function serveAsks(port: MessagePort, answers: Readonly<Record<string, unknown>>): void {
  comlink.expose(answers, nodeEndpoint(port))
}

/** Asks questions on a port. */
export function useAsks(port: MessagePort): Asks {
  return comlink.wrap(nodeEndpoint(port)) as Asks
}

/** Longest time that an answer is waited for, in milliseconds. */
const deadlineMs = 5000

/** Asks one question. Rejects when nobody answers in time, and at once when `ended` does: the other side is gone, and the question with it. */
export async function askWithin<Answer>(
  asks: Asks | undefined,
  question: string,
  details: readonly unknown[],
  ended?: Promise<never>,
): Promise<Answer> {
  const answer = asks?.[question]
  if (!answer) throw new Error(`nobody to ask ${question}`)
  const late = Promise.withResolvers<never>()
  const timer = after(deadlineMs, () => late.reject(new Error(`no answer to ${question} within ${deadlineMs} ms`)))
  try {
    return (await Promise.race([answer(...details), late.promise, ...(ended ? [ended] : [])])) as Answer
  } finally {
    timer.cancel()
  }
}
