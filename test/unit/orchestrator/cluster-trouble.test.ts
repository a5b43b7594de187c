/** What the row of a followed cluster says is wrong with it (docs/operation.md, J6). */
import { expect } from 'chai'
import { clusterTrouble } from '../../../src/orchestrator/cluster-trouble.ts'

const now = Date.UTC(2026, 0, 2, 3, 4, 50)
const of = (silentMs: number | undefined, isComplete = true, ...reasons: readonly string[]) =>
  clusterTrouble({ silentMs, now, objects: 12, isComplete, reasons })

describe('the trouble of a followed cluster', () => {
  it('is empty while its server is heard of, and before it was ever', () => {
    expect([of(0), of(30_000), of(undefined, false)]).to.deep.equal(['', '', ''])
  })

  it('says since when nothing was heard, and what stays', () => {
    expect(of(45_000)).to.equal('nothing has been heard of its API server since 2026-01-02T03:04:05.000Z (45 s); its last state stays (12 objects)')
    expect(of(45_000, false)).to.equal('nothing has been heard of its API server since 2026-01-02T03:04:05.000Z (45 s)')
  })

  it('has the reasons of attempts that fail, and the number of those that are too many', () => {
    expect(of(0, true, 'one', 'two')).to.equal('one; two')
    expect(of(31_000, true, 'one')).to.match(/^nothing has been heard .* \(12 objects\); one$/)
    expect(of(0, true, 'a', 'b', 'c', 'd', 'e')).to.equal('a; b; c; 2 more reasons')
  })
})
