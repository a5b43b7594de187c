/** Encoding and decoding of the small gRPC services beside ADS. The protobuf library is loaded with this module. */
import { create, type DescFile, type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import type { ServerReflectionRequest } from '../../../protocols/gen/grpc/reflection/v1/reflection_pb.js'
import { count } from '../../../src/model/counts.ts'
import { status } from '../../../src/model/status-codes.ts'
import type { CallStatus } from '../../grpc/unary.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ConnectionStatus, TypeStatus } from './connection-debug.ts'

/** Answers an encoded request. A request that cannot be decoded is answered with `InvalidArgument` and the reason. */
async function answerTo<Schema extends DescMessage>(
  schema: Schema,
  message: Buffer,
  answer: (request: MessageShape<Schema>) => Promise<Uint8Array | CallStatus>,
): Promise<Uint8Array | CallStatus> {
  let request: MessageShape<Schema>
  try {
    request = fromBinary(schema, message)
  } catch (error) {
    return { code: status.invalidArgument, message: `the request cannot be read as ${schema.typeName}: ${(error as Error).message}` }
  }
  return await answer(request)
}

/** Maximum time for matching nodes in one request, in milliseconds. */
const matchingMs = 100

/**
 * Answers one request of client status discovery about the nodes that its matchers accept. Request and answer are encoded. `ask` returns
 * the connections; it is called once the request is decoded, with `withMetadata` if a matcher looks at metadata.
 */
export async function clientStatus(
  message: Buffer,
  ask: (withMetadata: boolean) => Promise<readonly ConnectionStatus[]>,
): Promise<Uint8Array | CallStatus> {
  const { ClientStatusRequestSchema } = await import('../../../protocols/gen/envoy/service/status/v3/csds_pb.js')
  const { BadMatcher, nodeTest } = await import('../../../src/xds/stream/node-matcher.ts')
  return await answerTo(ClientStatusRequestSchema, message, async ({ nodeMatchers }) => {
    try {
      const isMeant = nodeTest(nodeMatchers)
      const connections = await ask(nodeMatchers.some(({ nodeMetadatas }) => nodeMetadatas.length > 0))
      const begun = monotonicMs()
      const meant: ConnectionStatus[] = []
      for (const connection of connections) {
        if (isMeant({ id: connection.nodeId, metadata: connection.metadata ?? {} })) meant.push(connection)
        if (monotonicMs() - begun > matchingMs)
          return { code: status.resourceExhausted, message: `node_matchers take more than ${matchingMs} ms for ${count(connections.length, 'node')}` }
      }
      return await statusOf(meant)
    } catch (error) {
      if (error instanceof BadMatcher) return { code: status.invalidArgument, message: error.message }
      throw error
    }
  })
}

async function statusOf(connections: readonly ConnectionStatus[]): Promise<Uint8Array> {
  const { ClientStatusResponseSchema, ConfigStatus } = await import('../../../protocols/gen/envoy/service/status/v3/csds_pb.js')
  const stateOf = (type: TypeStatus) => {
    if (type.error !== '') return ConfigStatus.ERROR
    if (type.nonceSent === '') return ConfigStatus.NOT_SENT
    return type.nonceSent === type.nonceAcked ? ConfigStatus.SYNCED : ConfigStatus.STALE
  }
  const config = connections.map((connection) => ({
    node: { id: connection.nodeId },
    genericXdsConfigs: connection.types.map((type) => ({
      typeUrl: type.typeUrl,
      versionInfo: type.version,
      configStatus: stateOf(type),
      ...(type.error === '' ? {} : { errorState: { details: type.error } }),
    })),
  }))
  return toBinary(ClientStatusResponseSchema, create(ClientStatusResponseSchema, { config }))
}

interface Described {
  readonly services: readonly string[]
  readonly files: ReadonlyMap<string, DescFile>
  readonly symbols: ReadonlyMap<string, DescFile>
}

let described: Promise<Described> | undefined

/** Answers one request of server reflection. Request and answer are encoded. */
export async function reflect(message: Buffer): Promise<Uint8Array | CallStatus> {
  const { ServerReflectionRequestSchema, ServerReflectionResponseSchema } = await import('../../../protocols/gen/grpc/reflection/v1/reflection_pb.js')
  return await answerTo(ServerReflectionRequestSchema, message, async (request) => {
    described ??= describeServices()
    const response = create(ServerReflectionResponseSchema, {
      validHost: request.host,
      originalRequest: request,
      messageResponse: reflectionAnswer(request, await described),
    })
    return toBinary(ServerReflectionResponseSchema, response)
  })
}

function reflectionAnswer(request: ServerReflectionRequest, { services, files, symbols }: Described) {
  const { case: kind, value } = request.messageRequest
  const notFound = (what: string) => ({ case: 'errorResponse' as const, value: { errorCode: 5, errorMessage: `${what} not found` } })
  const fileAnswer = (file: DescFile | undefined, what: string) => {
    if (!file) return notFound(what)
    const all = new Map<string, DescFile>()
    collect(file, all)
    return {
      case: 'fileDescriptorResponse' as const,
      value: { fileDescriptorProto: [...all.values()].map((known) => toBinary(FileDescriptorProtoSchema, known.proto)) },
    }
  }
  if (kind === 'listServices') return { case: 'listServicesResponse' as const, value: { service: services.map((name) => ({ name })) } }
  if (kind === 'fileByFilename') return fileAnswer(files.get(value), value)
  if (kind === 'fileContainingSymbol') return fileAnswer(symbols.get(value), value)
  return notFound(kind ?? 'nothing asked for, so it was')
}

async function describeServices(): Promise<Described> {
  const modules = await Promise.all([
    import('../../../protocols/gen/envoy/service/discovery/v3/ads_pb.js').then((module) => module.file_envoy_service_discovery_v3_ads),
    import('../../../protocols/gen/envoy/service/status/v3/csds_pb.js').then((module) => module.file_envoy_service_status_v3_csds),
    import('../../../protocols/gen/grpc/reflection/v1/reflection_pb.js').then((module) => module.file_grpc_reflection_v1_reflection),
    import('../../../protocols/gen/grpc/reflection/v1alpha/reflection_pb.js').then((module) => module.file_grpc_reflection_v1alpha_reflection),
  ])
  const files = new Map<string, DescFile>()
  for (const file of modules) collect(file, files)
  const symbols = new Map<string, DescFile>()
  for (const file of files.values()) {
    for (const item of [...file.messages, ...file.enums, ...file.services]) symbols.set(item.typeName, file)
    for (const service of file.services) for (const method of service.methods) symbols.set(`${service.typeName}.${method.name}`, file)
  }
  return { services: modules.flatMap((file) => file.services.map((service) => service.typeName)).sort(), files, symbols }
}

function collect(file: DescFile, into: Map<string, DescFile>): void {
  const name = `${file.name}.proto`
  if (into.has(name)) return
  into.set(name, file)
  for (const dependency of file.dependencies) collect(dependency, into)
}
