import { expect } from 'chai'
import fc from 'fast-check'
import { ownRequest, readOwnResponse } from '../../../src/relay/own-messages.ts'
import { ResponseSplitter } from '../../../src/relay/response-splitter.ts'
import { fieldHead, textField, varintField, WireError } from '../../../src/xds/slab/wire.ts'
import { BadFrame, messageFrame } from '../../../src/xds/stream/frames.ts'
import { chunked, cuts } from '../../harness/chunks.ts'

const mine = 'type.example/Mine'
const other = 'type.example/Other'
const isOwn = (typeUrl: string) => typeUrl === mine

const message = (field: number, ...parts: Uint8Array[]) => {
  const content = Buffer.concat(parts)
  return Buffer.concat([fieldHead(field, content.length), content])
}
const any = (typeUrl: string, value: Buffer) => message(2, textField(1, typeUrl), message(2, value))
const value = fc.uint8Array({ maxLength: 3000 }).map((bytes) => Buffer.from(bytes))
const text = fc.string({ maxLength: 40 })

/**
 * Responses as servers encode them: fields in order or with the type URL first, names and versions of resources before or after the
 * value.
 */
const response = (isDelta: boolean) =>
  fc
    .record({ typeUrl: fc.constantFrom(mine, other), values: fc.array(value, { maxLength: 4 }), version: text, nonce: text, early: fc.boolean() })
    .map((of) => {
      const resources = of.values.map((content, index) => {
        const held = any(of.typeUrl, content)
        if (!isDelta) return held
        const name = textField(3, `name-${index}`)
        return of.early ? message(2, name, textField(1, of.version), held) : message(2, held, name)
      })
      const head = [textField(1, of.version), ...(of.early ? [textField(4, of.typeUrl), varintField(9, 7)] : [])]
      const tail = [...(of.early ? [] : [textField(4, of.typeUrl)]), textField(5, of.nonce)]
      return { bytes: Buffer.concat([...head, ...resources, ...tail]), ...of }
    })

function split(isDelta: boolean, chunks: readonly Buffer[]) {
  const passed: Buffer[] = []
  const own: Buffer[] = []
  const tooLarge: string[] = []
  let ended = 0
  const splitter = new ResponseSplitter(isDelta, isOwn, {
    pass: (bytes) => passed.push(Buffer.from(bytes)),
    own: (bytes) => own.push(Buffer.from(bytes)),
    tooLarge: (typeUrl, nonce) => tooLarge.push(`${typeUrl} ${nonce}`),
    ended: () => ended++,
  })
  for (const chunk of chunks) splitter.take(chunk)
  return { splitter, passed: Buffer.concat(passed), pieces: passed, own, tooLarge, ended }
}

describe('relayed responses', () => {
  for (const isDelta of [false, true])
    it(`of ${isDelta ? 'delta' : 'SotW'} are classified the same way however the bytes are split`, () => {
      fc.assert(
        fc.property(fc.array(response(isDelta), { maxLength: 5 }), cuts, (responses, at) => {
          const stream = Buffer.concat(responses.map(({ bytes }) => messageFrame(bytes)))
          const { splitter, passed, own, ended } = split(isDelta, chunked(stream, at))
          const isMine = ({ typeUrl }: { typeUrl: string }) => typeUrl === mine
          expect(own).to.deep.equal(responses.filter(isMine).map(({ bytes }) => bytes))
          const others = responses.filter((each) => !isMine(each))
          expect(passed.equals(Buffer.concat(others.map(({ bytes }) => messageFrame(bytes))))).to.equal(true)
          expect([splitter.isBetween, ended]).to.deep.equal([true, responses.length])
          for (const [index, each] of responses.filter(isMine).entries()) {
            const read = readOwnResponse(isDelta, own[index] as Buffer)
            expect(read).to.deep.equal({ typeUrl: mine, version: isDelta ? '' : each.version, nonce: each.nonce, resource: each.values[0] })
          }
        }),
      )
    })

  it('are forwarded as they arrive once their type is known, in the same pieces', () => {
    const stream = messageFrame(Buffer.concat([any(other, Buffer.alloc(200_000, 7)), textField(4, other)]))
    const chunks = chunked(stream, [4, 60, 16_000, 100_000])
    const { splitter, pieces } = split(false, chunks.slice(0, 3))
    expect(pieces.map(({ length }) => length)).to.deep.equal([4, 56, 15_940])
    expect(splitter.isBetween).to.equal(false)
    const several = Buffer.concat([messageFrame(textField(4, other)), messageFrame(textField(4, other)), stream])
    expect(split(false, [several]).pieces, 'several that came together').to.deep.equal([several])
  })

  it('without a type among the first bytes are forwarded to the proxy', () => {
    const held = Buffer.concat([textField(1, 'v'.repeat(1000)), textField(6, 'x'.repeat(2000)), textField(4, mine)])
    expect(split(false, [messageFrame(held)]).passed.length).to.equal(held.length + 5)
    expect(split(false, [messageFrame(Buffer.alloc(0)), messageFrame(varintField(9, 1))]).passed.length, 'without a type').to.equal(12)
    const long = Buffer.concat([textField(4, `${mine}${'x'.repeat(2040)}`), textField(4, mine)])
    expect(split(true, chunked(messageFrame(long), [500, 1000])).passed.length, 'with a type longer than any').to.equal(long.length + 5)
  })

  it('that are too large for the agent are skipped, except the fields needed to answer them', () => {
    const large = Buffer.alloc(33_554_400, 1)
    const frame = messageFrame(Buffer.concat([any(mine, large), textField(4, mine), textField(5, 'n1')]))
    const { own, tooLarge, passed } = split(false, [...chunked(frame, [1_000_000, 20_000_000]), messageFrame(textField(4, other))])
    expect([own.length, tooLarge, passed.length]).to.deep.equal([0, [`${mine} n1`], messageFrame(textField(4, other)).length])
  })

  it('that are compressed or not protobuf are rejected', () => {
    expect(() => split(false, [Buffer.from([1, 0, 0, 0, 1, 0])])).to.throw(BadFrame, 'compressed messages are not supported')
    for (const bytes of [[0x0f], [0x00], [0x12, 0x05, 0x0a], [0x12], [0x80], [0x08, ...new Array(11).fill(0x80)], [0x12, 0x03, 0x0a, 0x05, 0x41]])
      expect(() => split(false, [messageFrame(Buffer.from(bytes))]), bytes.join()).to.throw(WireError)
  })

  it('with arbitrary bytes give the same messages or error however they are split', () => {
    const outcome = (chunks: readonly Buffer[]) => {
      try {
        return split(true, chunks).passed.toString('hex')
      } catch (error) {
        if (!(error instanceof WireError || error instanceof BadFrame)) throw error
        return error.message
      }
    }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), cuts, (bytes, at) => {
        const stream = messageFrame(bytes)
        expect(outcome(chunked(stream, at))).to.equal(outcome([stream]))
      }),
    )
  })

  it('are acknowledged and rejected in SotW and delta form', () => {
    const error = { code: 13, message: 'no' }
    const status = message(6, varintField(1, 13), textField(2, 'no'))
    expect(ownRequest(false, mine, { version: 'v', nonce: 'n', error })).to.deep.equal(
      Buffer.concat([textField(1, 'v'), textField(4, mine), textField(5, 'n'), status]),
    )
    const deltaStatus = message(7, varintField(1, 13), textField(2, 'no'))
    expect(ownRequest(true, mine, { version: 'v', nonce: 'n', error })).to.deep.equal(
      Buffer.concat([textField(2, mine), textField(6, 'n'), deltaStatus]),
    )
  })
})
