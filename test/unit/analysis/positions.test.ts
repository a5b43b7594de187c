import { expect } from 'chai'
import fc from 'fast-check'
import { FilePositions } from '../../../src/analysis/positions.ts'
import { readDocuments } from '../../../src/config/yaml-documents.ts'
import { runs, seed } from '../../harness/seed.ts'

describe('the positions of fields in files', () => {
  const at = (content: string, document: number, path: string, key?: string) => {
    const position = new FilePositions(content, 'mesh.io').of(document, key, path)
    return position && `${position.line}:${position.column}`
  }
  const file = [
    '# a comment',
    '---',
    'kind: A',
    'spec:',
    '  http:',
    '  - route:',
    '    - destination: {host: web, port: {number: 80}}',
    '    - destination:',
    '        host: reviews',
    '---',
    '# nothing here',
    '---',
    'kind: B',
    'metadata: {annotations: {sidecar.mesh.io/inject: "x"}}',
    'spec: &spec',
    '  a: 1',
    'other: *spec',
  ].join('\n')

  it('are those of the key of a field, or of the item of a list, in block and flow style', () => {
    expect(at(file, 1, 'spec.http[0].route[0].destination.port.number')).to.equal('7:39')
    expect(at(file, 1, 'spec.http[0].route[1].destination.host')).to.equal('9:9')
    expect(at(file, 1, 'spec.http[0].route[1]')).to.equal('8:7')
    expect(at(file, 3, 'metadata.annotations[sidecar.mesh.io/inject]')).to.equal('14:26')
    expect(at(file, 3, 'other.a')).to.equal('16:3')
  })

  it('are those of what a missing field is missing in, of the object for no field, and unknown for no document', () => {
    expect(at(file, 1, 'spec.http[0].route[1].destination.port')).to.equal('8:7')
    expect(at(file, 1, 'spec.nothing.at.all')).to.equal('4:1')
    expect(at(file, 3, '')).to.equal('13:1')
    expect(at(file, 4, '')).to.equal(undefined)
    expect(at('a: 1\n---\n# x\n\na: [\n', 2, 'a')).to.equal('5:1')
  })

  it('are found in lists by the place or by the object, and in JSON', () => {
    const list =
      'kind: List\nitems:\n- kind: A\n  metadata: {name: a, namespace: n}\n- kind: A\n  metadata: {name: b, namespace: n}\n  spec: {x: 1}\n'
    expect(at(list, 1, 'items[1].spec.x')).to.equal('7:10')
    expect(at(list, 1, 'spec.x', 'A/n/b')).to.equal('7:10')
    expect(at('- kind: A\n- kind: B\n  spec: {}\n', 1, '[1].spec', 'B/n/b')).to.equal('3:3')
    expect(at('{\n  "spec": {\n    "a": [1,\n      2]\n  }\n}', 1, 'spec.a[1]')).to.equal('4:7')
  })

  it('number documents as they are read', () => {
    const part = fc.constantFrom(
      'a: 1\n',
      '---\n',
      '--- # x\n',
      '...\n',
      '# x\n',
      '\n',
      '%YAML 1.2\n',
      '--- null\n',
      '- 1\n',
      ' \n',
      '--- |\n x\n',
      '\uFEFF',
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const content = parts.join('')
        const read = readDocuments(content)
        const positions = new FilePositions(content, 'mesh.io')
        for (const [index] of read.entries()) expect(positions.of(index + 1, undefined, ''), JSON.stringify(content)).to.not.equal(undefined)
        expect(positions.of(read.length + 1, undefined, ''), JSON.stringify(content)).to.equal(undefined)
      }),
      { seed, numRuns: runs(1000) },
    )
  })
})
