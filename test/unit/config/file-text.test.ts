import { expect } from 'chai'
import { fileText } from '../../../src/config/file-text.ts'

const textOf = (...bytes: number[]) => fileText(Uint8Array.from(bytes))
const swapped = (text: string) => Buffer.from(text, 'utf16le').swap16()

describe('bytes of a configuration file', () => {
  it('are UTF-8 or UTF-16, with a byte order mark or without', () => {
    const text = 'kind: é\n'
    for (const mark of ['', '\uFEFF']) {
      expect(fileText(Buffer.from(mark + text)), 'UTF-8').to.deep.equal({ text: mark + text })
      expect(fileText(Buffer.from(mark + text, 'utf16le')), 'little').to.deep.equal({ text: mark + text })
      expect(fileText(swapped(mark + text)), 'big').to.deep.equal({ text: mark + text })
    }
    const long = 'ü'.repeat(100_000)
    expect(fileText(swapped(long))).to.deep.equal({ text: long })
    expect(textOf()).to.deep.equal({ text: '' })
    expect(textOf(0x61)).to.deep.equal({ text: 'a' })
  })

  it('that are neither are said, and cost no more than what they stand in', () => {
    expect(textOf(0x61, 0xff, 0x62)).to.deep.equal({ text: 'a\uDC80b' })
    expect(fileText(Buffer.from('a\uFFFDb'))).to.deep.equal({ text: 'a\uFFFDb' })
    expect(textOf(0xff, 0xfe, 0x61))
      .to.have.property('fault')
      .that.includes('ends within a character')
    for (const mark of [
      [0xff, 0xfe, 0, 0],
      [0, 0, 0xfe, 0xff],
    ])
      expect(textOf(...mark, 0x61, 0, 0, 0))
        .to.have.property('fault')
        .that.includes('UTF-32')
  })

  it('end their lines with CR, LF or both', () => {
    expect(fileText(Buffer.from('a\rb\r\nc\n\rd'))).to.deep.equal({ text: 'a\nb\r\nc\n\nd' })
  })
})
