/** Health probe by gRPC: `Check` of `grpc.health.v1.Health`, in plaintext on a connection of its own. */
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2'
import { connect } from 'node:net'
import { readHealthStatus, serving } from '../../../src/health/grpc-health.ts'
import { textField } from '../../../src/xds/slab/wire.ts'
import { FrameBuffers, FrameReader, messageFrame } from '../../../src/xds/stream/frames.ts'
import { loopbackLookup } from '../../http/loopback.ts'

/** The maximum size of a response, in bytes. */
const answerBytes = 1024

/** The parameters of a probe. */
interface HealthQuestion {
  readonly port: number
  /** The service name; empty for the server as a whole. */
  readonly service: string
  readonly userAgent: string | undefined
  readonly isIpv6Only: boolean
}

/** Resolves with whether the status of the service is SERVING. Rejects with the reason when there is no valid response. */
export function checkHealth({ port, service, userAgent, isIpv6Only }: HealthQuestion, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const createConnection = () => connect({ host: 'localhost', port, lookup: loopbackLookup(isIpv6Only) })
    const session = connectHttp2(`http://localhost:${port}`, { createConnection, maxSessionMemory: 1 })
    const leave = () => done(new Error('given up'))
    const done = (outcome: boolean | Error) => {
      signal.removeEventListener('abort', leave)
      session.destroy()
      if (outcome instanceof Error) reject(outcome)
      else resolve(outcome)
    }
    signal.addEventListener('abort', leave)
    session.on('error', done)
    session.on('close', () => done(new Error('the connection was closed before a response arrived')))
    if (signal.aborted) return leave()
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
      ...(userAgent === undefined ? {} : { 'user-agent': userAgent }),
    })
    const reader = new FrameReader(answerBytes, new FrameBuffers())
    let answer: number | undefined
    let end: IncomingHttpHeaders = {}
    stream.on('response', (headers) => (end = headers))
    stream.on('trailers', (headers) => (end = headers))
    stream.on('data', (bytes: Buffer) => {
      try {
        reader.take(bytes, (message) => {
          answer = readHealthStatus(message)
          return true
        })
      } catch (error) {
        done(new Error(`the answer cannot be read: ${(error as Error).message}`))
      }
    })
    stream.on('error', done)
    stream.on('close', () => {
      if (end['grpc-status'] === '0' && answer !== undefined) done(answer === serving)
      else done(new Error(end['grpc-status'] === undefined ? 'the answer is no gRPC' : `gRPC status ${end['grpc-status']}`))
    })
    stream.end(messageFrame(service === '' ? Buffer.alloc(0) : textField(1, service)))
  })
}
