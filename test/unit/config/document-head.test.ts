import { expect } from 'chai'
import { readMeshConfig } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'

const parse = (content: string) => parseConfigFile('file.yaml', content, meshNames('mesh.io'))
/** Returns the faults of a text as `<key> <path>: <reason>`. */
const faultsOf = (content: string) => parse(content).faults.map(({ key, path, reason }) => `${key} ${path}: ${reason}`)
const entrySpec = '{hosts: [a.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}'
const entry = (metadata: string, rest = `spec: ${entrySpec}`) =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: ${metadata}\n${rest}\n`
const policy = (metadata: string, rest = 'spec: {action: DENY, rules: [{}]}') =>
  `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: ${metadata}\n${rest}\n`
const secret = (metadata: string, rest: string) => `apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: ${metadata}\n${rest}\n`

describe('a field of the wrong type', () => {
  it('is the only fault if it is the metadata, with or without a spec', () => {
    const reason = 'metadata: expected a mapping, got string "abc"'
    expect(faultsOf(entry('abc'))).to.deep.equal([`ServiceEntry//(file.yaml#1) ${reason}`])
    expect(faultsOf(entry('abc', ''))).to.deep.equal([`ServiceEntry//(file.yaml#1) ${reason}`])
    expect(faultsOf(entry('[a]'))).to.deep.equal(['ServiceEntry//(file.yaml#1) metadata: expected a mapping, got a list'])
    expect(faultsOf(policy('abc'))).to.deep.equal([`AuthorizationPolicy//(file.yaml#1) ${reason}`])
    expect(faultsOf(secret('abc', 'data: {tls.crt: 1}')))
      .to.include(`Secret//(file.yaml#1) ${reason}`)
      .and.have.length(2)
  })

  it('of a policy leads to a stand-in for all namespaces if it is the metadata', () => {
    const { standIns, objects } = parse(policy('abc'))
    expect(objects).to.deep.equal([])
    expect([...standIns.values()].map(({ namespace, name }) => [namespace, name])).to.deep.equal([['', '(file.yaml#1)']])
  })

  it('is named with its type if it is the spec, the labels, the kind or the apiVersion', () => {
    expect(faultsOf(entry('{name: x, namespace: ns}', 'spec: abc'))).to.deep.equal(['ServiceEntry/ns/x spec: expected a mapping, got string "abc"'])
    expect(faultsOf(entry('{name: x, namespace: ns, labels: abc, annotations: [1]}'))).to.deep.equal([
      'ServiceEntry/ns/x metadata.labels: expected a mapping, got string "abc"',
      'ServiceEntry/ns/x metadata.annotations: expected a mapping, got a list',
    ])
    expect(faultsOf('apiVersion: networking.mesh.io/v1\nkind: [a]\n')).to.deep.equal(['undefined kind: expected text, got a list'])
    expect(faultsOf('apiVersion: 1\nkind: Thing\n')).to.deep.equal([
      'undefined apiVersion: expected text, got number 1; a number is a text only in quotes',
    ])
    expect(faultsOf(entry('{name: x, namespace: n}'))).to.deep.equal([
      'ServiceEntry//x metadata.namespace: expected text, got boolean false; y, n, yes, no, on, off, true and false are texts only in quotes',
    ])
    expect(faultsOf('apiVersion: null\nkind: Thing\n')).to.deep.equal(['undefined apiVersion: required, but missing'])
  })

  it('of a Secret is the only fault of its data', () => {
    expect(faultsOf(secret('{name: x, namespace: ns}', 'data: abc'))).to.deep.equal(['Secret/ns/x data: expected a mapping'])
  })
})

describe('a merge key', () => {
  const given = '{name: x, namespace: ns}'
  for (const [place, text] of [
    ['the metadata', entry(`{<<: ${given}}`)],
    ['the document', `<<: {metadata: ${given}}\n${entry('{}').replace('metadata: {}\n', '')}`],
    ['the spec', entry(given, `spec: {<<: ${entrySpec}}`)],
    ['a list of the spec', entry(given, 'spec: {hosts: [a.example], ports: [{<<: {number: 80, protocol: HTTP}, name: http}], resolution: DNS}')],
    ['an alias', entry(given, `spec: {hosts: [a.example], ports: [&a {number: 80, name: http, protocol: HTTP}], <<: {resolution: DNS}}`)],
  ] as const)
    it(`stands for the fields of its mapping: in ${place}`, () => {
      const { objects, faults } = parse(text)
      expect(faults).to.deep.equal([])
      expect(objects).to.deep.equal(parse(entry(given)).objects)
    })

  it('is read in the mesh configuration', () => {
    expect(readMeshConfig('defaultConfig: &base {concurrency: 3}\n<<: {rootNamespace: root}\n')).to.have.nested.property(
      'value.rootNamespace',
      'root',
    )
  })

  it('in quotes is a key like others', () => {
    expect(faultsOf(entry('{name: x, namespace: ns, annotations: {"<<": text}}'))).to.deep.equal([])
    expect(faultsOf(policy(given, 'spec: {action: DENY, rules: [{}], "<<": {action: ALLOW}}'))).to.deep.equal([
      'AuthorizationPolicy/ns/x spec.<<: unknown field',
    ])
  })

  it('gives a policy its name, its namespace and its rules', () => {
    const read = (text: string) => parse(text).objects.map(({ namespace, name, spec }) => [namespace, name, spec])
    const expected = read(policy(given))
    expect(expected).to.have.length(1)
    for (const text of [
      policy('{name: x, <<: {namespace: ns}}'),
      policy('{namespace: ns, <<: {name: x}}'),
      policy(given, 'spec: {<<: {action: DENY, rules: [{}]}}'),
    ])
      expect(read(text), text).to.deep.equal(expected)
  })
})

describe('the key of a document without a valid name', () => {
  it('has the given name, cut to 100 characters', () => {
    const keyOf = (text: string) => parse(text).faults[0]?.key
    expect(keyOf(entry('{name: "a b", namespace: shop}'))).to.equal('ServiceEntry/shop/("a b")')
    expect(keyOf(entry(`{name: ${'a'.repeat(300)}, namespace: shop}`))).to.equal(`ServiceEntry/shop/("${'a'.repeat(100)}")`)
    expect(keyOf(entry('{name: 5, namespace: shop}'))).to.equal('ServiceEntry/shop/(number 5)')
    expect(keyOf(secret('{name: "a\\nb", namespace: shop}', 'data: abc'))).to.equal('Secret/shop/("a\\nb")')
  })

  it('has the file, the number of the document and the place in a list if no name is given', () => {
    const list = `apiVersion: v1\nkind: List\nitems: [{apiVersion: networking.mesh.io/v1, kind: ServiceEntry, metadata: {namespace: shop}, spec: ${entrySpec}}]\n`
    const { faults } = parse([entry('{name: x, namespace: shop}'), entry('{namespace: shop}'), list].join('---\n'))
    expect(faults.map(({ key }) => key)).to.deep.equal(['ServiceEntry/shop/(file.yaml#2)', 'ServiceEntry/shop/(file.yaml#3 items[0])'])
  })

  it('differs between policies, each of which has a stand-in', () => {
    const { standIns } = parse([policy('{namespace: shop}'), policy('{namespace: shop}')].join('---\n'))
    expect([...standIns.keys()]).to.deep.equal(['AuthorizationPolicy/shop/(file.yaml#1)', 'AuthorizationPolicy/shop/(file.yaml#2)'])
  })
})
