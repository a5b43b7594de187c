import { expect } from 'chai'
import type { Caller } from '../../../protocols/messages/identity.ts'
import { checkNode, entitledWorkloads, identityToCertify, mayRead, principalOf, secretReader } from '../../../src/identity/access.ts'

const caller = (...identities: string[]): Caller => ({ identities, via: 'certificate', method: 'test', expiresAt: 0 })
const cart = caller('spiffe://td/ns/shop/sa/cart')

describe('the check of a node against its caller', () => {
  const node = (namespace: string, account?: unknown) => ({ namespace, metadata: account === undefined ? {} : { SERVICE_ACCOUNT: account } })

  it('requires the same namespace, and the same service account if the node names one', () => {
    expect(checkNode(cart, node('shop'))).to.deep.equal({ verified: 'spiffe://td/ns/shop/sa/cart' })
    expect(checkNode(cart, node('shop', 'cart'))).to.have.property('verified')
    expect(checkNode(cart, node('shop', ''))).to.have.property('verified')
    expect(checkNode(cart, node('shop', 'other'))).to.deep.equal({
      refused: 'spiffe://td/ns/shop/sa/cart may not act for namespace "shop", service account "other"',
    })
    for (const namespace of ['', 'shop2', 'SHOP', 'shop/sa/cart', 'mesh-system']) expect(checkNode(cart, node(namespace))).to.have.property('refused')
    for (const account of [7, ['cart'], { cart: 1 }, 'cart ', 'Cart', false])
      expect(checkNode(cart, node('shop', account)), String(account)).to.have.property('refused')
    expect(checkNode(cart, node('shop', null)), 'null stands for none').to.have.property('verified')
  })

  it('accepts a match with any one of several identities', () => {
    expect(checkNode(caller('spiffe://td/ns/a/sa/x', 'spiffe://td/ns/b/sa/y'), node('b', 'y'))).to.deep.equal({ verified: 'spiffe://td/ns/b/sa/y' })
    expect(checkNode(caller('spiffe://td/ns/a/sa/x', 'spiffe://td/ns/b/sa/y'), node('a', 'y'))).to.have.property('refused')
    expect(checkNode(caller(), node('a'))).to.have.property('refused')
    expect(checkNode(caller('spiffe://td/shop', 'ns/shop/sa/cart'), node('shop'))).to.have.property('refused')
  })
})

describe('read access of a caller', () => {
  const names = { trustDomain: 'td', trustDomainAliases: ['Old@td'], rootNamespace: 'mesh-system' }
  const admin = caller('spiffe://td/ns/mesh-system/sa/admin')

  it('covers its own namespace, and all namespaces for callers of the root namespace', () => {
    expect(mayRead(cart, 'shop', names)).to.equal(true)
    expect(mayRead(cart, 'other', names)).to.equal(false)
    expect(mayRead(cart, 'mesh-system', names)).to.equal(false)
    expect(mayRead(cart, undefined, names), 'the mesh as a whole').to.equal(false)
    for (const namespace of ['shop', 'mesh-system', '', undefined]) expect(mayRead(admin, namespace, names)).to.equal(true)
  })

  it('requires the trust domain of the mesh or an alias of it', () => {
    expect(mayRead(caller('spiffe://old.td/ns/shop/sa/cart'), 'shop', names)).to.equal(true)
    expect(mayRead(caller('spiffe://foreign/ns/shop/sa/cart'), 'shop', names)).to.equal(false)
    expect(mayRead(caller('spiffe://foreign/ns/mesh-system/sa/admin'), 'shop', names)).to.equal(false)
    expect(mayRead(caller(), 'shop', names)).to.equal(false)
    expect(mayRead(caller('spiffe://td/ns//sa/cart'), '', names)).to.equal(false)
  })
})

describe('access to gateway secrets', () => {
  const names = { trustDomain: 'td', trustDomainAliases: ['old'], rootNamespace: 'mesh-system' }
  const router = { type: 'router', namespace: 'edge', clusterId: '' }
  const own = { id: 'own', isOwn: true }
  const reader = (node: typeof router, verified: string | undefined, cluster?: { readonly id: string; readonly isOwn: boolean }) =>
    secretReader(node, { verified, cluster }, names, 'own')

  it("is given to a router whose verified identity has its namespace and the mesh's trust domain", () => {
    expect(reader(router, 'spiffe://td/ns/edge/sa/gateway')).to.deep.equal({ namespace: 'edge', account: 'gateway' })
    expect(reader(router, 'spiffe://old/ns/edge/sa/gateway')).to.deep.equal({ namespace: 'edge', account: 'gateway' })
  })

  it('is refused to unverified nodes, sidecars and identities of another namespace or trust domain', () => {
    expect(reader(router, undefined), 'not verified').to.equal(undefined)
    expect(reader({ ...router, type: 'sidecar' }, 'spiffe://td/ns/edge/sa/gateway')).to.equal(undefined)
    for (const identity of [
      'spiffe://foreign/ns/edge/sa/gateway',
      'spiffe://td/ns/other/sa/gateway',
      'spiffe://td/ns/mesh-system/sa/admin',
      'spiffe://td/edge',
      '',
    ])
      expect(reader(router, identity), identity).to.equal(undefined)
  })

  it('is to those of the cluster that vouches for the identity', () => {
    const gateway = 'spiffe://td/ns/edge/sa/gateway'
    const of = { namespace: 'edge', account: 'gateway' }
    expect(reader(router, gateway, own)).to.deep.equal(of)
    expect(reader(router, gateway, { id: 'west', isOwn: false })).to.deep.equal({ ...of, cluster: 'west' })
    // A certificate that names no cluster: the node must not say that it is elsewhere.
    expect(reader({ ...router, clusterId: 'own' }, gateway)).to.deep.equal(of)
    expect(reader({ ...router, clusterId: 'west' }, gateway)).to.equal(undefined)
  })
})

describe('a caller of another cluster', () => {
  const names = { trustDomain: 'td', trustDomainAliases: [], rootNamespace: 'mesh-system' }
  const admin = caller('spiffe://td/ns/mesh-system/sa/admin')
  const west = { ...admin, cluster: { id: 'west', isOwn: false } }
  const ours = { ...admin, cluster: { id: 'own', isOwn: true } }

  it('has no rights beside those of its workload', () => {
    expect(mayRead(ours, undefined, names)).to.equal(true)
    expect(mayRead(west, undefined, names)).to.equal(false)
    expect(mayRead(west, 'mesh-system', names)).to.equal(false)
    expect(entitledWorkloads(ours, names)).to.have.length(1)
    expect(entitledWorkloads(west, names)).to.have.length(0)
    expect(identityToCertify(west, names)).to.have.property('identity')
    expect(principalOf('i', west), 'limits and turns').to.equal('i of the cluster west')
    expect(principalOf('i', ours)).to.equal('i')
  })

  it('names no other cluster than the one that vouches for it', () => {
    const node = (CLUSTER_ID: unknown) => ({ namespace: 'mesh-system', metadata: { CLUSTER_ID } })
    for (const id of ['west', '', undefined]) expect(checkNode(west, node(id)), String(id)).to.have.property('verified')
    expect(checkNode(west, node('own'))).to.deep.equal({
      refused: 'the node names the cluster "own" (metadata CLUSTER_ID), the cluster "west" vouches for its identity',
    })
    expect(checkNode(ours, node('west'))).to.have.property('refused')
    expect(checkNode(west, node(7))).to.have.property('refused')
    expect(checkNode(admin, node('anywhere')), 'nothing says which cluster vouches').to.have.property('verified')
  })
})

describe('the identity for a new certificate', () => {
  const names = { trustDomain: 'td', trustDomainAliases: ['old'] }

  it("is the single identity of the caller, if it is a workload of the mesh's trust domain or an alias", () => {
    for (const identity of ['spiffe://td/ns/shop/sa/cart', 'spiffe://old/ns/shop/sa/cart'])
      expect(identityToCertify(caller(identity), names)).to.deep.equal({ identity })
    for (const [identities, reason] of [
      [[], 'the caller has 0 identities'],
      [['spiffe://td/ns/a/sa/b', 'spiffe://td/ns/c/sa/d'], 'the caller has 2 identities'],
      [['spiffe://foreign/ns/shop/sa/cart'], 'of another trust domain'],
      [['spiffe://td/shop'], 'not that of a workload'],
      [['spiffe://td.evil/ns/shop/sa/cart'], 'of another trust domain'],
    ] as const)
      expect(identityToCertify(caller(...identities), names))
        .to.have.property('refused')
        .that.contains(reason)
  })
})
