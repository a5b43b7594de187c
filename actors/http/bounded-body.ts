/** Bodies of requests and answers, no larger than they may be. */
import type { IncomingMessage } from 'node:http'

/** A body that is larger than it may be. */
export class BodyTooLarge extends Error {}

/** Reads a body of at most so many bytes as text. Rejects with {@link BodyTooLarge} when there are more, and when it breaks off. */
export async function boundedBody(message: IncomingMessage, most: number): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of message as AsyncIterable<Buffer>) {
    if ((length += chunk.length) > most) throw new BodyTooLarge(`more than ${most} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
