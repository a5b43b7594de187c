import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import fc from 'fast-check'
import { ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { Planner } from '../../../src/push/planner.ts'
import { buildTable, cutTable, encodeHost, type HostPiece, ownTable, type RouteTable, routeResource } from '../../../src/xds/routes/route-table.ts'
import { GroupStore } from '../../../src/xds/slab/group-store.ts'
import { encodeResource, type Resource } from '../../../src/xds/slab/resource.ts'
import { SlabStore } from '../../../src/xds/slab/slab-store.ts'
import { addSums, KeyedSums, readSum, subtractSums, sumText, versionOfSum, zeroSum } from '../../../src/xds/slab/sums.ts'
import { scanFields } from '../../../src/xds/slab/wire.ts'
import { runs } from '../../harness/seed.ts'
import { testSettings } from '../../harness/settings.ts'

const hosts = new Map<string, HostPiece>()
const piece = (name: string): HostPiece => {
  let made = hosts.get(name)
  if (!made) hosts.set(name, (made = encodeHost(create(VirtualHostSchema, { name, domains: [name] }))))
  return made
}

/** Returns the bytes of a resource that is not yet in a slab. */
const bytesOf = ({ slices }: Resource) =>
  Buffer.concat(slices.map(({ block, offset, length }) => (block.bytes as Uint8Array).subarray(offset, offset + length)))

describe('versions of resources that consist of several slices', () => {
  const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), { maxLength: 4 })
  const table = fc.record({ one: names, two: names, own: names, namespace: fc.constantFrom('one', 'two', 'none') })
  const made = ({ one, two, own, namespace }: { one: string[]; two: string[]; own: string[]; namespace: string }, sums: KeyedSums) => {
    const [first, second] = [one.map((name) => piece(`1.${name}`)), two.map((name) => piece(`2.${name}`))]
    const pieces = [...first, ...second]
    const hidden = { one: first, two: second, none: [] }[namespace]
    return routeResource(
      cutTable(buildTable('80', pieces, sums), (index) => (hidden ?? []).includes(pieces[index] as HostPiece), sums),
      ownTable(
        '80',
        own.map((name) => piece(`own.${name}`)),
        sums,
      ),
      new Uint8Array(),
      sums,
    )
  }

  it('are equal if and only if the slices are equal, whatever history led to them', () => {
    const sums = new KeyedSums('key')
    fc.assert(
      fc.property(table, table, (one, other) => {
        const [left, right] = [made(one, sums), made(other, sums)]
        const parts = (resource: Resource) =>
          // The value of the element: its type URL and lengths precede it.
          fromBinary(RouteConfigurationSchema, routeOf(resource))
            .virtualHosts.map((host) => Buffer.from(toBinary(VirtualHostSchema, host)).toString('hex'))
            .sort()
            .join()
        expect(left.version === right.version).to.equal(parts(left) === parts(right))
      }),
      { numRuns: runs(300) },
    )
  })

  it('and bytes of a table are those of a new one after any changes, which encode the runs around them only', () => {
    const sums = new KeyedSums('key')
    // Hosts of 4 KB: a run has sixteen.
    const long = (name: number, version: number) => piece(`${name}.${version}.${'x'.repeat(4096)}`)
    const change = fc.tuple(fc.nat(199), fc.constantFrom('add', 'remove', 'change'))
    const empty = ownTable('80', [], sums)
    fc.assert(
      fc.property(fc.array(fc.array(change, { minLength: 1, maxLength: 3 }), { maxLength: 30 }), (rounds) => {
        const hosts = new Map(Array.from({ length: 100 }, (_, index) => [index * 2, 0]))
        const pieces = () => [...hosts].sort(([one], [other]) => one - other).map(([name, version]) => long(name, version))
        const isHidden = (table: RouteTable) => (index: number) => Number.parseInt(table.pieces[index]?.name ?? '', 10) % 7 === 0
        let current = buildTable('80', pieces(), sums)
        let left = cutTable(current, isHidden(current), sums)
        for (const changes of rounds) {
          for (const [name, kind] of changes)
            if (kind === 'remove') hosts.delete(name)
            else hosts.set(name, ((hosts.get(name) ?? -1) + 1) % 3)
          const before = current.runs
          current = buildTable('80', pieces(), sums, current)
          left = cutTable(current, isHidden(current), sums, left)
          expect([...current.runs].filter((run) => !before.has(run)).length).to.be.at.most(3 * changes.length)
        }
        const fresh = buildTable('80', pieces(), sums)
        const [one, other] = [left, cutTable(fresh, isHidden(fresh), sums)].map((each) => routeResource(each, empty, new Uint8Array(), sums)) as [
          Resource,
          Resource,
        ]
        expect(one.version).to.equal(other.version)
        expect(bytesOf(one).equals(bytesOf(other))).to.equal(true)
        expect(current.runs.size).to.be.at.most(4 * fresh.runs.size + 1)
      }),
      { numRuns: runs(30) },
    )
  })

  it('have 128 bits, and depend on a key', () => {
    const one = made({ one: ['a'], two: ['b'], own: [], namespace: 'none' }, new KeyedSums('key'))
    const again = made({ one: ['a'], two: ['b'], own: [], namespace: 'none' }, new KeyedSums('key'))
    const other = made({ one: ['a'], two: ['b'], own: [], namespace: 'none' }, new KeyedSums('another'))
    expect(one.version).to.match(/^[0-9a-f]{32}$/)
    expect(one.version).to.equal(again.version)
    expect(one.version).not.to.equal(other.version)
    expect(bytesOf(one).equals(bytesOf(other))).to.equal(true)
  })

  it('of a group depend on the names under which content is stored', () => {
    const version = (of: string[]) => {
      const store = new GroupStore(new SlabStore(), new KeyedSums('key'))
      const content = encodeResource(ClusterSchema, create(ClusterSchema, { name: 'same' }), 'same')
      store.replace(
        'g',
        of.map((name) => ({ name, version: content.version, slices: content.slices })),
      )
      return store.takeUpdates()[0]?.version
    }
    expect(version(['a', 'b'])).to.equal(version(['b', 'a']))
    expect(version(['a', 'b'])).not.to.equal(version(['a', 'c']))
  })

  it('of single resources depend on their bytes only: a restarted process sends proxies the same versions', () => {
    const cluster = () => encodeResource(ClusterSchema, create(ClusterSchema, { name: 'a' }), 'a').version
    expect(cluster()).to.match(/^[0-9a-f]{32}$/)
    expect(cluster()).to.equal(cluster())
    const versions = (versionKey: string) => {
      const planner = new Planner({ ...testSettings(), versionKey })
      planner.connect('p', { ...node, takesVirtualHosts: true })
      return planner
        .takePush()
        .groups.flatMap(({ changed }) => changed.map(({ name, version }) => `${name} ${version}`))
        .sort()
    }
    expect(versions('one')).to.deep.equal(versions('another'))
  })

  it('are restored when a slice is removed and added again', () => {
    const sum = fc.tuple(fc.nat(0xffffffff), fc.nat(0xffffffff), fc.nat(0xffffffff), fc.nat(0xffffffff))
    fc.assert(
      fc.property(sum, sum, (one, other) => {
        expect(subtractSums(addSums(one, other), other)).to.deep.equal(one)
        expect(readSum(sumText(one))).to.deep.equal(one)
        expect(versionOfSum(one)).to.match(/^[0-9a-f]{32}$/)
      }),
    )
    expect(versionOfSum(zeroSum)).not.to.equal(sumText(zeroSum))
  })
})

const node = {
  id: 'sidecar~10.1.0.1~p.ns~ns.svc.cluster.local',
  type: 'sidecar' as const,
  addresses: ['10.1.0.1'],
  namespace: 'ns',
  domain: 'ns.svc.cluster.local',
  version: undefined,
  labels: {},
  network: '',
  clusterId: '',
  locality: '',
  metadata: {},
}

/** Returns the route configuration of a list element: field 2 (`Any`), and in it field 2 (the value). */
function routeOf(resource: Resource): Buffer {
  const field = (message: Buffer, wanted: number) => [...scanFields(message)].find((entry) => entry.field === wanted)?.bytes ?? Buffer.alloc(0)
  return field(field(bytesOf(resource), 2), 2)
}
