import { type ClientHttp2Session, connect, createServer, type Http2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { Http2GrpcStream, type StreamParts } from '../../actors/grpc/grpc-stream.ts'
import { monotonicMs } from '../../actors/runtime/clock.ts'
import type { StreamFlow } from '../../src/transport/flow.ts'
import { FrameBuffers, messageFrame } from '../../src/xds/stream/frames.ts'
import { until } from '../harness/until.ts'

/** Three messages, and the beginning of a fourth. */
const bytes = Buffer.concat([...[1, 2, 3].map((byte) => messageFrame(Buffer.of(byte))), messageFrame(Buffer.alloc(100)).subarray(0, 20)])

describe('a gRPC stream whose messages are read in turns', () => {
  let server: Http2Server
  const sessions: ClientHttp2Session[] = []
  const reading = new Set<Http2GrpcStream>()
  /** Called at each message, before its turn is over. */
  let onTaken = () => {}
  const taken: { stream: Http2GrpcStream; closed: boolean }[] = []
  let streams: { stream: Http2GrpcStream; closed: boolean }[]

  before(async () => {
    streams = []
    server = createServer().listen(0, '127.0.0.1')
    server.on('stream', (http2Stream) => {
      http2Stream.respond({ ':status': 200 }, { waitForTrailers: true })
      http2Stream.on('error', () => undefined)
      const flow = { open: () => ({ messageReceived: () => undefined }) satisfies Pick<StreamFlow, 'messageReceived'>, close: () => undefined }
      const parts = { peer: String(streams.length), flow, budget: { spend: () => 0 }, buffers: new FrameBuffers(), limit: 1000, arrival: {}, reading }
      const stream = new Http2GrpcStream(http2Stream, parts as unknown as StreamParts)
      const known = { stream, closed: false }
      streams.push(known)
      stream.onBorrowed(() => {
        taken.push({ stream, closed: known.closed })
        onTaken()
        // Longer than a turn.
        for (const end = monotonicMs() + 25; monotonicMs() < end; );
      })
      stream.onClose(() => (known.closed = true))
    })
    await new Promise((resolve) => server.once('listening', resolve))
  })
  after(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  function client(): ClientHttp2Session {
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    session.on('error', () => undefined)
    sessions.push(session)
    const stream = session.request({ ':method': 'POST', ':path': '/' })
    stream.on('error', () => undefined)
    stream.write(bytes)
    return session
  }

  it('is removed if its client disconnects before the last turn', async () => {
    const gone = client()
    onTaken = () => gone.destroy()
    await until('it to be closed', () => streams[0]?.closed === true)
    expect(taken, 'of three messages').to.have.lengthOf.below(3)
    onTaken = () => {}
    client()
    await until('all turns of another', () => taken.filter(({ stream }) => stream === streams[1]?.stream).length === 3 && reading.size > 0)
    expect([...reading]).to.deep.equal([streams[1]?.stream])
    expect(taken.filter(({ closed }) => closed)).to.deep.equal([])
  })
})
