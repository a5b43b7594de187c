import { expect } from 'chai'
import { documentLimits, readDocuments } from '../../../src/config/yaml-documents.ts'
import { cpuMs } from '../../harness/own-time.ts'

const errorsOf = (content: string) => readDocuments(content).map((document) => ('error' in document ? document.error : undefined))
const valuesOf = (content: string) => readDocuments(content).map((document) => ('value' in document ? document.value : undefined))

describe('the splitter of YAML documents', () => {
  it('splits before parsing: an error costs one document, and names its line in the file', () => {
    const content = 'a: 1\n---\nb: "never closed\nc: 2\n---\nd: [\n--- # the last\ne: 5\n'
    expect(valuesOf(content)).to.deep.equal([{ a: 1 }, undefined, undefined, { e: 5 }])
    const errors = errorsOf(content)
    expect(errors[1]).to.match(/^not YAML, line [345]: /)
    expect(errors[2]).to.match(/^not YAML, line [67]: /)
  })

  it('counts documents as YAML does', () => {
    expect(valuesOf('')).to.deep.equal([])
    expect(valuesOf('# only a comment\n---\na: 1\n')).to.deep.equal([{ a: 1 }])
    expect(valuesOf('%YAML 1.2\n---\na: 1\n')).to.deep.equal([{ a: 1 }])
    expect(valuesOf('\uFEFF---\r\na: 1\r\n---\r\nb: 2\r\n')).to.deep.equal([{ a: 1 }, { b: 2 }])
    // Files that were concatenated look like this.
    expect(valuesOf('a: 1\n\uFEFF---\nb: 2\n...\n\uFEFFc: 3\n')).to.deep.equal([{ a: 1 }, { b: 2 }, { c: 3 }])
    expect(valuesOf('---\na: |\n  ---\n  text\nb: x---y\n')).to.deep.equal([{ a: '---\ntext\n', b: 'x---y' }])
    expect(valuesOf('a: 1\n...\nb: 2\n')).to.deep.equal([{ a: 1 }, { b: 2 }])
    expect(valuesOf('---\n---\na: 1\n')).to.deep.equal([null, { a: 1 }])
    expect(valuesOf('{"a": {"b": [1]}}')).to.deep.equal([{ a: { b: [1] } }])
  })

  it('ignores brackets in comments and strings for the nesting limit', () => {
    const entry = 'a: "[[[[{{{{"  # see [here, {there\nb: |\n  [[[[\n'
    expect(errorsOf(Array.from({ length: 70 }, () => entry).join('---\n'))).to.deep.equal(Array.from({ length: 70 }, () => undefined))
    expect(valuesOf(`a: 1 # ${'['.repeat(200)}\n`)).to.deep.equal([{ a: 1 }])
  })

  it('rejects excessive nesting quickly, in any notation', () => {
    const texts = {
      flow: `a: ${'['.repeat(100_000)}`,
      'closed flow': `a: ${'['.repeat(20_000)}${']'.repeat(20_000)}`,
      block: Array.from({ length: 3000 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n'),
      dashes: `${'- '.repeat(5000)}x`,
      keys: `${'? '.repeat(5000)}x`,
      JSON: `{"a":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_001)}`,
      'one level too many': `${'['.repeat(documentLimits.depth + 1)}${']'.repeat(documentLimits.depth + 1)}`,
    }
    const spent = cpuMs(() => {
      for (const [what, content] of Object.entries(texts)) expect(errorsOf(content)[0], what).to.match(/nested deeper than 64 levels|not YAML/)
    })
    expect(spent).to.be.below(5000)
  })

  it('parses very many keys in linear time, and reports a duplicate key', () => {
    const mapping = (count: number) => Array.from({ length: count }, (_, index) => `k${index}: 1\n`).join('')
    const timed = (content: string) => cpuMs(() => readDocuments(content))
    timed(mapping(1000))
    const [small, large] = [timed(mapping(5000)), timed(mapping(50_000))]
    expect(large / small).to.be.below(40)
    expect(errorsOf('a: 1\nb: {c: 1, d: 2, c: 3}\n')).to.deep.equal(['not YAML, line 2: the key "c" is given twice'])
    // Compared as values, these keys are equal.
    for (const [content, line, key] of [
      ['1: a\n"1": b\n', 2, '1'],
      ['&a selector: x\n*a : y\n', 2, 'selector'],
      ['{"a": {"b": 1, "c": "b\\":", "b": 2}}', 1, 'b'],
      ['[{"a": 1},\n{"a": 1, "a": 1}]', 2, 'a'],
    ] as const)
      expect(errorsOf(content), content).to.deep.equal([`not YAML, line ${line}: the key "${key}" is given twice`])
    expect(errorsOf('{"a": {"b": "c\\": "}, "d\\\\": ["a", {"b" : {}}]}')).to.deep.equal([undefined])
  })

  it('parses any repeated characters in about linear time', () => {
    const rows = [
      ',',
      '"',
      "'",
      ':',
      ': ',
      '- ',
      '? ',
      '&a ',
      '*a ',
      '! ',
      '| ',
      '#',
      ' #',
      '%',
      '\t',
      '\n',
      '\u2028',
      '[a]',
      '"\n',
      '&a\n',
      'a:\n',
      '- |\n',
      '...\n',
    ]
    const row = (unit: string, length: number) => unit.repeat(Math.ceil(length / unit.length)).slice(0, length)
    const texts: Record<string, (length: number) => string> = {
      'opened brackets': (length) => row('[', length),
      'closed brackets': (length) => `${row('[', length / 2)}${row(']', length / 2)}`,
      'a mixture': (length) => row('[{"a\': ,]}- ? & * ! | > % @ `\n\t', length),
      'one key': (length) => `${row('k', length)}: 1`,
      anchors: (length) => Array.from({ length: length / 14 }, (_, index) => `k${index}: &a${index} x\n`).join(''),
      'comments after empty lines': (length) => `a:\n${row('\n', length / 2)}${row('   #\n', length / 2)}`,
      escapes: (length) => `a: "${row('\\', length)}`,
    }
    for (const unit of rows) for (const start of ['', '[']) texts[JSON.stringify(start + unit)] = (length) => start + row(unit, length)
    for (const [what, text] of Object.entries(texts)) {
      // Short durations are dominated by the JIT compiler.
      const small = Math.max(
        20,
        cpuMs(() => readDocuments(text(20_000))),
      )
      expect(cpuMs(() => readDocuments(text(120_000))) / small, what).to.be.below(18)
    }
  })

  it('reports the first error of each document separately, with its line in the file', () => {
    expect(errorsOf('[,,,\n')).to.deep.equal(['not YAML, line 1: Unexpected , in flow sequence'])
    const content = 'a: 1\n...\n%YAML 1.2\n---\nb: [,,\n...\n# between\nc: 3\n... x\nd: 4\n---\ne: 5\n...\n'
    expect(valuesOf(content)).to.deep.equal([{ a: 1 }, undefined, undefined, { d: 4 }, { e: 5 }])
    const [, second, third] = errorsOf(content)
    expect(second).to.match(/^not YAML, line 5: /)
    expect(third).to.match(/^not YAML, line 9: /)
    expect(errorsOf(`a: b\n${'x'.repeat(10_000)}`)[0]?.length).to.be.below(300)
  })

  it('rejects control characters only in the document that has them', () => {
    const content = 'a: 1\n---\nb: x\n# \0\n---\nc: "\x7f"\n---\nd: "\t"\r\n'
    expect(valuesOf(content)).to.deep.equal([{ a: 1 }, undefined, undefined, { d: '\t' }])
    expect(errorsOf(content).slice(1, 3)).to.deep.equal(['not YAML, line 4: a control character', 'not YAML, line 6: a control character'])
  })

  it('reads the values that the command line of the orchestrator reads, whatever the keys, tags and versions', () => {
    const texts: [content: string, value: unknown][] = [
      ['{__proto__: [1], toString: 2, constructor: x}', JSON.parse('{"__proto__":[1],"toString":2,"constructor":"x"}')],
      ['%YAML 1.1\n---\n<<: {a: 1}\nb: yes\nc: 2001-01-01\nd: 014\ne: 1:30', { a: 1, b: true, c: '2001-01-01', d: 12, e: '1:30' }],
      ['{x, z: }', { x: null, z: null }],
      ['- a\n-\n- ~\n- [a: b, c]', ['a', null, null, [{ a: 'b' }, 'c']]],
      ['1: a\ntrue: b\n0x1f: e\n1.5: f\noff: g', { 1: 'a', true: 'b', 31: 'e', '1.5': 'f', false: 'g' }],
      ['!!set {a, b}', { a: null, b: null }],
      ['!!omap [a: 1]', [{ a: 1 }]],
      ['{a: !!binary aGk=, b: !!timestamp 2001-01-01, c: !!str 12, d: ! 12}', { a: 'hi', b: '2001-01-01', c: '12', d: '12' }],
      ['- &a {b: 1}\n- *a\n- &c d\n- *c\n- {*c : e}', [{ b: 1 }, { b: 1 }, 'd', 'd', { d: 'e' }]],
      ["a: |\n x\n  y\nb: >-\n f\n g\nc: \"\\u00e9\"\nd: 'e''f'", { a: 'x\n y\n', b: 'f g', c: 'é', d: "e'f" }],
      ['a: [0o17, 1e3, 12345678901234567890]', { a: [15, 1000, 1.2345678901234567e19] }],
      ['a: &a {x: 1, z: 2}\nb: {<<: *a, z: 3}\nc: {z: 3, <<: *a}', { a: { x: 1, z: 2 }, b: { x: 1, z: 3 }, c: { z: 2, x: 1 } }],
    ]
    for (const [content, value] of texts) {
      expect(valuesOf(content), content).to.deep.equal([value])
      expect(JSON.stringify(valuesOf(content)), content).to.equal(JSON.stringify([value]))
    }
    const deepest = `${'['.repeat(documentLimits.depth)}x${']'.repeat(documentLimits.depth)}`
    expect(JSON.stringify(valuesOf(deepest))).to.equal(JSON.stringify([JSON.parse(deepest.replace('x', '"x"'))]))
  })

  it('refuses what the orchestrator cannot read as JSON, with its line', () => {
    for (const [content, reason] of [
      ['a: 1\nb: -.inf', 'line 2: an infinite number, or none; in quotes it is a text'],
      ['a: .nan', 'line 1: an infinite number, or none; in quotes it is a text'],
      ['yes: 1\ntrue: 2', 'line 2: the key "true" is given twice'],
      ['a: 1\n? {b: 1}\n: 2', 'line 2: a key that is no text; it must be in quotes'],
      ['~: 1', 'line 1: a key that is no text; it must be in quotes'],
      ['a: !!int x', 'line 1: the value is no int, as its tag says'],
      ['a: &a [*a]', 'line 1: an alias within what it stands for'],
      ['a: &a {<<: *a}', 'line 1: an alias within what it stands for'],
      ['a: {<<: 1}', 'line 1: a merge key (<<) takes a mapping, or a list of mappings'],
    ])
      expect(errorsOf(content as string), content).to.deep.equal([`not YAML, ${reason}`])
  })

  it('limits the number of aliases', () => {
    const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${[...'bcdefghi'].map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefghi'[index]}`).join(',')}]`).join('\n')}\n`
    expect(errorsOf(bomb)[0]).to.match(/alias/)
    const merging = bomb.replace('[x,x,x,x,x,x,x,x,x]', '{x: 1}').replaceAll('[*', '{<<: [*').replaceAll(']\n', ']}\n')
    expect(errorsOf(merging)[0]).to.match(/aliases and merge keys that stand for more than 100000 values/)
  })

  it('limits how much aliases and merge keys stand for', () => {
    const many = `a: &a {${Array.from({ length: 2000 }, (_, index) => `k${index}: 1`).join(', ')}}\n`
    const repeated = (text: string) => `${many}b: [${Array(60).fill(text).join(', ')}]\n`
    for (const text of ['*a', '{<<: *a}'])
      expect(errorsOf(repeated(text))).to.deep.equal(['not YAML, line 2: aliases and merge keys that stand for more than 100000 values'])
  })

  it('reads no further than collections may be nested, however long the text is', () => {
    const long = 1_000_000
    for (const opening of ['[', '{a: ', '[a: ', '- ', '? ', '{a: ['] as const) {
      const text = opening.repeat(long / opening.length)
      let read: unknown
      expect(
        cpuMs(() => {
          read = readDocuments(text)
        }),
        opening,
      ).to.be.lessThan(200)
      expect(read, opening).to.deep.equal([{ error: 'nested deeper than 64 levels', text }])
    }
  })
})
