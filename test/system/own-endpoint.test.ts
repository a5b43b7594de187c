import { expect } from 'chai'
import { clusterType, listenerType } from '../../src/xds/type-urls.ts'
import { OwnTime } from '../harness/own-time.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const entry = (name: string, address: string, port = 8080, labels = '{}') =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: ns}\nspec: {hosts: [${name}.ns.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: ${address}, ports: {http: ${port}}, labels: ${labels}}]}\n`
const policy =
  'apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: ns}\nspec: {selector: {matchLabels: {app: b}}, action: DENY, rules: [{}]}\n'

describe("changes of a proxy's own endpoint, and deleted services", () => {
  const service = new Service()
  let own: XdsClient
  before(async () => {
    service.write('own.yaml', entry('own', '10.1.1.1'))
    service.write('policy.yaml', policy)
    service.write('going.yaml', entry('going', '10.9.9.9'))
    await service.start()
    own = await new XdsClient(service.grpcPort, sidecarNode('10.1.1.1', 'own', 'ns', { INTERCEPTION_MODE: 'NONE' }), true).connect().ready()
  })
  after(async () => {
    own.close()
    await service.dispose()
  })
  const inbound = () => [...(own.resources.get(clusterType)?.keys() ?? [])].filter((name) => name.startsWith('inbound|')).join()
  const denied = () => [...(own.resources.get(listenerType)?.values() ?? [])].some((bytes) => bytes.includes('ns[ns]-policy[p]'))

  it('update inbound listeners when port or labels change at the same address', async () => {
    expect([inbound(), denied()]).to.deep.equal(['inbound|8080||', false])
    service.write('own.yaml', entry('own', '10.1.1.1', 9090))
    await until('the inbound cluster of the new port', () => inbound() === 'inbound|9090||')
    service.write('own.yaml', entry('own', '10.1.1.1', 9090, '{app: b}'))
    await until('the policy that selects the new label', denied)
  })

  it('remove a deleted service after two seconds although other changes continue', async () => {
    const going = () => own.resources.get(clusterType)?.has('outbound|80||going.ns.svc.cluster.local')
    service.remove('going.yaml')
    let round = 0
    const churn = setInterval(() => service.write('churn.yaml', entry(`churn-${++round}`, '10.8.8.8')), 150)
    const removed = new OwnTime()
    await until('the cluster to go', () => !going()).finally(() => clearInterval(churn))
    expect(removed.passed()).to.be.above(1900)
    expect(removed.ms()).to.be.below(6000)
    expect(round).to.be.greaterThan(5)
  })
})
