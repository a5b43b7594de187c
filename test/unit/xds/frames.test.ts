import { expect } from 'chai'
import fc from 'fast-check'
import { BadFrame, FrameBudget, FrameBuffers, FrameReader, messageFrame } from '../../../src/xds/stream/frames.ts'
import { cpuMs } from '../../harness/own-time.ts'

const reader = (limit: number) => new FrameReader(limit, new FrameBuffers())

describe('gRPC messages from HTTP/2 data', () => {
  it('are the same however the bytes are split', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 6 }), fc.array(fc.integer({ min: 1, max: 900 })), (messages, cuts) => {
        const stream = Buffer.concat(messages.map((message) => messageFrame(message)))
        const buffers = new FrameBuffers()
        const reader = new FrameReader(3000, buffers)
        const taken: Buffer[] = []
        let at = 0
        for (const cut of [...cuts, stream.length]) {
          const end = Math.min(at + cut, stream.length)
          // A reader that stops after each message continues with the bytes that were not read.
          while (at < end)
            at += reader.take(stream.subarray(at, end), (message) => {
              taken.push(Buffer.from(message))
              // Messages that another stream assembles meanwhile do not disturb this one.
              buffers.take(message.length).fill(255)
              return cut % 2 === 0
            })
        }
        expect(taken.map((message) => message.toString('hex'))).to.deep.equal(messages.map((message) => Buffer.from(message).toString('hex')))
        expect(reader.expected).to.equal(undefined)
      }),
    )
  })

  it('are rejected if they are too large or compressed, as soon as the prefix has arrived', () => {
    expect(() => reader(10).take(Buffer.from([0, 0, 0, 0, 11]), () => undefined)).to.throw(BadFrame, 'larger than max')
    expect(() => reader(10).take(Buffer.from([1, 0, 0, 0, 1, 0]), () => undefined)).to.throw(BadFrame, 'compressed')
  })

  it('take time linear in their size, also byte by byte', () => {
    const stream = messageFrame(Buffer.alloc(1_000_000, 7))
    const one = reader(1_000_000)
    let length = 0
    const spent = cpuMs(() => {
      for (let at = 0; at < stream.length; at++) one.take(stream.subarray(at, at + 1), (message) => (length = message.length))
    })
    // Quadratic work took minutes for this size.
    expect(spent).to.be.below(3000)
    expect(length).to.equal(1_000_000)
  })

  it('allocate memory for the bytes that arrived, not for the announced length', () => {
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

describe('the budget for small frames', () => {
  it('admits one message of one-byte frames at once, then a limited number per second', () => {
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
