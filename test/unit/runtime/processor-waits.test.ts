import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { expect } from 'chai'
import { processorWaitMs, systemThreadId } from '../../../actors/runtime/processor-waits.ts'
import { until } from '../../harness/until.ts'

const module = new URL('../../../actors/runtime/processor-waits.ts', import.meta.url).href

/** A thread that says its id and then `rest`. */
function startThread(rest: string): { readonly worker: Worker; readonly id: Promise<number> } {
  const code = `import(${JSON.stringify(module)}).then(({ systemThreadId }) => {
    require('node:worker_threads').parentPort.postMessage(systemThreadId())
    ${rest}
  })`
  const worker = new Worker(code, { eval: true })
  return { worker, id: new Promise((resolve) => worker.once('message', resolve)) }
}

describe('the time that a thread waits for a processor', () => {
  before(function () {
    if (process.platform !== 'linux') this.skip()
  })

  it('grows for threads that have to share one, and not for a thread that sleeps', async () => {
    const sleeping = startThread('setInterval(() => {}, 1e9)')
    const spinning = Array.from({ length: 2 * availableParallelism() + 1 }, () => startThread('for (;;);'))
    try {
      const ids = await Promise.all(spinning.map(({ id }) => id))
      const asleep = await sleeping.id
      expect(new Set([systemThreadId(), asleep, ...ids]).size).to.equal(ids.length + 2)
      const waited = (id: number) => processorWaitMs(id) ?? 0
      const before = ids.map(waited)
      const still = waited(asleep)
      await until('each to have waited', () => ids.every((id, index) => waited(id) - (before[index] as number) > 100))
      expect(waited(asleep) - still).to.be.lessThan(100)
    } finally {
      await Promise.all([sleeping, ...spinning].map(({ worker }) => worker.terminate()))
    }
  })

  it('is not known of a thread that has ended', () => {
    expect(processorWaitMs(2 ** 31 - 1)).to.equal(undefined)
  })
})
