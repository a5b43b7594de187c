import { Writable } from 'node:stream'
import { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { SendQueue } from '../../actors/agent/xds-relay/send-queue.ts'
import { until } from '../harness/until.ts'

/** A stream that accepts a piece on command. */
class Tap extends Writable {
  readonly pieces: number[] = []
  #next: (() => void)[] = []

  constructor() {
    super({ highWaterMark: 1 })
  }

  override _write(bytes: Buffer, _: string, done: () => void): void {
    this.pieces.push(bytes.length)
    this.#next.push(done)
  }

  /** Accepts the oldest pending piece. */
  take(): void {
    this.#next.shift()?.()
  }
}

describe('the send queue of a stream', () => {
  const queueOf = (longestMs: number) => {
    const stream = new Tap()
    const heard: string[] = []
    const queue = new SendQueue(stream, longestMs, { hasRoom: () => heard.push('room'), stoodStill: () => heard.push('still') })
    return { stream, heard, queue }
  }

  it('sends in pieces, and reports room again when most of the data has left', async () => {
    const { stream, heard, queue } = queueOf(60_000)
    expect(queue.write(Buffer.alloc(200_000))).to.equal(true)
    expect(queue.write(Buffer.alloc(70_000))).to.equal(false)
    for (let left = 270_000; left > 65_536; left -= stream.pieces.at(-1) as number) {
      expect(heard).to.deep.equal([])
      stream.take()
      await new Promise((resolve) => setImmediate(resolve))
    }
    await until('room', () => heard.length > 0)
    expect([heard, Math.max(...stream.pieces)]).to.deep.equal([['room'], 16_384])
    expect(queue.write(Buffer.alloc(10))).to.equal(true)
    stream.destroy()
  })

  describe('by a clock of the test', () => {
    let now = 0
    beforeEach(() => {
      mock.timers.enable({ apis: ['setTimeout'] })
      mock.method(process as { hrtime: () => [number, number] }, 'hrtime', () => [0, now * 1e6])
    })
    afterEach(() => {
      mock.timers.reset()
      mock.restoreAll()
    })
    const pass = async (ms: number) => {
      now += ms
      mock.timers.tick(ms)
      await turn()
      await turn()
    }

    it('reports standstill if nothing leaves for its timeout, however slowly data left before', async () => {
      const { stream, heard, queue } = queueOf(1000)
      queue.write(Buffer.alloc(100_000))
      for (let piece = 0; piece < 5; piece++) {
        await pass(900)
        stream.take()
        await turn()
      }
      expect(heard).to.deep.equal([])
      await pass(900)
      expect(heard).to.deep.equal([])
      await pass(100)
      expect(heard).to.deep.equal(['still'])
      stream.destroy()
    })

    it('reports no standstill after everything has left, nor after the stream was destroyed', async () => {
      const { stream, heard, queue } = queueOf(50)
      queue.write(Buffer.alloc(10))
      stream.take()
      const other = queueOf(50)
      other.queue.write(Buffer.alloc(10))
      other.stream.destroy()
      for (let time = 0; time < 10; time++) await pass(50)
      expect([heard, other.heard]).to.deep.equal([[], []])
      expect(other.queue.write(Buffer.alloc(1_000_000)), 'what is gone takes everything').to.equal(true)
      stream.destroy()
    })
  })
})
