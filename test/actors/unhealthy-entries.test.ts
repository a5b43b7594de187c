/** A request to a service whose WorkloadEntries take no traffic is said to fail for that reason (docs/commands.md, Q8). */
import { expect } from 'chai'
import { Explanations } from '../../actors/discovery/admin/explanations.ts'
import { PageSources } from '../../actors/discovery/admin/page-sources.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { routingReason } from '../harness/routing-reason.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const service =
  '{apiVersion: networking.mesh.io/v1, kind: ServiceEntry, metadata: {name: ledger, namespace: shop}, spec: {hosts: [ledger.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], workloadSelector: {labels: {app: ledger}}}}'
const entry = (name: string, address: string, conditions: string) =>
  `{apiVersion: networking.mesh.io/v1, kind: WorkloadEntry, metadata: {name: ${name}, namespace: shop, annotations: {"proxy.mesh.io/health-checks-enabled": "true"}}, spec: {address: ${address}, labels: {app: ledger}}, status: {conditions: ${conditions}}}`
const failed = (message: string) => `[{type: Healthy, status: "False", message: ${message}}]`

describe('a service whose WorkloadEntries are not healthy', () => {
  const discovery = new LocalDiscovery({ mode: 'in-thread' }, { PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS: 'true' })
  let client: XdsClient | undefined
  let sources: PageSources
  const reason = (sees?: (namespace: string) => boolean) => routingReason(sources, 'ledger.example', sees)

  after(async () => {
    client?.close()
    await discovery.dispose()
  })

  it('is said to have no endpoints because of them: name, condition and message, as these are at last', async () => {
    const { supervisor, ready } = await discovery.start()
    await ready()
    sources = new PageSources(supervisor, true, new Explanations())
    discovery.write('a.yaml', service)
    discovery.write('one.yaml', entry('one', '10.0.0.1', failed('test ended with status 1')))
    client = await new XdsClient(discovery.grpcPort, sidecarNode('10.1.0.1', 'web', 'shop'), true).connect().ready()
    await until('the service', () => client?.resources.get(clusterType)?.has('outbound|80||ledger.example') ?? false)
    const none = 'ledger.example has no endpoints on port 80: '
    const one = 'WorkloadEntry shop/one is not healthy (its condition Healthy is not True: '
    await until('the reason', async () => (await reason()) === `${none}${one}test ended with status 1)`)
    discovery.write('one.yaml', entry('one', '10.0.0.1', failed('refused')))
    await until('the next message', async () => (await reason()) === `${none}${one}refused)`)
    for (const name of ['two', 'three', 'zero']) discovery.write(`${name}.yaml`, entry(name, `10.0.1.${name.length}`, '[]'))
    const said = /: (WorkloadEntry shop\/\w+ is not healthy \([^)]+\), ){3}1 WorkloadEntry more not healthy$/
    await until('the others', async () => said.test(await reason()))
    expect(await reason()).to.contain('is not healthy (its status has no condition Healthy)')
    expect(await reason(() => false)).to.equal(`${none}4 WorkloadEntries not healthy`)
    discovery.write('one.yaml', entry('one', '10.0.0.1', '[{type: Healthy, status: "True"}]'))
    await until('traffic', async () => (await reason()).startsWith('it is sent to ledger.example'))
  })
})
