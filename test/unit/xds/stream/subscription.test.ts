import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { textField } from '../../../../src/xds/slab/wire.ts'
import { Subscriptions } from '../../../../src/xds/stream/subscription.ts'
import { until } from '../../../harness/until.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const list = (names: Iterable<string>): Buffer => Buffer.concat([...names].map((name) => textField(3, name)))
const names = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, index) => `${prefix}-${index}.example.com`)

describe('lists of subscribed names', () => {
  it('are freed with the last stream that has their subscription, even if few other lists arrive', async () => {
    const subscriptions = new Subscriptions()
    const kept = subscriptions.asked(list(names('kept', 1000))).subscription
    const once = names('once', 20).map((prefix) => new WeakRef(subscriptions.asked(list(names(prefix, 1000))).subscription))
    await until('those to go that nobody has', () => {
      collect()
      return once.every((subscription) => subscription.deref() === undefined)
    })
    expect(subscriptions.asked(list(names('kept', 1000))).subscription).to.equal(kept)
  })

  it('are kept while a stream has their subscription, in each order in which they arrived', async () => {
    const subscriptions = new Subscriptions()
    const all = names('some', 1000)
    const first = new WeakRef(subscriptions.asked(list(all)))
    const { subscription } = subscriptions.asked(list(all.toReversed()))
    const second = new WeakRef(subscriptions.asked(list(all.toReversed())))
    for (let round = 0; round < 3; round++) {
      await new Promise(setImmediate)
      collect()
    }
    expect([first.deref()?.subscription, second.deref()?.subscription]).to.deep.equal([subscription, subscription])
    expect(subscriptions.asked(list(all))).to.equal(first.deref())
  })

  it('are limited in bytes if one subscription arrives in many different orders', async () => {
    const subscriptions = new Subscriptions()
    const all = names('some', 10_000)
    const { subscription } = subscriptions.asked(list(all))
    const asked: WeakRef<object>[] = []
    for (let turn = 0; turn < 60; turn++) {
      const turned = subscriptions.asked(list([...all.slice(turn), ...all.slice(0, turn)]))
      expect(turned.subscription).to.equal(subscription)
      asked.push(new WeakRef(turned))
    }
    const bytes = list(all).length
    await until('the oldest to go', () => {
      collect()
      return asked.filter((one) => one.deref() !== undefined).length * bytes <= 8 * 1024 * 1024 + bytes
    })
    expect(asked.filter((one) => one.deref() !== undefined).length).to.be.above(20)
  })

  it('of delta requests are not kept if they are similar to others, since no request repeats them', async () => {
    const subscriptions = new Subscriptions()
    const all = names('some', 10_000)
    const like = (turn: number) => list(all.toSpliced(turn * 100, 1, `own-${turn}`))
    const first = subscriptions.added(list(all)).subscription
    const held = async () => {
      await new Promise(setImmediate)
      collect()
      return process.memoryUsage().arrayBuffers
    }
    const before = await held()
    const kept = Array.from({ length: 20 }, (_, turn) => subscriptions.added(like(turn)).subscription)
    await until('the lists to go', async () => (await held()) - before < list(all).length * 2)
    for (const [turn, subscription] of kept.entries()) {
      expect([subscription.names.size, subscription.names.has(`own-${turn}`), subscription.names.has(all[turn * 100] as string)]).to.deep.equal([
        10_000,
        true,
        false,
      ])
      expect(subscriptions.added(like(turn)).subscription).to.equal(subscription)
      expect(subscriptions.asked(like(turn)).subscription).to.equal(subscription)
    }
    expect(subscriptions.added(list(all)).subscription).to.equal(first)
  })

  it('with a wildcard are not kept, however long they are', async () => {
    const subscriptions = new Subscriptions()
    const asked = new WeakRef(subscriptions.asked(list(Array.from({ length: 100_000 }, () => '*'))))
    expect(asked.deref()?.subscription.wildcard).to.equal(true)
    await until('it to go', () => {
      collect()
      return asked.deref() === undefined
    })
  })
})
