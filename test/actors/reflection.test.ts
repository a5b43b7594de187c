/** Reflection of services with two names. */
import { create, createFileRegistry, fromBinary } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { expect } from 'chai'
import { certificateServiceNames } from '../../actors/discovery/xds-writer/certificate-service.ts'
import { Reflection } from '../../actors/discovery/xds-writer/reflection.ts'
import { type ServerReflectionRequest, ServerReflectionRequestSchema } from '../../protocols/gen/grpc/reflection/v1/reflection_pb.js'

describe('reflection of the signing service', () => {
  const ask = (served: readonly string[], messageRequest: ServerReflectionRequest['messageRequest']) =>
    new Reflection(served).answer(create(ServerReflectionRequestSchema, { messageRequest })).messageResponse
  const listed = (served: readonly string[]) => {
    const { case: kind, value } = ask(served, { case: 'listServices', value: '' })
    return kind === 'listServicesResponse' && value.service.map(({ name }) => name)
  }

  it('lists both names where the service is served, and none where it is not', () => {
    expect(listed(certificateServiceNames)).to.deep.equal(['istio.v1.auth.IstioCertificateService', 'mesh.v1.auth.MeshCertificateService'])
    expect(listed(['grpc.health.v1.Health'])).to.deep.equal(['grpc.health.v1.Health'])
  })

  it('describes the service by its symbol, method and file, with all files that it needs', () => {
    for (const name of certificateServiceNames) {
      const file = `${name.replace(/\.[^.]*$/, '').replaceAll('.', '/')}/ca.proto`
      for (const asked of [
        { case: 'fileContainingSymbol', value: name },
        { case: 'fileContainingSymbol', value: `${name}.CreateCertificate` },
        { case: 'fileByFilename', value: file },
      ] as const) {
        const { case: kind, value } = ask(certificateServiceNames, asked)
        if (kind !== 'fileDescriptorResponse') throw new Error(`${asked.value}: ${kind}`)
        const files = value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes))
        expect(files[0]?.name).to.equal(file)
        const known = createFileRegistry(create(FileDescriptorSetSchema, { file: files.reverse() }))
        expect(known.getService(name)?.method.createCertificate?.input.typeName).to.equal('mesh.v1.auth.MeshCertificateRequest')
      }
    }
  })
})
