import { expect } from 'chai'
import { endpointType } from '../../src/xds/type-urls.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

describe('a network gateway with a host name', () => {
  const service = new Service()
  let client: XdsClient | undefined
  after(async () => {
    client?.close()
    await service.dispose()
  })
  const endpoints = () => client?.resources.get(endpointType)?.get('outbound|80||a.com')?.toString('latin1') ?? ''

  it('is resolved when the file is read; unresolvable names and fields without effect are logged', async () => {
    service.write(
      'a.yaml',
      'apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: a, namespace: ns}\nspec: {hosts: [a.com], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.7.0.1, serviceAccount: x}]}\n',
    )
    service.write('mesh-config', 'thriftConfig: {rateLimitUrl: a.b}\n')
    service.write('networks', 'networks: {far: {endpoints: [{fromCidr: 10.7.0.0/16}], gateways: [{address: localhost, port: 15000}]}}')
    await service.start()
    client = await new XdsClient(service.grpcPort, sidecarNode('10.1.0.1', 'p', 'ns'), true).connect().ready()
    expect(endpoints()).to.match(/127\.0\.0\.1|::1/)
    await service.output.says('field thriftConfig: has no effect yet')
    service.write('networks', 'networks: {far: {endpoints: [{fromCidr: 10.7.0.0/16}], gateways: [{address: no-such-host.invalid}]}}')
    await service.output.says('networks: gateway no-such-host.invalid: ')
    await until('the endpoint itself again', () => endpoints().includes('10.7.0.1'))
  })
})
