/** What the push queue makes before the first proxy connects. */
import { expect } from 'chai'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { routeType } from '../../../src/xds/type-urls.ts'
import { resourcesOf } from '../../harness/held.ts'
import { names, testSettings } from '../../harness/settings.ts'

const namespaces = ['n1', 'n2', 'team.a']

/** A planner of a mesh with a service in each namespace, whose push is taken. */
function meshPlanner(): Planner {
  const planner = new Planner(testSettings())
  for (const namespace of namespaces) {
    const hosts = [`a.${namespace}.svc.cluster.local`]
    const ports = [{ number: 80, name: 'http', protocol: 'HTTP' }]
    const spec = { hosts, location: 'MESH_INTERNAL', resolution: 'STATIC', ports, endpoints: [{ address: '10.0.0.1' }] }
    const text = JSON.stringify({ apiVersion: 'networking.mesh.io/v1', kind: 'ServiceEntry', metadata: { name: 'a', namespace }, spec })
    for (const object of parseConfigFile('f', text, names).objects) planner.state.setConfig(configKey(object), object)
  }
  planner.advance()
  planner.takePush()
  return planner
}

/** Prepares everything and returns the bytes of each step. */
function prepared(planner: Planner): number[] {
  const bytes: number[] = []
  const steps = planner.prepare()
  for (let step = steps.next(); !step.done; step = steps.next()) bytes.push(step.value)
  planner.takePush()
  return bytes
}

/** Connects a proxy to each namespace. The connections have the names of the namespaces. */
function connect(planner: Planner, takesVirtualHosts = false): void {
  for (const namespace of namespaces) {
    const id = `sidecar~10.1.0.1~p.${namespace}~${namespace}.svc.cluster.local`
    planner.connect(namespace, { ...readNode({ id, metadata: { NAMESPACE: namespace }, locality: undefined }, names, false), takesVirtualHosts })
  }
}

describe('the preparation for the first proxies', () => {
  for (const takesVirtualHosts of [false, true])
    it(`builds every group that an ordinary sidecar ${takesVirtualHosts ? 'with VHDS ' : ''}of a namespace with services needs`, () => {
      const planner = meshPlanner()
      prepared(planner)
      const before = [...planner.groups.ids()]
      connect(planner, takesVirtualHosts)
      const { groups, manifests } = planner.takePush()
      expect(manifests).to.have.length(namespaces.length)
      expect([...planner.groups.ids()]).to.deep.equal(before)
      expect(groups).to.deep.equal([])
    })

  it('gives proxies the resources that they get without it', () => {
    const [ready, fresh] = [meshPlanner(), meshPlanner()]
    prepared(ready)
    for (const planner of [ready, fresh]) connect(planner)
    const held = (planner: Planner, namespace: string) =>
      [...resourcesOf(planner, namespace)].map(([type, resources]) => [type, ...resources.map(({ name, version }) => `${name} ${version}`)])
    for (const namespace of namespaces) {
      expect(held(ready, namespace)).to.deep.equal(held(fresh, namespace))
      expect(held(ready, namespace).find(([type]) => type === routeType)).to.have.length.above(1)
    }
  })

  it('counts the bytes of a group once', () => {
    const bytes = prepared(meshPlanner())
    const [first = 0, , second = 0] = bytes.slice(-2 * namespaces.length)
    expect(first).to.be.greaterThan(second)
    expect(second).to.be.greaterThan(0)
  })

  it('is undone by the next change, and adds no class', () => {
    const planner = meshPlanner()
    prepared(planner)
    expect(planner.classCount).to.equal(0)
    planner.state.setConfig('ServiceEntry/n2/a', undefined)
    planner.advance()
    expect([...planner.groups.ids()]).to.deep.equal([])
  })
})
