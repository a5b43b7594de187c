/**
 * Measures the CPU of a call of `CreateCertificate` over TLS beside a raw stream with the same messages: the same server, an authority that
 * answers at once.
 */
import { readFileSync } from 'node:fs'
import { type ClientHttp2Session, connect } from 'node:http2'
import type { Authentication } from '../../actors/discovery/xds-writer/authentication.ts'
import { certificateService } from '../../actors/discovery/xds-writer/certificate-service.ts'
import { GrpcServer } from '../../actors/grpc/grpc-server.ts'
import type { Method } from '../../actors/grpc/methods.ts'
import { StandstillTimer } from '../../actors/grpc/standstill-timer.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { Caller } from '../../protocols/messages/identity.ts'
import { ClientTrust } from '../../src/identity/client-trust.ts'
import { status } from '../../src/model/status-codes.ts'
import { textField } from '../../src/xds/slab/wire.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { freePort } from '../ports.ts'
import { type Measure, progress } from '../report.ts'
import { processUsage } from '../server.ts'

const paths = { raw: '/raw.Service/Method', served: '/mesh.v1.auth.MeshCertificateService/CreateCertificate' }
const calls = 2000
const off = { fallback: 'none', scopes: {} } as const

/** Measures one connection with one call at a time, in rounds of both ways. `tls` are files. */
export async function signingCalls(rounds: number, tls: { cert: string; key: string }, csr: string, chain: readonly string[]): Promise<Measure> {
  progress('signing: calls over TLS')
  const port = await freePort()
  const server = serverOf(port, chain)
  server.useCertificate({ cert: readFileSync(tls.cert, 'utf8'), key: readFileSync(tls.key, 'utf8') })
  await server.open()
  const session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
  const request = messageFrame(Buffer.from(textField(1, csr)))
  const perCall = async (path: string) => {
    const before = process.cpuUsage()
    for (let made = 0; made < calls; made++) await call(session, path, request)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000 / calls
  }
  try {
    for (const path of Object.values(paths)) await perCall(path)
    let [raw, served] = [0, 0]
    for (let round = 0; round < rounds; round++) {
      raw += (await perCall(paths.raw)) / rounds
      served += (await perCall(paths.served)) / rounds
    }
    return {
      scenario: 'a call of CreateCertificate',
      variant: 'over TLS, without the signature',
      cpu: (served * calls) / 1000,
      mib: 0,
      rss: processUsage(process.pid).rss,
      limit: { last: Number.NaN, cpu: (raw * calls) / 1000, rss: Number.NaN },
      threads: {},
      notes: `${calls} calls; ${served.toFixed(2)} ms a call with its client, ${raw.toFixed(2)} ms as a raw stream`,
      goals: [{ what: 'CPU of a call more than raw', seen: served - raw, most: 0.5, unit: 'ms' }],
    }
  } finally {
    session.destroy()
    await server.close()
  }
}

function serverOf(port: number, chain: readonly string[]): GrpcServer {
  const never = Number.POSITIVE_INFINITY
  const answer = messageFrame(Buffer.concat(chain.map((pem) => textField(1, pem))))
  const raw: Method = {
    type: 'bidi_stream',
    open(stream) {
      stream.onBorrowed(() => undefined)
      stream.onEnd(() => stream.write([answer], (isLost) => isLost || stream.end(status.ok, '')))
    },
  }
  const caller: Caller = { identities: ['spiffe://cluster.local/ns/a/sa/b'], via: 'certificate', method: '', expiresAt: never }
  const served = certificateService({
    authentication: { authenticate: () => caller } as unknown as Authentication,
    sign: async () => ({ chain }),
    metrics: new MetricRegistry(),
    warn: () => undefined,
    failed: (path, error) => progress(`${path}: ${error}`),
  })
  return new GrpcServer(
    {
      plain: undefined,
      secure: { host: '127.0.0.1', port },
      sharers: 1,
      maxConnections: 10,
      maxStreams: 100,
      messageBytes: 65_536,
      sendTimeout: 5000,
      connections: { keepaliveInterval: never, keepaliveTimeout: never, maxConnectionAge: never, credentialGrace: never },
    },
    {
      log: createLogger({ output: off, stackTrace: off, callers: [] }, () => {})('bench'),
      metrics: new MetricRegistry(),
      standstillTimer: new StandstillTimer(),
      methods: new Map<string, Method>([[paths.raw, raw], ...served]),
      trust: new ClientTrust(),
      refused: () => undefined,
    },
  )
}

/** Resolves when a call was answered. */
function call(session: ClientHttp2Session, path: string, request: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' })
    stream.on('trailers', (trailers) => (trailers['grpc-status'] === '0' ? undefined : reject(new Error(`status ${trailers['grpc-status']}`))))
    stream.on('error', reject)
    stream.on('close', () => resolve())
    stream.resume()
    stream.end(request)
  })
}
