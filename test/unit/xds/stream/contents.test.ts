import { expect } from 'chai'
import fc from 'fast-check'
import { Contents } from '../../../../src/xds/stream/contents.ts'
import { runs } from '../../../harness/seed.ts'

const change = fc.tuple(fc.integer({ min: 0, max: 400 }).map(String), fc.option(fc.constantFrom('1', '2', '3'), { nil: undefined }))

describe('records of names and versions', () => {
  it('equal a map with the same changes, and report the differences between any two versions', () => {
    fc.assert(
      fc.property(fc.array(fc.array(change, { maxLength: 150 }), { maxLength: 8 }), (rounds) => {
        let contents = Contents.empty
        const truth = new Map<string, string>()
        const before: { contents: Contents; truth: Map<string, string> }[] = [{ contents, truth: new Map() }]
        for (const changes of rounds) {
          const last = [...new Map(changes)]
          contents = contents.with(
            last.flatMap(([name, version]) => (version === undefined ? [] : { name, version })),
            last.flatMap(([name, version]) => (version === undefined ? name : [])),
          )
          for (const [name, version] of last) version === undefined ? truth.delete(name) : truth.set(name, version)
          expect(new Map(contents.entries())).to.deep.equal(truth)
          expect(contents.size).to.equal(truth.size)
          for (const old of before) {
            const names = new Set([...old.truth.keys(), ...truth.keys()])
            const wanted = [...names]
              .filter((name) => old.truth.get(name) !== truth.get(name))
              .map((name) => [name, old.truth.get(name), truth.get(name)])
            expect([...old.contents.differences(contents)].sort()).to.deep.equal(wanted.sort())
          }
          before.push({ contents, truth: new Map(truth) })
        }
      }),
      { numRuns: runs(100) },
    )
  })

  it('stay the same object if nothing changed', () => {
    const contents = Contents.empty.with([{ name: 'a', version: '1' }], [])
    expect(contents.with([{ name: 'a', version: '1' }], ['b'])).to.equal(contents)
  })
})
