import { create } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { GroupStore } from '../../../src/xds/slab/group-store.ts'
import { encodeResource } from '../../../src/xds/slab/resource.ts'
import { SlabStore } from '../../../src/xds/slab/slab-store.ts'
import { KeyedSums } from '../../../src/xds/slab/sums.ts'
import { textField } from '../../../src/xds/slab/wire.ts'
import { ConnectionBudget } from '../../../src/xds/stream/budget.ts'
import { Catalog } from '../../../src/xds/stream/catalog.ts'
import { Plans } from '../../../src/xds/stream/plans.ts'
import { readSotwRequest } from '../../../src/xds/stream/request.ts'
import { XdsSession } from '../../../src/xds/stream/session.ts'
import { Subscriptions } from '../../../src/xds/stream/subscription.ts'
import { clusterType, listenerType } from '../../../src/xds/type-urls.ts'
import { slabsOf } from '../../harness/slabs.ts'
import { wholeGroups } from '../../harness/uses.ts'

describe('the hold of listeners until new clusters are acknowledged', () => {
  const slabs = new SlabStore()
  const groups = new GroupStore(slabs, new KeyedSums('key'))
  const catalog = new Catalog(new KeyedSums('key'))
  /** Sets the clusters and listeners that exist from now on. Their content does not matter here. */
  const publish = (clusters: string[], listeners: string[]) => {
    const resource = (name: string) => encodeResource(ClusterSchema, create(ClusterSchema, { name }), name)
    groups.replace('clusters', clusters.map(resource))
    groups.replace('listeners', listeners.map(resource))
    const patches = groups.takeUpdates()
    const manifests = [{ classId: 'class', groups: { [clusterType]: wholeGroups('clusters'), [listenerType]: wholeGroups('listeners') } }]
    catalog.apply({
      whole: false,
      slabs: slabsOf(patches, (id) => slabs.data(id)),
      retiredSlabs: [],
      groups: patches,
      retiredGroups: [],
      manifests,
      retiredClasses: [],
    })
  }

  it('expires after a time, and then holds nothing back and needs no timer', () => {
    let nonces = 0
    const session = new XdsSession(
      false,
      {
        catalog,
        plans: new Plans(catalog, { enabled: true, size: 0 }),
        subscriptions: new Subscriptions(),
        flowControlTimeoutMs: undefined,
        nonce: () => `${++nonces}`,
        held: () => undefined,
      },
      new ConnectionBudget(),
    )
    session.classId = 'class'
    publish(['a'], ['l'])
    for (const type of [clusterType, listenerType]) session.takeSotw(readSotwRequest(textField(4, type)), 0)
    const sent = (now: number) => {
      const types: string[] = []
      for (let next = session.next(now); next; next = session.next(now)) types.push(next.typeUrl)
      return types
    }
    expect(sent(0)).to.deep.equal([clusterType, listenerType])
    expect(session.heldUntil(0)).to.equal(undefined)

    publish(['a', 'b'], ['l', 'm'])
    expect(sent(1000)).to.deep.equal([clusterType])
    expect(session.heldUntil(1000)).to.equal(6000)
    expect(sent(5999)).to.deep.equal([])
    expect(session.heldUntil(6000)).to.equal(undefined)
    expect(sent(6000)).to.deep.equal([listenerType])
    expect(session.heldUntil(6000)).to.equal(undefined)
  })
})
