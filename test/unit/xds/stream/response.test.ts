import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { DeltaDiscoveryResponseSchema, DiscoveryResponseSchema } from '../../../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { elementHead } from '../../../../src/xds/slab/wire.ts'
import { encodeResponse } from '../../../../src/xds/stream/response.ts'

const typeUrl = 'type.googleapis.com/a.B'
const value = Buffer.from('value')
const resources = [{ name: 'one', version: '1', element: [elementHead(typeUrl, value.length), value] }]

describe('a response that is made for one stream', () => {
  it('has version, resources, type and nonce in the state of the world', () => {
    const response = fromBinary(DiscoveryResponseSchema, encodeResponse(false, { typeUrl, version: 'v', nonce: 'n', resources, removed: [] }))
    expect([response.typeUrl, response.versionInfo, response.nonce]).to.deep.equal([typeUrl, 'v', 'n'])
    expect(response.resources.map((each) => [each.typeUrl, Buffer.from(each.value)])).to.deep.equal([[typeUrl, value]])
  })

  it('names each resource with its version in delta, and what is removed', () => {
    const encoded = encodeResponse(true, { typeUrl, version: '', nonce: 'n', resources, removed: ['two'] })
    const response = fromBinary(DeltaDiscoveryResponseSchema, encoded)
    expect([response.typeUrl, response.systemVersionInfo, response.nonce, response.removedResources]).to.deep.equal([typeUrl, '', 'n', ['two']])
    expect(response.resources.map(({ name, version, resource }) => [name, version, resource?.typeUrl])).to.deep.equal([['one', '1', typeUrl]])
  })
})
