import { expect } from 'chai'
import { Catalog } from '../../../../src/xds/session/catalog.ts'
import { Plans } from '../../../../src/xds/session/plans.ts'
import { everything } from '../../../../src/xds/session/subscription.ts'
import { clusterType } from '../../../../src/xds/type-urls.ts'

const mebibyte = 1024 * 1024

describe('plans', () => {
  it('keep no bytes of a state that is over, nor do streams that lag', () => {
    const catalog = new Catalog()
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
        manifests: id === 1 ? [{ classId: 'c', groups: { [clusterType]: ['g'] } }] : [],
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
})
