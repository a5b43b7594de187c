import { expect } from 'chai'
import { fileText } from '../../../src/config/file-text.ts'

const textOf = (...bytes: number[]) => fileText(Uint8Array.from(bytes))
const swapped = (text: string) => Buffer.from(text, 'utf16le').swap16()
const little32 = (text: string) => Buffer.from(Uint32Array.from([...text], (character) => character.codePointAt(0) ?? 0).buffer)

describe('text of a configuration file', () => {
  it('is decoded from UTF-8, UTF-16 or UTF-32, with or without a byte order mark', () => {
    const text = 'kind: é😀\n'
    for (const mark of ['', '\uFEFF']) {
      expect(fileText(Buffer.from(mark + text)), 'UTF-8').to.equal(mark + text)
      expect(fileText(Buffer.from(mark + text, 'utf16le')), 'little').to.equal(mark + text)
      expect(fileText(swapped(mark + text)), 'big').to.equal(mark + text)
      expect(fileText(little32(mark + text)), 'little, 32').to.equal(mark + text)
      expect(fileText(little32(mark + text).swap32()), 'big, 32').to.equal(mark + text)
    }
    const long = 'ü'.repeat(100_000)
    for (const bytes of [swapped(long), little32(long)]) expect(fileText(bytes)).to.equal(long)
    const foreign = `# ${'漢字'.repeat(50)}\nkind: Sidecar\n`
    for (const bytes of [swapped(foreign), little32(foreign)]) expect(fileText(bytes)).to.equal(foreign)
    const mostlyForeign = `# ${'漢字'.repeat(2500)}\nkind: Sidecar\n`
    for (const bytes of [swapped(mostlyForeign), Buffer.from(mostlyForeign, 'utf16le')]) expect(fileText(bytes)).to.equal(mostlyForeign)
    expect(textOf()).to.equal('')
    expect(textOf(0x61)).to.equal('a')
  })

  it('has a substitute for each invalid byte, and the text around it is kept', () => {
    expect(textOf(0x61, 0xff, 0x62)).to.equal('a\uDC80b')
    expect(fileText(Buffer.from('a\uFFFDb'))).to.equal('a\uFFFDb')
    expect(textOf(0xff, 0xfe, 0x61, 0, 0x62)).to.equal('\uFEFFa\uDC80')
    expect(textOf(0xff, 0xfe, 0, 0, 0x61, 0, 0, 0, 0, 0xd8, 0, 0, 0, 0, 0x11, 0, 0x62)).to.equal('\uFEFFa\uDC80\uDC80\uDC80')
  })

  it('is UTF-8 if only a few bytes are zero', () => {
    const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n'
    for (const at of [0, 1, 2, 20])
      for (const zeros of ['\0', '\0\0', '\0\0\0']) {
        const given = text.slice(0, at) + zeros + text.slice(at)
        expect(fileText(Buffer.from(given)), `${zeros.length} at ${at}`).to.equal(given)
      }
  })

  it('has its CR and CRLF line ends normalised to LF', () => {
    expect(fileText(Buffer.from('a\rb\r\nc\n\rd'))).to.equal('a\nb\r\nc\n\nd')
  })
})
