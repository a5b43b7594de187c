/** Task of a fetching thread for tests: does what its URL says. */
import { type FetchAnswer, type FetchTask, marks } from '../../../actors/http/fetch-task.ts'

export default async function fetch({ id, url, shared }: FetchTask): Promise<FetchAnswer> {
  const words = new Int32Array(shared)
  const [what, how] = url.split(':')
  if (what === 'block' || what === 'die') {
    Atomics.add(words, marks.times, 1)
    Atomics.store(words, marks.fetch, id)
  }
  while (what === 'block') {}
  if (what === 'die') throw process.exit(1)
  if (what === 'slow') await new Promise(() => {})
  return what === 'fail' ? { fault: 'refused', blockedMs: 0 } : { document: url, blockedMs: what === 'cost' ? Number(how) : 0 }
}
