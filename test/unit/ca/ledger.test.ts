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
  beforeEach(() => {
    ledger = new Ledger(0, hour)
    serials = 0
  })
  let serials = 0
  /** Issues a certificate, in place of another one if `renews` is given, and returns its serial number. */
  const issue = (identity: string, peer: string, epoch: number, life = 24 * hour, renews?: string) => {
    const serial = `s${++serials}`
    ledger.issued({ identities: [identity], serial, root: 'old', issuedAt: now, notAfter: now + life, peer, renews }, epoch)
    return serial
  }
  const connect = (name: string, node: string, presented?: { serial: string; root: string; notAfter: number }, during = stage) =>
    ledger.connected(name, { node, identities: [one], presented }, during)
  const blocking = (at = now) => ledger.blockers(stage, at).map(({ identity, why }) => `${identity} ${why}`)

  it('recognises the address of a peer in any notation', () => {
    for (const peer of ['10.0.0.1:80', '10.0.0.1', '::ffff:10.0.0.1', '[::ffff:10.0.0.1]:80']) issue(one, peer, 1)
    for (const peer of ['[fd00::1]:80', 'fd00::1']) issue(one, peer, 1)
    expect(ledger.rows()[0]?.certificates.map(({ address }) => address)).to.deep.equal([...Array(4).fill('10.0.0.1'), 'fd00::1', 'fd00::1'])
  })

  it('tells who holds valid certificates of a root, and which proxies are connected with one', () => {
    const two = 'spiffe://td/ns/a/sa/two'
    issue(two, '10.0.0.2', 1)
    issue(one, '10.0.0.1', 1, hour)
    connect('a', nodeAt('10.0.0.9'), { serial: 'a', root: 'old', notAfter: now + hour })
    connect('b', nodeAt('10.0.0.8'), { serial: 'b', root: 'new', notAfter: now + hour })
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

  it('takes the certificate that a request presents for the one that is renewed, whatever address it comes from', () => {
    const [first] = [issue(one, '10.0.0.1', 1), issue(one, '10.0.0.1', 1)]
    const renewal = (hours: number, root: string, renews: string) =>
      ledger.isRenewalInTime({
        identities: [one],
        serial: '1',
        root,
        issuedAt: now + hours * hour,
        notAfter: now + 48 * hour,
        peer: '10.0.0.2',
        renews,
      })
    expect([renewal(5.9, 'old', first), renewal(6, 'old', first), renewal(6, 'new', first), renewal(6, 'old', 'other')]).to.deep.equal([
      false,
      true,
      false,
      false,
    ])
  })

  it('waits for each machine behind one address: only a renewal with its own certificate replaces that', () => {
    const [first, second] = [issue(one, '192.168.0.1', 1), issue(one, '192.168.0.1', 1)]
    const renewed = issue(one, '192.168.0.1', 2, 24 * hour, first)
    expect(ledger.rows()[0]?.certificates.map(({ serial }) => serial)).to.deep.equal([second, renewed])
    expect(ledger.blockers(stage, now)).to.deep.equal([
      {
        identity: one,
        proxies: [],
        why: 'not connected',
        reason: `is not connected from 192.168.0.1, where it holds certificate ${second} of an earlier stage`,
        until: now + 24 * hour,
      },
    ])
    issue(one, '192.168.0.1', 2)
    expect(blocking(), 'a request with a token may be of any machine').to.deep.equal([`${one} not connected`])
    issue(one, '192.168.0.9', 2, 24 * hour, second)
    expect(blocking(), 'from another address').to.deep.equal([])
  })

  it('names the proxies that are connected where certificates of an earlier stage are held, by address or by what they presented', () => {
    const [first, second] = [issue(one, '10.0.0.1', 2), issue(one, '192.168.0.1', 2, 25 * hour)]
    connect('a', nodeAt('10.0.0.1', 'a'))
    connect('b', nodeAt('10.0.0.2', 'b'), { serial: second, root: 'old', notAfter: now + 25 * hour })
    connect('c', nodeAt('10.0.0.3', 'c'))
    expect(ledger.blockers(stage, now)).to.deep.equal([])
    expect(ledger.blockers({ epoch: 3, provenBy: undefined }, now)).to.deep.equal([
      {
        identity: one,
        proxies: [nodeAt('10.0.0.1', 'a'), nodeAt('10.0.0.2', 'b')],
        why: 'not issued since',
        reason: `is connected, and has not renewed certificate ${second} of an earlier stage, issued to 192.168.0.1, and 1 more`,
        until: now + 25 * hour,
      },
    ])
    issue(one, '10.0.0.1', 3, 24 * hour, first)
    issue(one, '10.0.0.1', 3, 24 * hour, second)
    expect(ledger.blockers({ epoch: 3, provenBy: undefined }, now)).to.deep.equal([])
  })

  it('does not say of a certificate that its holder is not connected where a proxy may hold it whose address is translated', () => {
    const [near, far] = [issue(one, '10.0.0.1', 1), issue(one, '172.30.0.1', 1, 25 * hour)]
    connect('a', nodeAt('10.0.0.1', 'a'))
    const [, absent] = ledger.blockers(stage, now)
    expect(absent?.reason).to.equal(`is not connected from 172.30.0.1, where it holds certificate ${far} of an earlier stage`)
    connect('b', nodeAt('10.1.0.2', 'b'))
    const at = { identity: one, proxies: [nodeAt('10.1.0.2', 'b')], why: 'not known', until: now + 25 * hour }
    const may = '; one of these proxies may hold it, if its address is translated'
    expect(ledger.blockers(stage, now)[1]).to.deep.equal({
      ...at,
      reason: `is not known to be connected from 172.30.0.1, where it holds certificate ${far} of an earlier stage${may}`,
    })
    issue(one, '10.0.0.1', 2, 24 * hour, near)
    issue(one, '172.30.0.1', 2, 24 * hour, far)
    expect(blocking()).to.deep.equal([])
  })

  it('names the proxies of other replicas like its own, with what they told last, and says when one has not told', () => {
    const presented = { serial: issue(one, '10.0.0.1', 1), root: 'old', notAfter: now + 24 * hour }
    const two = 'spiffe://td/ns/a/sa/two'
    issue(two, '10.0.0.2', 1)
    const elsewhere = new Ledger(0, hour)
    elsewhere.connected('w 1', { node: nodeAt('10.0.0.1'), identities: [one], presented }, stage)
    elsewhere.connected('w 2', { node: nodeAt('10.0.0.3'), identities: [], presented: undefined }, stage)
    elsewhere.connected('w 3', { node: nodeAt('10.0.0.4'), identities: ['other'], presented: undefined }, stage)
    const told = JSON.parse(JSON.stringify(elsewhere.streams())) as ReturnType<Ledger['streams']>
    ledger.connectedElsewhere(told, true)
    expect(ledger.blockers(stage, now).map(({ identity, proxies, reason }) => [identity, proxies, reason.split(',')[0]])).to.deep.equal([
      [one, [nodeAt('10.0.0.1')], 'is connected'],
      [two, [], 'is not connected from 10.0.0.2'],
    ])
    expect(ledger.rows().map(({ identity, proxies }) => [identity, proxies])).to.deep.equal([
      ['other', [nodeAt('10.0.0.4')]],
      [one, [nodeAt('10.0.0.1')]],
      [two, []],
    ])
    expect(ledger.rows(1, 1).map(({ identity }) => identity)).to.deep.equal([one])
    expect(ledger.plaintext()).to.deep.equal([nodeAt('10.0.0.3')])
    const proxies = (replicas: 'all' | 'own') => ledger.holdersOf('old', now, replicas).map((holder) => holder.proxies)
    expect([proxies('all'), proxies('own')]).to.deep.equal([
      [[nodeAt('10.0.0.1')], []],
      [[], []],
    ])
    ledger.connectedElsewhere([], false)
    expect(ledger.blockers(stage, now).map(({ reason }) => reason.split(',')[0])).to.deep.equal([
      'is not known to be connected from 10.0.0.1',
      'is not known to be connected from 10.0.0.2',
    ])
    expect([ledger.rows().length, ledger.plaintext()]).to.deep.equal([2, []])
  })

  it("counts a certificate of the stage's root that a proxy presents in that stage as one of the stage", () => {
    const serial = issue(one, '10.0.0.1', 1)
    const presented = (root: string, during: LedgerStage) => {
      connect('a', nodeAt('10.0.0.1'), { serial, root, notAfter: now + hour }, during)
      return blocking().length
    }
    expect([presented('old', stage), presented('new', { epoch: 1, provenBy: 'new' }), presented('new', stage)]).to.deep.equal([1, 1, 0])
    expect(ledger.blockers({ epoch: 3, provenBy: 'new' }, now), 'the next stage waits for it').to.have.length(1)
  })

  it('holds a presented certificate that it does not know if it may be from before the ledger was complete, until it was renewed', () => {
    ledger = new Ledger(now, 24 * hour)
    connect('a', nodeAt('10.0.0.1'), { serial: 'before', root: 'old', notAfter: now + 23 * hour })
    connect('b', nodeAt('10.0.0.2'), { serial: 'since', root: 'old', notAfter: now + 25 * hour })
    expect(ledger.blockers(stage, now).map(({ reason, until }) => [reason, until])).to.deep.equal([
      ['is connected, and has not renewed certificate before of an earlier stage, issued to 10.0.0.1', now + 23 * hour],
    ])
    ledger.allDisconnected('')
    expect(blocking()).to.deep.equal([`${one} not connected`])
    issue(one, '10.0.0.1', 2, 24 * hour, 'before')
    connect('a', nodeAt('10.0.0.1'), { serial: 'before', root: 'old', notAfter: now + 23 * hour })
    expect(blocking()).to.deep.equal([])
    // Another replica may have issued certificates that it could not store.
    const began = new Ledger(now + 2 * hour, 24 * hour)
    connect('b', nodeAt('10.0.0.2'), { serial: 'since', root: 'old', notAfter: now + 25 * hour })
    ledger.merge(began.head(), began.holders())
    expect(blocking()).to.deep.equal([`${one} not issued since`])
  })

  it('waits for proxies without a client certificate as long as fewer certificates are known than proxies, and others may exist', () => {
    ledger = new Ledger(now, 24 * hour)
    for (const name of ['a', 'b']) connect(name, nodeAt('10.0.0.1', name))
    issue(one, '10.0.0.1', 2)
    expect(blocking()).to.deep.equal([`${one} not known`])
    expect(blocking(now + 24 * hour)).to.deep.equal([])
    issue(one, '10.0.0.1', 2)
    expect(blocking()).to.deep.equal([])
  })

  it('waits for a disconnected holder until its certificate has expired', () => {
    issue(one, '10.0.0.1', 1)
    expect(ledger.blockers(stage, now)).to.deep.equal([
      {
        identity: one,
        proxies: [],
        why: 'not connected',
        reason: 'is not connected from 10.0.0.1, where it holds certificate s1 of an earlier stage',
        until: now + 24 * hour,
      },
    ])
    expect(blocking(now + 24 * hour)).to.deep.equal([])
    connect('a', nodeAt('10.0.0.1'))
    issue(one, '10.0.0.2', 1)
    expect(blocking(now + 24 * hour), 'connected, and his certificate has expired').to.deep.equal([])
    ledger.sweep(now + 24 * hour)
    expect(ledger.size).to.equal(0)
    expect(blocking(now + 24 * hour)).to.deep.equal([])
  })

  it('removes streams that end, alone or with their writer, and those on the plaintext port', () => {
    ledger.connected('xds-writer/0/1', { node: 'plain', identities: [], presented: undefined }, stage)
    ledger.connected('xds-writer/1/1', { node: 'other', identities: [], presented: undefined }, stage)
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
          {
            identities: [`spiffe://td/ns/a/sa/${index}`],
            serial: `${at} ${index}`,
            root: `${epoch}`,
            issuedAt: at,
            notAfter: at + 24 * hour,
            peer: '10.0.0.1',
          },
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

  it('holds who was evicted again after a renewal; the evicted certificate goes on counting until it has expired', () => {
    const others = Array.from({ length: 100 }, (_, index) => `spiffe://td/ns/b/sa/${index}`)
    ledger = new Ledger(0, hour, { ...ledgerBounds, holders: others.length })
    const serial = issue(one, '10.0.0.1', 1)
    for (const identity of others) issue(identity, '10.0.0.1', 2, 30 * hour)
    expect(ledger.holdersOf('old', now).some(({ identity }) => identity === one)).to.equal(false)
    const due = now + 12 * hour
    const renewed = { identities: [one], serial: '0b', root: 'old', issuedAt: due, notAfter: due + 24 * hour, peer: '10.0.0.1', renews: serial }
    expect(ledger.isRenewalInTime(renewed), 'the first renewal proves no use of the root').to.equal(false)
    ledger.issued(renewed, 2)
    expect([ledger.size, ledger.rows().find(({ identity }) => identity === one)?.certificates.length]).to.deep.equal([100, 1])
    expect(blocking(due), 'the certificate of the first stage, which the holder has replaced').to.deep.equal(['(others) not known'])
    expect(blocking(now + 24 * hour)).to.deep.equal([])
    const again = { ...renewed, serial: '0c', renews: '0b', issuedAt: due + 12 * hour, notAfter: due + 36 * hour }
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
    connect('a', nodeAt('10.0.0.1'), { serial: 'f', root: 'foreign', notAfter: now + hour })
    expect([ledger.lastExpiry('old'), ledger.lastExpiry('foreign')]).to.deep.equal([now + 24 * hour, now + hour])
  })

  it('is restored after a restart, and rejects a file that is malformed or truncated', () => {
    issue(one, '10.0.0.1', 1, 24 * hour, issue(one, '10.0.0.2', 1))
    ledger.issuedServing({ serial: 'cd', root: 'old', issuedAt: now, notAfter: now + hour })
    const lines = [...ledgerLines(ledger, true)].join('')
    const again = new Ledger(now, hour)
    const { head, holders, inOrder } = readLedger(lines)
    again.restore(head, holders, inOrder, now)
    expect([...ledgerLines(again, true)].join('')).to.equal(lines)
    expect(again.rows()).to.deep.equal(ledger.rows())
    expect(again.serving()).to.deep.equal(ledger.serving())
    expect(again.blockers(stage, now)).to.deep.equal(ledger.blockers(stage, now))
    const broken: [string, string][] = [
      ['Unexpected end', ''],
      ['the first line: is not an object', '[]\n'],
      ['format 2 is not 1', lines.replace('"format":1', '"format":2')],
      ['line 2, notAfter: is not a number', lines.replace(/"notAfter":\d+,("renews":"[^"]*",)?"epoch"/, '"notAfter":"soon","epoch"')],
      ['line 3: is not a list', `${lines}{}\n`],
      ['Unterminated', lines.slice(0, -20)],
    ]
    for (const [reason, text] of broken) expect(() => readLedger(text), reason).to.throw(reason)
  })

  it('evicts in bounded time when many proxies are connected without a certificate', () => {
    ledger = new Ledger(0, hour, { ...ledgerBounds, holders: 1000 })
    const nobody = (index: number) => ({ node: nodeAt(`10.1.0.${index}`), identities: [`spiffe://td/ns/c/sa/${index}`], presented: undefined })
    for (let index = 0; index < 20_000; index++) ledger.connected(`w ${index}`, nobody(index), stage)
    const ms = cpuMs(() => {
      for (let index = 0; index < 20_000; index++) issue(`spiffe://td/ns/d/sa/${index}`, '10.0.0.1', 2)
    })
    expect(ledger.size).to.equal(1000)
    expect(ms).to.be.lessThan(2000)
  })

  it('is read by earlier versions, and takes what they have stored as a ledger in which certificates may be missing', () => {
    issue(one, '10.0.0.1', 2)
    const lines = [...ledgerLines(ledger, true)].join('').split('\n')
    expect(JSON.parse(lines[1] ?? '')[1]).to.include({ epoch: 2, count: 1 })
    const before = lines.join('\n').replace('"hasAll":true,', '')
    for (const way of ['restored', 'merged']) {
      const again = new Ledger(0, hour)
      const { head, holders, inOrder } = readLedger(before)
      if (way === 'restored') again.restore(head, holders, inOrder, now)
      else again.merge(head, holders)
      expect(
        again.blockers(stage, now).map(({ identity, until }) => [identity, until]),
        way,
      ).to.deep.equal([['(others)', now + 24 * hour]])
      expect(again.blockers(stage, now + 24 * hour)).to.deep.equal([])
    }
  })

  it('can be restored after the ledger before was lost', () => {
    ledger.lost(now)
    const { head, holders } = readLedger([...ledgerLines(ledger, true)].join(''))
    const again = new Ledger(now, hour)
    again.restore(head, holders, true, now)
    expect(again.blockers(stage, now).map(({ identity, until }) => [identity, until])).to.deep.equal([['(others)', now + hour]])
  })

  it('has, after those of other replicas were merged in any order, each certificate that was not renewed, and forgets no overflow', () => {
    const request = fc.record({
      by: fc.nat(2),
      who: fc.nat(3),
      at: fc.nat(3),
      epoch: fc.nat(2),
      life: fc.integer({ min: 1, max: 9 }),
      /** Which of the certificates of the identity is renewed, counted from the last one; none, if it has fewer. */
      renews: fc.nat(5),
    })
    fc.assert(
      fc.property(fc.array(request, { maxLength: 30 }), (given) => {
        const replicas = [0, 1, 2].map((since) => new Ledger(since, hour))
        const held = new Map<string, string>()
        for (const [index, { by, who, at, epoch, life, renews: back }] of given.entries()) {
          const identity = `spiffe://td/ns/a/sa/${who}`
          const renews = [...held].filter(([, each]) => each === identity).at(-1 - back)?.[0]
          const issuedAt = now + index
          const certificate = { identities: [identity], serial: String(index), root: 'r', issuedAt, notAfter: issuedAt + life * hour, renews }
          replicas[by]?.issued({ ...certificate, peer: `10.0.0.${at}:1` }, epoch)
          if (renews !== undefined) held.delete(renews)
          held.set(certificate.serial, identity)
        }
        const merged = (order: readonly number[]) => {
          const all = new Ledger(0, hour)
          for (const each of [...order, ...order]) all.merge((replicas[each] as Ledger).head(), (replicas[each] as Ledger).holders())
          return all
        }
        const shown = (one: Ledger) => one.rows().flatMap(({ identity, certificates }) => certificates.map(({ serial }) => `${identity} ${serial}`))
        const first = merged([0, 1, 2])
        expect(shown(first)).to.include.members([...held].map(([serial, identity]) => `${identity} ${serial}`))
        for (const order of [
          [2, 1, 0],
          [1, 2, 0],
        ])
          expect(shown(merged(order))).to.deep.equal(shown(first))
        expect([first.size, first.head().completeSince]).to.deep.equal([shown(first).length, 2])
      }),
    )
    const full = new Ledger(0, hour, { holders: 1, identities: 8 })
    for (const address of ['10.0.0.1', '10.0.0.2'])
      full.issued({ identities: [one], serial: address, root: 'old', issuedAt: now, notAfter: now + hour, peer: address }, 1)
    ledger.merge(full.head(), full.holders())
    expect(blocking()).to.deep.equal([`${one} not connected`, '(others) not known'])
  })
})
