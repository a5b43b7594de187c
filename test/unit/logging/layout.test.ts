import { expect } from 'chai'
import { consoleLine, jsonLine, printable } from '../../../src/logging/layout.ts'

const odd = 'a\u202eb\u2066c\u0085d\u2028e\u200bf\u001bg\u{e0001}h\ni\tj\u00ad'
const escaped = 'a\\u202eb\\u2066c\\u0085d\\u2028e\\u200bf\\u001bg\\udb40\\udc01h\\u000ai j\\u00ad'
const stack = `Error: ${odd.replace('\n', '')}\n    at x`
const given = `${JSON.stringify({ level: 'info', time: '1970-01-01T00:00:00.000000Z', msg: odd, from: odd, stack })}\n`
const obeyed = /[\p{Cf}\p{Zl}\p{Zp}\u0000-\u0008\u000b-\u001f\u007f-\u009f]/u

describe('log lines', () => {
  it('show characters that a terminal obeys as escapes: those of control, of lines, and of the direction of writing', () => {
    const line = consoleLine(given)
    expect(line.split('\n')).to.have.length(4)
    expect(line.split('\n')[0]).to.equal(`1970-01-01T00:00:00.000000Z\tinfo\t${escaped}\tfrom=${escaped}`)
    expect(line).not.to.match(obeyed)
  })

  it('are JSON with the same text, and without such characters', () => {
    const line = jsonLine(given)
    expect(line.slice(0, -1)).not.to.match(obeyed).and.not.to.contain('\n')
    expect(JSON.parse(line)).to.include({ msg: odd, from: odd, stack })
  })

  it('like pages, whose line breaks stay', () => {
    const json = printable(JSON.stringify({ name: odd }, null, 2))
    expect(json.split('\n')).to.have.length(3)
    expect(json).not.to.match(obeyed)
    expect(JSON.parse(json)).to.deep.equal({ name: odd })
  })
})
