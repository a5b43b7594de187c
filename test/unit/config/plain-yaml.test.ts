import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import fc from 'fast-check'
import { type Document, Parser, parseAllDocuments } from 'yaml'
import { notPlain, plainDocument } from '../../../src/config/plain-yaml.ts'
import { documentLimits } from '../../../src/config/yaml-documents.ts'
import { composing, valueOfTree } from '../../../src/config/yaml-tree.ts'
import '../../harness/seed.ts'
import { runs } from '../../harness/seed.ts'

const read = (text: string) => plainDocument([...new Parser().parse(text)], 64)
const library = (text: string) => parseAllDocuments(text, composing)

/** Checks that a text is read as the library reads it, or left to the library. Returns whether it was read. */
function isRead(text: string): boolean {
  const value = read(text)
  if (value === notPlain) return false
  const [document, another] = library(text)
  expect(another, text).to.equal(undefined)
  expect(document?.errors, text).to.deep.equal([])
  const expected = valueOfTree(document as Document, documentLimits)
  expect(value, text).to.deep.equal(expected)
  expect(JSON.stringify(value), text).to.equal(JSON.stringify(expected))
  return true
}

describe('plain YAML documents', () => {
  it('are read as those that the library composes, and all others are left to it', () => {
    const units = [
      ...'[]{},:-?&*!|>#%@`"\'\n\t ab1~<.=',
      ...[
        ': ',
        '- ',
        '\n  ',
        '\n- ',
        '\n  - ',
        'a: ',
        'b: ',
        '"b"',
        "'c'",
        'a: b\n',
        'c: |\n  d\n',
        'e: >-\n',
        '{a: b}',
        '[a, b]',
        ' # c\n',
        '# c\n',
      ],
      ...[
        '<<: ',
        'yes',
        'off: ',
        '010',
        '!!str ',
        '&a ',
        '*a',
        'null',
        '1.5',
        '0x1f',
        '.nan',
        '__proto__: ',
        '---\n',
        '--- ',
        '...\n',
        '? ',
        '%YAML 1.1\n---\n',
        '\r\n',
        '\uFEFF',
      ],
    ]
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...units), { maxLength: 14 }), (parts) => void isRead(parts.join(''))),
      { numRuns: runs(3000) },
    )
  })

  it('have no mistakes, anchors, aliases, tags, directives or explicit keys', () => {
    const mistakes = [
      'a: b: c',
      'a: - b',
      'a: 1\n b: 2',
      'a:\n  b: 1\n c: 2',
      'a: 1\na: 2',
      '1: a\n"1": b',
      '- a\nb: c',
      'a: [1,,2]',
      'a: [,1]',
      'a: {b: 1 c: 2}',
      'a: [1, 2',
      'a: [1]]',
      'a: "x" y',
      'a: "x"# y',
      'a: "\\q"',
      "a: 'x",
      'a: @b',
      'a: %b',
      'a:\n\t- b',
      '--- a: 1',
      'a: |x\n b',
      'a\nb: c',
      `${'k'.repeat(1100)}: 1`,
      `${'['.repeat(65)}${']'.repeat(65)}`,
      `${'{a: '.repeat(65)}1${'}'.repeat(65)}`,
      `${'- '.repeat(65)}x`,
      Array.from({ length: 66 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n'),
    ]
    for (const text of mistakes) expect(read(text), text).to.equal(notPlain)
    for (const text of ['&a b: c', 'a: *b', 'a: !!str 1', '? a\n: b', '{a}', '[a: b]', '', 'a', 'a: 1\n---\nb: 2', '%YAML 1.1\n---\na: 1\n'])
      expect(read(text), text).to.equal(notPlain)
  })

  it('are nearly all documents of the goldens', () => {
    const goldens = join(import.meta.dirname, '../../golden')
    const files = readdirSync(goldens, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('in.yaml'))
    const documents = files.flatMap((file) => readFileSync(join(goldens, file), 'utf8').split(/^---$/m))
    expect(documents.filter(isRead).length / documents.length).to.be.above(0.95)
  })
})
