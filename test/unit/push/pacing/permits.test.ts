import { Worker } from 'node:worker_threads'
import { expect } from 'chai'
import fc from 'fast-check'
import { permitWords, reclaimPermits, SharedPermits } from '../../../../src/push/pacing/permits.ts'
import { until } from '../../../harness/until.ts'

const freed = (permits: SharedPermits) => new Promise<void>((resolve) => permits.whenFreed(permits.want(), resolve))

describe('permits that several writers share', () => {
  it('never exceed the maximum, and are reclaimed from dead writers, in any order of events', () => {
    const step = fc.tuple(fc.integer({ min: 0, max: 2 }), fc.constantFrom('acquire', 'release', 'die'))
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 60 }), (most, steps) => {
        const shared = permitWords(3)
        const open = (writer: number) => ({ permits: new SharedPermits(shared, writer, most, () => 0), held: 0 })
        const writers = [0, 1, 2].map(open)
        for (const [index, what] of steps) {
          const writer = writers[index] as ReturnType<typeof open>
          const out = writers.reduce((sum, { held }) => sum + held, 0)
          if (what === 'acquire') {
            const got = writer.permits.acquire()
            expect(got).to.equal(out < most)
            if (got) writer.held++
          } else if (what === 'release' && writer.held > 0) {
            writer.permits.release()
            writer.held--
          } else if (what === 'die') {
            reclaimPermits(shared, index)
            // Actions of the dead writer have no effect.
            expect(writer.permits.acquire()).to.equal(false)
            if (writer.held > 0) writer.permits.release()
            writers[index] = open(index)
          }
        }
      }),
    )
  })

  it('are taken over from a blocked writer', () => {
    let now = 0
    const shared = permitWords(2)
    const [blocked, other] = [0, 1].map((writer) => new SharedPermits(shared, writer, 1, () => now)) as [SharedPermits, SharedPermits]
    expect([blocked.acquire(), other.acquire()]).to.deep.equal([true, false])
    now = 900
    blocked.alive()
    now = 1500
    expect(other.acquire()).to.equal(false)
    now = 2000
    expect(other.acquire()).to.equal(true)
    // A writer that has not asked for a long time has no precedence either.
    blocked.want()
    other.release()
    expect(other.acquire()).to.equal(false)
    now = 4000
    expect(other.acquire()).to.equal(true)
    other.release()
    expect(other.acquire()).to.equal(true)
  })

  it('go to waiting writers before the writer that released them', async () => {
    const shared = permitWords(2)
    const [one, other] = [0, 1].map((writer) => new SharedPermits(shared, writer, 1, () => performance.timeOrigin + performance.now())) as [
      SharedPermits,
      SharedPermits,
    ]
    one.acquire()
    expect(other.acquire()).to.equal(false)
    const waited = freed(other)
    one.release()
    expect(one.acquire()).to.equal(false)
    await waited
    expect(other.acquire()).to.equal(true)
    other.satisfied()
    other.release()
    await freed(one)
    expect(one.acquire()).to.equal(true)
  })

  it('notify a writer at once that waits again while its previous, no longer needed wait is still pending', async () => {
    const shared = permitWords(2)
    const [one, other] = [0, 1].map((writer) => new SharedPermits(shared, writer, 1, () => performance.timeOrigin + performance.now())) as [
      SharedPermits,
      SharedPermits,
    ]
    let notified = 0
    one.acquire()
    other.whenFreed(other.want(), () => notified++)
    other.satisfied()
    other.whenFreed(other.want(), () => notified++)
    one.release()
    await until('the other to be notified', () => notified > 0)
    expect(notified).to.equal(1)
  })

  it('released by a waiting writer go to other waiting writers first, and it is notified after a moment', async () => {
    const shared = permitWords(2)
    // The clock stands still: the releasing writer notices the end of the moment only by the end of its wait.
    const [one, other] = [0, 1].map((writer) => new SharedPermits(shared, writer, 1, () => 0)) as [SharedPermits, SharedPermits]
    let notified = 0
    let whenOneHeard: unknown
    expect([other.acquire(), one.acquire()]).to.deep.equal([true, false])
    other.whenFreed(other.want(), () => notified++)
    one.whenFreed(one.want(), () => {
      whenOneHeard = { notified, acquired: other.acquire() }
    })
    other.release()
    await until('its turn to come', () => notified > 0)
    expect(whenOneHeard).to.deep.equal({ notified: 0, acquired: false })
    expect(other.acquire()).to.equal(true)
  })

  it('are limited across threads, and reclaimed from a killed thread', async () => {
    const [most, threads] = [3, 4]
    const shared = permitWords(threads)
    const out = new Int32Array(new SharedArrayBuffer(16))
    const start = (writer: number) =>
      new Worker(new URL('../../../harness/permit-holder.ts', import.meta.url), { workerData: { shared, writer, most, out: out.buffer } })
    const workers = Array.from({ length: threads }, (_, writer) => start(writer))
    const taken = () => Atomics.load(out, 2)
    await until('them to be at work', () => taken() > 1000)
    for (let round = 0; round < 5; round++) {
      await workers[round % threads]?.terminate()
      reclaimPermits(shared, round % threads)
      workers[round % threads] = start(round % threads)
      const before = taken()
      await until('the others to go on', () => taken() > before + 1000)
    }
    await Promise.all(workers.map((worker) => worker.terminate()))
    expect(Atomics.load(out, 1)).to.be.within(1, most)
    for (let writer = 0; writer < threads; writer++) reclaimPermits(shared, writer)
    const last = new SharedPermits(shared, 0, most, () => 0)
    expect([1, 2, 3, 4].map(() => last.acquire())).to.deep.equal([true, true, true, false])
  })
})
