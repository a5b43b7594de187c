import { expect } from 'chai'
import fc from 'fast-check'
import { BadFrame, FrameBudget, FrameBuffers, FrameReader, messageFrame } from '../../../src/xds/stream/frames.ts'
import { cpuMs } from '../../harness/own-time.ts'

const reader = (limit: number) => new FrameReader(limit, new FrameBuffers())

describe('messages out of frames', () => {
  it('are the same however they are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 6 }), fc.array(fc.integer({ min: 1, max: 900 })), (messages, cuts) => {
        const stream = Buffer.concat(messages.map((message) => messageFrame(message)))
        const buffers = new FrameBuffers()
        const reader = new FrameReader(3000, buffers)
        const taken: Buffer[] = []
        let at = 0
        for (const cut of [...cuts, stream.length]) {
          const end = Math.min(at + cut, stream.length)
          // Who stops after each message goes on with the bytes that were not taken.
          while (at < end)
            at += reader.take(stream.subarray(at, end), (message) => {
              taken.push(Buffer.from(message))
              // What another stream puts together meanwhile does not disturb the message that is being read.
              buffers.take(message.length).fill(255)
              return cut % 2 === 0
            })
        }
        expect(taken.map((message) => message.toString('hex'))).to.deep.equal(messages.map((message) => Buffer.from(message).toString('hex')))
        expect(reader.expected).to.equal(undefined)
      }),
    )
  })

  it('are refused when too large or compressed, as soon as the prefix has come', () => {
    expect(() => reader(10).take(Buffer.from([0, 0, 0, 0, 11]), () => undefined)).to.throw(BadFrame, 'larger than max')
    expect(() => reader(10).take(Buffer.from([1, 0, 0, 0, 1, 0]), () => undefined)).to.throw(BadFrame, 'compressed')
  })

  it('cost as much as their bytes, one at a time too', () => {
    const stream = messageFrame(Buffer.alloc(1_000_000, 7))
    const one = reader(1_000_000)
    let length = 0
    const spent = cpuMs(() => {
      for (let at = 0; at < stream.length; at++) one.take(stream.subarray(at, at + 1), (message) => (length = message.length))
    })
    // Quadratic work took minutes for this many.
    expect(spent).to.be.below(3000)
    expect(length).to.equal(1_000_000)
  })

  it('are given the memory of what has come, not of what was announced', () => {
    const buffers = new FrameBuffers()
    const announced = Buffer.from([0, 0, 64, 0, 0, 1, 2, 3, 4, 5, 6])
    const before = process.memoryUsage().arrayBuffers
    const readers = Array.from({ length: 1000 }, () => {
      const made = new FrameReader(4_194_304, buffers)
      made.take(announced, () => undefined)
      return made
    })
    expect(readers.map((made) => made.expected)).to.include(4_194_304)
    readers[0]?.take(Buffer.alloc(100_000), () => undefined)
    expect(process.memoryUsage().arrayBuffers - before).to.be.below(64_000_000)
  })
})

describe('the budget of small frames', () => {
  it('lets a message of one-byte frames pass at once, then so many a second', () => {
    let now = 0
    const budget = new FrameBudget(now)
    const clock = () => now
    expect(Array.from({ length: 65_535 }, () => budget.spend(1, clock)).some((wait) => wait > 0)).to.equal(false)
    expect(budget.spend(1, clock)).to.equal(100)
    expect(budget.spend(16_384, clock)).to.equal(0)
    let taken = 0
    for (; now < 10_000; now += 100) for (; budget.spend(1, clock) === 0; taken++);
    expect(taken).to.be.within(95_000, 105_000)
  })
})
