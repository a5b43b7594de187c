/** The rules of docs/xds-protocol.md, at least one row for each. */
import { expect } from 'chai'
import { clusterType, endpointType, listenerType, shortType } from '../../../../src/xds/type-urls.ts'
import { type Asked, contentOf, Stream } from '../../../harness/protocol-stream.ts'

/** A step of a row: a request or a change of the type's resources, and the response expected after it (none if absent). */
type Step = (({ readonly ask: Asked } | { readonly set: Readonly<Record<string, string>> }) & { readonly sent?: string }) | { readonly again: true }

interface Row {
  readonly rule: string
  readonly says: string
  readonly type?: string
  readonly steps: readonly Step[]
}

const ab = { a: '1', b: '1' }

const sotw: readonly Row[] = [
  { rule: 'S1', says: 'an empty first list is everything', steps: [{ ask: {}, sent: 'a=1 b=1' }] },
  {
    rule: 'S1',
    says: 'an empty list stays everything as long as no name was given',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { ask: { nonce: 'last' } },
      { set: { ...ab, c: '1' }, sent: 'a=1 b=1 c=1' },
      { ask: { nonce: 'last' } },
      { set: ab, sent: 'a=1 b=1' },
    ],
  },
  { rule: 'S2', says: '* is everything', steps: [{ ask: { names: ['*'] }, sent: 'a=1 b=1' }] },
  { rule: 'S2', says: '* beside names is everything', steps: [{ ask: { names: ['a', '*'] }, sent: 'a=1 b=1' }] },
  {
    rule: 'S2',
    says: 'a name beside * may be given up, and * too',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { ask: { names: ['*', 'a'], nonce: 'last' }, sent: 'a=1 b=1' },
      { ask: { names: ['a'], nonce: 'last' }, sent: 'a=1' },
      { set: { a: '1', b: '2' } },
      { set: { a: '2', b: '2' }, sent: 'a=2' },
    ],
  },
  {
    rule: 'S3',
    says: 'an empty list after names is nothing',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { nonce: 'last' } },
      { set: { a: '2' } },
      { ask: { names: ['a'], nonce: 'last' }, sent: 'a=2' },
    ],
  },
  {
    rule: 'S3',
    says: 'an empty list after * is nothing, with or without a nonce',
    steps: [{ ask: { names: ['*'] }, sent: 'a=1 b=1' }, { ask: { nonce: 'last' } }, { set: { a: '2' } }, { ask: {} }, { set: { a: '3' } }],
  },
  { rule: 'S4', says: 'an empty first list of a named type is nothing', type: endpointType, steps: [{ ask: {} }, { set: { a: '2' } }] },
  {
    rule: 'S4',
    says: 'an empty list of a named type ends the subscription; names after it start anew',
    type: endpointType,
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { nonce: 'last' } },
      { set: { a: '2' } },
      { ask: { names: ['a'], nonce: 'last' }, sent: 'a=2' },
    ],
  },
  {
    rule: 'S5',
    says: 'an answer for clusters by name holds all names, also those that did not change',
    steps: [
      { ask: { names: ['a', 'b'] }, sent: 'a=1 b=1' },
      { set: { a: '2', b: '1', c: '1' }, sent: 'a=2 b=1' },
      { set: { b: '1' }, sent: 'b=1' },
    ],
  },
  {
    rule: 'S5',
    says: 'an answer for endpoints holds what changed',
    type: endpointType,
    steps: [
      { ask: { names: ['a', 'b'] }, sent: 'a=1 b=1' },
      { set: { a: '2', b: '1' }, sent: 'a=2' },
    ],
  },
  {
    rule: 'S6',
    says: 'a name more is answered with all names of clusters',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { names: ['a', 'b'], nonce: 'last' }, sent: 'a=1 b=1' },
    ],
  },
  {
    rule: 'S6',
    says: 'a name more is answered with the new endpoints only',
    type: endpointType,
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { names: ['a', 'b'], nonce: 'last' }, sent: 'b=1' },
    ],
  },
  {
    rule: 'S6',
    says: 'the order and repetition of names do not matter',
    steps: [{ ask: { names: ['a', 'b'] }, sent: 'a=1 b=1' }, { ask: { names: ['b', 'a', 'b'], nonce: 'last' } }],
  },
  {
    rule: 'S7',
    says: 'names with an old nonce are not taken',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { set: { a: '2', b: '1' }, sent: 'a=2' },
      { ask: { names: ['a', 'b'], nonce: 'n1' } },
      { ask: { names: ['a', 'b'], nonce: 'last' }, sent: 'a=2 b=1' },
    ],
  },
  {
    rule: 'S7',
    says: 'a name that a stale list leaves out is sent again when the next list has it, and then not again',
    type: endpointType,
    steps: [
      { ask: { names: ['a', 'b'] }, sent: 'a=1 b=1' },
      { set: { a: '2', b: '1' }, sent: 'a=2' },
      { ask: { names: ['a'], nonce: 'n1' } },
      { ask: { names: ['a', 'b'], nonce: 'n1' } },
      { ask: { names: ['a', 'b'], nonce: 'last' }, sent: 'b=1' },
      { ask: { names: ['a', 'b'], nonce: 'last' } },
    ],
  },
  {
    rule: 'S7',
    says: 'a nonce of another stream, for a type that is not known here, starts the type',
    steps: [{ ask: { names: ['b'], nonce: 'elsewhere' }, sent: 'b=1' }],
  },
  {
    rule: 'S8',
    says: 'a refusal that adds a name is answered',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { names: ['a', 'b'], nonce: 'last', refused: true }, sent: 'a=1 b=1' },
    ],
  },
  {
    rule: 'S8',
    says: 'a refusal that takes a name away keeps the others',
    type: endpointType,
    steps: [
      { ask: { names: ['a', 'b'] }, sent: 'a=1 b=1' },
      { ask: { names: ['b'], nonce: 'last', refused: true } },
      { set: { a: '2', b: '2' }, sent: 'b=2' },
    ],
  },
  {
    rule: 'S8',
    says: 'what was refused is not sent again until it changes',
    steps: [{ ask: {}, sent: 'a=1 b=1' }, { ask: { nonce: 'last', refused: true } }, { again: true }, { set: { a: '2' }, sent: 'a=2' }],
  },
  {
    rule: 'S8',
    says: 'a stale refusal without names ends no subscription',
    type: endpointType,
    steps: [{ ask: { names: ['a'] }, sent: 'a=1' }, { ask: { nonce: 'old', refused: true } }, { set: { a: '2' }, sent: 'a=2' }],
  },
  {
    rule: 'S8',
    says: 'a stale refusal does not change names',
    steps: [{ ask: { names: ['a'] }, sent: 'a=1' }, { ask: { names: ['b'], nonce: 'old', refused: true } }],
  },
  { rule: 'S9', says: 'a change of other names sends nothing', steps: [{ ask: { names: ['a'] }, sent: 'a=1' }, { set: { a: '1', b: '2' } }] },
  {
    rule: 'S10',
    says: 'endpoints that do not exist',
    type: endpointType,
    steps: [
      { ask: { names: ['z'] }, sent: 'z' },
      { set: { z: '1' }, sent: 'z=1' },
    ],
  },
  {
    rule: 'S5',
    says: 'a cluster that does not exist is not in the answer',
    steps: [
      { ask: { names: ['z'] }, sent: '' },
      { set: { z: '1' }, sent: 'z=1' },
    ],
  },
  {
    rule: 'S5',
    says: 'when all are gone, an empty answer says so',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { set: {}, sent: '' },
    ],
  },
]

const delta: readonly Row[] = [
  { rule: 'D1', says: 'a first request without names is everything', steps: [{ ask: {}, sent: 'a=1 b=1' }] },
  { rule: 'D1', says: 'a first request that only removes names is nothing', steps: [{ ask: { remove: ['a'] } }, { set: { a: '2' } }] },
  {
    rule: 'D1',
    says: 'names beside an earlier everything',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { ask: { names: ['a'] }, sent: 'a=1' },
      { set: { a: '1', b: '2' }, sent: 'b=2' },
    ],
  },
  { rule: 'D1', says: 'named types have no everything', type: endpointType, steps: [{ ask: {} }, { set: { a: '2' } }] },
  { rule: 'D2', says: '* is everything', steps: [{ ask: { names: ['*'] }, sent: 'a=1 b=1' }] },
  { rule: 'D2', says: '* beside a name that does not exist', steps: [{ ask: { names: ['*', 'z'] }, sent: 'a=1 b=1 -z' }] },
  {
    rule: 'D2',
    says: 'giving up * leaves the names',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { remove: ['*'] } },
      { set: { a: '1', b: '2' } },
      { set: { a: '2', b: '2' }, sent: 'a=2' },
      { ask: { remove: ['a'] } },
      { set: { a: '3', b: '3' } },
    ],
  },
  {
    rule: 'D3',
    says: 'a name that the proxy has is sent again',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { names: ['a'] }, sent: 'a=1' },
    ],
  },
  {
    rule: 'D3',
    says: 'the same with *',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { ask: { names: ['*'] }, sent: 'a=1 b=1' },
    ],
  },
  {
    rule: 'D3',
    says: 'a name that does not exist is said to be removed, and sent when it comes',
    steps: [
      { ask: { names: ['z'] }, sent: '-z' },
      { set: { z: '1' }, sent: 'z=1' },
    ],
  },
  {
    rule: 'D3',
    says: 'removed and added in one request is added',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { names: ['a'], remove: ['a'] }, sent: 'a=1' },
    ],
  },
  {
    rule: 'D4',
    says: 'names with an old nonce are taken',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { names: ['b'], nonce: 'old' }, sent: 'b=1' },
    ],
  },
  {
    rule: 'D4',
    says: 'a refusal that adds a name is answered',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { names: ['b'], nonce: 'last', refused: true }, sent: 'b=1' },
    ],
  },
  {
    rule: 'D4',
    says: 'a refusal that removes a name',
    steps: [
      { ask: { names: ['a', 'b'] }, sent: 'a=1 b=1' },
      { ask: { remove: ['a'], nonce: 'last', refused: true } },
      { set: { a: '2', b: '2' }, sent: 'b=2' },
    ],
  },
  {
    rule: 'D5',
    says: 'a name that was given up is not mentioned',
    steps: [{ ask: { names: ['a', 'b'] }, sent: 'a=1 b=1' }, { ask: { remove: ['a'] } }, { set: { b: '1' } }],
  },
  {
    rule: 'D5',
    says: 'a name given up beside * is sent',
    steps: [
      { ask: { names: ['*', 'a'] }, sent: 'a=1 b=1' },
      { ask: { remove: ['a'] }, sent: 'a=1' },
    ],
  },
  {
    rule: 'D5',
    says: 'a name given up beside * that does not exist is said to be removed',
    steps: [
      { ask: { names: ['*', 'z'] }, sent: 'a=1 b=1 -z' },
      { ask: { remove: ['z'] }, sent: '-z' },
    ],
  },
  {
    rule: 'D6',
    says: 'what is gone is said to be removed',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { set: { b: '1' }, sent: '-a' },
    ],
  },
  {
    rule: 'D6',
    says: 'also when everything is asked for again meanwhile',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { ask: { names: ['b'] }, sent: 'b=1' },
      { set: { b: '2' }, sent: 'b=2 -a' },
    ],
  },
  { rule: 'D7', says: 'what the proxy has is not sent again', steps: [{ ask: { versions: { a: 'a', b: 'other', gone: 'x' } }, sent: 'b=1 -gone' }] },
  {
    rule: 'D7',
    says: 'versions of names that are not subscribed to are not looked at',
    type: endpointType,
    steps: [{ ask: { names: ['a'], versions: { a: 'a', b: 'other', gone: 'x' } } }],
  },
  { rule: 'D8', says: 'a change of other names sends nothing', steps: [{ ask: { names: ['a'] }, sent: 'a=1' }, { set: { a: '1', b: '2' } }] },
  {
    rule: 'D9',
    says: 'giving up what was not subscribed to does nothing',
    steps: [{ ask: { names: ['a'] }, sent: 'a=1' }, { ask: { remove: ['b', '*'] } }, { set: { a: '2', b: '2' }, sent: 'a=2' }],
  },
]

function play({ type = clusterType, steps }: Row, isDelta: boolean): void {
  const stream = new Stream(isDelta, { [clusterType]: ab, [listenerType]: ab, [endpointType]: ab })
  for (const [index, step] of steps.entries()) {
    if ('ask' in step) {
      // The actual version of a resource where the row names the version by the resource.
      const versions = Object.fromEntries(
        Object.entries(step.ask.versions ?? {}).map(([name, version]) => [name, version === name ? stream.versionOf(type, name) : version]),
      )
      stream.ask(type, { ...step.ask, versions })
    } else if ('set' in step) stream.set(type, step.set)
    const sent = 'again' in step ? undefined : step.sent
    expect(contentOf(stream.next()), `step ${index + 1}`).to.equal(sent)
    expect(stream.next(), `more after step ${index + 1}`).to.equal(undefined)
  }
}

describe('the rules of the xDS protocol', () => {
  for (const row of sotw) it(`state of the world, ${row.rule}: ${row.says}`, () => play(row, false))
  for (const row of delta) it(`delta, ${row.rule}: ${row.says}`, () => play(row, true))

  it('apply to listeners as to clusters', () => {
    for (const row of sotw) if (!row.type) play({ ...row, type: listenerType }, false)
    for (const row of delta) if (!row.type) play({ ...row, type: listenerType }, true)
  })

  it('D6: removed names are reported however many changes were missed, also after a new wildcard subscription', () => {
    for (const again of [false, true]) {
      const stream = new Stream(true, { [clusterType]: { ...ab, gone: '1' } })
      stream.ask(clusterType, {})
      stream.next()
      for (let change = 0; change < 200; change++) stream.set(clusterType, { a: String(change), [`passing${change}`]: '1' })
      if (again) stream.session.sendAgain()
      expect(contentOf(stream.next())).to.equal('a=199 passing199=1 -b -gone')
    }
  })

  for (const isDelta of [false, true])
    it(`${isDelta ? 'D4, delta' : 'S8, SotW'}: a NACK with a stale nonce does not answer a push of clusters and is not recorded`, () => {
      const stream = new Stream(isDelta, { [clusterType]: { a: '1' }, [listenerType]: { l: '1' } })
      stream.ask(clusterType, {})
      stream.next()
      stream.ask(listenerType, {})
      stream.next()
      stream.set(clusterType, { a: '1', b: '1' })
      stream.set(listenerType, { l: '2' })
      expect(contentOf(stream.next())).to.equal(isDelta ? 'b=1' : 'a=1 b=1')
      const watch = stream.session.watches.get(clusterType)
      for (const nonce of ['n1', 'made up', 'n'.repeat(4_000_000)]) {
        expect(stream.ask(clusterType, { nonce, refused: true })).to.equal('nack')
        expect(watch?.lastError).to.equal(undefined)
        expect(stream.next(), 'listeners wait for the answer to new clusters').to.equal(undefined)
      }
      stream.ask(clusterType, { nonce: 'last', refused: true })
      expect(watch?.lastError?.nonce).to.equal(watch?.nonce)
      expect(contentOf(stream.next())).to.equal('l=2')
    })

  it('treat type URLs named like inherited properties as unknown types', () => {
    for (const isDelta of [false, true])
      for (const typeUrl of ['valueOf', 'constructor', '__proto__', 'toString', 'hasOwnProperty']) {
        const stream = new Stream(isDelta, {})
        stream.ask(typeUrl, { names: ['a'] })
        expect(contentOf(stream.next())).to.equal(isDelta ? '-a' : undefined)
        expect(shortType(typeUrl)).to.equal(typeUrl)
      }
  })

  it('D3: a name unsubscribed and subscribed again before the first response is sent, whatever version the client reported', () => {
    for (const again of [{ names: ['a'] }, { names: ['*'] }]) {
      const stream = new Stream(true, { [endpointType]: ab })
      stream.ask(endpointType, { names: ['a'], versions: { a: stream.versionOf(endpointType, 'a') } })
      stream.ask(endpointType, { remove: ['a'] })
      stream.ask(endpointType, again)
      expect(contentOf(stream.next())).to.contain('a=1')
      expect(stream.next()).to.equal(undefined)
    }
  })

  for (const isLate of [false, true])
    it(`D7: the endpoints of clusters that changed before a reconnect are sent${isLate ? ', also if they are subscribed to later' : ''}`, () => {
      const stream = new Stream(true, { [clusterType]: { a: '2', b: '1' }, [endpointType]: ab })
      const versions = (typeUrl: string) => ({ a: stream.versionOf(typeUrl, 'a'), b: stream.versionOf(typeUrl, 'b') })
      const askEndpoints = () => stream.ask(endpointType, { names: ['a', 'b'], versions: versions(endpointType) })
      stream.ask(clusterType, { versions: { ...versions(clusterType), a: 'another' } })
      if (!isLate) askEndpoints()
      expect(contentOf(stream.next())).to.equal('a=2')
      if (isLate) askEndpoints()
      expect(contentOf(stream.next())).to.equal('a=1')
      expect(stream.next()).to.equal(undefined)
    })

  it('D4: after a NACK of endpoints the next change sends all of them, because Envoy may have taken none of the response', () => {
    const stream = new Stream(true, { [endpointType]: ab })
    stream.ask(endpointType, { names: ['a', 'b'] })
    stream.next()
    stream.set(endpointType, { a: 'bad', b: '2' })
    expect(contentOf(stream.next())).to.equal('a=bad b=2')
    stream.ask(endpointType, { nonce: 'last', refused: true })
    expect(stream.next()).to.equal(undefined)
    stream.set(endpointType, { a: '1', b: '2' })
    expect(contentOf(stream.next())).to.equal('a=1 b=2')
  })

  it('D8: the first wildcard request gets an empty response if there are no resources', () => {
    const stream = new Stream(true, {})
    stream.ask(clusterType, {})
    expect(contentOf(stream.next())).to.equal('')
    stream.ask(clusterType, { nonce: 'last' })
    expect(stream.next()).to.equal(undefined)
  })
})
