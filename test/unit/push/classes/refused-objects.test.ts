/** The objects that a refusal is said to be about, where no patch is the cause, and who is told of it by an explanation. */
import { expect } from 'chai'
import { configKey } from '../../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../../src/config/parse.ts'
import { readNode } from '../../../../src/model/proxy.ts'
import { explainInput } from '../../../../src/push/explain/candidates.ts'
import { explain } from '../../../../src/push/explain/trial.ts'
import { Planner } from '../../../../src/push/planner.ts'
import { clusterType, listenerType } from '../../../../src/xds/type-urls.ts'
import { networkingDocument as document } from '../../../harness/mesh-document.ts'
import { names, testSettings } from '../../../harness/settings.ts'

const entry = (name: string, port: number, address: string) =>
  document(
    'ServiceEntry',
    name,
    `{hosts: [${name}.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: ${port}, name: http}], endpoints: [{address: ${address}, labels: {app: ${name}}}]}`,
  )

const documents = [
  entry('stock', 8443, '10.1.0.1'),
  entry('reviews', 9080, '10.1.0.9'),
  document('DestinationRule', 'reviews', '{host: reviews.example}'),
  document('Sidecar', 'stock', '{workloadSelector: {labels: {app: stock}}, egress: [{hosts: [./*]}]}'),
].join('---\n')

/** A mesh of a proxy of the stock, whose listeners are bound, and one of the shop. */
function mesh(): Planner {
  const planner = new Planner(testSettings())
  for (const object of parseConfigFile('in.yaml', documents, names).objects) planner.state.setConfig(configKey(object), object)
  planner.advance()
  for (const [at, app] of ['stock', 'shop'].entries()) {
    const metadata = { NAMESPACE: 'shop', LABELS: { app }, INTERCEPTION_MODE: 'NONE' }
    planner.connect(app, readNode({ id: `sidecar~10.1.0.${at + 1}~${app}.shop~shop.svc.cluster.local`, metadata, locality: undefined }, names, true))
  }
  return planner
}

/** Has the stock refuse a resource. */
function refuses(planner: Planner, typeUrl: string, name: string): void {
  const served = planner.servedClass('stock')
  const groups = served?.uses.flatMap(({ group }) => (group.typeUrl === typeUrl ? group.id : [])) ?? []
  const version = groups.map((id) => planner.groups.resources(id).get(name)?.version).find((each) => each !== undefined)
  if (version === undefined) throw new Error(`no ${name}`)
  const detail = `Error adding/updating listener(s) ${name}: cannot bind`
  planner.refused('stock', served?.id ?? '', { typeUrl, resources: [{ name, version }], detail, policiesChanged: false })
}

const blamed = (planner: Planner) => planner.faults.all().flatMap(({ type, objects }) => (type === 'refused' ? objects : []))

describe('a refusal without patches', () => {
  it('of an outbound listener names the services of its port: the policies and services of the workload itself were named', () => {
    const planner = mesh()
    refuses(planner, listenerType, '127.0.0.1_9080')
    expect(blamed(planner)).to.deep.equal(['ServiceEntry/shop/reviews'])
  })

  it('of a cluster names its service and rule', () => {
    const planner = mesh()
    refuses(planner, clusterType, 'outbound|9080||reviews.example')
    expect(blamed(planner)).to.deep.equal(['ServiceEntry/shop/reviews', 'DestinationRule/shop/reviews'])
  })

  it('is no reason why an object has no part in what another proxy has, or in another resource: explanations of all proxies had it', () => {
    const planner = mesh()
    refuses(planner, listenerType, '127.0.0.1_9080')
    for (const [connection, type, name] of [
      ['shop', listenerType, '127.0.0.1_8443'],
      ['shop', clusterType, 'outbound|9080||reviews.example'],
      ['stock', listenerType, '127.0.0.1_8443'],
      ['stock', listenerType, '127.0.0.1_9080'],
    ] as const) {
      const input = explainInput(planner, connection, type, name)
      if (!input) throw new Error('no such proxy')
      const reasons = explain(structuredClone(input), () => false).objects.map(({ reason }) => reason)
      expect(reasons, `${connection} ${name}`).to.not.be.empty
      expect(reasons.join(), `${connection} ${name}`).to.not.include('cannot bind')
    }
  })
})
