/** The tables of RPCs in docs/reference.md, beside what is generated from the same schemas. */
import { expect } from 'chai'
import { methodsOf } from '../../docs/rpcs.ts'
import { AdminService } from '../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { MeshCertificateService } from '../../protocols/gen/mesh/v1/auth/ca_pb.js'

describe('the reference of RPCs', () => {
  for (const [path, service] of [
    ['mesh/admin/v1/admin.proto', AdminService],
    ['mesh/v1/auth/ca.proto', MeshCertificateService],
  ] as const)
    it(`has all methods of ${path} with the fields of their requests, and says what each is for`, () => {
      const declared = service.methods.map(({ name, input }) => ({ name, asks: input.fields.map((field) => field.name) }))
      expect(methodsOf(path).map(({ name, asks }) => ({ name, asks }))).to.deep.equal(declared)
      for (const { name, about } of methodsOf(path)) expect(about, name).to.match(/^[A-Z].*\.$/)
    })
})
