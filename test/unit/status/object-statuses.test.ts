/** Which status is written when (docs/status.md, S1 to S9). */
import { expect } from 'chai'
import fc from 'fast-check'
import type { AnalysisMessage, HeldStatus, MeshObject, StatusOutcome } from '../../../protocols/messages/object-status.ts'
import { heldStatus, statusPatch } from '../../../src/status/object-status.ts'
import { type DueStatus, ObjectStatuses } from '../../../src/status/object-statuses.ts'
import { runs } from '../../harness/seed.ts'

const date = '2026-11-28T12:00:00Z'
const key = (name: string) => `VirtualService/ns/${name}`
const object = (name: string, generation: number, version: number, status?: HeldStatus, uid = name): MeshObject => ({
  ...{ key: key(name), group: 'networking.mesh.io', version: 'v1', plural: 'virtualservices', namespace: 'ns', name },
  ...{ uid, resourceVersion: String(version), generation, fault: '', status },
})
const pairs = (...of: readonly (readonly [push: number, proxies: number])[]) => Float64Array.from(of.flat())
const settings = { reconciled: true, analysis: true, perSecond: 100, burst: 500, others: false }
const published = (name: string, generation: number, isSame = false) => ({ key: key(name), uid: name, generation, isSame })
/** What a status says: the generation, the value and the message of the condition. */
const said = (status: HeldStatus | undefined) => {
  const own = (JSON.parse(status?.conditions || '[]') as { type: string; status: string; message: string }[]).find(
    ({ type }) => type === 'Reconciled',
  )
  return [status?.observedGeneration, own?.status, own?.message]
}
const written = (version: number): StatusOutcome => ({ outcome: 'written', resourceVersion: String(version) })
const error: AnalysisMessage = {
  ...{ code: 'IST0101', name: 'ReferencedResourceNotFound', level: 'error' },
  ...{ path: 'spec.host', message: 'there is no service a.\u0007' },
}

describe('the statuses of objects', () => {
  const made = (parts = settings, judgesFrom = 0) => new ObjectStatuses(parts, judgesFrom, 0)
  /** One object at its first generation, in push 1. */
  const one = (statuses = made()) => {
    statuses.set('o a', object('a', 1, 1))
    statuses.published(1, [published('a', 1)], 0)
    return statuses
  }

  it('say that all proxies have a generation at once, and that some have not after a second', () => {
    const statuses = one()
    expect(statuses.next(0, date), 'it is not known what proxies have').to.equal(undefined)
    statuses.reached(pairs([0, 1], [1, 3]))
    expect(statuses.next(10, date)).to.equal(undefined)
    expect(statuses.waitMs(10)).to.equal(990)
    const due = statuses.next(1000, date) as DueStatus
    expect(said(due.status)).to.deep.equal([1, 'False', '3/4 proxies up to date.'])
    statuses.ended(due, written(2), 1000, 0)
    statuses.reached(pairs([1, 4]))
    expect(statuses.next(1500, date), 'a second after the last write').to.equal(undefined)
    const next = statuses.next(2000, date) as DueStatus
    expect(said(next.status)).to.deep.equal([1, 'True', '4/4 proxies up to date.'])
    statuses.ended(next, written(3), 2000, 0)
    expect([statuses.next(1e6, date), statuses.waitMs(1e6)]).to.deep.equal([undefined, undefined])
  })

  it('say what proxies refuse, whose configuration is without it, until they have it', () => {
    const statuses = one()
    statuses.reached(pairs([1, 3]))
    const first = statuses.next(0, date) as DueStatus
    expect(said(first.status)).to.deep.equal([1, 'True', '3/3 proxies up to date.'])
    statuses.ended(first, written(2), 0, 0)
    statuses.withdrawn([{ key: key('a'), proxies: 2, reason: `script\u001bload ${'x'.repeat(999)}`, reached: pairs([1, 2]) }])
    const due = statuses.next(1000, date) as DueStatus
    const message = '1/3 proxies up to date. 2 refuse it, and have their configuration without what they refuse: script load '
    expect(said(due.status)).to.deep.equal([1, 'False', `${message}${'x'.repeat(288)}...`])
    expect(statuses.counted([{ key: key('a'), uid: 'a', generation: 1 }], 1000)).to.deep.equal({
      ...{ all: 3, have: [1] },
      withdrawn: [{ key: key('a'), proxies: 2, reason: `script\u001bload ${'x'.repeat(289)}` }],
    })
    statuses.ended(due, written(3), 1000, 0)
    statuses.withdrawn([])
    expect(said((statuses.next(2000, date) as DueStatus).status)).to.deep.equal([1, 'True', '3/3 proxies up to date.'])
  })

  it('count a proxy once that refuses patches and has not all of the push either, and do so in each order of news', () => {
    const statuses = one()
    statuses.reached(pairs([0, 1], [1, 2]))
    const refused = { key: key('a'), proxies: 1, reason: 'no' }
    const rest = ' 1 refuse it, and have their configuration without what they refuse: no'
    statuses.withdrawn([{ ...refused, reached: pairs([0, 1]) }])
    const due = statuses.next(1000, date) as DueStatus
    expect(said(due.status)).to.deep.equal([1, 'False', `2/3 proxies up to date.${rest}`])
    expect(statuses.counted([{ key: key('a'), uid: 'a', generation: 1 }], 1000)?.have).to.deep.equal([2])
    statuses.ended(due, written(2), 1000, 0)
    // It has all else now.
    statuses.withdrawn([{ ...refused, reached: pairs([1, 1]) }])
    statuses.reached(pairs([1, 3]))
    expect(statuses.next(9000, date), 'that is said already').to.equal(undefined)
    statuses.withdrawn([])
    expect(said((statuses.next(9000, date) as DueStatus).status)).to.deep.equal([1, 'True', '3/3 proxies up to date.'])
  })

  it('count the proxies of other replicas too, and name a replica that does not answer', () => {
    const statuses = one(made({ ...settings, others: true }))
    expect(statuses.counted([], 0), 'it is not known what proxies have').to.equal(undefined)
    statuses.reached(pairs([1, 2]))
    expect(statuses.next(1000, date), 'the others were not asked').to.equal(undefined)
    const asked = statuses.toAsk()
    expect(asked).to.deep.equal([{ key: key('a'), uid: 'a', generation: 1 }])
    statuses.othersCounted(asked, { all: 3, have: [2], silent: ['two'] })
    const due = statuses.next(1000, date) as DueStatus
    expect(said(due.status)).to.deep.equal([1, 'False', '4/5 proxies up to date. Not counted, since there is no answer of the replica: two.'])
    statuses.ended(due, written(2), 1000, 0)
    statuses.othersCounted(statuses.toAsk(), { all: 3, have: [3], silent: ['two'] })
    const more = statuses.next(6000, date) as DueStatus
    expect(said(more.status).slice(1)).to.deep.equal(['False', '5/5 proxies up to date. Not counted, since there is no answer of the replica: two.'])
    statuses.ended(more, written(3), 6000, 0)
    statuses.othersCounted(statuses.toAsk(), { all: 4, have: [4], silent: [] })
    expect(said((statuses.next(7000, date) as DueStatus).status).slice(1)).to.deep.equal(['True', '6/6 proxies up to date.'])
    expect(statuses.counted([...asked, { key: key('a'), uid: 'a', generation: 2 }], 1000)).to.deep.equal({
      ...{ all: 2, have: [2, 0], withdrawn: [] },
    })
  })

  it('say what proxies of other replicas refuse, also of an object that was reconciled, until they have it', () => {
    const statuses = one(made({ ...settings, others: true }))
    statuses.reached(pairs([1, 2]))
    statuses.next(0, date)
    const refused = (proxies: number) => [{ key: key('a'), proxies, reason: 'no' }]
    statuses.othersCounted(statuses.toAsk(), { all: 3, have: [3], silent: [] })
    const first = statuses.next(0, date) as DueStatus
    expect(said(first.status)).to.deep.equal([1, 'True', '5/5 proxies up to date.'])
    statuses.ended(first, written(2), 0, 0)
    expect(statuses.toAsk()).to.deep.equal([])
    statuses.othersCounted([], { all: 3, have: [], withdrawn: [...refused(1), ...refused(1)], silent: [] })
    expect(statuses.next(1000, date), 'the others have not counted it').to.equal(undefined)
    const asked = statuses.toAsk()
    expect(asked).to.have.length(1)
    statuses.withdrawn(refused(1).map((each) => ({ ...each, reached: pairs([1, 1]) })))
    statuses.othersCounted(asked, { all: 3, have: [1], withdrawn: [...refused(1), ...refused(1)], silent: [] })
    const due = statuses.next(1000, date) as DueStatus
    expect(said(due.status)).to.deep.equal([
      ...[1, 'False'],
      '2/5 proxies up to date. 3 refuse it, and have their configuration without what they refuse: no',
    ])
    statuses.ended(due, written(3), 1000, 0)
    statuses.withdrawn([])
    statuses.othersCounted(statuses.toAsk(), { all: 3, have: [3], withdrawn: [], silent: [] })
    expect(said((statuses.next(2000, date) as DueStatus).status)).to.deep.equal([1, 'True', '5/5 proxies up to date.'])
  })

  it('have one condition of their type, whoever else has written one', () => {
    const statuses = made()
    const forged = ['True', 'False'].map((status) => ({ type: 'Reconciled', status }))
    statuses.set('o a', object('a', 1, 1, heldStatus({ observedGeneration: 1, conditions: [...forged, { type: 'Other' }] }).status))
    statuses.published(1, [published('a', 1)], 0)
    statuses.reached(pairs([1, 4]))
    const { status } = statuses.next(1000, date) as DueStatus
    const types = (JSON.parse(status.conditions) as { type: string }[]).map(({ type }) => type)
    expect([types, said(status)[1]]).to.deep.equal([['Other', 'Reconciled'], 'True'])
  })

  it('stay as they are when the number of proxies changes, or an earlier process has written them', () => {
    const { status } = statusPatch(
      object('a', 1, 1),
      { condition: { isReconciled: true, message: '9/9 proxies up to date.', generation: 1 }, messages: undefined },
      date,
    )
    for (const order of ['object first', 'push first']) {
      const statuses = made()
      if (order === 'object first') statuses.set('o a', object('a', 1, 1, status))
      statuses.published(1, [published('a', 1)], 0)
      statuses.set('o a', object('a', 1, 1, status))
      statuses.reached(pairs([0, 1], [1, 3]))
      statuses.again()
      expect(statuses.next(1e6, date), order).to.equal(undefined)
      expect(statuses.counts).to.deep.equal({ objects: 1, waiting: 0, open: 0 })
    }
  })

  it('say nothing of proxies before these had time to connect again', () => {
    const statuses = one(made(settings, 10_000))
    statuses.reached(pairs())
    expect([statuses.next(0, date), statuses.waitMs(0)]).to.deep.equal([undefined, 10_000])
    statuses.reached(pairs([0, 1]))
    const due = statuses.next(10_000, date) as DueStatus
    expect(said(due.status)).to.deep.equal([1, 'False', '0/1 proxies up to date.'])
  })

  it('name the fault of a generation that is not in use, and nothing of one that the push queue has not had', () => {
    const statuses = one()
    statuses.reached(pairs([1, 2]))
    const first = statuses.next(0, date) as DueStatus
    statuses.ended(first, written(2), 0, 0)
    statuses.set('o a', object('a', 2, 3, first.status))
    expect(statuses.next(5000, date)).to.equal(undefined)
    statuses.set('o a', { ...object('a', 2, 2), fault: 'spec.hosts: expected a list' })
    const due = statuses.next(5000, date) as DueStatus
    expect(said(due.status)).to.deep.equal([2, 'False', '0/2 proxies up to date. This generation is not in use: spec.hosts: expected a list'])
  })

  it('move with each push while an object changes without pause, and never to an earlier generation', () => {
    const statuses = made()
    const told: unknown[] = []
    let held: HeldStatus | undefined
    // A change every 100 ms, which a push takes every 10 s, and proxies have half a second later.
    for (let change = 1; change <= 500; change++) {
      const now = change * 100
      statuses.set('o a', object('a', change, change, held))
      if (change % 100 === 0) statuses.published(change / 100, [published('a', change)], now)
      if (change % 100 === 5) statuses.reached(pairs([Math.floor(change / 100), 3]))
      const due = statuses.next(now, date)
      if (!due) continue
      statuses.ended(due, written(change), now, 0)
      held = due.status
      told.push([now, ...said(due.status)])
    }
    const all = [1, 2, 3, 4].map((push) => [push * 10_000 + 500, push * 100, 'True', '3/3 proxies up to date.'])
    expect(told).to.deep.equal(all)
    const later = made()
    later.set('o a', object('a', 10, 10, heldStatus({ observedGeneration: 9, conditions: [] }).status))
    later.published(1, [published('a', 8)], 0)
    later.reached(pairs([1, 3]))
    expect(later.next(0, date), 'another replica has said more').to.equal(undefined)
  })

  it('count a generation that is for proxies what the last one was as soon as that', () => {
    const statuses = one()
    statuses.reached(pairs([1, 2]))
    const due = statuses.next(0, date) as DueStatus
    statuses.set('o a', object('a', 2, 3))
    statuses.ended(due, written(2), 0, 0)
    statuses.published(5, [published('a', 2, true)], 10)
    expect(said((statuses.next(1000, date) as DueStatus).status)).to.deep.equal([2, 'True', '2/2 proxies up to date.'])
  })

  it('have the messages of analysis, also while the condition waits; what is not known stays', () => {
    const statuses = one()
    statuses.reached(pairs([0, 2]))
    statuses.analysed(key('a'), [error])
    const due = statuses.next(0, date) as DueStatus
    expect([due.status.conditions, JSON.parse(due.status.messages)]).to.deep.equal([
      '',
      [
        {
          type: { name: 'ReferencedResourceNotFound', code: 'IST0101' },
          level: 3,
          message: 'spec.host: there is no service a. ',
          documentation_url: 'docs/analysis.md#codes',
        },
      ],
    ])
    statuses.ended(due, written(2), 0, 0)
    statuses.analysed(key('a'), undefined)
    const next = statuses.next(2000, date) as DueStatus
    expect([next.status.messages, said(next.status)[1]]).to.deep.equal([due.status.messages, 'False'])
    statuses.ended(next, written(3), 2000, 0)
    statuses.analysed(key('a'), [])
    expect((statuses.next(9000, date) as DueStatus).status.messages).to.equal('[]')
  })

  it('keep to the rate, and to the order in which they came', () => {
    const statuses = made({ ...settings, perSecond: 10, burst: 5 })
    const names = Array.from({ length: 20 }, (_, index) => `a${index}`)
    for (const name of names) statuses.set(`o ${name}`, object(name, 1, 1))
    statuses.published(
      1,
      names.map((name) => published(name, 1)),
      0,
    )
    statuses.reached(pairs([1, 1]))
    const order: string[] = []
    for (let now = 0; now <= 1000; now += 10)
      for (let due = statuses.next(now, date); due; due = statuses.next(now, date)) {
        order.push(due.object.name)
        statuses.ended(due, written(2), now, 0)
      }
    expect(order).to.deep.equal(names.slice(0, 15))
    expect(statuses.waitMs(1000)).to.be.within(1, 100)
  })

  it('answer each failure: of the object, of its resource, of the server, of the term', () => {
    const statuses = one()
    statuses.reached(pairs([1, 1]))
    const fails = (outcome: StatusOutcome, now: number) => {
      const due = statuses.next(now, date)
      expect(due, JSON.stringify(outcome)).not.to.equal(undefined)
      statuses.ended(due as DueStatus, outcome, now, 0)
      return statuses.waitMs(now)
    }
    expect(fails({ outcome: 'conflict' }, 0)).to.equal(0)
    expect([statuses.next(0, date), statuses.waitMs(0)]).to.deep.equal([undefined, 1000])
    fails({ outcome: 'failed', reason: '', concerns: 'object' }, 1000)
    expect([statuses.next(1000, date), statuses.waitMs(1000)]).to.deep.equal([undefined, 2000])
    expect(fails({ outcome: 'failed', reason: '', concerns: 'all' }, 3000)).to.equal(1000)
    fails({ outcome: 'failed', reason: '', concerns: 'resource' }, 4000)
    statuses.set('o b', { ...object('b', 1, 1), plural: 'gateways' })
    statuses.published(1, [published('b', 1)], 0)
    expect(statuses.next(4001, date)?.object.name, 'another resource').to.equal('b')
    fails({ outcome: 'lost' }, 10_000)
    expect([statuses.next(10_000, date), statuses.waitMs(10_000)]).to.deep.equal([undefined, 1000])
    fails({ outcome: 'gone' }, 11_000)
    expect(statuses.next(1e6, date), 'until the server tells of it again').to.equal(undefined)
    statuses.set('o a', object('a', 1, 7))
    expect(statuses.next(1e6, date)?.object.resourceVersion).to.equal('7')
  })

  it('do not take an answer about an object for one about another of its name', () => {
    const statuses = one()
    statuses.reached(pairs([1, 1]))
    const due = statuses.next(0, date) as DueStatus
    statuses.set('o a', object('a', 1, 9, undefined, 'other'))
    statuses.published(2, [{ ...published('a', 1), uid: 'other' }], 0)
    statuses.reached(pairs([2, 1]))
    statuses.ended(due, { outcome: 'gone' }, 0, 0)
    expect(statuses.next(0, date)?.object.uid).to.equal('other')
  })

  it('look at a bounded number of objects at a time', () => {
    const statuses = made()
    for (let index = 0; index < 1200; index++) statuses.set(`o ${index}`, object(`${index}`, 1, 1))
    statuses.reached(pairs([1, 1]))
    for (const left of [700, 200, 0]) {
      expect(statuses.next(0, date)).to.equal(undefined)
      expect([statuses.counts.waiting, statuses.waitMs(0)]).to.deep.equal([left, left === 0 ? undefined : 0])
    }
  })

  it('are in the end what is true, whatever comes in whatever order, and no more writes are made than changes', () => {
    const change = fc.oneof(
      fc.record({ type: fc.constant('edit' as const), name: fc.constantFrom('a', 'b', 'c'), isSame: fc.boolean() }),
      fc.record({ type: fc.constant('acknowledge' as const), proxy: fc.nat(2), behind: fc.nat(3) }),
      fc.record({ type: fc.constant('connect' as const), proxy: fc.nat(2) }),
      fc.record({ type: fc.constant('leave' as const), proxy: fc.nat(2) }),
      fc.record({ type: fc.constant('foreign' as const), name: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ type: fc.constant('remake' as const), name: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ type: fc.constant('time' as const), ms: fc.integer({ min: 1, max: 3000 }) }),
      fc.record({ type: fc.constant('analyse' as const), name: fc.constantFrom('a', 'b', 'c'), count: fc.nat(2) }),
      fc.record({ type: fc.constant('outcome' as const), outcome: fc.constantFrom('written', 'conflict', 'failed', 'lost', 'silent') }),
      fc.constant({ type: 'term' as const }),
    )
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
        const mesh = new ModelMesh()
        for (const each of changes) mesh.take(each)
        mesh.settle()
        for (const name of ['a', 'b', 'c']) mesh.expectTrue(name)
        const before = mesh.writes
        mesh.settle()
        expect(mesh.writes, 'what is said is not said again').to.equal(before)
      }),
      { numRuns: runs(3000) },
    )
  })
})

type Change =
  | { type: 'edit'; name: string; isSame: boolean }
  | { type: 'acknowledge'; proxy: number; behind: number }
  | { type: 'connect' | 'leave'; proxy: number }
  | { type: 'foreign' | 'remake'; name: string }
  | { type: 'time'; ms: number }
  | { type: 'analyse'; name: string; count: number }
  | { type: 'outcome'; outcome: string }
  | { type: 'term' }

/** A server, a push queue and proxies, which tell of everything at once. */
class ModelMesh {
  readonly #statuses = new ObjectStatuses({ ...settings, perSecond: 0 }, 0, 0)
  readonly #server = new Map<string, { uid: string; generation: number; version: number; status: HeldStatus | undefined }>()
  readonly #pushes = new Map<string, number>()
  readonly #messages = new Map<string, number>()
  /** What each proxy has; undefined: it is not connected. */
  readonly #proxies: (number | undefined)[] = [undefined, undefined, undefined]
  #push = 1
  #version = 1
  #now = 0
  #uids = 0
  writes = 0
  readonly #underWay: DueStatus[] = []

  constructor() {
    for (const name of ['a', 'b', 'c']) this.take({ type: 'remake', name })
  }

  take(change: Change): void {
    switch (change.type) {
      case 'edit': {
        const there = this.#of(change.name)
        there.generation++
        this.#tell(change.name)
        this.#publish(change.name, change.isSame)
        break
      }
      case 'remake':
        this.#statuses.set(`o ${change.name}`, undefined)
        this.#server.set(change.name, { uid: `u${this.#uids++}`, generation: 1, version: 0, status: undefined })
        this.#tell(change.name)
        this.#publish(change.name, false)
        break
      case 'connect':
        this.#proxies[change.proxy] ??= 0
        break
      case 'leave':
        this.#proxies[change.proxy] = undefined
        break
      case 'acknowledge':
        if (this.#proxies[change.proxy] !== undefined)
          this.#proxies[change.proxy] = Math.max(this.#proxies[change.proxy] as number, this.#push - change.behind)
        break
      case 'foreign': {
        // Somebody else writes a condition of his own, and loses ours.
        const there = this.#of(change.name)
        there.status = heldStatus({ conditions: [{ type: 'Other', status: String(this.#version) }] }).status
        this.#tell(change.name)
        break
      }
      case 'analyse':
        this.#messages.set(change.name, change.count)
        this.#statuses.analysed(
          key(change.name),
          Array.from({ length: change.count }, () => error),
        )
        break
      case 'time':
        this.#now += change.ms
        break
      case 'term':
        this.#statuses.again()
        break
      case 'outcome':
        this.#answer(change.outcome)
    }
    this.#reach()
    const due = this.#statuses.next(this.#now, date)
    if (due) this.#underWay.push(due)
  }

  /** Lets time pass until nothing waits: the proxies take everything. */
  settle(): void {
    for (const proxy of [0, 1, 2]) if (this.#proxies[proxy] !== undefined) this.#proxies[proxy] = this.#push
    this.#reach()
    for (let steps = 0; steps < 200; steps++) {
      while (this.#underWay.length > 0) this.#answer('written')
      const due = this.#statuses.next(this.#now, date)
      if (due) this.#underWay.push(due)
      else {
        const wait = this.#statuses.waitMs(this.#now)
        if (wait === undefined) return
        this.#now += wait
      }
    }
    throw new Error('it does not come to rest')
  }

  expectTrue(name: string): void {
    const { status, generation } = this.#of(name)
    expect(said(status).slice(0, 2), name).to.deep.equal([generation, 'True'])
    const count = this.#messages.get(name)
    if (count !== undefined) expect(JSON.parse(status?.messages || '[]')).to.have.length(count)
  }

  #of(name: string) {
    return this.#server.get(name) as { uid: string; generation: number; version: number; status: HeldStatus | undefined }
  }

  #tell(name: string): void {
    const there = this.#of(name)
    there.version = ++this.#version
    this.#statuses.set(`o ${name}`, object(name, there.generation, there.version, there.status, there.uid))
  }

  #publish(name: string, isSame: boolean): void {
    const { uid, generation } = this.#of(name)
    if (!isSame) this.#pushes.set(name, ++this.#push)
    this.#statuses.published(this.#push, [{ key: key(name), uid, generation, isSame }], this.#now)
  }

  #reach(): void {
    const counts = new Map<number, number>()
    for (const push of this.#proxies) if (push !== undefined) counts.set(push, (counts.get(push) ?? 0) + 1)
    this.#statuses.reached(pairs(...[...counts].sort(([one], [other]) => one - other)))
  }

  #answer(outcome: string): void {
    const due = this.#underWay.shift()
    if (!due) return
    const there = this.#of(due.object.name)
    const isSame = there.uid === due.object.uid && (there.status?.conditions ?? '') === (due.object.status?.conditions ?? '')
    if (outcome === 'written' && isSame) {
      this.writes++
      there.status = due.status
      there.version = ++this.#version
      this.#statuses.ended(due, written(there.version), this.#now, 0)
      this.#statuses.set(`o ${due.object.name}`, object(due.object.name, there.generation, there.version, there.status, there.uid))
    } else if (outcome === 'written' || outcome === 'conflict') this.#statuses.ended(due, { outcome: 'conflict' }, this.#now, 0)
    else if (outcome === 'lost') this.#statuses.ended(due, { outcome: 'lost' }, this.#now, 0)
    // The server has written it, and its answer was lost.
    else {
      if (outcome === 'silent' && isSame) {
        there.status = due.status
        this.#tell(due.object.name)
      }
      this.#statuses.ended(due, { outcome: 'failed', reason: '', concerns: outcome === 'silent' ? 'all' : 'object' }, this.#now, 0)
    }
  }
}
