import { expect } from 'chai'
import fc from 'fast-check'
import { Ledger, type LedgerStage, ledgerBounds } from '../../../src/ca/ledger.ts'
import { ledgerLines, readLedger } from '../../../src/ca/ledger-record.ts'
import { cpuMs } from '../../harness/own-time.ts'

const hour = 3_600_000
const now = 1_000 * hour
const stage: LedgerStage = { epoch: 2, provenBy: 'new' }
const one = 'spiffe://td/ns/a/sa/one'
const nodeAt = (address: string, name = 'x') => `sidecar~${address}~${name}.a~a.svc`

describe('the ledger of issued certificates', () => {
  let ledger: Ledger
  beforeEach(() => (ledger = new Ledger(0, hour)))
  const issue = (identity: string, peer: string, epoch: number, life = 24 * hour) =>
    ledger.issued({ identities: [identity], serial: '0a', root: 'old', issuedAt: now, notAfter: now + life, peer }, epoch)
  const connect = (name: string, node: string, presented?: { root: string; notAfter: number }, epoch = 2) =>
    ledger.connected(name, { node, identities: [one], presented }, epoch)
  const blocking = (at = now) => ledger.blockers(stage, at).map(({ identity, why }) => `${identity} ${why}`)

  it('recognises the address of a peer in any notation', () => {
    for (const peer of ['10.0.0.1:80', '10.0.0.1', '::ffff:10.0.0.1', '[::ffff:10.0.0.1]:80']) issue(one, peer, 1)
    for (const peer of ['[fd00::1]:80', 'fd00::1']) issue(one, peer, 1)
    expect(ledger.rows()[0]?.certificates.map(({ address, count }) => `${address} ${count}`)).to.deep.equal(['fd00::1 2', '10.0.0.1 4'])
  })

  it('tells who holds valid certificates of a root, and which proxies are connected with one', () => {
    const two = 'spiffe://td/ns/a/sa/two'
    issue(two, '10.0.0.2', 1)
    issue(one, '10.0.0.1', 1, hour)
    connect('a', nodeAt('10.0.0.9'), { root: 'old', notAfter: now + hour })
    connect('b', nodeAt('10.0.0.8'), { root: 'new', notAfter: now + hour })
    expect(ledger.holdersOf('old', now)).to.deep.equal([
      { identity: one, addresses: ['10.0.0.1'], proxies: [nodeAt('10.0.0.9')] },
      { identity: two, addresses: ['10.0.0.2'], proxies: [] },
    ])
    expect(ledger.holdersOf('old', now + 2 * hour).map(({ identity, addresses }) => [identity, addresses])).to.deep.equal([
      [one, []],
      [two, ['10.0.0.2']],
    ])
    expect(ledger.holdersOf('other', now)).to.deep.equal([])
  })

  it('knows a renewal of the same root that came when it was due from a request that was repeated', () => {
    issue(one, '10.0.0.1', 1)
    const renewal = (hours: number, root = 'old', peer = '10.0.0.1:5') =>
      ledger.isRenewalInTime({ identities: [one], serial: '1', root, issuedAt: now + hours * hour, notAfter: now + 48 * hour, peer })
    expect([renewal(5.9), renewal(6), renewal(12), renewal(12, 'new'), renewal(12, 'old', '10.0.0.2')]).to.deep.equal([
      false,
      true,
      true,
      false,
      false,
    ])
  })

  it('counts proxies of one identity behind one address separately', () => {
    for (const name of ['a', 'b']) connect(name, nodeAt('10.0.0.1', name))
    issue(one, '10.0.0.1:1', 2)
    expect(ledger.blockers(stage, now)).to.deep.equal([
      {
        identity: one,
        proxies: [nodeAt('10.0.0.1', 'a'), nodeAt('10.0.0.1', 'b')],
        why: 'not issued since',
        reason: 'has proxies that were not issued a certificate since the stage began: 1 of 2',
        until: now + 24 * hour,
      },
    ])
    issue(one, '10.0.0.1:2', 2)
    expect(blocking()).to.deep.equal([])
  })

  it("accepts a presented certificate of the stage's root as proof only if the stream began in that stage", () => {
    issue(one, '10.0.0.1', 1)
    const presented = (root: string, epoch: number) => {
      connect('a', nodeAt('10.0.0.1'), { root, notAfter: now + hour }, epoch)
      return blocking().length
    }
    expect([presented('old', 2), presented('new', 1), presented('new', 2)]).to.deep.equal([1, 1, 0])
    expect(ledger.blockers({ epoch: 2, provenBy: undefined }, now), 'of a stage that nothing proves').to.have.length(1)
  })

  it('waits for proxies behind NAT until as many certificates were issued as proxies are connected', () => {
    issue(one, '192.168.0.1', 1)
    connect('a', nodeAt('10.0.0.1'))
    connect('b', nodeAt('10.0.0.2'))
    expect(blocking()).to.deep.equal([`${one} not issued since`, `${one} not connected`])
    issue(one, '192.168.0.1', 2)
    expect(blocking()).to.deep.equal([`${one} not issued since`])
    issue(one, '192.168.0.1', 2)
    expect(blocking()).to.deep.equal([])
  })

  it('waits for a disconnected holder until its certificate has expired', () => {
    issue(one, '10.0.0.1', 1)
    expect(ledger.blockers(stage, now)).to.deep.equal([
      {
        identity: one,
        proxies: [],
        why: 'not connected',
        reason: 'is not connected from 10.0.0.1, where it holds certificate 0a of an earlier stage',
        until: now + 24 * hour,
      },
    ])
    expect(blocking(now + 24 * hour)).to.deep.equal([])
    connect('a', nodeAt('10.0.0.1'))
    issue(one, '10.0.0.2', 1)
    expect(blocking(now + 24 * hour), 'connected, and his certificate has expired').to.deep.equal([])
    ledger.sweep(now + 24 * hour)
    expect(ledger.size).to.equal(1)
    expect(blocking(now + 24 * hour)).to.deep.equal([])
  })

  it('removes streams that end, alone or with their writer, and those on the plaintext port', () => {
    ledger.connected('xds-writer/0/1', { node: 'plain', identities: [], presented: undefined }, 2)
    ledger.connected('xds-writer/1/1', { node: 'other', identities: [], presented: undefined }, 2)
    connect('xds-writer/0/2', nodeAt('10.0.0.1'))
    connect('xds-writer/0/2', nodeAt('10.0.0.2'))
    expect(ledger.rows()[0]?.proxies).to.deep.equal([nodeAt('10.0.0.2')])
    expect(ledger.plaintext()).to.deep.equal(['plain', 'other'])
    ledger.allDisconnected('xds-writer/0/')
    expect(ledger.plaintext()).to.deep.equal(['other'])
    expect(ledger.rows()).to.deep.equal([])
  })

  it('is bounded: an overflow blocks as a whole until it expires, and an identity with many entries evicts its own first', () => {
    const bound = 100
    ledger = new Ledger(0, hour, { ...ledgerBounds, holders: bound })
    for (let index = 0; index < 50; index++) issue(`spiffe://td/ns/a/sa/${index}`, '10.0.0.1', 2, 40 * hour)
    for (let index = 0; index < 1000; index++) issue(one, `fd00::${index}`, index < 900 ? 1 : 2)
    expect(ledger.size).to.equal(bound)
    expect(ledger.rows().filter(({ certificates }) => certificates.length > 0)).to.have.length(51)
    expect(ledger.blockers(stage, now).map(({ identity, why, until }) => ({ identity, why, until }))).to.deep.equal([
      { identity: '(others)', why: 'not known', until: now + 24 * hour },
    ])
    for (let index = 0; index < 200; index++) issue(`spiffe://td/ns/b/sa/${index}`, '10.0.0.1', 2)
    expect(ledger.size).to.equal(bound)
    ledger.sweep(now + 50 * hour)
    expect([ledger.size, ledger.rows()]).to.deep.equal([0, []])
  })

  it('is blocked by an overflow no longer than certificates of an earlier stage are valid, while new ones keep coming', () => {
    ledger = new Ledger(0, hour, { ...ledgerBounds, holders: 100 })
    const wave = (at: number, epoch: number) => {
      for (let index = 0; index < 150; index++)
        ledger.issued(
          { identities: [`spiffe://td/ns/a/sa/${index}`], serial: '0a', root: `${epoch}`, issuedAt: at, notAfter: at + 24 * hour, peer: '10.0.0.1' },
          epoch,
        )
    }
    wave(now, 1)
    expect(ledger.blockers({ epoch: 1, provenBy: undefined }, now), 'no certificate of an earlier stage').to.deep.equal([])
    const others = (epoch: number, at: number) =>
      ledger
        .blockers({ epoch, provenBy: undefined }, at)
        .filter(({ identity }) => identity === '(others)')
        .map(({ until }) => until)
    for (const at of [6, 12, 18]) wave(now + at * hour, 2)
    expect(others(2, now + 18 * hour)).to.deep.equal([now + 24 * hour])
    wave(now + 24 * hour, 2)
    expect(others(2, now + 24 * hour)).to.deep.equal([])
    expect(others(3, now + 24 * hour), 'the next stage waits for those of this one').to.deep.equal([now + 48 * hour])
    expect([ledger.lastExpiry('1'), ledger.lastExpiry('2'), ledger.lastExpiry('other')]).to.deep.equal([now + 24 * hour, now + 48 * hour, 0])
    ledger.sweep(now + 48 * hour)
    expect(ledger.head().evictions).to.deep.equal([])
  })

  it('counts what it has no room for as issued to connected proxies of the identity', () => {
    ledger = new Ledger(0, hour, { ...ledgerBounds, holders: 100 })
    const presented = { root: 'old', notAfter: now + 24 * hour }
    for (let index = 0; index < 150; index++) connect(`p${index}`, nodeAt(`10.1.0.${index}`), presented, 1)
    for (let index = 0; index < 149; index++) issue(one, `10.1.0.${index}`, 2)
    expect(ledger.blockers(stage, now).map(({ reason }) => reason)).to.deep.equal([
      'has proxies that were not issued a certificate since the stage began: 1 of 150',
    ])
    issue(one, '10.1.0.149', 2)
    expect(blocking()).to.deep.equal([])
  })

  it('holds who was evicted again after a renewal; the evicted certificate goes on counting until it has expired', () => {
    const others = Array.from({ length: 100 }, (_, index) => `spiffe://td/ns/b/sa/${index}`)
    ledger = new Ledger(0, hour, { ...ledgerBounds, holders: others.length })
    issue(one, '10.0.0.1', 1)
    for (const identity of others) issue(identity, '10.0.0.1', 2, 30 * hour)
    expect(ledger.holdersOf('old', now).some(({ identity }) => identity === one)).to.equal(false)
    const due = now + 12 * hour
    const renewed = { identities: [one], serial: '0b', root: 'old', issuedAt: due, notAfter: due + 24 * hour, peer: '10.0.0.1' }
    expect(ledger.isRenewalInTime(renewed), 'the first renewal proves no use of the root').to.equal(false)
    ledger.issued(renewed, 2)
    expect([ledger.size, ledger.rows().find(({ identity }) => identity === one)?.certificates.length]).to.deep.equal([100, 1])
    expect(blocking(due), 'the certificate of the first stage, which the holder has replaced').to.deep.equal(['(others) not known'])
    expect(blocking(now + 24 * hour)).to.deep.equal([])
    const again = { ...renewed, issuedAt: due + 12 * hour, notAfter: due + 36 * hour }
    expect(ledger.isRenewalInTime(again)).to.equal(true)
  })

  it('keeps few records of evictions: beyond them, all count as the oldest stage', () => {
    ledger = new Ledger(0, hour, { ...ledgerBounds, holders: 1 })
    for (let epoch = 1; epoch < 100; epoch++) issue(one, `10.0.0.${epoch}`, epoch, epoch * hour)
    const { evictions } = ledger.head()
    expect(evictions.length).to.be.lessThan(33)
    expect(Math.min(...evictions.map(({ epoch }) => epoch))).to.equal(1)
    expect(ledger.lastExpiry('any')).to.be.greaterThan(now)
    const older = '{"inOrder":true,"format":1,"completeSince":0,"longestLife":1,"forgottenUntil":9,"serving":[]}'
    expect(readLedger(older).head.evictions).to.deep.equal([{ epoch: 0, root: '', until: 9 }])
  })

  it('reports when the last certificate of a root expires, issued or presented', () => {
    expect(ledger.lastExpiry('old')).to.equal(0)
    issue(one, '10.0.0.1', 1)
    connect('a', nodeAt('10.0.0.1'), { root: 'foreign', notAfter: now + hour })
    expect([ledger.lastExpiry('old'), ledger.lastExpiry('foreign')]).to.deep.equal([now + 24 * hour, now + hour])
  })

  it('is restored after a restart, and rejects a file that is malformed or truncated', () => {
    issue(one, '10.0.0.1', 1)
    ledger.issuedServing({ serial: 'cd', root: 'old', issuedAt: now, notAfter: now + hour })
    const lines = [...ledgerLines(ledger, true)].join('')
    const again = new Ledger(now, hour)
    const { head, holders, inOrder } = readLedger(lines)
    again.restore(head, holders, inOrder, now)
    expect([...ledgerLines(again, true)].join('')).to.equal(lines)
    expect(again.serving()).to.deep.equal(ledger.serving())
    expect(again.blockers(stage, now)).to.deep.equal(ledger.blockers(stage, now))
    const broken: [string, string][] = [
      ['Unexpected end', ''],
      ['the first line: is not an object', '[]\n'],
      ['format 2 is not 1', lines.replace('"format":1', '"format":2')],
      ['line 2, notAfter: is not a number', lines.replace(/"notAfter":\d+,"epoch"/, '"notAfter":"soon","epoch"')],
      ['line 3: is not a list', `${lines}{}\n`],
      ['Unterminated', lines.slice(0, -20)],
    ]
    for (const [reason, text] of broken) expect(() => readLedger(text), reason).to.throw(reason)
  })

  it('evicts in bounded time when many proxies are connected without a certificate', () => {
    ledger = new Ledger(0, hour, { ...ledgerBounds, holders: 1000 })
    const nobody = (index: number) => ({ node: nodeAt(`10.1.0.${index}`), identities: [`spiffe://td/ns/c/sa/${index}`], presented: undefined })
    for (let index = 0; index < 20_000; index++) ledger.connected(`w ${index}`, nobody(index), 2)
    const ms = cpuMs(() => {
      for (let index = 0; index < 20_000; index++) issue(`spiffe://td/ns/d/sa/${index}`, '10.0.0.1', 2)
    })
    expect(ledger.size).to.equal(1000)
    expect(ms).to.be.lessThan(2000)
  })

  it('has, after those of other replicas were merged in any order, the last certificate of each holder, and forgets no overflow', () => {
    const holder = fc.record({
      by: fc.nat(2),
      who: fc.nat(3),
      at: fc.nat(3),
      minute: fc.nat(50),
      epoch: fc.nat(2),
      life: fc.integer({ min: 1, max: 9 }),
    })
    fc.assert(
      fc.property(fc.array(holder, { maxLength: 30 }), (given) => {
        const issued = given.map((each, index) => ({ ...each, serial: String(index), issuedAt: now + each.minute * 60_000 + index }))
        const ofReplica = (by: number) => {
          const made = new Ledger(by, hour)
          const own = issued.filter((each) => each.by === by).sort((a, b) => a.issuedAt - b.issuedAt)
          for (const { who, at, serial, issuedAt, epoch, life } of own) {
            const [identities, peer] = [[`spiffe://td/ns/a/sa/${who}`], `10.0.0.${at}:1`]
            made.issued({ identities, serial, root: 'r', issuedAt, notAfter: issuedAt + life * hour, peer }, epoch)
          }
          return made
        }
        const merged = (order: readonly number[]) => {
          const [first, ...others] = order.map(ofReplica) as [Ledger, ...Ledger[]]
          for (const other of [...others, ...others]) first.merge(other.head(), other.holders())
          return first
        }
        const shown = (one: Ledger) =>
          one
            .rows()
            .flatMap(({ identity, certificates }) => certificates.map(({ address, serial }) => `${identity} ${address} ${serial}`))
            .sort()
        const last = new Map(
          issued.toSorted((a, b) => a.issuedAt - b.issuedAt).map((each) => [`spiffe://td/ns/a/sa/${each.who} 10.0.0.${each.at}`, each.serial]),
        )
        const expected = [...last].map(([key, serial]) => `${key} ${serial}`).sort()
        for (const order of [
          [0, 1, 2],
          [2, 1, 0],
          [1, 2, 0],
        ]) {
          const all = merged(order)
          expect(shown(all)).to.deep.equal(expected)
          expect([all.size, all.head().completeSince]).to.deep.equal([last.size, 2])
        }
      }),
    )
    const full = new Ledger(0, hour, { holders: 1, identities: 8 })
    for (const address of ['10.0.0.1', '10.0.0.2'])
      full.issued({ identities: [one], serial: address, root: 'old', issuedAt: now, notAfter: now + hour, peer: address }, 1)
    ledger.merge(full.head(), full.holders())
    expect(blocking()).to.deep.equal([`${one} not connected`, '(others) not known'])
  })
})
