/** Questions between a supervisor and its actors that expect an answer: comlink over a message port. */
import type { MessagePort } from 'node:worker_threads'
import * as comlink from 'comlink'
import nodeEndpoint from 'comlink/dist/esm/node-adapter.mjs'

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

/** Asks one question. Rejects when nobody answers within the deadline: the other side may have died with the question. */
export async function askWithin<Answer>(asks: Asks | undefined, question: string, details: readonly unknown[], deadlineMs = 5000): Promise<Answer> {
  const answer = asks?.[question]
  if (!answer) throw new Error(`nobody to ask ${question}`)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer to ${question} within ${deadlineMs} ms`)), deadlineMs)
  })
  try {
    return (await Promise.race([answer(...details), late])) as Answer
  } finally {
    clearTimeout(timer)
  }
}
