import { expect } from 'chai'
import { readDownwardFile } from '../../../src/bootstrap/downward-file.ts'

describe('a downward API file of labels or annotations', () => {
  it('has one key="value" per line, with the escapes of Go', () => {
    const content = String.raw`app="web"
a.b/c="one\ntwo\t\"quoted\" \\ \x41\101\u00e9\U0001F600\xc3\xa9"
empty=""
equals="a=b"
`
    expect(readDownwardFile('f', content)).to.deep.equal({
      entries: { app: 'web', 'a.b/c': 'one\ntwo\t"quoted" \\ AAé😀é', empty: '', equals: 'a=b' },
      warnings: [],
    })
  })

  it('loses only the lines that are malformed, with a warning for each', () => {
    const content = [
      'good="1"',
      'noquotes=1',
      'noequals',
      String.raw`bad="\q"`,
      String.raw`surrogate="\ud800"`,
      'open="',
      'inner="a"b"',
      '',
      'last="2"',
    ].join('\n')
    const { entries, warnings } = readDownwardFile('f', content)
    expect(entries).to.deep.equal({ good: '1', last: '2' })
    expect(warnings).to.deep.equal([2, 3, 4, 5, 6, 7].map((line) => `f, line ${line}: not key="value", left out`))
  })

  it('may have keys such as __proto__ and constructor', () => {
    const { entries } = readDownwardFile('f', '__proto__="x"\nconstructor="y"')
    expect(Object.entries(entries)).to.deep.equal([
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ])
  })

  it('is parsed in time linear in its size', () => {
    expect(readDownwardFile('f', `a="${'\\x41'.repeat(250_000)}"`).entries.a).to.have.length(250_000)
    expect(readDownwardFile('f', `a="${'\\'.repeat(999_999)}"`).warnings).to.have.length(1)
  })
})
