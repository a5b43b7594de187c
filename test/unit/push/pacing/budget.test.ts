import { expect } from 'chai'
import fc from 'fast-check'
import { PushBudget, Turn } from '../../../../src/push/pacing/budget.ts'
import type { PermitSource } from '../../../../src/push/pacing/permits.ts'
import { following, turns } from '../../../../src/push/pacing/states.ts'

/** Permits of one process, at most `most` at a time, with the number that is out. */
function permits(most: number): PermitSource & { out: number; wakes: (() => void)[] } {
  return {
    out: 0,
    wakes: [],
    acquire() {
      return this.out < most && ++this.out > 0
    },
    release() {
      this.out--
      for (const wake of this.wakes.splice(0)) wake()
    },
    alive: () => undefined,
    want: () => 0,
    whenFreed(_since, then) {
      this.wakes.push(then)
    },
    satisfied: () => undefined,
  }
}

interface Named {
  readonly name: string
  readonly turn: Turn
}

/** A budget with connections by name. */
function budgetOf(most: number) {
  const source = permits(most)
  const budget = new PushBudget<Named>(source)
  const connections = new Map<string, Named>()
  const at = (name: string, state?: 'proven') => {
    let there = connections.get(name)
    if (!there) connections.set(name, (there = { name, turn: new Turn() }))
    if (state) there.turn.state = state
    return there
  }
  return {
    budget,
    source,
    at,
    proven: (...names: string[]) => {
      for (const name of names) budget.due(at(name, 'proven'), 1)
    },
    fresh: (...names: string[]) => {
      for (const name of names) budget.due(at(name), 1)
    },
    take: (times = 1) => Array.from({ length: times }, () => budget.next(() => undefined)?.name),
    state: (name: string) => at(name).turn.state,
  }
}

const tooSlow = { elapsed: 500, still: 500, bytes: 10 }

describe('the budget of pushes', () => {
  it('pushes to as many connections at a time as there are permits, each once and in order', () => {
    const { budget, at, proven, take } = budgetOf(2)
    proven('a', 'b')
    budget.due(at('a'), 1)
    proven('c')
    expect(take(3)).to.deep.equal(['a', 'b', undefined])
    budget.due(at('a'), 2)
    budget.done(at('a'))
    expect(take(2)).to.deep.equal(['c', undefined])
    budget.done(at('b'))
    expect([...take(), at('a').turn.since]).to.deep.equal(['a', 2])
  })

  it('alternates between connections that are known to read and those on trial', () => {
    const { budget, at, proven, fresh, take } = budgetOf(10)
    fresh('n1', 'n2', 'n3')
    proven('a', 'b')
    budget.due(at('n1'), 2)
    expect(take(6)).to.deep.equal(['a', 'n1', 'b', 'n2', 'n3', undefined])
    // They wait in line again after their trial.
    for (const name of ['n1', 'n2']) budget.passed(at(name), 3)
    proven('c', 'd')
    expect(take(5)).to.deep.equal(['n1', 'c', 'n2', 'd', undefined])
    expect([at('n1').turn.isContinued, at('c').turn.isContinued]).to.deep.equal([true, false])
  })

  it('gives no permit to connections on trial, however many there are', () => {
    const { budget, at, proven, fresh, take, state } = budgetOf(1)
    const mute = ['m1', 'm2', 'm3']
    fresh(...mute, 'good')
    expect(take(5)).to.deep.equal([...mute, 'good', undefined])
    expect([...mute, 'good'].map(state)).to.deep.equal(Array.from({ length: 4 }, () => 'onTrial'))
    budget.passed(at('good'), 2)
    expect([state('good'), ...take(), state('good')]).to.deep.equal(['paused', 'good', 'sending'])
    // It holds the permit now and releases it once, whatever the others do.
    for (const name of mute) expect(budget.charge(at(name), tooSlow)).to.equal(true)
    budget.done(at('m2'))
    budget.gone(at('m3'))
    proven('waits')
    expect([...take(), ...mute.map(state)]).to.deep.equal([undefined, 'slow', 'unproven', 'gone'])
    budget.done(at('good'))
    expect(take(2)).to.deep.equal(['waits', undefined])
  })

  it('forgets connections that end while they wait for a permit after their trial', () => {
    const { budget, at, proven, fresh, take } = budgetOf(1)
    proven('there')
    fresh('gone', 'ended')
    take(3)
    for (const name of ['gone', 'ended']) budget.passed(at(name), 2)
    budget.gone(at('gone'))
    budget.done(at('ended'))
    expect(budget.waiting).to.equal(0)
    proven('next')
    expect(take()).to.deep.equal([undefined])
    budget.done(at('there'))
    expect(take(2)).to.deep.equal(['next', undefined])
  })

  it('gives the permit of a slow connection to another, pushes to the slow one once at a time, and then on trial', () => {
    const { budget, at, proven, take, state } = budgetOf(1)
    proven('slow', 'next', 'last')
    take()
    expect([budget.charge(at('slow'), { ...tooSlow, still: 400 }), budget.charge(at('slow'), tooSlow)]).to.deep.equal([false, true])
    expect(budget.charge(at('slow'), tooSlow), 'it has no permit any more').to.equal(false)
    expect(take(2)).to.deep.equal(['next', undefined])
    budget.due(at('slow'), 2)
    budget.done(at('slow'))
    expect([...take(), state('slow')]).to.deep.equal(['slow', 'onTrial'])
    budget.done(at('next'))
    expect(take(2)).to.deep.equal(['last', undefined])
  })

  it('knows a connection to read whose trial ends after its push, also while it waits', () => {
    const { budget, at, fresh, take, state } = budgetOf(1)
    fresh('one', 'other')
    take(2)
    for (const name of ['one', 'other']) budget.done(at(name))
    budget.due(at('other'), 2)
    for (const name of ['one', 'other']) budget.passed(at(name), 3)
    expect([state('one'), state('other'), ...take(), state('other')]).to.deep.equal(['proven', 'waiting', 'other', 'sending'])
  })

  it('follows its table, and says what cannot be', () => {
    const { budget, at } = budgetOf(1)
    expect(() => budget.done(at('idle'))).to.throw('the turn of a connection is unproven, which does not allow "done"')
    const reached = new Set<string>(['unproven'])
    for (const state of reached) for (const to of Object.values(turns[state as 'gone'].on)) reached.add(to)
    expect([...reached].sort()).to.deep.equal(Object.keys(turns).sort())
    for (const state of Object.keys(turns) as (keyof typeof turns)[]) {
      expect(following(turns, state, 'gone', 'it')).to.equal('gone')
      expect(following(turns, state, 'due', 'it'), 'a push that is due is never lost').to.be.a('string')
    }
  })
})

describe('random histories of budgets that share permits', () => {
  type Event = readonly [writer: number, connection: number, what: 'due' | 'next' | 'passed' | 'slow' | 'done' | 'gone']
  const event: fc.Arbitrary<Event> = fc.tuple(
    fc.nat({ max: 1 }),
    fc.nat({ max: 6 }),
    fc.constantFrom('due', 'due', 'next', 'next', 'passed', 'slow', 'done', 'gone'),
  )

  it('never exceed the permits, free all that a closed connection held, and give everyone a turn', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3 }), fc.array(event, { maxLength: 150 }), (most, events) => {
        const source = permits(most)
        const writers = [0, 1].map(() => ({
          budget: new PushBudget<Named>(source),
          connections: Array.from({ length: 7 }, (_, index) => ({ name: `${index}`, turn: new Turn() })),
        }))
        const everyone = () => writers.flatMap(({ connections }) => connections)
        const check = () => {
          const sending = everyone().filter(({ turn }) => turn.state === 'sending').length
          expect(sending, 'permits that are out').to.equal(source.out)
          expect(sending).to.be.at.most(most)
          for (const { budget, connections } of writers)
            expect(budget.waiting).to.equal(connections.filter(({ turn }) => turn.state === 'waiting' || turn.state === 'paused').length)
        }
        for (const [time, [writer, index, what]] of events.entries()) {
          const { budget, connections } = writers[writer] as (typeof writers)[0]
          const connection = connections[index] as Named
          const { state } = connection.turn
          if (what === 'due') budget.due(connection, time)
          else if (what === 'next') {
            const next = budget.next(() => undefined)
            if (next) expect(['onTrial', 'sending']).to.include(next.turn.state)
            // Whoever waits does so only because all permits are out.
            else if (budget.waiting > 0) expect([source.out, source.wakes.length > 0]).to.deep.equal([most, true])
          } else if (what === 'slow') budget.charge(connection, tooSlow)
          else if (what === 'gone') {
            const held = Number(state === 'sending')
            const before = source.out
            budget.gone(connection)
            expect(source.out).to.equal(before - held)
            connections[index] = { name: `${index}`, turn: new Turn() }
          } else if (turns[state].on[what]) budget[what](connection, time)
          check()
        }
        // Everyone ends what it does, and begins what is due: all are served within so many rounds.
        for (let round = 0; round < 30; round++) {
          for (const { budget, connections } of writers) {
            while (budget.next(() => undefined));
            for (const connection of connections) if (connection.turn.isUnderWay && connection.turn.state !== 'paused') budget.done(connection)
          }
          check()
        }
        expect(everyone().filter(({ turn }) => turn.state !== 'unproven' && turn.state !== 'proven')).to.deep.equal([])
        expect(source.out).to.equal(0)
      }),
      { numRuns: 300 },
    )
  })
})
