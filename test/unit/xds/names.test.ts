import { expect } from 'chai'
import fc from 'fast-check'
import { hostOf, inboundCluster, outboundCluster, sniCluster } from '../../../src/xds/names.ts'
import { clusterType, endpointType, listenerType, routeType, virtualHostType } from '../../../src/xds/type-urls.ts'

const port = fc.integer({ min: 1, max: 65_535 })
const subset = fc.constantFrom('', 'v1', 'v1.2', 'v-1_b')
const host = fc.constantFrom('a.com', '*.a.com', '*', 'a.b.svc.cluster.local', 'a_b.com', '_x._tcp.a.com', '2001:db8::1', '10.0.0.1', '::')

describe('the host of a resource name', () => {
  it('is found in every name generated for a host', () => {
    fc.assert(
      fc.property(port, subset, host, (number, name, wanted) => {
        for (const type of [clusterType, endpointType]) {
          expect(hostOf(type, outboundCluster(number, name, wanted))).to.equal(wanted)
          expect(hostOf(type, sniCluster(number, name, wanted))).to.equal(wanted)
        }
        for (const route of [String(number), 'http_proxy']) expect(hostOf(virtualHostType, `${route}/${wanted}:${number}`)).to.equal(wanted)
      }),
    )
  })

  it('is empty for resources that belong to no host', () => {
    for (const name of [
      'BlackHoleCluster',
      'PassthroughCluster',
      'InboundPassthroughClusterIpv4',
      inboundCluster(80),
      'outbound_.',
      'outbound_.80',
      'xds-grpc',
      '',
    ])
      expect(hostOf(clusterType, name)).to.equal('')
    expect(hostOf(virtualHostType, '')).to.equal('')
  })

  it("is the resource's own name if no host has it to itself", () => {
    for (const name of ['allow_any', 'block_all']) expect(hostOf(virtualHostType, `80/${name}`)).to.equal(name)
    for (const type of [listenerType, routeType]) expect(hostOf(type, 'outbound|80||a.com')).to.equal('outbound|80||a.com')
  })
})
