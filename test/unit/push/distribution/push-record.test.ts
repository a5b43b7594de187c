import { expect } from 'chai'
import type { ProxyReport, PublishedPush, PushTally } from '../../../../protocols/messages/distribution.ts'
import { AnswerTimes } from '../../../../src/push/distribution/answer-times.ts'
import { ProxyVersions, type ReportedNow } from '../../../../src/push/distribution/proxy-versions.ts'
import { PushRecord } from '../../../../src/push/distribution/push-record.ts'

const push = (id: number): PublishedPush => ({
  ...{ id, startedAt: 1000, publishedAt: 1100, makingMs: 5, reasons: ['config'], objects: [], otherObjects: 0, resources: 1, bytes: 10 },
  ...{ changes: undefined, types: [] },
})
const proxy = (name: string, changes: Partial<ReportedNow> = {}): ReportedNow => ({
  ...{ connection: name, number: Number.parseInt(name, 36), nodeId: `node ${name}`, namespace: 'ns', classId: 'class' },
  ...{ types: [], owed: [], acknowledged: [], refused: [], sent: [] },
  ...changes,
})
const now = { monotonic: 3000, wall: 1_000_000 }
const counts = ({ acknowledged, refused, gone, outstanding }: PushTally) => [acknowledged, refused, gone, outstanding]

describe('the record of pushes', () => {
  it('counts who acknowledged a push, refused it, left or owes an answer, by namespace', () => {
    const record = new PushRecord(10, 'run')
    record.published(push(7))
    record.reported('w/0', [
      proxy('a', { owed: [7], sent: [[7, 100]] }),
      proxy('b', { acknowledged: [[7, 120]], sent: [[7, 50]], namespace: 'other' }),
      proxy('c', { refused: [{ push: 7, typeUrl: 't', resources: ['r'], reason: 'no' }] }),
      proxy('d', { owed: [7] }),
    ])
    record.left('w/0', [proxy('d', { owed: [7] })])
    const [state] = record.since('', now).pushes
    expect(state).to.include({ id: 7, startedAt: 998_000, publishedAfterMs: 100 })
    const [ns, other] = state?.tallies ?? []
    expect([counts(ns as PushTally), counts(other as PushTally)]).to.deep.equal([
      [0, 1, 1, 1],
      [1, 0, 0, 0],
    ])
    expect(ns?.waiting).to.deep.equal([{ connection: 'a', nodeId: 'node a', ms: 2000 }])
    expect(other?.slowest).to.deep.equal([{ connection: 'b', nodeId: 'node b', ms: 120 }])
    expect([ns?.bytesSent, other?.bytesSent, ns?.classes]).to.deep.equal([100, 50, 1])
    record.reported('w/0', [proxy('a', { acknowledged: [[7, 2500]] })])
    expect(counts(record.since('', now).pushes[0]?.tallies[0] as PushTally)).to.deep.equal([1, 1, 1, 0])
  })

  it('keeps the ten slowest, the slowest first', () => {
    const record = new PushRecord(10, 'run')
    record.published(push(1))
    record.reported(
      'w/0',
      [5, 3, 9, 1, 12, 7, 8, 2, 11, 10, 4, 6].map((ms) => proxy(`p${ms}`, { acknowledged: [[1, ms]] })),
    )
    expect(record.since('', now).pushes[0]?.tallies[0]?.slowest.map(({ ms }) => ms)).to.deep.equal([12, 11, 10, 9, 8, 7, 6, 5, 4, 3])
  })

  it('names the objects of a refusal, whether they are known before or after it', () => {
    const refused = [{ push: 1, typeUrl: 't', resources: ['r'], reason: 'no' }]
    const objects = (record: PushRecord) => record.since('', now).pushes[0]?.tallies[0]?.refusals[0]?.objects
    const one = new PushRecord(10, 'run')
    one.published(push(1))
    one.blamed('w/0', 'a', 't', ['X/ns/x'])
    one.reported('w/0', [proxy('a', { refused })])
    const other = new PushRecord(10, 'run')
    other.published(push(1))
    other.reported('w/0', [proxy('a', { refused }), proxy('b', { refused })])
    const { cursor } = other.since('', now)
    other.blamed('w/0', 'a', 't', ['X/ns/x'])
    expect([objects(one), objects(other)]).to.deep.equal([['X/ns/x'], ['X/ns/x']])
    expect(other.since(cursor, now).pushes.map(({ id }) => id)).to.deep.equal([1])
  })

  it('tells what changed after a cursor, once each however often it changed, and how much was missed', () => {
    const record = new PushRecord(3, 'run')
    record.published(push(1))
    record.published(push(2))
    const first = record.since('', now)
    expect([first.pushes.map(({ id }) => id), first.dropped]).to.deep.equal([[1, 2], 0])
    expect(record.since(first.cursor, now)).to.deep.include({ pushes: [], dropped: 0 })
    record.reported('w/0', [proxy('a', { owed: [2] })])
    record.reported('w/0', [proxy('a', { acknowledged: [[2, 5]] })])
    expect(record.since(first.cursor, now).pushes.map(({ id }) => id)).to.deep.equal([2])
    for (const id of [3, 4, 5, 6, 7]) record.published(push(id))
    const late = record.since(first.cursor, now)
    expect([late.pushes.map(({ id }) => id), late.dropped]).to.deep.equal([[5, 6, 7], 2])
    expect(new PushRecord(3, 'another run').since(first.cursor, now)).to.deep.include({ dropped: 0 })
    for (const cursor of ['x', '...', 'run', 'run.', 'run.a.b', '-1', 'run.9e99.1']) expect(() => record.since(cursor, now), cursor).to.not.throw()
  })

  it('leaves out pushes that it was not told of, and those that are older than all it keeps', () => {
    const record = new PushRecord(2, 'run')
    record.reported('w/0', [proxy('a', { owed: [1] })])
    expect(record.since('', now).pushes).to.deep.equal([])
    record.published(push(1))
    expect(record.since('', now).pushes[0]?.tallies[0]?.outstanding, 'a report may come first').to.equal(1)
    record.published(push(2))
    record.published(push(3))
    record.reported('w/0', [proxy('a', { acknowledged: [[1, 5]] })])
    expect(record.since('', now).pushes.map(({ id }) => id)).to.deep.equal([2, 3])
  })
})

describe('the versions of proxies', () => {
  const applied = { push: 4, digest: 'four' }
  const known = (connection: string, types?: ProxyReport['types']): ProxyReport => ({
    ...{ connection, number: Number.parseInt(connection, 36), proxy: { nodeId: `node ${connection}`, namespace: 'ns', classId: 'class' } },
    ...(types ? { types } : {}),
  })
  const report = (proxies: ProxyReport[], gone: string[] = [], isWhole = false) => ({
    type: 'ProxiesReported' as const,
    answered: new Float64Array(),
    isWhole,
    applied,
    proxies,
    gone,
  })
  const digests = (versions: ProxyVersions) =>
    [...versions.all()].map(({ connection, types }) => [connection, ...types.map(({ version }) => version?.digest)])

  it('are those that the writer has applied where a proxy has all, otherwise those that it acknowledged last', () => {
    const versions = new ProxyVersions()
    const types = [
      { typeUrl: 'has all', isRefused: false },
      { typeUrl: 'owes', isRefused: false, acknowledged: { push: 3, digest: 'three' } },
      { typeUrl: 'has none', isRefused: false, acknowledged: { push: 0, digest: '' } },
    ]
    versions.report('w/0', report([known('a', types)]))
    expect(digests(versions)).to.deep.equal([['a', 'four', 'three', undefined]])
    versions.report('w/0', { ...report([]), applied: { push: 5, digest: 'five' } })
    expect(digests(versions), 'without a word about the proxy').to.deep.equal([['a', 'five', 'three', undefined]])
    const { reported } = versions.report(
      'w/0',
      report([
        { connection: 'a', number: 10, owed: [4] },
        { connection: 'never introduced', number: 99, owed: [4] },
      ]),
    )
    expect(reported).to.deep.equal([proxy('a', { types, owed: [4] })])
    expect(versions.report('w/0', report([{ connection: 'a', number: 10, acknowledged: [[3, 1]] }])).reported[0]?.owed, 'as it was').to.deep.equal([
      4,
    ])
    const short = versions.report('w/0', { ...report([]), answered: Float64Array.of(10, 4, 120.5, 77, 99, 4, 1, 1) })
    expect(short.reported).to.deep.equal([proxy('a', { types, acknowledged: [[4, 120.5]], sent: [[4, 77]] })])
  })

  it('are gone with their writer, with their connection, and when a whole report leaves them out', () => {
    const versions = new ProxyVersions()
    versions.report('w/0', report([known('a'), known('b')]))
    versions.report('w/1', report([known('a')]))
    expect(versions.report('w/0', report([], ['b', 'unknown'])).left.map(({ connection }) => connection)).to.deep.equal(['b'])
    expect([...versions.all()]).to.have.length(2)
    expect(versions.drop('w/1').map(({ connection }) => connection)).to.deep.equal(['a'])
    versions.report('w/0', report([known('c')], [], true))
    expect([...versions.all()].map(({ connection }) => connection)).to.deep.equal(['c'])
  })
})

describe('times of answers', () => {
  it('are known within a tenth, together with those of others', () => {
    const [some, others] = [new AnswerTimes(), new AnswerTimes()]
    for (let ms = 1; ms <= 1000; ms++) (ms % 2 === 0 ? some : others).add(ms)
    const all = new AnswerTimes(some.told, others.told)
    for (const share of [0.5, 0.99, 1]) expect(all.within(share)).to.be.within(1000 * share, 1100 * share + 1)
    expect(new AnswerTimes().within(0.5)).to.equal(0)
    some.add(0)
    expect(some.told.length).to.be.at.most(160)
  })

  it('and whether all who are to answer are known, come with the state of a push', () => {
    const record = new PushRecord(10, 'run')
    record.published(push(1))
    record.reported('w', [proxy('a', { acknowledged: [[1, 40]] }), proxy('b', { acknowledged: [[1, 50]] })])
    const state = () => record.since('', now).pushes[0]
    expect([state()?.isApplied, state()?.tallies[0]?.times?.length]).to.deep.equal([false, 4])
    const { cursor } = record.since('', now)
    record.applied(0)
    expect(record.since(cursor, now).pushes).to.deep.equal([])
    record.applied(1)
    expect(record.since(cursor, now).pushes.map(({ isApplied }) => isApplied)).to.deep.equal([true])
  })
})
