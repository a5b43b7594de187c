import { expect } from 'chai'
import fc from 'fast-check'
import { readDocuments } from '../../src/config/yaml-documents.ts'
import { runs, seed } from '../harness/seed.ts'
import { askGo } from './ask-go.ts'
import { buildOracle, missingForOracle } from './oracle.js'

/** The JSON of our value, with the keys in the order of Go; undefined: the text is refused. */
function ours(text: string): string | undefined {
  const [document = { value: null }, another] = readDocuments(text)
  return 'error' in document || another ? undefined : JSON.stringify(inOrder(document.value))
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, inner]) => [key, inOrder(inner)]))
}

/** What Go writes, with numbers as JavaScript has them: of 64 bits, and without a negative zero. */
const goes = (json: string | undefined): string | undefined => (json === undefined ? undefined : JSON.stringify(inOrder(JSON.parse(json))))

/** Compares texts: both refuse, or both read the same. `mayRefuse`: we may refuse what Go reads. */
function compare(texts: readonly string[], mayRefuse = false): number {
  const answers = askGo(texts.map((yaml) => ({ yaml })))
  let read = 0
  for (const [index, text] of texts.entries()) {
    const { json, error } = answers[index] as { json?: string; error?: string }
    const found = ours(text)
    if (found === undefined && (mayRefuse || json === undefined)) continue
    read++
    expect(found, `${JSON.stringify(text)} ${error ?? ''}`).to.equal(goes(json))
  }
  return read
}

const scalars = [
  ...[
    '0644',
    '0o17',
    '0b1',
    '0b-11',
    '-0b1',
    '+0x1F',
    '0x',
    '1e3',
    '1E400',
    '1_000',
    '._5',
    '.5',
    '.5_0',
    '5.',
    '-.5e-3',
    '08',
    '-010',
    '--1',
    '+',
    '-',
  ],
  ...[
    '9223372036854775808',
    '18446744073709551616',
    '-9223372036854775809',
    '0xFFFFFFFFFFFFFFFF',
    '0xFFFFFFFFFFFFFFFFF',
    '07777777777777777777777777',
  ],
  ...['y', 'Y', 'yes', 'yEs', 'off', 'ON', 'True', 'tRUE', 'null', '~', 'Null', 'nULL', '.inf', '-.INF', '+.inf', '.nan', '.NaN', '.iNf', '<<', '='],
  ...[
    '12:30:45',
    '2001-12-14',
    '2001-12-14t21:59:43.10-05:00',
    '2001-1-1',
    '1.2.3',
    '10Mi',
    '100m',
    '1,000',
    '0x1_F',
    '_1',
    '1__0',
    '0b1_',
    '0_',
    '-0',
  ],
  ...[
    '!!str 12',
    '!!int 012',
    '!!int x',
    '!!float 1',
    '!!bool yes',
    '!!bool 1',
    '!!null ~',
    '!!binary aGk=',
    '!!binary "*"',
    '! 12',
    '!x 12',
    '"12"',
    "'yes'",
  ],
]

const number = fc
  .tuple(
    fc.constantFrom('', '', '', '+', '-', '.'),
    fc.constantFrom('', '', '', '0', '0b', '0o', '0x', '0X', '0B', '0O'),
    fc.array(fc.constantFrom(...'00112789_abefE.'), { minLength: 0, maxLength: 22 }).map((digits) => digits.join('')),
    fc.constantFrom('', '', '', 'e3', 'E-2', 'e+400', '_', 'e'),
  )
  .map((parts) => parts.join(''))

describe('YAML', () => {
  before(function () {
    const missing = missingForOracle()
    if (missing !== undefined) this.skip()
    this.timeout(300_000)
    buildOracle()
  })

  it('has the values that kubectl reads, for scalars that one may take for something else', () => {
    for (const form of [(text: string) => `a: ${text}`, (text: string) => `{a: ${text}}`, (text: string) => `a:\n- b\n- c: ${text} # comment\n`])
      compare(scalars.filter((text) => !text.includes(',') && text !== '-').map(form))
  })

  it('has the keys that kubectl reads, or refuses them', () => {
    expect(
      compare(
        scalars.map((text) => `${text}: 1`),
        true,
      ),
    ).to.be.above(scalars.length / 2)
  })

  it('has the values that kubectl reads, for generated numbers and words', () => {
    const word = fc.array(fc.constantFrom(...'yYnNoOfFtTrRuUeElLsS~.i'), { maxLength: 5 }).map((letters) => letters.join(''))
    const texts = fc.sample(fc.oneof({ weight: 4, arbitrary: number }, word), { numRuns: runs(3000), seed })
    compare(texts.map((text) => `a: ${text}\n`))
  })

  it('has merge keys as kubectl reads them', () => {
    const texts = [
      'base: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {y: 3, <<: *a}\n',
      'base: &a {x: 1, y: 2}\nother: &b {y: 4, z: 5}\nb: {<<: [*a, *b], z: 6}\nc:\n  <<: *a\n  <<: *b\n',
      'b: {<<: {x: 1, <<: {x: 2, z: 3}}}\n',
      'b: {<<: [{x: 1}, {x: 2}]}\n',
      'b: {"<<": {x: 1}}\n',
      'b: {!!merge <<: {x: 1}}\n',
      'b: {<<: []}\n',
      'b: {<<: x}\n',
      'b: {<<: }\n',
      'b: {<<: [x]}\n',
      'b: {<<: [[{x: 1}]]}\n',
      'base: &a [1]\nb: {<<: *a}\n',
      'base: &a {x: &a 1, y: *a}\nb: *a\n',
      'a: &a {b: *a}\n',
      'a: &a {<<: *a}\n',
      'a: *a\n',
      '- &k x\n- {*k : 1}\n',
    ]
    compare(texts)
  })

  it('has the values that kubectl reads, where both read a text', () => {
    const units = [
      ...[...'[]{},:-?|>#"\'\n ab1~.='],
      ...[': ', '- ', '\n  ', '\n- ', 'a: ', 'b: ', '"b"', "'c'", 'a: b\n', 'c: |\n  d\n', 'e: >-\n', '{a: b}', '[a, b]', ' # c\n'],
      ...['<<: ', '!!str ', '&a ', '*a', 'yes', '010', '1_0', '<<: {x: y}', '<<: *a', 'off: ', '1: '],
    ]
    const texts = fc.sample(
      fc.array(fc.constantFrom(...units), { maxLength: 12 }).map((parts) => `z: 0\n${parts.join('')}\n`),
      { numRuns: runs(6000), seed },
    )
    const go = askGo(texts.map((yaml) => ({ yaml })))
    let both = 0
    for (const [index, text] of texts.entries()) {
      const json = go[index]?.json
      const found = ours(text)
      if (json === undefined || found === undefined) continue
      both++
      expect(found, JSON.stringify(text)).to.equal(goes(json))
    }
    expect(both).to.be.above(texts.length / 20)
  })
})
