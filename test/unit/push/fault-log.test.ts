import { expect } from 'chai'
import { FaultLog } from '../../../src/push/fault-log.ts'

const fault = (resource: string, reason = 'r') => ({ type: 'cds', resource, objects: ['EnvoyFilter/ns/f'], reason, consequence: 'c' })

describe('the log of faults', () => {
  it('logs the first few similar faults, then refers to the debug page', () => {
    const log = new FaultLog()
    const lines = Array.from({ length: 9 }, (_, index) => log.line(fault(`x${index}`), index))
    expect(lines[0]).to.equal('cds x0: r; c')
    expect(lines[4]).to.equal('cds x4: r; c; further faults of this kind are shown at /debug/push_status only')
    expect(lines.slice(5)).to.deep.equal([undefined, undefined, undefined, undefined])
    expect(log.line(fault('y', 'another'), 20)).to.equal('cds y: another; c')
    expect(log.line(fault('z'), 10_000)).to.equal('cds z: r; c')
  })

  it('names a proxy that refused the resource, and the number of others', () => {
    const log = new FaultLog()
    const refused = { ...fault('Listener x'), type: 'refused', proxy: 'a.ns' }
    expect(log.line(refused, 0)).to.equal('refused Listener x by a.ns: r; c')
    expect(log.line({ ...refused, otherProxies: 1 }, 0)).to.equal('refused Listener x by a.ns and 1 other proxy: r; c')
    expect(log.line({ ...refused, otherProxies: 9 }, 0)).to.equal('refused Listener x by a.ns and 9 other proxies: r; c')
  })

  it('has a loss once, also when the proxies that have it leave and come again', () => {
    const log = new FaultLog()
    const loss = { ...fault('x'), isLoss: true as const }
    expect([0, 10_000, 20_000].map((now) => log.line(loss, now))).to.deep.equal(['cds x: r; c', undefined, undefined])
    expect(log.line({ ...loss, reason: 'another' }, 30_000)).to.equal('cds x: another; c')
    expect([30_000, 40_000].map((now) => log.line(fault('x'), now))).to.deep.equal(['cds x: r; c', 'cds x: r; c'])
  })

  it('has a loss again when an object that it names has changed since', () => {
    const log = new FaultLog()
    const loss = { ...fault('x'), isLoss: true as const }
    const other = { ...loss, resource: 'y', objects: ['EnvoyFilter/ns/g'] }
    expect([log.line(loss, 0), log.line(other, 0)]).to.deep.equal(['cds x: r; c', 'cds y: r; c'])
    log.changed('EnvoyFilter/ns/f')
    expect([log.line(loss, 10_000), log.line(other, 10_000)]).to.deep.equal(['cds x: r; c', undefined])
  })

  it('is limited in total', () => {
    const log = new FaultLog()
    const lines = Array.from({ length: 1000 }, (_, index) => log.line(fault('x', `reason ${index}`), 0)).filter((line) => line !== undefined)
    expect(lines).to.have.length(200)
    expect(lines.at(-1)).to.contain('/debug/push_status')
  })
})
