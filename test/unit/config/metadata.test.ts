import { expect } from 'chai'
import { parse } from 'yaml'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { kinds } from '../../../src/config/kinds.ts'
import { metadataRemarks } from '../../../src/config/metadata.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { isPolicyKind } from '../../../src/config/recognise.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { testSettings } from '../../harness/settings.ts'

const names = meshNames('mesh.io')
const assumed = 'missing, so the object counts in the namespace default'
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
    expect(warned(sidecar('name: a, namespaces: b'))).to.deep.equal([
      'metadata.namespaces: unknown field, left out; did you mean "namespace"?',
      `metadata.namespace: ${assumed}`,
    ])
    expect(warned(sidecar('name: a, namespace: shop, label: {a: b}'))).to.deep.equal([
      'metadata.label: unknown field, left out; did you mean "labels"?',
    ])
    const many = Array.from({ length: 100 }, (_, index) => `x${index}: 1`).join(', ')
    expect(warned(sidecar(`name: a, namespace: shop, ${many}`))).to.have.lengthOf(20)
  })

  it('is told where it names no namespace, and which one is assumed, for all kinds but policies, which need one', () => {
    for (const { group, name, versions } of kinds.values()) {
      const content = `apiVersion: ${group}.mesh.io/${versions[0]}\nkind: ${name}\nmetadata: {name: a}\nspec: {}\n`
      const { faults: found, warnings, objects } = parseConfigFile('a.yaml', content, names)
      const about = [...found, ...warnings].filter(({ path }) => path === 'metadata.namespace').map(({ key, reason }) => `${key}: ${reason}`)
      expect(about, name).to.deep.equal([isPolicyKind(name) ? `${name}//a: required, but missing` : `${name}/default/a: ${assumed}`])
      for (const object of objects) if (!isPolicyKind(name)) expect(object.namespace, name).to.equal('default')
    }
    expect(parseConfigFile('a.yaml', sidecar('name: a').replace('Sidecar', 'Sidecra'), names).faults.map(({ key }) => key)).to.deep.equal([
      'Sidecar/default/a',
    ])
    const list = `apiVersion: v1\nkind: List\nitems: [${JSON.stringify(parse(sidecar('name: a')))}]\n`
    expect(parseConfigFile('a.yaml', list, names).warnings.map(({ path }) => path)).to.deep.equal(['items[0].metadata.namespace'])
    // Where a user says to which namespace they are applied, nothing is assumed.
    expect(parseConfigFile('a.yaml', sidecar('name: a'), names, undefined, undefined, '', 'files', { namespace: 'shop' }).warnings).to.deep.equal([])
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

  it('is told where no cluster takes a label or annotation, at most twenty of each', () => {
    const paths = (given: string) => warned(sidecar(`name: a, namespace: shop, ${given}`)).map((line) => line.slice(0, line.indexOf(': ')))
    expect(warned(sidecar('name: a, namespace: shop, labels: {"bad label": "x y"}, annotations: {"bad anno!": x}'))).to.deep.equal([
      'metadata.labels[bad label]: no cluster takes this name: at most 63 letters, digits, "-", "_" and ".", which begin and end with a letter or digit, after "<prefix>/" or without; a prefix has lower-case letters, digits, "-" and "."',
      'metadata.labels[bad label]: "x y" is not a value that a cluster takes for a label: at most 63 letters, digits, "-", "_" and ".", which begin and end with a letter or digit, or empty',
      'metadata.annotations[bad anno!]: no cluster takes this name: at most 63 letters, digits, "-", "_" and ".", which begin and end with a letter or digit, after "<prefix>/" or without; a prefix has lower-case letters, digits, "-" and "."',
    ])
    for (const key of ['/a', 'a/', 'a/b/c', '-a', 'a.', 'A.b/c', `${'a'.repeat(64)}`, `${'a'.repeat(254)}/b`])
      expect(paths(`labels: {${JSON.stringify(key)}: ""}`), key).to.have.lengthOf(1)
    for (const value of ['-a', 'a_', 'a/b', 'a'.repeat(64)])
      expect(paths(`labels: {a: ${JSON.stringify(value)}}`), value).to.deep.equal(['metadata.labels[a]'])
    for (const key of ['a', 'A_b.c-7', 'a.b/c', 'sidecar.mesh.io/inject', `${'a'.repeat(63)}`])
      for (const value of ['', 'v1.2', 'A_b-c', 'a'.repeat(63)]) expect(paths(`labels: {${key}: ${JSON.stringify(value)}}`), key).to.deep.equal([])
    expect(paths('annotations: {Example.com/A: "any text, {of} any length"}')).to.deep.equal([])
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`!${index}`, 'a']))
    expect(metadataRemarks({ labels: many, annotations: many })).to.have.lengthOf(40)
  })

  it('is told of templates of pods, at their place', () => {
    const offline = new OfflineMesh(testSettings(), undefined, { namespace: 'default' })
    const template = 'template: {metadata: {labels: {app: "a b"}}, spec: {containers: []}}'
    offline.add('a.yaml', `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {${template}}\n`)
    offline.add('b.yaml', `apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: tick}\nspec: {jobTemplate: {spec: {${template}}}}\n`)
    expect(offline.warnings.map(({ key, path }) => `${key} ${path}`)).to.deep.equal([
      'Deployment/default/web spec.template.metadata.labels[app]',
      'CronJob/default/tick spec.jobTemplate.spec.template.metadata.labels[app]',
    ])
  })

  it('is told of Services and workloads in files too, with the object', () => {
    const offline = new OfflineMesh(testSettings(), undefined, { namespace: 'default' })
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
