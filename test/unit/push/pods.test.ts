import { expect } from 'chai'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { names, testSettings } from '../../harness/settings.ts'

const parse = (text: string) => {
  const { objects, faults } = parseConfigFile('f', text, names)
  expect(faults).to.deep.equal([])
  return objects
}
const pod = (name: string, labels: string, address = '', more = '') =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}, namespace: ns, labels: ${labels}}\nstatus: {podIP: "${address}"}\n${more}\n---\n`
const sidecarOf = (labels: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: Sidecar\nmetadata: {name: chosen, namespace: ns}\nspec: {workloadSelector: {labels: ${labels}}, egress: [{hosts: ["./*"]}]}\n---\n`

/** A planner with connected proxies. */
class Mesh {
  readonly planner = new Planner(testSettings())

  set(text: string): this {
    for (const object of parse(text)) this.planner.state.setConfig(configKey(object), object)
    return this
  }

  remove(kind: string, name: string): this {
    this.planner.state.setConfig(configKey({ kind, namespace: 'ns', name }), undefined)
    return this
  }

  connect(name: string, address: string, metadata: Record<string, unknown> = {}): this {
    const id = `sidecar~${address}~${name}.ns~ns.svc.cluster.local`
    this.planner.connect(name, readNode({ id, metadata, locality: undefined }, names, false))
    return this
  }

  /** The name of the Sidecar in force for a proxy, after all changes so far. */
  sidecar(connection: string): string | undefined {
    this.planner.advance()
    return this.planner.servedClass(connection)?.proxyClass.viewKey.sidecar?.name
  }
}

describe('the pod of a proxy', () => {
  it('is found by the name of the proxy, and its labels count rather than those of the node', () => {
    const mesh = new Mesh().set(sidecarOf('{app: web}')).set(pod('web-1', '{app: web}'))
    mesh.planner.advance()
    mesh.connect('web-1', '10.0.0.1', { LABELS: { app: 'other' } }).connect('web-2', '10.0.0.2', { LABELS: { app: 'web' } })
    expect([mesh.sidecar('web-1'), mesh.sidecar('web-2')]).to.deep.equal(['chosen', 'chosen'])
    mesh.set(pod('web-2', '{}'))
    expect([mesh.sidecar('web-1'), mesh.sidecar('web-2')]).to.deep.equal(['chosen', undefined])
    mesh.remove('Pod', 'web-2').remove('Pod', 'web-1')
    expect([mesh.sidecar('web-1'), mesh.sidecar('web-2')]).to.deep.equal([undefined, 'chosen'])
  })

  it('is found by address where no pod has the name; a pod with the addresses of its node is not', () => {
    const mesh = new Mesh().set(sidecarOf('{app: web}')).set(pod('a', '{app: web}', '10.0.0.1'))
    mesh.set(pod('b', '{app: web}', '10.0.0.2', 'spec: {hostNetwork: true}'))
    mesh.connect('x', '10.0.0.1').connect('y', '10.0.0.2')
    expect([mesh.sidecar('x'), mesh.sidecar('y')]).to.deep.equal(['chosen', undefined])
    mesh.set(pod('a', '{app: web}', '10.0.0.3'))
    expect(mesh.sidecar('x')).to.equal(undefined)
  })

  it('is none of another cluster than the proxy names', () => {
    const mesh = new Mesh().set(sidecarOf('{app: web}'))
    const [there] = parse(pod('web-1', '{app: web}'))
    const at = (cluster: string, labels: Record<string, string>) => {
      const object = { ...(there as NonNullable<typeof there>), cluster, labels }
      mesh.planner.state.setConfig(configKey(object), object)
    }
    at('east', { app: 'web' })
    at('west', {})
    mesh.connect('web-1', '10.0.0.1', { CLUSTER_ID: 'west' })
    expect(mesh.sidecar('web-1')).to.equal(undefined)
    at('west', { app: 'web' })
    expect(mesh.sidecar('web-1')).to.equal('chosen')
  })

  it('finds the class again of its own proxy only, and of none where the labels are equal', () => {
    const mesh = new Mesh().set(sidecarOf('{app: web}'))
    const count = 10_000
    mesh.set(Array.from({ length: count }, (_, index) => pod(`p-${index}`, `{app: "app-${index}"}`, `10.1.${index >> 8}.${index & 255}`)).join(''))
    mesh.planner.advance()
    for (let index = 0; index < 500; index++) mesh.connect(`p-${index}`, `10.1.${index >> 8}.${index & 255}`)
    mesh.planner.advance()
    const found: string[] = []
    const { builder } = mesh.planner
    const produce = builder.record.produce.bind(builder.record)
    builder.record.produce = (product, make) => {
      const owner = product.madeFor as { connection?: string }
      if (owner.connection !== undefined) found.push(owner.connection)
      return produce(product, make)
    }
    mesh.set(pod('p-7', '{app: web}', '10.1.0.7'))
    expect(mesh.sidecar('p-7')).to.equal('chosen')
    expect(found).to.deep.equal(['p-7'])
    const before = process.cpuUsage()
    for (let round = 0; round < 100; round++)
      mesh.set(pod(`p-${round}`, `{app: "app-${round}"}`, `10.1.0.${round}`, `spec: {nodeName: n${round}}`)).planner.advance()
    const { user, system } = process.cpuUsage(before)
    expect(found).to.deep.equal(['p-7', 'p-7'])
    expect((user + system) / 1000 / 100, 'milliseconds for each changed pod').to.be.below(10)
  })
})
