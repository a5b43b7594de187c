/** NACKs of clients over both protocols (docs/resources.md, F7). */
import { expect } from 'chai'
import { listenerType } from '../../src/xds/type-urls.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const filter = (name: string) => `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: marks, namespace: shop}
spec:
  configPatches:
  - {applyTo: LISTENER, match: {context: SIDECAR_INBOUND}, patch: {operation: MERGE, value: {stat_prefix: ${name}}}}
  - {applyTo: CLUSTER, patch: {operation: ADD, value: {name: ${name}, type: STATIC}}}
`
const deny = `apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: nobody, namespace: shop}
spec: {action: DENY, rules: [{to: [{operation: {paths: [/secret]}}]}]}
`

for (const delta of [false, true])
  describe(`a client that refuses everything, over ${delta ? 'delta' : 'state of the world'}`, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
    const clients: XdsClient[] = []
    const connect = () => {
      const client = new XdsClient(service.grpcPort, sidecarNode('10.0.0.1', 'a', 'shop'), delta)
      clients.push(client)
      return client
    }
    const marks = (client: XdsClient, name: string) => client.resources.get(listenerType)?.get('virtualInbound')?.includes(name) ?? false

    before(async () => {
      service.write('filter.yaml', filter('first-mark'))
      await service.start()
    })
    after(async () => {
      for (const client of clients) client.close()
      await service.dispose()
    })

    it('is sent a few versions and then nothing, and other proxies of its class are not affected', async () => {
      const honest = await connect().connect().ready()
      expect(marks(honest, 'first-mark')).to.equal(true)
      const responses = () => clients.slice(1).reduce((sum, client) => sum + client.order.length, 0)
      for (let index = 0; index < 10; index++) {
        const hostile = connect()
        hostile.refuseAll = index % 2 === 0 ? 'Error adding/updating listener(s) virtualInbound: no' : 'no'
        hostile.connect()
      }
      await until('first answers', () => clients.slice(1).every((client) => client.responses.has(listenerType)))
      const before = honest.order.length
      service.write('filter.yaml', filter('second-mark'))
      service.write('deny.yaml', deny)
      await until(
        'the change',
        () => marks(honest, 'second-mark') && (honest.resources.get(listenerType)?.get('virtualInbound')?.includes('/secret') ?? false),
      )
      expect(honest.order.length - before).to.be.below(8)
      let settled = -1
      await until('silence', () => {
        const [now, then] = [responses(), settled]
        settled = now
        return now === then
      })
      expect(settled, 'responses to ten clients').to.be.below(10 * 40)
      await service.output.says(/refused Listener virtualInbound by a\.shop( and \d+ other prox\w+)?: no; \w/)
      expect((await connect().connect().ready()).resources.get(listenerType)?.get('virtualInbound')?.includes('second-mark')).to.equal(true)
    })
  })
