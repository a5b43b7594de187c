/** Parts of responses: the resources of one group that a subscription gets, as few chunks, however many there are. */
import { deltaResourceHead } from '../slab/wire.ts'
import type { Entry } from './group.ts'

/** Chunks of many entries, neighbours in memory joined, small ones copied together: few writes, however many resources. */
export function joinChunks(entries: Iterable<Entry>, delta: boolean): Buffer[] {
  const joined: Buffer[] = []
  let small: Buffer[] = []
  const flush = () => {
    if (small.length === 1) joined.push(small[0] as Buffer)
    else if (small.length > 1) joined.push(Buffer.concat(small))
    small = []
  }
  let last: Buffer | undefined
  const add = (chunk: Buffer) => {
    if (last && chunk.buffer === last.buffer && chunk.byteOffset === last.byteOffset + last.length) {
      last = Buffer.from(last.buffer, last.byteOffset, last.length + chunk.length)
      return
    }
    if (last) push(last)
    last = chunk
  }
  const push = (chunk: Buffer) => {
    if (chunk.length < smallChunk) small.push(chunk)
    else {
      flush()
      joined.push(chunk)
    }
  }
  for (const entry of entries) {
    if (delta) add(deltaResourceHead(entry.name, entry.version, entry.length))
    for (const chunk of entry.chunks) add(chunk)
  }
  if (last) push(last)
  flush()
  return joined
}

/** Chunks below this many bytes are cheaper to copy than to write on their own. */
const smallChunk = 16_384
