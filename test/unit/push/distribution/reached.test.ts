import { expect } from 'chai'
import type { ProxiesReported, TypeReport } from '../../../../protocols/messages/distribution.ts'
import { ProxyVersions } from '../../../../src/push/distribution/proxy-versions.ts'

const at = (push: number) => ({ push, digest: `d${push}` })
const report = (applied: number, proxies: Readonly<Record<string, readonly TypeReport[]>>, gone: readonly string[] = []): ProxiesReported => ({
  ...{ type: 'ProxiesReported', isWhole: false, applied: at(applied), gone, answered: new Float64Array() },
  proxies: Object.entries(proxies).map(([connection, types], number) => ({
    ...{ connection, number, types },
    proxy: { nodeId: connection, namespace: 'ns', classId: 'c' },
  })),
})
const current = (typeUrl: string): TypeReport => ({ typeUrl, isRefused: false })
const has = (typeUrl: string, push: number, isRefused = false): TypeReport => ({ typeUrl, isRefused, acknowledged: at(push) })

describe('the pushes that proxies have', () => {
  it('are counted by proxy: a proxy has the push that it has of all types, and what its writer has if nothing is outstanding', () => {
    const versions = new ProxyVersions()
    expect([...versions.reached()]).to.deep.equal([])
    versions.report('w1', report(7, { a: [current('cds'), current('rds')], b: [current('cds'), has('rds', 5)], none: [] }))
    versions.report('w2', report(6, { c: [current('cds')], d: [has('cds', 5, true)], new: [has('cds', 0)] }))
    expect([...versions.reached()]).to.deep.equal([0, 1, 5, 2, 6, 1, 7, 1])
    versions.report('w2', report(7, { d: [current('cds')] }, ['new']))
    expect([...versions.reached()]).to.deep.equal([5, 1, 7, 3])
    const sets = [['w1/a', 'w1/b', 'w2/a', 'w2/new'], ['w2/d'], []]
    expect(versions.reachedBy(sets).map((each) => [...each])).to.deep.equal([[5, 1, 7, 1], [7, 1], []])
    expect(versions.reachedBy([])).to.deep.equal([])
    versions.drop('w1')
    expect([...versions.reached()]).to.deep.equal([7, 2])
  })
})
