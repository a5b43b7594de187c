import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import type { GroupUpdate } from '../../../../protocols/messages/push.ts'
import { KeyedSums } from '../../../../src/xds/slab/sums.ts'
import { textField } from '../../../../src/xds/slab/wire.ts'
import { Catalog } from '../../../../src/xds/stream/catalog.ts'
import { Plans } from '../../../../src/xds/stream/plans.ts'
import { everything, type Subscription, Subscriptions } from '../../../../src/xds/stream/subscription.ts'
import { clusterType } from '../../../../src/xds/type-urls.ts'
import { until } from '../../../harness/until.ts'
import { wholeGroups } from '../../../harness/uses.ts'

const mebibyte = 1024 * 1024
const zero = '0'.repeat(32)

describe('response plans', () => {
  it('keep no bytes of an outdated state, also for lagging streams', () => {
    const catalog = new Catalog(new KeyedSums('key'))
    const plans = new Plans(catalog, { enabled: true, size: 0 })
    const push = (id: number) => {
      const bytes = new SharedArrayBuffer(mebibyte)
      catalog.apply({
        whole: false,
        slabs: [{ id, bytes }],
        retiredSlabs: id > 1 ? [id - 1] : [],
        groups: [
          {
            group: 'g',
            sequence: id,
            base: id - 1,
            version: String(id),
            changed: [{ name: 'a', version: String(id), slices: [id, 0, mebibyte] }],
            removed: [],
          },
        ],
        retiredGroups: [],
        manifests: id === 1 ? [{ classId: 'c', groups: { [clusterType]: wholeGroups('g') } }] : [],
        retiredClasses: [],
      })
      return catalog.typeState('c', clusterType)
    }
    const first = push(1).holding
    for (let id = 2; id <= 50; id++) {
      const state = push(id)
      expect(plans.full(clusterType, state, everything, false).length).to.equal(mebibyte)
      expect(plans.difference(clusterType, state, first, everything, true).count).to.equal(1)
    }
    expect(plans.size).to.be.lessThan(4)
    catalog.apply({ whole: false, slabs: [], retiredSlabs: [50], groups: [], retiredGroups: ['g'], manifests: [], retiredClasses: ['c'] })
    expect(plans.size).to.equal(0)
  })

  it('larger than the cache leave nothing behind', () => {
    const catalog = new Catalog(new KeyedSums('key'))
    const plans = new Plans(catalog, { enabled: true, size: 0 })
    const apply = (groups: GroupUpdate[], retiredGroups: string[]) =>
      catalog.apply({
        whole: false,
        slabs: [],
        retiredSlabs: [],
        groups,
        retiredGroups,
        manifests: [{ classId: 'c', groups: { [clusterType]: wholeGroups('g') } }],
        retiredClasses: [],
      })
    apply([{ group: 'g', sequence: 1, base: 0, version: zero, changed: [], removed: [] }], [])
    // 64 bytes are counted for each name that does not exist, and up to 64 MiB are kept.
    const names = new Set(Array.from({ length: mebibyte + 1 }, (_, index) => `n${index}`))
    const plan = plans.full(clusterType, catalog.typeState('c', clusterType), { id: 7, wildcard: false, names }, true)
    expect(plan.removed.length).to.equal(names.size)
    expect(plans.size, 'the part of the group alone').to.equal(1)
    apply([], ['g'])
    expect(plans.owners).to.equal(0)
  })

  it('are cached when first made, or when made again if much is cached already', () => {
    const catalog = new Catalog(new KeyedSums('key'))
    const plans = new Plans(catalog, { enabled: true, size: 0 })
    const groups = [{ group: 'g', sequence: 1, base: 0, version: zero, changed: [], removed: [] }]
    const manifests = [{ classId: 'c', groups: { [clusterType]: wholeGroups('g') } }]
    catalog.apply({ whole: false, slabs: [], retiredSlabs: [], groups, retiredGroups: [], manifests, retiredClasses: [] })
    const plan = (id: number, count: number) => {
      const names = new Set(Array.from({ length: count }, (_, index) => `n${index}`))
      return plans.full(clusterType, catalog.typeState('c', clusterType), { id, wildcard: false, names }, true)
    }
    expect(plan(7, 1)).to.equal(plan(7, 1))
    // 64 bytes are counted for each name that does not exist.
    expect(plan(8, (33 * mebibyte) / 64)).to.equal(plan(8, 1))
    const kept = plans.size
    plan(9, 1)
    expect(plans.size).to.equal(kept)
    const again = plan(9, 1)
    expect(plans.size).to.be.above(kept)
    expect(plan(9, 1)).to.equal(again)
    expect(plan(7, 1)).to.equal(plan(7, 1))
  })

  it('are evicted with the last stream that has their subscription', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const catalog = new Catalog(new KeyedSums('key'))
    const plans = new Plans(catalog, { enabled: true, size: 0 })
    const subscriptions = new Subscriptions()
    const groups = [{ group: 'g', sequence: 1, base: 0, version: zero, changed: [], removed: [] }]
    const manifests = [{ classId: 'c', groups: { [clusterType]: wholeGroups('g') } }]
    catalog.apply({ whole: false, slabs: [], retiredSlabs: [], groups, retiredGroups: [], manifests, retiredClasses: [] })
    const kept = subscriptions.asked(textField(3, 'kept')).subscription
    const plan = (subscription: Subscription) => plans.full(clusterType, catalog.typeState('c', clusterType), subscription, true)
    plan(kept)
    for (let loop = 0; loop < 50; loop++) plan(subscriptions.asked(textField(3, `made-up-${loop}`)).subscription)
    // 51 plans, and the part of the group. No subscribed name exists, so all plans share the empty part.
    expect(plans.size).to.equal(52)
    await until('the plans to go', () => {
      collect()
      return plans.size === 2
    })
    expect(plan(kept)).to.equal(plan(kept))
  })
})
