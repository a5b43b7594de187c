import { runInNewContext } from 'node:vm'
import { Worker } from 'node:worker_threads'
import { expect } from 'chai'
import { until } from '../../harness/until.ts'

/** A thread that holds 20 MB and drops them on command, works or idles, and reports its heap usage. */
const script = `
const { parentPort, workerData } = require('node:worker_threads')
const { getHeapStatistics } = require('node:v8')
let busy, rounds = 0, kept, base
const say = () => parentPort.postMessage({ used: getHeapStatistics().used_heap_size, buffers: process.memoryUsage().arrayBuffers, rounds })
const work = () => {
  const end = performance.now() + 10
  while (performance.now() < end);
  rounds++
}
parentPort.on('message', (command) => {
  if (command === 'fill') kept = Array.from({ length: 300_000 }, (_, index) => ({ index, next: [index] }))
  if (command === 'fill a little') kept = Array.from({ length: 60_000 }, (_, index) => ({ index, next: [index] }))
  if (command === 'fill with buffers') kept = Array.from({ length: 300 }, () => Buffer.alloc(65_536))
  if (command === 'fill for good') base = Array.from({ length: 300_000 }, (_, index) => ({ index, next: [index] }))
  if (command === 'drop') kept = undefined
  if (command === 'leave garbage') Array.from({ length: 300_000 }, (_, index) => ({ index, next: [index] }))
  if (command === 'work') busy = setInterval(work, 20)
  if (command === 'work a little') busy = setInterval(work, 100)
  if (command === 'rest') clearInterval(busy)
  say()
})
import(workerData.module).then(({ collectGarbageWhenIdle }) => {
  collectGarbageWhenIdle(100, workerData.most && { idle: workerData.most, littleWork: workerData.most })
  say()
})`

describe('garbage collection of an idle thread', () => {
  const workers: Worker[] = []
  after(() => Promise.all(workers.map((worker) => worker.terminate())))
  async function thread(most?: number) {
    const module = new URL('../../../actors/runtime/idle-collection.ts', import.meta.url).href
    const worker = new Worker(script, { eval: true, workerData: { module, most } })
    workers.push(worker)
    let last: { used: number; buffers: number; rounds: number } | undefined
    worker.on('message', (message) => (last = message))
    await until('the thread', () => last !== undefined)
    return async (command: string) => {
      last = undefined
      worker.postMessage(command)
      await until('the answer', () => last !== undefined)
      return last as unknown as { used: number; buffers: number; rounds: number }
    }
  }
  const mib = 2 ** 20

  it('frees garbage each time the thread becomes idle', async () => {
    const ask = await thread()
    for (let round = 0; round < 2; round++) {
      const { rounds } = await ask('work')
      await ask('fill')
      await ask('drop')
      // Collections of V8 itself in between do not matter.
      await until('some looks at it', async () => (await ask('used')).rounds > rounds + 50)
      await ask('rest')
      await until('the garbage to be collected', async () => (await ask('used')).used < 10 * mib)
    }
  })

  it('frees small amounts too if the thread stays idle', async () => {
    const ask = await thread()
    await ask('fill')
    await ask('drop')
    await until('a collection', async () => (await ask('used')).used < 10 * mib)
    const { used } = await ask('fill a little')
    await ask('drop')
    await until('the garbage to be collected', async () => (await ask('used')).used < used - 3 * mib)
  })

  it('frees much garbage of a thread with little work, sooner than V8', async () => {
    const ask = await thread()
    await ask('work a little')
    const { used, rounds } = await ask('leave garbage')
    expect(used).to.be.above(20 * mib)
    await until('the garbage to be collected', async () => (await ask('used')).used < 10 * mib)
    expect((await ask('used')).rounds - rounds).to.be.below(40)
  })

  it('is skipped while the garbage is less than a quarter of what the last collection left', async () => {
    const [large, small] = [await thread(), await thread()]
    await large('fill for good')
    for (const ask of [large, small]) {
      const { used } = await ask('fill')
      await ask('drop')
      await until('a collection', async () => (await ask('used')).used < used - 10 * mib)
      await ask('fill a little')
    }
    const { used } = await large('drop')
    const { used: before } = await small('drop')
    await until('the small heap to be collected', async () => (await small('used')).used < before - 3 * mib)
    expect((await large('used')).used).to.be.above(used - 3 * mib)
  })

  it('frees buffers outside of the heap', async () => {
    const ask = await thread()
    // The first idle period frees the garbage of the start.
    await ask('fill')
    await ask('drop')
    await until('a collection', async () => (await ask('used')).used < 10 * mib)
    const { buffers } = await ask('used')
    expect((await ask('fill with buffers')).buffers).to.be.above(buffers + 15 * mib)
    await ask('drop')
    await until('the buffers to be collected', async () => (await ask('used')).buffers < buffers + mib)
  })

  it('leaves the garbage collector available to other threads', async () => {
    const ask = await thread()
    await ask('fill')
    await ask('drop')
    await until('the garbage to be collected', async () => (await ask('used')).used < 10 * mib)
    expect(runInNewContext('typeof gc')).to.equal('function')
  })

  it('is skipped if the heap is so large that a collection would block the thread', async () => {
    const ask = await thread(12 * mib)
    const idle = await thread()
    for (const one of [ask, idle]) await one('fill')
    const [{ used }] = [await ask('drop'), await idle('drop')]
    await until('another to be collected', async () => (await idle('used')).used < 10 * mib)
    expect((await ask('used')).used).to.be.at.least(used)
  })
})
