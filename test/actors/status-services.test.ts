/** Health, reflection and client status over the gRPC server, asked by the independent client `@grpc/grpc-js`. */
import { connect } from 'node:http2'
import { create, type DescMessage, fromBinary, type MessageInitShape, type MessageShape, toBinary } from '@bufbuild/protobuf'
import { Client, type ClientReadableStream, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import { expect } from 'chai'
import { Authentication } from '../../actors/discovery/xds-writer/authentication.ts'
import { StatusAccess } from '../../actors/discovery/xds-writer/status-access.ts'
import { statusServiceNames, statusServices } from '../../actors/discovery/xds-writer/status-services.ts'
import { GrpcServer } from '../../actors/grpc/grpc-server.ts'
import { StandstillTimer } from '../../actors/grpc/standstill-timer.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import { freePort } from '../../bench/ports.ts'
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthListRequestSchema,
  HealthListResponseSchema,
  HealthCheckResponse_ServingStatus as Serving,
} from '../../protocols/gen/grpc/health/v1/health_pb.js'
import { ServerReflectionRequestSchema, ServerReflectionResponseSchema } from '../../protocols/gen/grpc/reflection/v1/reflection_pb.js'
import { ClientTrust } from '../../src/identity/client-trust.ts'
import { status } from '../../src/model/status-codes.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { until } from '../harness/until.ts'

describe('the services beside ADS', () => {
  let [isReady, isKnown] = [false, true]
  let server: GrpcServer
  let client: Client
  let port = 0

  before(async () => {
    port = await freePort()
    const access = new StatusAccess({
      authentication: new Authentication(() => Promise.reject(new Error('nobody to ask'))),
      onLoopback: true,
      peers: { of: async () => 'ordinary' },
      names: () => undefined,
      warn: () => {},
    })
    const answers: Record<string, () => unknown> = {
      isReady: () => (isKnown ? isReady : Promise.reject(new Error('unknown'))),
      connectionsOfAll: () => ({ connections: [{ nodeId: 'sidecar~10.0.0.1~a.shop~shop', namespace: 'shop', types: [] }], silence: '' }),
    }
    const never = Number.POSITIVE_INFINITY
    const connections = { keepaliveInterval: never, keepaliveTimeout: never, maxConnectionAge: never, credentialGrace: 0 }
    server = new GrpcServer(
      {
        ...{ plain: { host: '127.0.0.1', port }, secure: undefined, sharers: 1, maxConnections: 100, maxStreams: 2000 },
        ...{ messageBytes: 1000, sendTimeout: 5000, connections },
      },
      {
        log: { error: () => {}, debug: () => {}, warn: () => {} } as never,
        metrics: new MetricRegistry(),
        trust: new ClientTrust(),
        standstillTimer: new StandstillTimer(),
        methods: statusServices({
          ask: async (question) => (await answers[String(question)]?.()) as never,
          access,
          services: ['a.B', ...statusServiceNames],
          failed: () => {},
          warn: () => {},
        }),
        refused: () => {},
      },
    )
    await server.open()
    client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
  })
  after(async () => {
    client.close()
    await server.close()
  })

  const encode =
    <Schema extends DescMessage>(schema: Schema) =>
    (value: MessageInitShape<Schema>) =>
      Buffer.from(toBinary(schema, create(schema, value)))
  const decode =
    <Schema extends DescMessage>(schema: Schema) =>
    (bytes: Buffer): MessageShape<Schema> =>
      fromBinary(schema, bytes)
  const unary = <I extends DescMessage, O extends DescMessage>(path: string, input: I, output: O, value: MessageInitShape<I>) =>
    new Promise<MessageShape<O> | number>((resolve) =>
      client.makeUnaryRequest(path, encode(input), decode(output), value, new Metadata(), {}, (error: ServiceError | null, answer) =>
        resolve(error ? error.code : (answer as MessageShape<O>)),
      ),
    )
  const check = async (service: string) => {
    const answer = await unary('/grpc.health.v1.Health/Check', HealthCheckRequestSchema, HealthCheckResponseSchema, { service })
    return typeof answer === 'number' ? answer : Serving[answer.status]
  }
  const watch = (service: string) => {
    const seen: string[] = []
    const stream: ClientReadableStream<MessageShape<typeof HealthCheckResponseSchema>> = client.makeServerStreamRequest(
      '/grpc.health.v1.Health/Watch',
      encode(HealthCheckRequestSchema),
      decode(HealthCheckResponseSchema),
      { service },
    )
    stream.on('data', (answer) => seen.push(String(Serving[answer.status]))).on('error', (error: ServiceError) => seen.push(String(error.code)))
    return { seen, cancel: () => stream.cancel() }
  }

  it('health is that of the readiness page, for the server and each service', async () => {
    isReady = false
    expect([await check(''), await check('a.B')]).to.deep.equal(['NOT_SERVING', 'NOT_SERVING'])
    isReady = true
    expect([await check(''), await check('grpc.health.v1.Health'), await check('no.such')]).to.deep.equal(['SERVING', 'SERVING', status.notFound])
    isKnown = false
    expect(await check('')).to.equal('NOT_SERVING')
    isKnown = true
    const listed = await unary('/grpc.health.v1.Health/List', HealthListRequestSchema, HealthListResponseSchema, {})
    if (typeof listed === 'number') throw new Error(`status ${listed}`)
    expect(Object.entries(listed.statuses).map(([name, each]) => [name, Serving[each.status]])).to.deep.equal(
      ['', 'a.B', ...statusServiceNames].map((name) => [name, 'SERVING']),
    )
  })

  it('health is told to those who watch it, after each change', async () => {
    isReady = false
    const [whole, unknown] = [watch(''), watch('no.such')]
    await until('the present state', () => whole.seen.length + unknown.seen.length === 2)
    isReady = true
    await until('the change', () => whole.seen.length === 2)
    isReady = false
    await until('the change back', () => whole.seen.length >= 3)
    for (const each of [whole, unknown]) each.cancel()
    await until('the end', () => whole.seen.length === 4 && unknown.seen.length === 2)
    expect([whole.seen, unknown.seen]).to.deep.equal([
      ['NOT_SERVING', 'SERVING', 'NOT_SERVING', '1'],
      ['SERVICE_UNKNOWN', '1'],
    ])
  })

  it('a stream gives way when its client has more than a thousand of a method', async () => {
    const first = watch('')
    await until('it to be answered', () => first.seen.length === 1)
    const further = Array.from({ length: 1000 }, () => watch(''))
    await until('the first to end', () => first.seen.length === 2)
    expect(first.seen[1]).to.equal(String(status.resourceExhausted))
    for (const each of further) each.cancel()
  })

  it('reflection answers one message after the other, in both versions', async () => {
    for (const version of ['v1', 'v1alpha']) {
      const stream = client.makeBidiStreamRequest(
        `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
        encode(ServerReflectionRequestSchema),
        decode(ServerReflectionResponseSchema),
      )
      const answers: unknown[] = []
      stream.on('data', ({ messageResponse: { case: kind, value } }) =>
        answers.push(kind === 'listServicesResponse' ? value.service.map(({ name }: { name: string }) => name) : kind),
      )
      stream.write({ messageRequest: { case: 'listServices', value: '' } })
      await until('the first answer', () => answers.length === 1)
      stream.write({ messageRequest: { case: 'fileContainingSymbol', value: 'grpc.health.v1.Health.Watch' } })
      stream.write({ messageRequest: { case: 'fileByFilename', value: 'no/such.proto' } })
      stream.end()
      await until('all answers', () => answers.length === 3)
      // The service a.B has no descriptor here.
      expect(answers).to.deep.equal([[...statusServiceNames].sort(), 'fileDescriptorResponse', 'errorResponse'])
    }
  })

  /** Sends a request and resolves with HTTP's and gRPC's status and the message of the latter. */
  const raw = (headers: Record<string, string>, frames: readonly Buffer[]) =>
    new Promise<unknown[]>((resolve, reject) => {
      const session = connect(`http://127.0.0.1:${port}`)
      const stream = session.request({ ':method': 'POST', ':path': '/grpc.health.v1.Health/Check', 'content-type': 'application/grpc', ...headers })
      const seen: unknown[] = []
      stream.on('response', (response) => seen.push(response[':status']))
      stream.on('trailers', (trailers) => seen.push(trailers['grpc-status'], decodeURIComponent(String(trailers['grpc-message'] ?? ''))))
      stream.on('close', () => session.destroy(resolve(seen) as undefined))
      for (const each of [stream, session]) each.on('error', reject)
      stream.resume()
      for (const frame of frames) stream.write(frame)
      stream.end()
    })
  const asked = messageFrame(encode(HealthCheckRequestSchema)({ service: '' }))

  it('no header of a request makes the server throw', async () => {
    // nghttp2 itself refuses some of them.
    for (const authority of ['[', 'a b', '%', 'x:99999999', '://', ''])
      expect((await raw({ ':authority': authority }, [asked]).catch(() => [200, '0'])).slice(0, 2), authority).to.deep.equal([200, '0'])
    expect(await check('')).to.equal('NOT_SERVING')
    for (const type of ['application/grpc+proto', 'application/grpc;charset=utf-8'])
      expect((await raw({ 'content-type': type }, [asked])).slice(0, 2), type).to.deep.equal([200, '0'])
    for (const type of ['application/grpc-web', 'application/grpc+json', 'application/json'])
      expect(await raw({ 'content-type': type }, [asked]), type).to.deep.equal([415])
    expect((await raw({ 'grpc-encoding': 'gzip' }, [asked])).slice(0, 2), 'compression').to.deep.equal([200, String(status.unimplemented)])
    const compressed = Buffer.from(asked)
    compressed[0] = 1
    expect((await raw({}, [compressed])).slice(0, 2), 'a compressed message').to.deep.equal([200, String(status.unimplemented)])
  })

  it('a message that cannot be read is refused with the reason', async () => {
    expect(await raw({}, [messageFrame(Buffer.from([0x0a, 0xff]))])).to.deep.equal([
      200,
      String(status.invalidArgument),
      'the request cannot be read: premature EOF',
    ])
  })
})
