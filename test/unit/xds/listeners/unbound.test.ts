/** The mark of listeners that are not bound (docs/resources.md, L21). */
import { create, fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { type Listener, ListenerSchema } from '../../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { InvalidResource } from '../../../../src/xds/resource-check.ts'
import { encodeResource } from '../../../../src/xds/slab/resource.ts'
import { scanFields } from '../../../../src/xds/slab/wire.ts'

const ip = { address: { case: 'socketAddress' as const, value: { address: '10.0.0.1', portSpecifier: { case: 'portValue' as const, value: 80 } } } }
const pipe = { address: { case: 'pipe' as const, value: { path: '/run/x.sock' } } }
const option = (description: string) => ({ description, level: 1n, name: 9n, value: { case: 'intValue' as const, value: 1n } })

/** The descriptions of the socket options of a listener as proxies receive it. */
function optionsOf(fields: object): string[] {
  const { slices } = encodeResource(ListenerSchema, create(ListenerSchema, { name: 'x', address: ip, ...fields }), 'x')
  const element = Buffer.concat(slices.map(({ block }) => block.bytes as Uint8Array))
  const [any] = scanFields(element)
  const value = [...scanFields(any?.bytes as Buffer)].find(({ field }) => field === 2)?.bytes as Buffer
  const sent: Listener = fromBinary(ListenerSchema, value)
  expect(sent.name).to.equal('x')
  return sent.socketOptions.map(({ description }) => description)
}

describe('an encoded listener', () => {
  it('is marked by a socket option of its own where it is not bound, whatever options it has', () => {
    expect(optionsOf({ bindToPort: false })).to.deep.equal(['not bound'])
    expect(optionsOf({ deprecatedV1: { bindToPort: false } })).to.deep.equal(['not bound'])
    expect(optionsOf({ bindToPort: false, freebind: true, socketOptions: [option('own')] })).to.deep.equal(['own', 'not bound'])
    expect(optionsOf({ bindToPort: false, address: pipe, additionalAddresses: [{ address: ip }] })).to.deep.equal(['not bound'])
  })

  it('is not marked where it is bound', () => {
    for (const fields of [{}, { bindToPort: true }, { bindToPort: true, deprecatedV1: { bindToPort: true } }, { bindToPort: false, address: pipe }])
      expect(optionsOf({ ...fields, socketOptions: [option('own')] })).to.deep.equal(['own'])
  })

  it('is refused where it is bound and has the mark, from a patch', () => {
    for (const fields of [{}, { bindToPort: true }])
      expect(() => optionsOf({ ...fields, socketOptions: [option('own'), option('not bound')] })).to.throw(
        InvalidResource,
        'socket_options[1].description: must be another text: this one marks listeners that are not bound',
      )
  })
})
