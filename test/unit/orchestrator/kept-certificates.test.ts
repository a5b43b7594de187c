/** Which certificate of the mesh configuration is looked at next (docs/certificates.md, M1 to M6). */
import { expect } from 'chai'
import { KeptCertificates } from '../../../src/orchestrator/kept-certificates.ts'

describe('certificates of the mesh configuration', () => {
  const a = { secretName: 'a', dnsNames: ['a.example.com'] }
  const b = { secretName: 'b', dnsNames: ['b.example.com', 'b.example.com'] }

  it('are looked at once at the start, then before they have to be renewed and every 30 seconds', () => {
    const kept = new KeptCertificates()
    expect(kept.want([a, b])).to.deep.equal([])
    const [first, second] = [kept.next(0), kept.next(0)]
    expect([first, second?.dnsNames, kept.next(0), kept.waitMs(0)]).to.deep.equal([a, ['b.example.com'], undefined, undefined])
    kept.kept(first as typeof a, 0, 5000)
    kept.kept(second as typeof a, 0, 3_600_000)
    expect([kept.waitMs(0), kept.next(4999), kept.next(5000)?.secretName, kept.waitMs(5000)]).to.deep.equal([5000, undefined, 'a', 25_000])
  })

  it('say which entries cannot be kept, and keep the others', () => {
    const kept = new KeptCertificates()
    const faults = kept.want([{ secretName: '', dnsNames: ['x'] }, { secretName: 'c', dnsNames: [] }, a, { ...a, dnsNames: ['other'] }])
    expect(faults).to.deep.equal([
      'certificates[0] has no secretName and is not kept',
      'certificates[1] (c) has no dnsNames and is not kept',
      'certificates[3]: a is named before, and the first one counts',
    ])
    expect([kept.size, kept.next(0)]).to.deep.equal([1, a])
  })

  it('wait longer after each failure; another term, and other names, begin anew', () => {
    const kept = new KeptCertificates()
    kept.want([a])
    let now = 0
    for (const wait of [1000, 2000, 4000]) {
      const wanted = kept.next(now)
      if (!wanted) throw new Error('nothing is due')
      kept.failed(wanted, now, 0)
      expect(kept.waitMs(now)).to.equal(wait)
      now += wait
    }
    kept.again()
    const wanted = kept.next(now)
    expect(wanted).to.deep.equal(a)
    kept.want([{ ...a, dnsNames: ['new.example.com'] }])
    // What becomes of the former names does not count for the new ones.
    kept.kept(wanted as typeof a, now, 3_600_000)
    expect(kept.next(now)?.dnsNames).to.deep.equal(['new.example.com'])
    kept.want([])
    expect([kept.next(now), kept.size]).to.deep.equal([undefined, 0])
  })
})
