import { expect } from 'chai'
import type { Service } from '../../../protocols/data.ts'
import { configKey } from '../../../src/config/kinds.ts'
import { readMeshConfig } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { Faults } from '../../../src/model/faults.ts'
import { selectsLabels } from '../../../src/snapshot/discovery.ts'
import { MeshState } from '../../../src/snapshot/state.ts'
import { names, testSettings } from '../../harness/settings.ts'

const meshOf = (text: string) => {
  const read = readMeshConfig(text)
  if ('error' in read) throw new Error(read.error)
  return read.value
}
const documents = (...texts: string[]) => parseConfigFile('f', texts.join('---\n'), names).objects
const namespace = (name: string, labels: string) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}, labels: ${labels}}\n`
const entry = (name: string, of: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: ${of}}\nspec: {hosts: [${name}.test], ports: [{number: 80, name: http}]}\n`
const policy = (of: string) => `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: deny, namespace: ${of}}\nspec: {}\n`
const serviceOf = (of: string, cluster: string): Service => ({
  ...{ hostname: `s.${of}.${cluster}`, namespace: of, name: 's', provider: 'Orchestrator', cluster, addresses: [], ports: [], resolution: 'static' },
  ...{ external: false, exportTo: [], serviceAccounts: [], selector: undefined, createdAt: 0 },
})

/** A state with what counts in it. */
class Mesh {
  readonly faults = new Faults()
  readonly state = new MeshState(testSettings(), this.faults)

  set(...texts: string[]): this {
    for (const object of documents(...texts)) this.state.setConfig(configKey(object), object)
    return this
  }

  selectors(text: string): this {
    this.state.setMesh(meshOf(`discoverySelectors: ${text}`))
    return this
  }

  serve(service: Service): this {
    this.state.services.set(`Orchestrator/${service.cluster}`, `${service.namespace}/${service.hostname}`, { service, slices: [] })
    return this
  }

  get hosts(): string[] {
    return [...this.state.take(0).snapshot.services.keys()].sort()
  }
}

describe('discoverySelectors', () => {
  it('select labels as the orchestrator does, in the alias form of names too', () => {
    const labels = { a: '1', 'mesh.io/rev': 'new' }
    const by = (text: string) => {
      const [selector] = meshOf(`discoverySelectors: [${text}]`).discoverySelectors ?? []
      return selector && selectsLabels(selector, labels, names)
    }
    for (const text of [
      '{}',
      '{matchLabels: {a: "1", istio.io/rev: new}}',
      '{matchExpressions: [{key: a, operator: In, values: ["0", "1"]}, {key: b, operator: NotIn, values: [x]}]}',
      '{matchExpressions: [{key: a, operator: Exists}, {key: b, operator: DoesNotExist}]}',
    ])
      expect(by(text), text).to.equal(true)
    for (const text of [
      '{matchLabels: {a: "1", b: "2"}}',
      '{matchLabels: {a: "1"}, matchExpressions: [{key: a, operator: NotIn, values: ["1"]}]}',
      '{matchExpressions: [{key: a, operator: DoesNotExist}]}',
      '{matchExpressions: [{key: constructor, operator: Exists}]}',
    ])
      expect(by(text), text).to.equal(false)
    for (const [text, reason] of [
      ['[{matchExpressions: [{key: a, operator: In}]}]', 'In needs values'],
      ['[{matchExpressions: [{key: a, operator: Exists, values: [b]}]}]', 'Exists takes no values'],
      ['[{matchExpressions: [{key: a, operator: Like}]}]', 'operator'],
    ] as const)
      expect(JSON.stringify(readMeshConfig(`discoverySelectors: ${text}`))).to.include(reason)
  })

  it('leave out what is configured in other namespaces, except policies and the root namespace; an object without a namespace is of default', () => {
    const mesh = new Mesh().set(entry('one', 'in'), entry('two', 'out'), entry('three', 'mesh-system'), entry('four', '""'), policy('out'))
    mesh.set(namespace('in', '{mesh: "yes"}'), namespace('default', '{mesh: "yes"}'), namespace('out', '{}'))
    mesh.selectors('[{matchLabels: {mesh: "yes"}}]')
    expect(mesh.hosts).to.deep.equal(['four.test', 'one.test', 'three.test'])
    expect(mesh.state.current.policies.authorization.get('out')).to.have.length(1)
    expect(mesh.faults.all().map(({ resource, reason, isLoss }) => [resource, reason.slice(0, 19), isLoss])).to.deep.equal([
      ['out', 'its labels match no', true],
    ])
    mesh.set(namespace('out', '{mesh: "yes"}'))
    expect(mesh.hosts).to.include('two.test')
    expect(mesh.faults.all()).to.deep.equal([])
    mesh.set(namespace('out', '{}')).set(entry('five', 'out'))
    expect(mesh.hosts).to.deep.equal(['four.test', 'one.test', 'three.test'])
    mesh.selectors('[]')
    expect(mesh.hosts).to.deep.equal(['five.test', 'four.test', 'one.test', 'three.test', 'two.test'])
  })

  it('decide on the services of a registry by the namespace of its own cluster', () => {
    const mesh = new Mesh().serve(serviceOf('shop', 'east')).serve(serviceOf('shop', 'west')).selectors('[{matchLabels: {mesh: "yes"}}]')
    expect(mesh.hosts).to.deep.equal([])
    const [shop] = documents(namespace('shop', '{mesh: "yes"}'))
    const tell = (cluster: string, labels: Record<string, string>) => {
      const object = { ...(shop as NonNullable<typeof shop>), cluster, labels }
      mesh.state.setConfig(configKey(object), object)
    }
    tell('east', { mesh: 'yes' })
    tell('west', {})
    expect(mesh.hosts).to.deep.equal(['s.shop.east'])
    tell('west', { mesh: 'yes' })
    expect(mesh.hosts).to.deep.equal(['s.shop.east', 's.shop.west'])
    tell('east', { mesh: 'no' })
    expect(mesh.hosts).to.deep.equal(['s.shop.west'])
  })

  it('visit the objects of a namespace only when it is another answer', () => {
    const mesh = new Mesh().set(entry('one', 'in'), namespace('in', '{mesh: "yes"}')).selectors('[{matchLabels: {mesh: "yes"}}]')
    expect(mesh.hosts).to.deep.equal(['one.test'])
    const { snapshot } = mesh.state.take(0)
    mesh.set(namespace('in', '{mesh: "yes", more: "1"}'), namespace('unused', '{}'))
    const after = mesh.state.take(0)
    expect([after.changes.objects, [...after.changes.hosts], after.changes.settings]).to.deep.equal([[], [], false])
    expect(after.snapshot.services).to.equal(snapshot.services)
  })
})
