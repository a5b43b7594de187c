/** Server reflection: the descriptors of the services of the gRPC ports. */
import { create, createFileRegistry, type DescFile, type DescService, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { file_envoy_service_discovery_v3_ads } from '../../../protocols/gen/envoy/service/discovery/v3/ads_pb.js'
import { file_envoy_service_status_v3_csds } from '../../../protocols/gen/envoy/service/status/v3/csds_pb.js'
import { file_grpc_health_v1_health } from '../../../protocols/gen/grpc/health/v1/health_pb.js'
import {
  file_grpc_reflection_v1_reflection,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from '../../../protocols/gen/grpc/reflection/v1/reflection_pb.js'
import { file_grpc_reflection_v1alpha_reflection } from '../../../protocols/gen/grpc/reflection/v1alpha/reflection_pb.js'
import { file_mesh_admin_v1_admin } from '../../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { file_mesh_v1_auth_ca } from '../../../protocols/gen/mesh/v1/auth/ca_pb.js'
import { status } from '../../../src/model/status-codes.ts'
import { serviceNames } from '../../../src/names/mesh-names.ts'

const described = [
  file_envoy_service_discovery_v3_ads,
  file_envoy_service_status_v3_csds,
  file_grpc_health_v1_health,
  file_grpc_reflection_v1_reflection,
  file_grpc_reflection_v1alpha_reflection,
  file_mesh_admin_v1_admin,
  file_mesh_v1_auth_ca,
]

/** The names of services, and the files by name and by the symbols in them. */
interface Described {
  readonly services: readonly string[]
  readonly files: ReadonlyMap<string, DescFile>
  readonly symbols: ReadonlyMap<string, DescFile>
}

/** Answers the requests of reflection about the services that a server has. */
export class Reflection {
  readonly #described: Described

  /** `services`: the full names of the services that the server has. */
  constructor(services: readonly string[]) {
    this.#described = describe(new Set(services))
  }

  answer(request: ServerReflectionRequest): ServerReflectionResponse {
    return create(ServerReflectionResponseSchema, {
      validHost: request.host,
      originalRequest: request,
      messageResponse: messageResponse(request, this.#described),
    })
  }
}

function messageResponse(request: ServerReflectionRequest, { services, files, symbols }: Described) {
  const { case: kind, value } = request.messageRequest
  if (kind === 'listServices') return { case: 'listServicesResponse' as const, value: { service: services.map((name) => ({ name })) } }
  if (kind === 'fileByFilename') return fileAnswer(files.get(value), value)
  if (kind === 'fileContainingSymbol') return fileAnswer(symbols.get(value), value)
  return notFound(kind ?? 'nothing asked for, so it was')
}

const notFound = (what: string) => ({ case: 'errorResponse' as const, value: { errorCode: status.notFound, errorMessage: `${what} not found` } })

function fileAnswer(file: DescFile | undefined, what: string) {
  if (!file) return notFound(what)
  const all = new Map<string, DescFile>()
  collect(file, all)
  return {
    case: 'fileDescriptorResponse' as const,
    value: { fileDescriptorProto: [...all.values()].map((known) => toBinary(FileDescriptorProtoSchema, known.proto)) },
  }
}

function describe(served: ReadonlySet<string>): Described {
  const own = [...described, ...described.flatMap(aliasesOf)].filter(({ services }) => services.some(({ typeName }) => served.has(typeName)))
  const files = new Map<string, DescFile>()
  for (const file of own) collect(file, files)
  const symbols = new Map<string, DescFile>()
  for (const file of files.values()) {
    for (const item of [...file.messages, ...file.enums, ...file.services]) symbols.set(item.typeName, file)
    for (const service of file.services) for (const method of service.methods) symbols.set(`${service.typeName}.${method.name}`, file)
  }
  return { services: own.flatMap((file) => file.services.map(({ typeName }) => typeName)).sort(), files, symbols }
}

/** Files with the services of a file under their alias names. The messages are those of the file. */
const aliasesOf = (file: DescFile): DescFile[] =>
  file.services.flatMap((service) => serviceNames(service.typeName).flatMap((name) => (name === service.typeName ? [] : [aliasFile(service, name)])))

function aliasFile({ file, proto }: DescService, alias: string): DescFile {
  const [folder, name] = [alias.slice(0, alias.lastIndexOf('.')), alias.slice(alias.lastIndexOf('.') + 1)]
  const made = create(FileDescriptorProtoSchema, {
    name: `${folder.replaceAll('.', '/')}/${file.name.slice(file.name.lastIndexOf('/') + 1)}.proto`,
    package: folder,
    syntax: file.proto.syntax,
    dependency: [`${file.name}.proto`],
    service: [{ ...proto, name }],
  })
  return createFileRegistry(made, () => file).getFile(made.name) as DescFile
}

function collect(file: DescFile, into: Map<string, DescFile>): void {
  const name = `${file.name}.proto`
  if (into.has(name)) return
  into.set(name, file)
  for (const dependency of file.dependencies) collect(dependency, into)
}
