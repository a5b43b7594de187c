/** Name tables from the real command, in SotW and delta, under the mesh's type URL and the alias. */
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { NameTableSchema } from '../../protocols/gen/mesh/networking/nds/v1/nds_pb.js'
import { aliasNameTableType, nameTableType } from '../../src/xds/type-urls.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const entry = (host: string, address: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${host}, namespace: ns}\nspec: {hosts: [${host}], addresses: [${address}], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 203.0.113.1}]}\n`

describe('name tables of a running service', () => {
  const service = new Service()
  const clients: XdsClient[] = []
  after(async () => {
    for (const client of clients) client.close()
    await service.dispose()
  })

  const connect = async (name: string, delta: boolean, typeUrl: string, metadata: Record<string, string>) => {
    const client = new XdsClient(service.grpcPort, sidecarNode('10.1.0.1', name, 'ns', metadata), delta).connect().watch(typeUrl, [])
    clients.push(client)
    return { client: await client.ready(), typeUrl }
  }
  const ips = ({ client, typeUrl }: { client: XdsClient; typeUrl: string }): Record<string, string[]> | undefined => {
    const bytes = client.resources.get(typeUrl)?.get('')
    return bytes && Object.fromEntries(Object.entries(fromBinary(NameTableSchema, bytes).table).map(([host, info]) => [host, info.ips]))
  }

  it('are sent to proxies that capture DNS and subscribe, and follow changes', async () => {
    service.write('a.yaml', entry('a.example.com', '192.0.2.1'))
    await service.start()
    const asking = await Promise.all(
      [true, false].flatMap((delta) =>
        [nameTableType, aliasNameTableType].map((typeUrl) => connect(`${delta}`, delta, typeUrl, { DNS_CAPTURE: 'true' })),
      ),
    )
    const other = await connect('other', true, nameTableType, {})
    for (const each of asking) await until('the table', () => ips(each)?.['a.example.com']?.[0] === '192.0.2.1')
    service.write('b.yaml', entry('b.example.com', '192.0.2.2'))
    for (const each of asking) await until('both names', () => Object.keys(ips(each) ?? {}).length === 2)
    service.remove('a.yaml')
    service.remove('b.yaml')
    for (const each of asking) await until('no names', () => Object.keys(ips(each) ?? { x: 1 }).length === 0)
    expect(other.client.responses.get(nameTableType) ?? 0).to.equal(0)
    const nodeId = asking[0]?.client.node.id ?? ''
    expect(await service.debug(`ndsz?proxyID=${encodeURIComponent(nodeId)}`)).to.have.property('@type', nameTableType)
    expect(await service.metrics()).to.match(/pilot_xds_pushes\{[^}]*type="nds"[^}]*\} [1-9]/)
  })
})
