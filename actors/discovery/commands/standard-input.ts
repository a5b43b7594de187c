/** Standard input of commands that read objects. */
import type { Readable } from 'node:stream'
import { hasNoDocument } from '../../../src/config/yaml-documents.ts'

/** Reads an input whole; undefined: it has more than `most` bytes. */
export async function inputBytes(input: Readable, most: number): Promise<Buffer | undefined> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of input as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > most) return undefined
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

/** Returns a text that was read. Throws an Error when it has no document: a command before it in a pipeline has failed. */
export function withObjects(text: string): string {
  if (hasNoDocument(text)) throw new Error('standard input: has no objects')
  return text
}
