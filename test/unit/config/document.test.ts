import { expect } from 'chai'
import fc from 'fast-check'
import { writtenSpec } from '../../../src/config/document.ts'
import { kinds } from '../../../src/config/kinds.ts'
import { parseConfigDocument, parseConfigFile } from '../../../src/config/parse.ts'
import { documentsOf, mended, textOf } from '../../harness/documents.ts'
import { runs } from '../../harness/seed.ts'
import { names } from '../../harness/settings.ts'

describe('a parsed spec as a document', () => {
  for (const kind of kinds.values())
    it(`of the kind ${kind.name} is read as the same spec`, () => {
      let count = 0
      fc.assert(
        fc.property(documentsOf(kind, 0).map(mended), (document) => {
          const [object] = parseConfigFile('made', textOf(document, 'ns'), names).objects
          if (!object) return
          count++
          const { group, version, kind: name, namespace, labels, annotations } = object
          const metadata = { name: object.name, namespace, labels, annotations }
          const written = { apiVersion: `${group}/${version}`, kind: name, metadata, spec: writtenSpec(kind.spec.form, object.spec) }
          const again = parseConfigDocument('made', JSON.parse(JSON.stringify(written)), names, {})
          expect(again.faults).to.deep.equal([])
          expect(JSON.stringify(again.objects[0]?.spec)).to.equal(JSON.stringify(object.spec))
        }),
        { numRuns: runs(500) },
      )
      expect(count).to.be.above(0)
    })

  it('has durations as text, also very short ones', () => {
    const form = { type: 'duration', minMs: 0, maxMs: 1 } as const
    expect([1500, 0.000001, 5e-7].map((ms) => writtenSpec(form, ms))).to.deep.equal(['1500ms', '0.000001ms', '0.00000050000000000000ms'])
  })
})
