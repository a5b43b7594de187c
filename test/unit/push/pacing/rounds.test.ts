import { expect } from 'chai'
import fc from 'fast-check'
import { type Change, PushRounds } from '../../../../src/push/pacing/rounds.ts'

const change = (more: Partial<Change> = {}): Change => ({ reason: 'config', at: 0, ...more })

/** Rounds whose first push, of nothing, was sent at time 0. */
function started(options = { after: 100, max: 250 }) {
  const rounds = new PushRounds(options)
  rounds.begin(0)
  rounds.sent(1, [], 0)
  return rounds
}

describe('the rounds of pushes', () => {
  it('wait for a quiet period, up to the maximum delay', () => {
    const rounds = started()
    expect(rounds.wait(0)).to.equal(undefined)
    rounds.changed(change(), 0)
    expect(rounds.wait(30)).to.equal(70)
    rounds.changed(change(), 90)
    expect(rounds.wait(100)).to.equal(90)
    rounds.changed(change(), 180)
    expect([rounds.wait(200), rounds.wait(250), rounds.check(200), rounds.check(250)]).to.deep.equal([50, 0, undefined, 'longest'])
  })

  it('wait at most five quiet periods if only endpoints changed', () => {
    const rounds = started({ after: 100, max: 10_000 })
    for (let now = 0; now < 500; now += 50) rounds.changed(change({ onlyEndpoints: true }), now)
    expect(rounds.wait(480)).to.equal(20)
    rounds.changed(change(), 490)
    expect(rounds.wait(490)).to.equal(100)
  })

  it('begin none before the first one, and one at a time with all its reasons; later changes wait for the next', () => {
    const rounds = new PushRounds({ after: 10, max: 100 })
    expect(rounds.changed(change({ at: 7 }), 8)).to.equal(false)
    expect([rounds.state, rounds.wait(5000)]).to.deep.equal(['starting', undefined])
    expect(rounds.begin(9)).to.deep.equal({ reasons: ['config'], startedAt: 7, events: 1 })
    for (const reason of ['service', 'global', 'service']) rounds.changed(change({ reason }), 10)
    expect([rounds.state, rounds.wait(5000)]).to.deep.equal(['overlapping', undefined])
    expect(() => rounds.begin(20)).to.throw('the pushes of changes is overlapping, which does not allow "begun"')
    rounds.sent(1, [], 20)
    expect([rounds.state, rounds.check(20)]).to.deep.equal(['gathering', 'quiet'])
    expect(rounds.begin(21)).to.deep.equal({ reasons: ['service', 'global'], startedAt: 21, events: 3 })
  })

  it('tell why a push is due, and are due at once for an urgent change', () => {
    const rounds = started({ after: 100, max: 150 })
    rounds.changed(change(), 0)
    expect(rounds.check(100)).to.equal('quiet')
    rounds.changed(change(), 90)
    expect(rounds.check(150)).to.equal('longest')
    rounds.changed(change({ isUrgent: true }), 150)
    expect([rounds.wait(150), rounds.check(150)]).to.deep.equal([0, 'urgent'])
    rounds.begin(150)
    rounds.sent(2, [], 150)
    rounds.changed(change(), 200)
    expect(rounds.check(400)).to.equal('quiet')
  })

  describe('wait for the writers', () => {
    /** Sends the next push to writers. Returns the state after each of some answers, `<writer> <push>`. */
    const answersTo = (rounds: PushRounds, push: number, names: string[], answers: string[]) => {
      rounds.changed(change(), push)
      rounds.begin(push)
      rounds.sent(push, names, push * 10_000)
      return answers.map((answer) => {
        const [name = '', number] = answer.split(' ')
        rounds.answered(name, Number(number))
        return rounds.state
      })
    }

    it('all of them, and answers of earlier pushes do not count', () => {
      expect(answersTo(started(), 7, ['a', 'b'], ['a 6', 'a 7', 'b 8', 'b 8'])).to.deep.equal(['underWay', 'underWay', 'idle', 'idle'])
    })

    it('but not for one that has ended', () => {
      const rounds = started()
      answersTo(rounds, 2, ['a', 'b'], ['a 2'])
      rounds.gone('b')
      rounds.gone('b')
      expect(rounds.state).to.equal('idle')
    })

    it('but not for one that was late, until it has answered the last push', () => {
      const rounds = started()
      answersTo(rounds, 2, ['hung', 'prompt'], ['prompt 2'])
      expect([rounds.wait(20_000), rounds.check(20_999), rounds.state]).to.deep.equal([1000, undefined, 'underWay'])
      expect([rounds.check(21_000), rounds.state]).to.deep.equal([undefined, 'idle'])
      expect(answersTo(rounds, 3, ['hung', 'prompt'], ['prompt 3', 'hung 2'])).to.deep.equal(['idle', 'idle'])
      expect(answersTo(rounds, 4, ['hung', 'prompt'], ['prompt 4', 'hung 4'])).to.deep.equal(['idle', 'idle'])
      expect(answersTo(rounds, 5, ['hung', 'prompt'], ['prompt 5', 'hung 5'])).to.deep.equal(['underWay', 'idle'])
    })

    it('all of them if none keeps up', () => {
      const rounds = started()
      answersTo(rounds, 2, ['a'], [])
      rounds.check(21_000)
      expect(answersTo(rounds, 3, ['a'], ['a 2', 'a 3'])).to.deep.equal(['underWay', 'idle'])
    })
  })
})

describe('random histories of rounds', () => {
  const names = ['a', 'b', 'c']
  const event = fc.record({
    ms: fc.nat({ max: 120 }),
    what: fc.constantFrom('changed', 'changed', 'endpoints', 'urgent', 'answered', 'answered', 'gone'),
    writer: fc.constantFrom(...names),
  })

  it('have one push at a time, none later than the longest wait after the first change or the end of the push before, and lose no change', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 120 }), fc.constantFrom(50, 300), (events, max) => {
        const rounds = started({ after: 40, max })
        const unanswered = new Map<string, number>()
        const linked = new Set(names)
        let [push, sentAt, now, changes, pushed] = [1, 0, 0, 0, 0]
        let first: number | undefined
        let freeSince = 0
        /** What the timer of the rounds does until a time. */
        const runUntil = (end: number) => {
          for (let wait = rounds.wait(now); wait !== undefined && now + wait <= end; wait = rounds.wait(now)) {
            now += wait
            if (rounds.state === 'underWay' || rounds.state === 'overlapping') {
              expect(now - sentAt, 'a push under way').to.equal(1000)
              freeSince = now
            }
            if (rounds.check(now) === undefined) continue
            expect(now, 'the next push').to.be.at.most(Math.max((first as number) + max, freeSince))
            pushed += rounds.begin(now).events
            expect([rounds.state, rounds.wait(now)]).to.deep.equal(['underWay', undefined])
            rounds.sent(++push, linked, now)
            first = undefined
            sentAt = freeSince = now
            for (const name of linked) unanswered.set(name, push)
          }
          now = end
        }
        for (const { ms, what, writer } of events) {
          runUntil(now + ms)
          const before = rounds.state
          if (what === 'answered') rounds.answered(writer, unanswered.get(writer) ?? 0)
          else if (what === 'gone') {
            rounds.gone(writer)
            linked.delete(writer)
            if (linked.size === 0) linked.add(writer)
          } else {
            expect(rounds.changed(change({ isUrgent: what === 'urgent', onlyEndpoints: what !== 'changed' }), now)).to.equal(first !== undefined)
            changes++
            first ??= now
          }
          if (before !== rounds.state && (rounds.state === 'idle' || rounds.state === 'gathering')) freeSince = now
        }
        runUntil(now + 5000)
        expect([rounds.state, pushed]).to.deep.equal(['idle', changes])
      }),
      { numRuns: 300 },
    )
  })
})
