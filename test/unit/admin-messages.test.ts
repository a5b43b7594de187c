import { create, toBinary } from '@bufbuild/protobuf'
import { AnySchema, anyPack } from '@bufbuild/protobuf/wkt'
import { expect } from 'chai'
import { resourcesMessage } from '../../actors/discovery/admin/admin-messages.ts'
import { ClusterSchema } from '../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { GetProxyConfigRequestSchema } from '../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { fieldHead } from '../../src/xds/slab/wire.ts'
import { clusterType } from '../../src/xds/type-urls.ts'

describe('the configuration of a proxy in an answer of the admin service', () => {
  const long = 'c'.repeat(50_000)
  const resources = {
    [clusterType]: Array.from({ length: 45 }, (_, index) => {
      const any = toBinary(AnySchema, anyPack(ClusterSchema, create(ClusterSchema, { name: `${index}`, altStatName: long })))
      return { name: `${index}`, version: '1', element: Buffer.concat([fieldHead(1, any.length), any]).toString('base64') }
    }),
  }
  const asked = (names: readonly string[], isJson: boolean) =>
    resourcesMessage(resources as never, create(GetProxyConfigRequestSchema, { proxy: 'p', names: [...names] }), isJson)

  it('has at most two megabytes of resources in JSON, which blocks the main thread', () => {
    expect(asked([], true)).to.match(/^22\d{5} bytes of resources are too many for JSON \(at most 2097152\): choose some by typeUrls or names/)
    expect(asked(['1', '7'], true)).to.have.length(2)
  })

  it('has all resources in protocol buffers', () => {
    expect(asked([], false)).to.have.length(45)
  })
})
