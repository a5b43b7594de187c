/** Reads request and response bodies up to a maximum size. */
import type { IncomingMessage } from 'node:http'

/** Thrown for a body that exceeds the maximum size. */
export class BodyTooLarge extends Error {}

/**
 * Reads a body of at most `most` bytes as UTF-8 text. Rejects with {@link BodyTooLarge} when it is longer, and with another error when it
 * is incomplete.
 */
export async function boundedBody(message: IncomingMessage, most: number): Promise<string> {
  return (await boundedBytes(message, most)).toString()
}

/** Reads a body of at most `most` bytes. Rejects as {@link boundedBody}, and with what `take` throws, which is called with the size of each piece. */
export async function boundedBytes(message: IncomingMessage, most: number, take?: (bytes: number) => void): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of message as AsyncIterable<Buffer>) {
    if ((length += chunk.length) > most) throw new BodyTooLarge(`more than ${most} bytes`)
    take?.(chunk.length)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
