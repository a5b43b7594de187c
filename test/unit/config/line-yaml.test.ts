import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import fc from 'fast-check'
import { lineDocument } from '../../../src/config/line-yaml.ts'
import { notPlain } from '../../../src/config/plain-yaml.ts'
import { readDocuments } from '../../../src/config/yaml-documents.ts'
import '../../harness/seed.ts'
import { runs } from '../../harness/seed.ts'

/** Checks that a text is read as the library reads it, or left to the library. Returns whether it was read. */
function isRead(text: string): boolean {
  const value = lineDocument(text, 64)
  if (value === notPlain) return false
  const documents = readDocuments(text)
  expect(documents.length, JSON.stringify(text)).to.equal(1)
  expect({ value }, JSON.stringify(text)).to.deep.equal(documents[0])
  expect(JSON.stringify(value), text).to.equal(JSON.stringify((documents[0] as { value: unknown }).value))
  return true
}

const scalars = [
  ...['x', 'a b', '1', '0', '-1', '-', '--a', '-p', '0.5', '.5', '1e3', '007', '0x1f', '1_000', '+1', '~', 'null', 'Null', 'nULL', 'true', 'True'],
  ...[
    'false',
    'yes',
    'No',
    'on',
    'y',
    'n',
    '.inf',
    '.NaN',
    '100m',
    '128Mi',
    '1.2.3',
    '2001-12-14',
    '12:30:45',
    '$(A).b',
    '/bin/sh',
    'a:b',
    'a: b',
    'a:',
  ],
  ...[
    'a #b',
    'a#b',
    '# c',
    '*',
    '*a',
    '&a b',
    '!!str 1',
    '@a',
    '`a',
    '%a',
    '|',
    '>-',
    '?',
    '? a',
    ',',
    ']',
    '=',
    '<<',
    'é',
    'a\u00a0',
    '\u2028',
    '\ud83d\ude00',
  ],
  ...[
    '"x"',
    '""',
    '"a: b # c"',
    '"a\\"b"',
    '"\\n\\/\\u00e9"',
    '"\\x41"',
    '"\\ud83d\\ude00"',
    '"\\ud83d"',
    '"x" ',
    '"x" # c',
    '"x"y',
    '"x',
    "'x'",
    "''",
    "'a''b'",
  ],
  ...[
    "'x'y",
    '[]',
    '{}',
    '[a, b]',
    '[a,b]',
    '[ALL]',
    '[a, ]',
    '[, a]',
    '[a b, c]',
    '[a  b]',
    '[a - b]',
    '[- a]',
    '[-a, --b]',
    '[a: b]',
    '[/bin/sh, -c, a b=c]',
  ],
  ...[
    '{a: b}',
    '{a: {b: c.d}}',
    '{a: }',
    '{a}',
    '{"a":1}',
    '{"a":"b","c":[1,true,null]}',
    '{a: 1, a: 2}',
    '{a:1}',
    '{a: b: c}',
    '[a, b',
    '[1]]',
    '{y: 1}',
  ],
  ...['[a]: b', '[0, 00, 1.5, yes]', "{'a': 'b'}", '{a: [1, {b: 2}]}', '[a #b]', '[a, b] # c', '{__proto__: 1}', '[~, null]'],
]
const keys = [
  'a',
  'b',
  'c',
  'a.b/c-d',
  '"d"',
  "'e'",
  '"a"',
  'y',
  'true',
  'null',
  '1',
  '~',
  '__proto__',
  'constructor',
  '<<',
  '? a',
  'a b',
  '-a',
  '"f\\u0041"',
  '""',
]

/** Lines as they stand in block style, most of them in columns that go on from those before. */
const line = fc
  .tuple(
    fc.constantFrom(0, 0, 0, 1, 2, 2, 2, 3, 4, 4, 6),
    fc.constantFrom('', '', '', '- ', '- ', '-', '-  ', '- - '),
    fc.option(fc.constantFrom(...keys), { freq: 6 }),
    fc.constantFrom(': ', ': ', ':', ':  ', ' : '),
    fc.option(fc.constantFrom(...scalars), { freq: 3 }),
    fc.constantFrom('', '', '', '', ' ', ' # c', '\n', '\n  # c', '\n#c'),
  )
  .map(
    ([indent, dash, key, colon, scalar, end]) =>
      `${' '.repeat(indent)}${dash}${key === null ? '' : key + (scalar === null ? ':' : colon)}${scalar ?? ''}${end}\n`,
  )

/** Values as a template writes them, in the forms that are read. */
const { document } = fc.letrec<{ document: string[]; node: string[] }>((tie) => {
  const word = fc.constantFrom('x', '1', 'true', '"y: z"', "'a''b'", '[ALL]', '{a: {b: c.d}}', '{"k":[1,"v"]}', '-p', '$(A).b', '0.5', '{}', '[]')
  const indented = (lines: readonly string[]) => lines.map((text) => `  ${text}`)
  const inner = fc.oneof({ depthSize: 'small', withCrossShrink: true }, fc.constant<string[]>([]), tie('node'))
  return {
    document: tie('node'),
    node: fc.oneof(
      fc
        .uniqueArray(fc.constantFrom('a', 'b', 'c.d/e', '"f"', 'g-h'), { minLength: 1, maxLength: 4 })
        .chain((names) =>
          fc.tuple(
            ...names.map((name) =>
              fc.oneof(
                word.map((text) => [`${name}: ${text}`]),
                inner.map((lines) => [`${name}:`, ...indented(lines)]),
              ),
            ),
          ),
        )
        .map((entries) => entries.flat()),
      fc
        .array(
          fc.oneof(
            word.map((text) => [`- ${text}`]),
            inner.map((lines) => (lines.length === 0 ? ['-'] : indented(lines).with(0, `- ${lines[0]}`))),
          ),
          {
            minLength: 1,
            maxLength: 4,
          },
        )
        .map((entries) => entries.flat()),
    ),
  }
})

describe('YAML that is read line by line', () => {
  it('is read as the library reads it, and all else is left to the library', () => {
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 7 }), (lines) => void isRead(lines.join(''))),
      { numRuns: runs(20_000) },
    )
  })

  it('is read as the library reads it, whatever its letters are', () => {
    const units = [
      ...'[]{},:-?&*!|>#%@`"\'\n\t ab1~<.=$/\\',
      ': ',
      '- ',
      '\n  ',
      '\n- ',
      'a: ',
      '"b"',
      "'c'",
      'a: b\n',
      '---\n',
      '...\n',
      '\r\n',
      '\uFEFF',
      '\u0085',
    ]
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...units), { maxLength: 14 }), (parts) => void isRead(parts.join(''))),
      { numRuns: runs(5000) },
    )
  })

  it('holds each scalar as a value of a mapping, a list, and both in flow style', () => {
    for (const scalar of scalars)
      for (const text of [
        `a: ${scalar}`,
        `- ${scalar}`,
        `a: [${scalar}]`,
        `a: {b: ${scalar}}`,
        `a:\n- b: ${scalar}\n`,
        `${scalar}: 1`,
        `{${scalar}: 1}`,
      ])
        isRead(text)
  })

  it('is all that a template writes in usual forms', () => {
    let count = 0
    fc.assert(
      fc.property(document, (lines) => {
        // A list in a list on the line of its dash is left to the library.
        const text = `${lines.join('\n')}\n`
        if (isRead(text)) count++
        else expect(text).to.match(/^ *- +-/m)
      }),
      { numRuns: runs(2000) },
    )
    expect(count).to.be.above(runs(2000) / 2)
  })

  it('is not nested deeper than it may be', () => {
    const nested = (depth: number) => Array.from({ length: depth }, (_, at) => `${' '.repeat(at)}a:`).join('\n')
    expect(lineDocument(nested(64), 64)).not.to.equal(notPlain)
    expect(lineDocument(nested(65), 64)).to.equal(notPlain)
    for (const text of [`a: ${'['.repeat(63)}${']'.repeat(63)}`, `- ${'{a: '.repeat(63)}1${'}'.repeat(63)}`]) isRead(text)
    expect(lineDocument(`a: ${'['.repeat(63)}${']'.repeat(63)}`, 64)).not.to.equal(notPlain)
    expect(lineDocument(`a: ${'['.repeat(64)}${']'.repeat(64)}`, 64)).to.equal(notPlain)
    expect(lineDocument(`a: ${'['.repeat(10_000)}`, 64)).to.equal(notPlain)
    expect(lineDocument(`a: "${'x'.repeat(20_000)}"`, 64)).to.equal(notPlain)
  })

  it('is what the templates of the goldens of injection make', () => {
    const text = readFileSync(join(import.meta.dirname, 'line-yaml.rendered.yaml'), 'utf8')
    expect(isRead(text)).to.equal(true)
  })
})
