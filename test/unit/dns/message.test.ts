import { expect } from 'chai'
import fc from 'fast-check'
import { answer, BadMessage, encodeName, failure, fitting, isAnswerTo, rcode, readQuery, sizeFor, withId } from '../../../src/dns/message.ts'
import { dnsQuery, readDnsResponse } from '../../harness/dns-messages.ts'
import { runs } from '../../harness/seed.ts'

const label = fc.stringMatching(/^[a-zA-Z0-9_-]{1,20}$/)
const name = fc.array(label, { minLength: 1, maxLength: 6 }).map((labels) => labels.join('.'))

describe('DNS messages', () => {
  it('of queries are parsed with name, type, id and EDNS size as encoded, with the name in lower case', () => {
    fc.assert(
      fc.property(name, fc.nat(65_535), fc.nat(65_535), fc.option(fc.nat(65_535), { nil: undefined }), (asked, type, id, size) => {
        const query = readQuery(dnsQuery({ name: asked, type, id, ...(size === undefined ? {} : { size }) }))
        expect(query).to.deep.include({ id, isStandard: true, edns: size === undefined ? undefined : { version: 0, size } })
        expect(query.question).to.include({ name: asked.toLowerCase(), type, isInternet: true })
      }),
    )
  })

  it('with arbitrary bytes are parsed or rejected as malformed, and can be answered with an error', () => {
    const valid = dnsQuery({ name: 'a.example.com', size: 4096 })
    const broken = fc.array(fc.record({ at: fc.nat(valid.length - 1), byte: fc.nat(255) }), { maxLength: 6 }).map((changes) => {
      const copy = Buffer.from(valid)
      for (const { at, byte } of changes) copy[at] = byte
      return copy
    })
    const bytes = fc.oneof(
      broken,
      fc.uint8Array({ maxLength: 600 }).map(Buffer.from),
      fc.nat(valid.length).map((length) => valid.subarray(0, length)),
    )
    fc.assert(
      fc.property(bytes, (message) => {
        isAnswerTo(readQuery(valid), 0x1234, Buffer.from(message))
        try {
          readDnsResponse(failure(readQuery(Buffer.from(message)), rcode.serverFailure))
        } catch (error) {
          expect(error).to.be.instanceOf(BadMessage)
          const { query } = error as BadMessage
          if (query) readDnsResponse(failure(query, rcode.formatError))
        }
      }),
      { numRuns: runs(2000) },
    )
  })

  it('with label bytes that no service name has give no name to look up', () => {
    for (const odd of ['a\u0000b', 'a b', 'a\u00e9', 'a\u007f'])
      expect(readQuery(dnsQuery({ name: `${odd}.com` })).question?.name, odd).to.equal(undefined)
    const dotted = dnsQuery({ name: 'axb.com' })
    dotted[14] = 46
    expect(readQuery(dotted).question?.name).to.equal(undefined)
  })

  it('are rejected with a name that is too long, a compression pointer, or record counts that exceed the message', () => {
    const long = Array.from({ length: 26 }, () => 'a'.repeat(9)).join('.')
    expect(() => readQuery(dnsQuery({ name: long }))).to.throw(BadMessage)
    const pointer = dnsQuery({ name: 'abc.com' })
    pointer[12] = 0xc0
    expect(() => readQuery(pointer)).to.throw(BadMessage)
    const counts = dnsQuery({ name: 'abc.com' })
    counts.writeUInt16BE(65_535, 6)
    expect(() => readQuery(counts)).to.throw(BadMessage)
    expect(() => readQuery(Buffer.from([1, 2, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0]))).to.throw(BadMessage, 'a response')
  })

  const addresses = (count: number, bytes: number) =>
    Array.from({ length: count }, (_, index) => Uint8Array.from({ length: bytes }, () => index & 255))

  it('answer with the case of the question, and with the CNAME before the addresses', () => {
    const query = readQuery(dnsQuery({ name: 'RevIews.Shop', size: 1400 }))
    const read = readDnsResponse(answer(query, { alias: 'reviews', addresses: addresses(2, 4), ttl: 30 }, 512))
    expect(read).to.deep.include({ id: 0x1234, rcode: 0, isAuthoritative: true, isTruncated: false, question: { name: 'RevIews.Shop', type: 1 } })
    expect(read.answers).to.deep.equal([
      { name: 'RevIews.Shop', type: 5, ttl: 30, class: 1, data: 'reviews' },
      { name: 'reviews', type: 1, ttl: 30, class: 1, data: '0.0.0.0' },
      { name: 'reviews', type: 1, ttl: 30, class: 1, data: '1.1.1.1' },
    ])
    expect(read.additional.map(({ type }) => type)).to.deep.equal([41])
    expect(read.flags & 0x0180).to.equal(0x0180)
  })

  it("never exceed the client's size limit, and set the TC flag if addresses are left out", () => {
    fc.assert(
      fc.property(
        fc.nat(200),
        fc.constantFrom(4, 16),
        fc.option(fc.integer({ min: 0, max: 3000 }), { nil: undefined }),
        fc.boolean(),
        (count, bytes, size, aliased) => {
          const query = readQuery(dnsQuery({ name: 'a.b.example.com', ...(size === undefined ? {} : { size }) }))
          const limit = sizeFor(query, false)
          expect(limit).to.equal(Math.max(512, size ?? 0))
          const message = answer(query, { alias: aliased ? 'a.b' : undefined, addresses: addresses(count, bytes), ttl: 30 }, limit)
          const read = readDnsResponse(message)
          const given = read.answers.filter(({ type }) => type !== 5).length
          expect(message.length).to.be.at.most(limit)
          expect(read.isTruncated).to.equal(given < count)
          // One address more would have exceeded the limit.
          if (given < count) expect(message.length + 12 + bytes).to.be.above(limit)
        },
      ),
    )
  })

  it('of upstream servers are forwarded unchanged if they fit, and truncated without records otherwise', () => {
    const query = readQuery(dnsQuery({ name: 'a.example.com', size: 600 }))
    const response = answer(query, { addresses: addresses(100, 4), ttl: 5 }, 65_535)
    expect(fitting(query, response, 65_535)).to.equal(response)
    const cut = readDnsResponse(fitting(query, response, 600))
    expect(cut).to.deep.include({ isTruncated: true, answers: [], question: { name: 'a.example.com', type: 1 } })
    expect(cut.additional).to.have.length(1)
  })

  it('count as an answer to a query only with its id and its question', () => {
    const query = readQuery(dnsQuery({ name: 'A.example.com', id: 7 }))
    const response = answer(query, { addresses: addresses(1, 4), ttl: 5 }, 512)
    expect(isAnswerTo(query, 7, response)).to.equal(true)
    expect(isAnswerTo(query, 8, response)).to.equal(false)
    expect(isAnswerTo(query, 8, withId(response, 8))).to.equal(true)
    expect(isAnswerTo(query, 7, dnsQuery({ name: 'A.example.com', id: 7 }))).to.equal(false)
    for (const other of [{ name: 'b.example.com' }, { name: 'a.example.com', type: 28 }]) {
      const foreign = answer(readQuery(dnsQuery({ ...other, id: 7 })), { addresses: addresses(1, 4), ttl: 5 }, 512)
      expect(isAnswerTo(query, 7, foreign)).to.equal(false)
    }
    const lower = answer(readQuery(dnsQuery({ name: 'a.EXAMPLE.com', id: 7 })), { addresses: [], ttl: 5 }, 512)
    expect(isAnswerTo(query, 7, lower)).to.equal(true)
    const bare = Buffer.from([0, 7, 0x80, 2, 0, 0, 0, 0, 0, 0, 0, 0])
    expect(isAnswerTo(query, 7, bare)).to.equal(true)
    bare[3] = 0
    expect(isAnswerTo(query, 7, bare)).to.equal(false)
  })

  it('encode a name that is invalid in DNS as the root name', () => {
    expect(encodeName('a.b')).to.deep.equal(Buffer.from([1, 97, 1, 98, 0]))
    for (const odd of ['', 'a..b', 'x'.repeat(64), Array.from({ length: 130 }, () => 'a').join('.')])
      expect(encodeName(odd)).to.deep.equal(Buffer.of(0))
  })
})
