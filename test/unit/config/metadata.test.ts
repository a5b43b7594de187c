import { expect } from 'chai'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { testSettings } from '../../harness/settings.ts'

const names = meshNames('mesh.io')
const sidecar = (metadata: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: Sidecar\nmetadata: {${metadata}}\nspec: {egress: [{hosts: ["./*"]}]}\n`

/** The warnings of a file, `<path>: <reason>`. */
const warned = (content: string, file = 'a.yaml') => parseConfigFile(file, content, names).warnings.map(({ path, reason }) => `${path}: ${reason}`)
const faults = (content: string) => parseConfigFile('a.yaml', content, names).faults.map(({ path, reason }) => `${path}: ${reason}`)

describe('metadata of documents', () => {
  it('may have all fields that servers write', () => {
    const written =
      'name: a.b-7, namespace: shop, generateName: a, uid: u, resourceVersion: "1", generation: 1, creationTimestamp: null, deletionTimestamp: null, deletionGracePeriodSeconds: 1, selfLink: s, labels: {}, annotations: {}, ownerReferences: [], finalizers: [], managedFields: []'
    expect(warned(sidecar(written))).to.deep.equal([])
  })

  it('is told where it has unknown fields, at most twenty of them', () => {
    expect(warned(sidecar('name: a, namespaces: b'))).to.deep.equal(['metadata.namespaces: unknown field, left out; did you mean "namespace"?'])
    expect(warned(sidecar('name: a, namespace: shop, label: {a: b}'))).to.deep.equal([
      'metadata.label: unknown field, left out; did you mean "labels"?',
    ])
    const many = Array.from({ length: 100 }, (_, index) => `x${index}: 1`).join(', ')
    expect(warned(sidecar(`name: a, namespace: shop, ${many}`))).to.have.lengthOf(20)
  })

  it('is told where no cluster takes a name or namespace', () => {
    for (const name of ['A_7', 'a_b', 'Web', 'a..b', 'a-.b'])
      expect(warned(sidecar(`name: ${name}, namespace: shop`)), name).to.deep.equal([
        `metadata.name: "${name}" is not a name that a cluster takes: lower-case letters, digits, "-" and ".", of which each part begins and ends with a letter or digit`,
      ])
    for (const namespace of ['a.b', 'Shop', 'a_b', 'a'.repeat(64)])
      expect(warned(sidecar(`name: a, namespace: ${namespace}`)), namespace).to.deep.equal([
        `metadata.namespace: "${namespace}" is not a name that a namespace can have: at most 63 lower-case letters, digits and "-", which begins and ends with a letter or digit`,
      ])
    for (const name of ['a', '7', 'a.b', `${'a'.repeat(200)}.b`]) expect(warned(sidecar(`name: ${name}, namespace: shop`)), name).to.deep.equal([])
  })

  it('is told of Services and workloads in files too, with the object', () => {
    const offline = new OfflineMesh(testSettings(), undefined, 'default')
    offline.add(
      'a.yaml',
      'apiVersion: v1\nkind: Service\nmetadata: {name: web, nmespace: b}\nspec: {ports: [{name: http, port: 80}]}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: "system:A_7"}\n',
    )
    new Analysis(offline.facts()).refresh()
    expect(offline.warnings.map(({ key, path }) => `${key} ${path}`)).to.deep.equal(['Service/default/web metadata.nmespace'])
  })
})

describe('documents that are no objects', () => {
  it('are told, but for those of tools beside the objects', () => {
    const told = [': it is no object, so it is left out: it has neither apiVersion nor kind']
    expect(warned('a: b')).to.deep.equal(told)
    expect(warned(`${sidecar('name: a, namespace: shop')}---\na: b\n`)).to.deep.equal(told)
    for (const file of ['chart/values.yaml', 'kustomization.yml', 'values-prod.yaml', 'chart/Chart.yaml'])
      expect(warned('resources: [a.yaml]', file), file).to.deep.equal([])
    expect(warned('')).to.deep.equal([])
  })

  it('are told at most twenty times in a file', () => {
    expect(warned('a: b\n---\n'.repeat(100))).to.have.lengthOf(20)
  })

  it('are told as lists whose items have another name, or are missing, with the objects that may be in them', () => {
    expect(faults('apiVersion: v1\nkind: List\nitem: [{apiVersion: v1, kind: Service, metadata: {name: web}}]')).to.deep.equal([
      'item: unknown field in kind "List", apiVersion "v1", so none of its objects is read; did you mean "items"?',
    ])
    expect(faults('apiVersion: v1\nkind: List')).to.deep.equal(['kind: there are no items in kind "List", apiVersion "v1"'])
    expect(faults('apiVersion: v1\nkind: List\nitems: []')).to.deep.equal([])
    expect(faults('apiVersion: example.com/v1\nkind: WishList\nspec: {}')).to.deep.equal([])
    const policy = 'apiVersion: security.mesh.io/v1, kind: AuthorizationPolicy, metadata: {name: p, namespace: shop}, spec: {action: DENY}'
    const held = parseConfigFile('a.yaml', `apiVersion: v1\nkind: List\nitem: [{${policy}}]`, names)
    expect([...held.standIns.keys()]).to.deep.equal(['AuthorizationPolicy/shop/p'])
  })
})
