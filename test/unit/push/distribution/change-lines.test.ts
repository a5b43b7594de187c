import { expect } from 'chai'
import fc from 'fast-check'
import type { ConfigChanges } from '../../../../protocols/messages/distribution.ts'
import { ChangeLines, changeTimes } from '../../../../src/push/distribution/change-lines.ts'
import { CollectedChanges, changesText } from '../../../../src/push/distribution/config-changes.ts'
import type { PushOutcome } from '../../../../src/push/distribution/push-record.ts'
import { runs } from '../../../harness/seed.ts'

const inFile = (file: string, document = 1) => `${file}, document ${document}`

function changes(...of: [key: string, place: string, change: 'added' | 'changed' | 'removed'][]): ConfigChanges {
  const collected = new CollectedChanges()
  for (const [key, place, change] of of) collected.add(key, place, change)
  return collected.take() as ConfigChanges
}
const route = (file = 'reviews.yaml') => changes(['VirtualService/default/reviews', inFile(file), 'changed'])

describe('what changed, in words', () => {
  it('names files with numbers, and objects of no file with what happened to them', () => {
    expect(changesText([route()])).to.equal('reviews.yaml: 1 changed')
    const several = changes(
      ['VirtualService/default/a', inFile('a.yaml', 1), 'added'],
      ['VirtualService/default/b', inFile('a.yaml', 2), 'added'],
      ['VirtualService/default/c', inFile('a.yaml', 3), 'removed'],
      ['Gateway/default/g', 'main cluster, resource version 7', 'changed'],
    )
    expect(changesText([several])).to.equal('a.yaml: 2 added, 1 removed, Gateway default/g: changed')
  })

  it('names three places at most, and counts what changed in all', () => {
    const many = changes(
      ...Array.from({ length: 50 }, (_, at) => [`Gateway/ns/${at}`, inFile(`${at}.yaml`), 'changed'] as [string, string, 'changed']),
    )
    expect(changesText([many])).to.equal('0.yaml, 1.yaml, 2.yaml and 47 more: 50 changed')
    expect(changesText([route(), many])).to.equal('reviews.yaml, 0.yaml, 1.yaml and 48 more: 51 changes in 2 pushes')
  })

  it('has the objects that select no proxy, as they were in the end', () => {
    const collected = new CollectedChanges()
    for (const name of ['a', 'b', 'c']) collected.add(`Gateway/ns/${name}`, inFile('g.yaml'), 'added')
    collected.selectNone(['Gateway/ns/a', 'Gateway/ns/b', 'Gateway/ns/old'])
    collected.add('Gateway/ns/a', inFile('g.yaml'), 'changed')
    expect(collected.take()?.selectingNone).to.deep.equal(['Gateway ns/b'])
    collected.add('Gateway/ns/c', inFile('g.yaml'), 'changed')
    expect(collected.take()?.selectingNone).to.deep.equal([])
  })

  it('an object counts once, with what became of it in the end', () => {
    const text = (...of: ('added' | 'changed' | 'removed')[]) => {
      const collected = new CollectedChanges()
      for (const change of of) collected.add('Gateway/ns/g', inFile('g.yaml'), change)
      return changesText([collected.take() ?? []].flat())
    }
    expect(text('added', 'changed')).to.equal('g.yaml: 1 added')
    expect(text('removed', 'added')).to.equal('g.yaml: 1 changed')
    expect(text('changed', 'removed')).to.equal('g.yaml: 1 removed')
    expect(text('added', 'removed')).to.equal('')
  })
})

describe('lines about changes', () => {
  const nothing: PushOutcome = { acknowledged: 0, refused: 0, gone: 0, outstanding: 0, slowestMs: 0, refusals: [], waiting: [] }
  const lines = (proxies = 2) => {
    const outcomes = new Map<number, PushOutcome>()
    const made = new ChangeLines({
      outstandingOf: (push) => outcomes.get(push)?.outstanding,
      outcome: (push) => outcomes.get(push),
      isApplied: (push) => outcomes.has(push),
      proxies,
    })
    return { made, becomes: (push: number, outcome: Partial<PushOutcome>) => outcomes.set(push, { ...nothing, ...outcome }) }
  }

  it('a line says how many proxies have the change, as soon as all have answered', () => {
    const { made, becomes } = lines()
    made.published(1, 0, route())
    becomes(1, { acknowledged: 1, outstanding: 1, slowestMs: 90 })
    expect(made.take(100)).to.equal(undefined)
    becomes(1, { acknowledged: 2, slowestMs: 130.4 })
    expect(made.take(150)).to.deep.equal({ level: 'info', text: 'reviews.yaml: 1 changed; 2 of 2 proxies have it after 130 ms' })
    expect([made.take(5000), made.nextAt]).to.deep.equal([undefined, undefined])
  })

  it('says who refused it and why, who is gone, and who has not answered in time; later that it arrived', () => {
    const { made, becomes } = lines()
    const refusal = { connection: 'c', nodeId: 'sidecar~10.0.0.1~web-0.shop~d', typeUrl: 't', resources: [], reason: 'no such field', objects: [] }
    made.published(1, 0, route())
    becomes(1, {
      acknowledged: 1,
      refused: 1,
      gone: 1,
      outstanding: 1,
      refusals: [refusal],
      waiting: ['sidecar~10.0.0.2~cart-0.shop~d'],
      slowestMs: 9,
    })
    expect(made.take(changeTimes.lateMs - 1)).to.equal(undefined)
    expect(made.take(changeTimes.lateMs)).to.deep.equal({
      level: 'warn',
      text: 'reviews.yaml: 1 changed; 1 of 4 proxies have it after 9 ms; web-0.shop refused t: no such field; no answer after 10 s from cart-0.shop; 1 proxy disconnected before the answer',
    })
    expect(made.take(changeTimes.lateMs + 5000), 'told once').to.equal(undefined)
    becomes(1, { acknowledged: 2, slowestMs: 16_000 })
    expect(made.take(changeTimes.lateMs + 7000)?.text).to.equal('reviews.yaml: 1 changed; 2 of 2 proxies have it after 16000 ms')
  })

  it('says that a change concerns nobody', () => {
    const { made, becomes } = lines()
    made.unneeded(route())
    expect(made.take(0)?.text).to.equal('reviews.yaml: 1 changed; nothing differs for any of 2 proxies')
    made.published(1, 0, route())
    becomes(1, {})
    expect(made.take(2000)?.text).to.equal('reviews.yaml: 1 changed; nothing differs for any of 2 proxies')
    const { made: alone } = lines(0)
    alone.unneeded(route())
    expect(alone.take(0)?.text).to.equal('reviews.yaml: 1 changed; no proxy is connected')
  })

  it('writes one line a second at most, and none about a change twice, whatever comes', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ pause: fc.nat(400), silent: fc.boolean() }), { maxLength: 120 }), (steps) => {
        const { made, becomes } = lines()
        let [now, told] = [0, 0]
        const at: number[] = []
        const take = () => {
          const line = made.take(now)
          if (!line) return
          at.push(now)
          told += Number(/: (\d+) change/.exec(line.text)?.[1])
        }
        for (const [push, { pause, silent }] of steps.entries()) {
          now += pause
          made.published(push, now, route())
          becomes(push, silent ? {} : { acknowledged: 1 })
          take()
        }
        now += changeTimes.lineMs
        take()
        expect(told).to.equal(steps.length)
        for (const [index, time] of at.entries()) if (index > 0) expect(time - (at[index - 1] as number)).to.be.at.least(changeTimes.lineMs)
      }),
      { numRuns: runs(500) },
    )
  })
})
