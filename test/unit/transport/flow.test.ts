import { expect } from 'chai'
import fc from 'fast-check'
import { FleetPace } from '../../../src/transport/fleet-pace.ts'
import { SessionFlow, type StreamFlow } from '../../../src/transport/flow.ts'
import { SliceCursor } from '../../../src/transport/slice-cursor.ts'

interface Handed {
  readonly bytes: number
  readonly accepted: (failed: boolean) => void
}

/** A connection whose peer accepts as much as the test lets it. */
function connection(options: { maxPieces?: number; standstillMs?: number; pace?: FleetPace } = {}) {
  let now = 0
  let looks = 0
  const wire = {
    bytesWritten: 0,
    bytesRead: 0,
    granted: 1_000_000,
    get window() {
      looks++
      return wire.granted
    },
    probes: 0,
    probe: () => void wire.probes++,
  }
  const heard = { busy: 0, dead: 0 }
  const pace = options.pace ?? new FleetPace(options.standstillMs ?? 5000)
  const limits = { pace, maxPieces: options.maxPieces ?? 1, now: () => now }
  const session = new SessionFlow(wire, limits, { busy: () => heard.busy++, dead: () => heard.dead++ })
  const open = () => {
    const handed: Handed[] = []
    const done: boolean[] = []
    const ends: string[] = []
    const flow: StreamFlow = session.open({
      send: (piece, accepted) => handed.push({ bytes: piece.reduce((sum, part) => sum + part.length, 0), accepted }),
      stoodStill: (_, atBoundary) => ends.push(atBoundary ? 'status' : 'reset'),
    })
    const stream = {
      flow,
      handed,
      done,
      ends,
      write: (bytes: number) => flow.write([Buffer.alloc(bytes)], (failed) => done.push(failed)),
      /** The kernel accepts the oldest piece. */
      accept() {
        const piece = handed.shift()
        wire.bytesWritten += piece?.bytes ?? 0
        piece?.accepted(false)
        return piece?.bytes ?? 0
      },
    }
    return stream
  }
  const pass = (ms: number, tick = 250) => {
    for (let left = ms; left > 0; left -= tick) {
      now += tick
      session.charge(tick)
    }
  }
  return { session, wire, heard, open, pass, looked: () => looks }
}

describe('pieces of responses', () => {
  it('are views that add up to the whole message', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 8 }), fc.integer({ min: 1, max: 50 }), (parts, most) => {
        const cursor = new SliceCursor(parts.map((part) => Buffer.from(part)))
        const whole = Buffer.concat(parts)
        const taken: Buffer[] = []
        while (cursor.remaining > 0) {
          const before = cursor.remaining
          const piece = Buffer.concat(cursor.take(most))
          expect(piece.length).to.equal(Math.min(most, before))
          taken.push(piece)
        }
        expect(Buffer.concat(taken).equals(whole)).to.equal(true)
        expect(cursor.take(most)).to.deep.equal([])
      }),
    )
  })

  it('are sent one after another, and grow to 1 MiB while they are accepted promptly', () => {
    const { open, heard, pass } = connection()
    const stream = open()
    stream.write(4_100_000)
    expect(heard.busy).to.equal(1)
    const next = () => {
      expect(stream.handed).to.have.length(1)
      return stream.accept()
    }
    expect([next(), next(), next()]).to.deep.equal([262_144, 524_288, 1_048_576])
    pass(1000)
    expect([next(), next(), next(), next()]).to.deep.equal([1_048_576, 262_144, 524_288, 429_984])
    expect([stream.handed, stream.done]).to.deep.equal([[], [false]])
  })

  it('on trial are limited to a byte budget over several responses; the rest is sent after the trial', () => {
    const { open, heard, pass } = connection()
    const stream = open()
    let passed = 0
    stream.flow.beginTrial(100_000, () => passed++)
    stream.flow.beginTrial(5, () => (passed += 100))
    stream.write(30_000)
    stream.write(1_000_000)
    expect([stream.accept(), stream.handed.map(({ bytes }) => bytes), passed]).to.deep.equal([30_000, [70_000], 0])
    stream.accept()
    expect([passed, stream.handed, stream.done, stream.flow.isBusy, stream.flow.isAtBoundary]).to.deep.equal([1, [], [false], false, false])
    // The server itself holds the rest back: no standstill is charged and the window is not queried.
    pass(60_000)
    expect([stream.ends, stream.flow.stillMs]).to.deep.equal([[], 0])
    const before = heard.busy
    stream.flow.endTrial()
    expect([heard.busy, stream.handed.length, stream.flow.isBusy]).to.deep.equal([before + 1, 1, true])
    while (stream.handed.length > 0) stream.accept()
    expect([stream.done, passed]).to.deep.equal([[false, false], 1])
    // From then on standstill is charged again.
    stream.write(1000)
    pass(6000)
    expect(stream.ends).to.deep.equal(['reset'])
  })

  it('on trial are sent to the end of the response when the stream finishes', () => {
    const { open } = connection()
    const stream = open()
    stream.flow.beginTrial(1000, () => undefined)
    stream.write(300_000)
    stream.accept()
    let finished = false
    stream.flow.finish(() => (finished = true))
    while (stream.handed.length > 0) stream.accept()
    expect([stream.done, finished]).to.deep.equal([[false], true])
  })

  it('that are accepted count as progress: the window is queried only for a stream without accepted pieces', () => {
    const { open, pass, looked } = connection()
    const stream = open()
    const before = looked()
    stream.write(10_000_000)
    for (let round = 0; round < 10; round++) {
      pass(250)
      stream.accept()
    }
    // A tick in which a piece was accepted counts as progress. After the next tick without any, the window is queried.
    pass(500)
    expect(looked()).to.equal(before)
    pass(250)
    expect(looked()).to.equal(before + 1)
  })

  it('start small on a shared connection, and grow while they are accepted promptly', () => {
    const { open, pass } = connection()
    const [stream] = [open(), open()]
    stream.write(2_000_000)
    expect([1, 2, 3, 4, 5, 6].map(() => stream.accept())).to.deep.equal([16_384, 32_768, 65_536, 131_072, 262_144, 262_144])
    pass(1000)
    expect([stream.accept(), stream.accept()]).to.deep.equal([262_144, 16_384])
  })

  it('are limited in total for a connection, and waiting streams continue in turn', () => {
    const { open } = connection()
    const streams = Array.from({ length: 100 }, open)
    for (const stream of streams) stream.write(100_000)
    const inFlight = () => streams.flatMap((stream) => stream.handed).reduce((sum, piece) => sum + piece.bytes, 0)
    expect(inFlight()).to.be.within(1_000_000, 1_100_000)
    for (let round = 0; round < 20; round++) for (const stream of streams) if (stream.handed.length > 0) stream.accept()
    expect(streams.map((stream) => stream.done)).to.deep.equal(streams.map(() => [false]))
  })

  it('over TLS are sent two at a time, and complete in order', () => {
    const { open } = connection({ maxPieces: 2 })
    const [stream] = [open(), open()]
    stream.write(20_000)
    stream.write(10)
    expect(stream.handed.map(({ bytes }) => bytes)).to.deep.equal([16_384, 3616])
    while (stream.handed.length > 0) stream.accept()
    expect(stream.done).to.deep.equal([false, false])
  })

  it('of a started message are sent to its end before the stream finishes; queued messages are not', () => {
    const { open } = connection()
    const [stream] = [open(), open()]
    stream.write(50_000)
    stream.write(10)
    stream.accept()
    let finished = false
    stream.flow.finish(() => (finished = true))
    expect([finished, stream.done]).to.deep.equal([false, [true]])
    stream.accept()
    stream.accept()
    expect([finished, stream.done]).to.deep.equal([true, [true, false]])
  })

  it('fail all queued messages of a stream that failed or closed', () => {
    const { open, session } = connection()
    for (const end of [
      (stream: ReturnType<typeof open>) => stream.handed[0]?.accepted(true),
      (stream: ReturnType<typeof open>) => session.close(stream.flow),
    ]) {
      const stream = open()
      stream.write(50_000)
      stream.write(10)
      end(stream)
      expect(stream.done).to.deep.equal([true, true])
      stream.write(10)
      expect(stream.done).to.deep.equal([true, true, true])
    }
  })
})

describe('a stream at standstill', () => {
  it('is reset in the middle of a message after the send timeout, with the connection if its peer is silent', () => {
    const { open, pass, heard, wire } = connection()
    const [stream] = [open(), open()]
    stream.write(50_000)
    stream.accept()
    pass(4750)
    expect([stream.ends, wire.probes]).to.deep.equal([[], 1])
    pass(1000)
    expect([stream.ends, stream.done, heard.dead]).to.deep.equal([['reset'], [true], 1])
  })

  it('is reset although the peer answers pings', () => {
    const { open, pass, wire } = connection()
    const [stream] = [open(), open()]
    stream.write(50_000)
    stream.accept()
    for (let second = 0; second < 7; second++) {
      pass(1000)
      wire.bytesRead += 17
      wire.bytesWritten += 34
    }
    expect(stream.ends).to.deep.equal(['reset'])
  })

  it('is reset without the connection if the peer answers', () => {
    const { open, pass, heard, wire } = connection()
    const [stream, idle] = [open(), open()]
    stream.write(50_000)
    pass(3000)
    wire.bytesRead += 17
    pass(3000)
    expect([stream.ends, idle.ends, heard.dead]).to.deep.equal([['reset'], [], 0])
  })

  it('is not one that is only slow: a piece, a byte or a window update within the timeout counts as progress', () => {
    const { open, pass, wire } = connection()
    const stream = open()
    stream.write(10_000_000)
    for (let round = 0; round < 10; round++) {
      pass(4500)
      stream.accept()
      pass(4500)
      wire.bytesWritten += 1100
      pass(4500)
      wire.granted += 1000
    }
    expect([stream.ends, stream.done]).to.deep.equal([[], []])
  })

  it('is not one of which some bytes are accepted in each tick, even if ticks are late', () => {
    const { open, pass, wire } = connection()
    const stream = open()
    stream.write(10_000_000)
    for (let round = 0; round < 10; round++) {
      wire.bytesWritten += 1100
      pass(500, 500)
      // Half a second releases a permit. The first tick has nothing to compare with.
      expect(stream.flow.stillMs).to.equal(0)
    }
    pass(500, 500)
    expect(stream.flow.stillMs).to.equal(500)
  })

  it('is reset with its connection if bytes are outstanding', () => {
    const { open, session } = connection()
    const [busy, idle] = [open(), open()]
    busy.write(50_000)
    session.giveUp('no sign of life')
    expect([busy.ends, idle.ends]).to.deep.equal([['reset'], []])
  })

  it('is not charged while nothing is outstanding, nor for time in which the thread was blocked', () => {
    const { open, pass, session } = connection()
    const stream = open()
    pass(60_000)
    stream.write(10)
    session.charge(500)
    stream.accept()
    pass(60_000)
    expect([stream.ends, stream.done]).to.deep.equal([[], [false]])
  })

  it('is reset alone only if it shares its connection with another stream', () => {
    const { open, pass, wire, session } = connection()
    const [live, silent] = [open(), open()]
    live.write(10_000_000)
    silent.write(10_000_000)
    for (let round = 0; round < 3; round++) {
      pass(2000)
      live.accept()
    }
    wire.bytesRead += 17
    expect([live.ends, silent.ends]).to.deep.equal([[], ['reset']])
    session.close(silent.flow)
    pass(2000)
    live.accept()
    expect(live.ends).to.deep.equal([])
  })

  it("is ended with a status between two messages if it holds the connection's window; streams behind it are not", () => {
    const { open, pass, wire, session } = connection()
    const [hog, waiting] = [open(), open()]
    hog.write(10_000)
    hog.accept()
    waiting.write(10_000)
    waiting.accept()
    waiting.flow.messageReceived()
    waiting.write(10_000)
    wire.granted = 0
    pass(5500)
    wire.bytesRead += 17
    expect([hog.ends, waiting.ends]).to.deep.equal([['status'], []])
    session.close(hog.flow)
    wire.granted = 10_000
    pass(250)
    waiting.accept()
    expect(waiting.done).to.deep.equal([false, false])
  })

  it("is not one that was granted more than the connection's window while another stream holds all of it", () => {
    const { open, pass, wire } = connection()
    const [hog, reader] = [open(), open()]
    hog.write(2_000_000)
    reader.write(4_000_000)
    for (let piece = 0; piece < 3; piece++) hog.accept()
    for (let piece = 0; piece < 12; piece++) reader.accept()
    wire.granted = 0
    pass(5500)
    wire.bytesRead += 17
    expect([hog.ends, reader.ends]).to.deep.equal([['reset'], []])
  })

  it('is never ended if the send timeout is off', () => {
    const { open, pass } = connection({ standstillMs: Number.POSITIVE_INFINITY })
    const stream = open()
    stream.write(50_000)
    pass(600_000)
    expect(stream.ends).to.deep.equal([])
  })

  it('is not one of a slow fleet that makes progress in turn, but one without progress beside it is', () => {
    const pace = new FleetPace(5000)
    const fleet = Array.from({ length: 50 }, () => connection({ pace }))
    const streams = fleet.map(({ open }) => open())
    const silent = connection({ pace })
    const mute = silent.open()
    for (const stream of [...streams, mute]) stream.write(10_000_000)
    // Every fourth tick five streams get a piece: ten seconds between two pieces of a stream.
    for (let tick = 0; tick < 600; tick++) {
      for (const { session } of [...fleet, silent]) session.charge(250)
      if (tick % 4 === 0) for (let index = 0; index < 5; index++) streams[((tick / 4) * 5 + index) % 50]?.accept()
    }
    expect(streams.flatMap(({ ends }) => ends)).to.deep.equal([])
    expect(mute.ends).to.deep.equal(['reset'])
  })

  it('is ended in time if all other streams are fast', () => {
    const pace = new FleetPace(5000)
    const [fast, silent] = [connection({ pace }), connection({ pace })]
    const [live, ...mute] = [fast.open(), ...Array.from({ length: 100 }, () => silent.open())]
    for (const stream of mute) stream.write(100_000)
    live.write(100_000_000)
    for (let tick = 0; tick < 22; tick++) {
      live.accept()
      fast.pass(250)
      silent.pass(250)
    }
    expect(mute.map(({ ends }) => ends)).to.deep.equal(mute.map(() => ['reset']))
  })
})
