import { expect } from 'chai'
import { recognise } from '../../../src/config/recognise.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { cpuMs } from '../../harness/own-time.ts'

const names = meshNames('mesh.io')
const seen = (text: string) => recognise(text, names).objects.map(({ kind, namespace, name }) => `${kind}/${namespace}/${name}`)

describe('recognition of objects in unreadable documents', () => {
  it('finds kind, namespace and name in YAML and JSON, in any order of fields', () => {
    for (const text of [
      'apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata:\n  name: p\n  namespace: shop\nspec: {provider: {name: x}, action: "DENY',
      'kind: AuthorizationPolicy\r\nmetadata: {namespace: "shop", name: \'p\'\r\nspec: {provider: {name: x}}\r\napiVersion: security.istio.io/v1\r\n',
      '{"apiVersion":"security.mesh.io/v1","kind":"AuthorizationPolicy","metadata":{"name":"p","namespace":"shop"},"spec":{"rules":[',
      'kind:\tAuthorizationPolicy\nmetadata:\n\tname: p\n\tnamespace: shop\n',
      'spec: {rules: [{from: [{source: {namespaces: [x]}}]}\nmetadata: {name: p, namespace: shop}\nkind: AuthorizationPolicy',
    ])
      expect(seen(text), text).to.deep.equal(['AuthorizationPolicy/shop/p'])
  })

  it('finds each of several objects in one text', () => {
    const one = (kind: string, name: string) =>
      `apiVersion: security.istio.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: shop}\nspec: {}\n`
    const policies = ['AuthorizationPolicy/shop/a', 'PeerAuthentication/shop/b', 'RequestAuthentication/shop/c']
    const texts = [one('AuthorizationPolicy', 'a'), one('PeerAuthentication', 'b'), one('RequestAuthentication', 'c')]
    expect(seen(texts.join(' ---\n'))).to.deep.equal(policies)
    expect(seen(texts.map((text) => text.replace(/(apiVersion.*\n)(kind.*\n)/, '$2$1')).join(''))).to.deep.equal(policies)
    expect(recognise(`kind: Deployment\n${one('VirtualService', 'v').replace('security', 'networking')}`, names)).to.deep.equal({
      objects: [{ kind: 'VirtualService', namespace: 'shop', name: 'v' }],
      others: true,
    })
  })

  it('tolerates small typing errors in kind and group, but not other kinds', () => {
    for (const kind of [
      'AuthorisationPolicy',
      'authorizationpolicy',
      'AuthorizationPolicies',
      'Authorization_Policy',
      'AutorizationPolcy',
      'PeerAuthn',
    ])
      expect(seen(`apiVersion: security.istio.io/v1\nkind: ${kind}\nmetadata: {name: p, namespace: n}\n"`), kind).to.deep.equal([
        'AuthorizationPolicy/n/p',
      ])
    for (const group of ['security.istio.oi/v1', 'securty.istio.io/v1', 'security.example.com/v1', 'networking.istio.io/v1', 'v1', '""'])
      expect(seen(`apiVersion: ${group}\nkind: PeerAuthentication\nmetadata: {name: p, namespace: n}\n"`), group).to.deep.equal([
        'PeerAuthentication/n/p',
      ])
    for (const [group, kind] of [
      ['policy.linkerd.io', 'AuthorizationPolicy'],
      ['apps', 'Deployment'],
      ['networking.k8s.io', 'NetworkPolicy'],
      ['cilium.io', 'CiliumNetworkPolicy'],
    ])
      expect(recognise(`apiVersion: ${group}/v1\nkind: ${kind}\nmetadata: {name: p}\n"`, names), group).to.deep.equal({ objects: [], others: true })
  })

  it('finds a policy without a kind field, and none in comments', () => {
    expect(seen('knd: AuthorizationPolicy\nmetadata: {name: p, namespace: n}\n"')).to.deep.equal(['AuthorizationPolicy/n/p'])
    expect(seen('apiVersion: security.istio.io/v1\nmetadata: {name: p, namespace: n}\n"')).to.deep.equal(['AuthorizationPolicy/n/p'])
    expect(recognise('a: "\n# kind: AuthorizationPolicy\n', names)).to.deep.equal({ objects: [], others: false })
  })

  it('takes time linear in the length of the text', () => {
    for (const unit of [
      'kind: AuthorizationPolicy\n',
      'metadata:\n',
      'apiVersion: x\n',
      '"',
      'kind ',
      ' \t',
      'a',
      'kind:\t ',
      '#\n',
      'authorizationpolicx ',
    ])
      for (const length of [2_000_000])
        expect(
          cpuMs(() => recognise(unit.repeat(length / unit.length), names)),
          JSON.stringify(unit),
        ).to.be.below(3000)
  })
})
