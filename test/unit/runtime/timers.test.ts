import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { mock } from 'node:test'
import { expect } from 'chai'
import { checkEvery, deadlineAfter, every, after as runAfter, within } from '../../../actors/runtime/timers.ts'

describe('timers', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
  afterEach(() => mock.timers.reset())
  const longest = 2 ** 31 - 1

  it('wait as long as requested, beyond the maximum delay of Node', () => {
    let runs = 0
    runAfter(longest + 1000, () => runs++)
    mock.timers.tick(longest)
    expect(runs).to.equal(0)
    mock.timers.tick(999)
    expect(runs).to.equal(0)
    mock.timers.tick(1)
    expect(runs).to.equal(1)
  })

  it('bound a wait, which ends with what is waited for, fails with it or is over', async () => {
    const ends: string[] = []
    const never = Promise.withResolvers<void>()
    const waits = [
      within(1000, Promise.resolve()).then(() => ends.push('done')),
      within(1000, Promise.reject(new Error('failed'))).then(() => ends.push('failed')),
      within(1000, never.promise).then(() => ends.push('over')),
    ]
    await Promise.all(waits.slice(0, 2))
    expect(ends.toSorted()).to.deep.equal(['done', 'failed'])
    mock.timers.tick(1000)
    await Promise.all(waits)
    expect(ends.at(-1)).to.equal('over')
  })

  it('never run after an infinite delay, and run at once after a negative one', () => {
    let runs = 0
    runAfter(Number.POSITIVE_INFINITY, () => runs++)
    mock.timers.tick(longest)
    expect(runs).to.equal(0)
    runAfter(-5, () => runs++)
    mock.timers.tick(0)
    expect(runs).to.equal(1)
  })

  it('repeat until they are cancelled, also from within their callback', () => {
    let runs = 0
    const timer = every(10, () => {
      if (++runs === 3) timer.cancel()
    })
    for (let tick = 0; tick < 10; tick++) mock.timers.tick(10)
    expect(runs).to.equal(3)
  })

  it('reject a delay that is not a number', () => {
    expect(() => runAfter(Number.NaN, () => {})).to.throw(RangeError)
  })
})

describe('a deadline for a peer', () => {
  it('fires in time on an idle thread', async () => {
    const seen: string[] = []
    deadlineAfter(5, () => seen.push('deadline')).unref()
    await new Promise<void>((resolve) => runAfter(500, resolve))
    expect(seen).to.deep.equal(['deadline'])
  })

  it('is checked after input that arrived while the thread was blocked, and can be cancelled until then', async () => {
    const server = createServer((socket) => socket.on('data', () => (heard = true)).on('error', () => undefined)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    let heard = false
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    await once(client, 'connect')
    const seen: string[] = []
    await new Promise<void>((resolve) => {
      const checks = checkEvery(1, () => {
        seen.push(`check ${heard}`)
        checks.cancel()
      })
      const cancelled = deadlineAfter(1, () => seen.push('cancelled'))
      runAfter(1, () => {
        seen.push(`timer ${heard}`)
        cancelled.cancel()
      })
      deadlineAfter(1, () => {
        seen.push(`deadline ${heard}`)
        resolve()
      })
      client.write('a sign of life')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
    })
    client.destroy()
    server.close()
    expect(seen).to.deep.equal(['timer false', 'check true', 'deadline true'])
  })
})
