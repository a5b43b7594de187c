/** How much of another cluster is kept (docs/operation.md, J9). */
import { expect } from 'chai'
import fc from 'fast-check'
import { KeptOfCluster } from '../../../actors/discovery/sources/orchestrator/kept-of-cluster.ts'
import { ClusterBounds } from '../../../src/orchestrator/cluster-bounds.ts'
import { coreResource } from '../../../src/orchestrator/resources.ts'
import { runs } from '../../harness/seed.ts'

describe('what is kept of another cluster', () => {
  it('never exceeds its bounds, and is counted exactly, whatever the server says', () => {
    const most = { objects: 5, bytes: 100 }
    const event = fc.oneof(
      fc.record({ path: fc.constantFrom('a', 'b'), key: fc.constantFrom(...'123456'), bytes: fc.integer({ min: 1, max: 60 }) }),
      fc.record({ path: fc.constantFrom('a', 'b'), gone: fc.constantFrom(...'123456') }),
      fc.record({ path: fc.constantFrom('a', 'b') }),
    )
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), (events) => {
        const bounds = new ClusterBounds(most)
        const model = new Map<string, number>()
        for (const each of events) {
          if ('key' in each) {
            const at = `${each.path} ${each.key}`
            const notTaken = bounds.take(each.path, each.key, '1', each.bytes)
            if (notTaken) expect(notTaken.isKnown).to.equal(model.has(at))
            else model.set(at, each.bytes)
          } else if ('gone' in each) {
            bounds.free(each.path, each.gone)
            model.delete(`${each.path} ${each.gone}`)
          } else {
            bounds.freeAll(each.path)
            for (const at of [...model.keys()]) if (at.startsWith(each.path)) model.delete(at)
          }
          const held = { objects: model.size, bytes: [...model.values()].reduce((sum, bytes) => sum + bytes, 0) }
          expect(bounds.held).to.deep.equal(held)
          expect(held.objects <= most.objects && held.bytes <= most.bytes).to.equal(true)
        }
      }),
      { numRuns: runs(300) },
    )
  })

  it('has no names and versions that only a liar has', () => {
    const bounds = new ClusterBounds({ objects: 5, bytes: 1000 })
    expect(bounds.take('a', `ns/${'x'.repeat(10_000)}`, '1', 1)?.reason).to.contain('at most 600 characters')
    expect(bounds.take('a', 'ns/x', '1'.repeat(10_000), 1)?.reason).to.contain('versions 64')
  })

  it('has objects that cannot be used counted too, and their last state where there is one', () => {
    const bounds = new ClusterBounds({ objects: 2, bytes: 100_000 })
    expect(bounds.take('a', 'ns/good', '1', 90_000)).to.equal(undefined)
    expect(bounds.take('a', 'ns/good', '2', undefined)).to.equal(undefined)
    expect(bounds.held, 'its last state stays').to.deep.equal({ objects: 1, bytes: 90_000 })
    expect(bounds.take('a', 'ns/odd', '1', undefined)).to.equal(undefined)
    expect(bounds.held.objects).to.equal(2)
    expect(bounds.take('a', 'ns/another', '1', undefined)).to.deep.include({ isKnown: false })
  })

  it('is told once where objects are left out, until a whole list has none that is', () => {
    const lines: string[] = []
    const features = { PILOT_REMOTE_CLUSTER_MAX_OBJECTS: 1, PILOT_REMOTE_CLUSTER_MAX_BYTES: 1_000_000 }
    const kept = new KeptOfCluster({ cluster: 'west', features }, (line) => lines.push(line))
    const pods = coreResource('Pod', 'pods')
    expect(kept.take(pods, 'a/one', '1', {})).to.equal(undefined)
    for (const name of ['two', 'three']) expect(kept.take(pods, `a/${name}`, '1', {})).to.deep.include({ isKnown: false })
    expect(lines).to.deep.equal([
      'cluster west: Pod a/two and others are left out: more than 1 objects of the cluster are not kept (PILOT_REMOTE_CLUSTER_MAX_OBJECTS); what is known of the cluster stays',
    ])
    expect(kept.take(pods, 'a/one', '2', {}), 'a known one').to.equal(undefined)
    expect([kept.listed(pods.path), kept.troubles.length], 'the list that had them').to.deep.equal([false, 1])
    kept.removed(pods.path, 'a/one')
    expect(kept.take(pods, 'a/two', '3', {})).to.equal(undefined)
    expect([kept.listed(pods.path), kept.troubles.length]).to.deep.equal([true, 0])
  })
})
