/** Metrics of the certificate authority: expiries of the root and the chain that sign. */
import { X509Certificate } from 'node:crypto'
import { expect } from 'chai'
import { authorityMetrics } from '../../actors/discovery/authority/authority-metrics.ts'
import { pluggedInForce } from '../../actors/discovery/authority/in-force.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import { findChain } from '../../src/ca/chain.ts'
import { rootOf, signedBy } from '../harness/authorities.ts'

describe('metrics of the authority', () => {
  const signs = rootOf('signs')
  const below = rootOf('below')
  const other = rootOf('other')
  const expiryOf = (pem: string) => new X509Certificate(pem).validToDate.getTime() / 1000
  const value = (registry: MetricRegistry, name: string) => registry.collect().find((family) => family.name === name)?.series[0]?.values[0]
  const expiries = (registry: MetricRegistry) => ({
    root: value(registry, 'citadel_server_root_cert_expiry_timestamp'),
    chain: value(registry, 'citadel_server_cert_chain_expiry_timestamp'),
  })

  it('has -1 as the expiry of root and chain before an authority is in force', () => {
    const registry = new MetricRegistry()
    authorityMetrics(registry, Date.now)
    expect(expiries(registry)).to.deep.equal({ root: -1, chain: -1 })
  })

  it('has the expiry of the root that signs when another root comes first, negated once it has expired', () => {
    const [shortLived, intermediate] = [signedBy(other, other, 5), signedBy(signs, below, 20)]
    let now = Date.now()
    const registry = new MetricRegistry()
    const metrics = authorityMetrics(registry, () => now)
    const roots = [shortLived, signs.record.root]
    const chain = findChain(intermediate, '', roots.join(''))
    const by = { id: '', certificate: intermediate, key: { kind: 'file', path: '' } } as const
    metrics.inForce(pluggedInForce({ by, from: '', keyStamp: '', exposed: undefined, chain, roots }, [], []))
    const [rootExpiry, chainExpiry] = [expiryOf(signs.record.root), expiryOf(intermediate)]
    expect(rootExpiry, 'the roots expire at different times').to.be.greaterThan(expiryOf(shortLived) + 86_400)
    expect(chainExpiry).to.be.lessThan(rootExpiry)
    expect(expiries(registry)).to.deep.equal({ root: rootExpiry, chain: chainExpiry })
    now = chainExpiry * 1000
    expect(expiries(registry)).to.deep.equal({ root: rootExpiry, chain: -chainExpiry })
    now = rootExpiry * 1000
    expect(expiries(registry)).to.deep.equal({ root: -rootExpiry, chain: -chainExpiry })
  })
})
