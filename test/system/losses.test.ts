/** What a rule keeps from a proxy is told once, with its object, and is no error. */
import { expect } from 'chai'
import type { ObjectReference } from '../../protocols/data.ts'
import type { EffectRow } from '../../src/config/without-effect.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const gateway = { id: 'router~10.1.1.9~gateway.mesh-system~mesh-system.svc.cluster.local', metadata: { NAMESPACE: 'mesh-system' } }
const laptop = `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: shop, namespace: demo}
spec:
  hosts: [shop.demo.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http}]
  endpoints: [{address: 127.0.0.1, ports: {http: 9080}}]
`
const reason = 'shop.demo.svc.cluster.local: endpoint 127.0.0.1 would lead every caller to its own machine'

describe('what a rule keeps from a proxy', () => {
  const service = new Service()
  const clients: XdsClient[] = []
  const connect = async () => {
    const client = await new XdsClient(service.grpcPort, gateway, true).connect().ready()
    clients.push(client)
    return client
  }
  before(async () => {
    service.write('shop.yaml', laptop)
    await service.start()
  })
  after(async () => {
    for (const client of clients) client.close()
    await service.dispose()
  })

  it('is not told while no proxy loses it, although resources are made in advance', async () => {
    await service.output.says('ready after')
    clients.push(await new XdsClient(service.grpcPort, sidecarNode('10.1.1.8', 'shop', 'demo'), true).connect().ready())
    expect(await service.debug<EffectRow[]>('noeffectz')).to.deep.equal([])
    expect((await service.debug<{ faults: object[] }>('push_status')).faults).to.deep.equal([])
    service.output.lacks(reason)
  })

  it('is logged once with its object, however often proxies come, and listed on pages', async () => {
    ;(await connect()).close()
    await service.output.says(/\tinfo\tmodel\t.*shop\.demo.*INTERCEPTION_MODE NONE.*ServiceEntry\/demo\/shop/)
    for (let round = 0; round < 3; round++) (await connect()).close()
    await connect()
    await service.output.says(reason, 1, 1)
    const rows = await service.debug<EffectRow[]>('noeffectz')
    expect(rows.map(({ kind, namespace, name }) => `${kind}/${namespace}/${name}`)).to.deep.equal(['ServiceEntry/demo/shop'])
    expect(rows[0]?.fields[0]?.reason).to.contain(reason)
    const { faults } = await service.debug<{ faults: { isLoss?: boolean; objects: string[]; references: ObjectReference[] }[] }>('push_status')
    expect(faults.map(({ isLoss, objects }) => [isLoss, objects])).to.deep.equal([[true, ['ServiceEntry/demo/shop']]])
    const object = { group: 'networking.mesh.io', kind: 'ServiceEntry', namespace: 'demo', name: 'shop' }
    const origin = { source: 'files', cluster: '', uid: '', version: '', place: 'shop.yaml, document 1' }
    expect(faults[0]?.references).to.deep.equal([{ ...object, ...origin }])
    await service.output.says('(ServiceEntry/demo/shop in shop.yaml, document 1 of files)')
  })

  it('is logged again when its object has changed since', async () => {
    for (const client of clients.splice(0)) client.close()
    service.write('shop.yaml', laptop.replace('127.0.0.1', '10.0.0.1'))
    await until('the change', async () => (await service.debug<EffectRow[]>('noeffectz')).length === 0)
    service.write('shop.yaml', laptop)
    await connect()
    await service.output.says(reason, 2, 2)
  })

  it('is logged of ports that are UDP, too', async () => {
    service.write('names.yaml', laptop.replaceAll('shop', 'names').replace('{number: 80, name: http}', '{number: 53, name: dns, protocol: UDP}'))
    await service.output.says(/\tinfo\tmodel\t.*names\.demo.*: port 53 is UDP, .*ServiceEntry\/demo\/names/, 1, 1)
  })

  it('is no error in the metrics', async () => {
    const metrics = await service.metrics()
    expect(metrics).to.match(/^pilot_invalid_resources 0$/m)
    expect(metrics).to.match(/^pilot_total_xds_internal_errors 0$/m)
  })
})
