import { expect } from 'chai'
import fc from 'fast-check'
import { LabelIndex } from '../../../src/model/label-index.ts'
import { runs } from '../../harness/seed.ts'

describe('the index of connections by labels', () => {
  it('finds the connections with all given labels, after any history of changes and queries', () => {
    const labels = fc.dictionary(fc.constantFrom('app', 'version', 'zone', '__proto__', 'constructor'), fc.constantFrom('1', '2', '3'), {
      maxKeys: 3,
    })
    const step = fc.oneof(
      fc.record({ type: fc.constant('set' as const), connection: fc.nat(5), labels }),
      fc.record({ type: fc.constant('delete' as const), connection: fc.nat(5), labels }),
      fc.record({ type: fc.constant('ask' as const), connection: fc.nat(5), labels }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const index = new LabelIndex()
        const known = new Map<string, Record<string, string>>()
        for (const { type, connection, labels } of steps) {
          const id = `c${connection}`
          if (type === 'set') {
            index.set(id, labels)
            known.set(id, labels)
          } else if (type === 'delete') {
            index.delete(id)
            known.delete(id)
          } else if (Object.keys(labels).length > 0) {
            const wanted = [...known].filter(([, of]) =>
              Object.entries(labels).every(([name, value]) => Object.hasOwn(of, name) && of[name] === value),
            )
            expect(index.having(labels).sort()).to.deep.equal(wanted.map(([found]) => found).sort())
          }
        }
      }),
      { numRuns: runs(300) },
    )
  })

  it('finds connections for any number of queried label names', () => {
    const index = new LabelIndex()
    index.set('c', Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`l${n}`, 'v'])))
    for (let n = 0; n < 300; n++) expect(index.having({ [`l${n}`]: 'v' })).to.deep.equal(['c'])
    expect(index.having({ l0: 'v', l299: 'v' })).to.deep.equal(['c'])
    expect(index.having({ l0: 'v', l300: 'v' })).to.deep.equal([])
  })
})
