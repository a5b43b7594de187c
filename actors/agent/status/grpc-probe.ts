/** Health probe by gRPC: `Check` of `grpc.health.v1.Health`, in plaintext on a connection of its own. */
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { readHealthStatus, serving } from '../../../src/health/grpc-health.ts'
import { textField } from '../../../src/xds/slab/wire.ts'
import { loopbackLookup } from '../../http/loopback.ts'
import { callUnary, UnaryMethod } from '../unary-call.ts'

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
export async function checkHealth({ port, service, userAgent, isIpv6Only }: HealthQuestion, signal: AbortSignal): Promise<boolean> {
  const createConnection = () => connect({ host: 'localhost', port, lookup: loopbackLookup(isIpv6Only) })
  const answer = await callUnary({
    method: new UnaryMethod('/grpc.health.v1.Health/Check'),
    headers: userAgent === undefined ? {} : { 'user-agent': userAgent },
    message: service === '' ? Buffer.alloc(0) : textField(1, service),
    answerBytes,
    signal,
    connect: () => connectHttp2(`http://localhost:${port}`, { createConnection, maxSessionMemory: 1 }),
    read: readHealthStatus,
  })
  return answer === serving
}
