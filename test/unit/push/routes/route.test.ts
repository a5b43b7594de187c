import { create } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { VirtualHostSchema } from '../../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { HostChanges } from '../../../../src/push/routes/host-changes.ts'
import type { Candidate, MadeHost } from '../../../../src/push/routes/host-pieces.ts'
import { SharedRoute } from '../../../../src/push/routes/route.ts'
import { claimDomains, type RouteHost } from '../../../../src/push/routes/route-hosts.ts'
import { encodeHost } from '../../../../src/xds/routes/route-table.ts'
import { KeyedSums } from '../../../../src/xds/slab/sums.ts'

const id = { name: '80', port: 80, catchAll: true }

/** A virtual host of a service with these domains. */
function candidate(host: string, ...domains: string[]): Candidate {
  const make = (without: ReadonlySet<string> = new Set()): MadeHost => {
    const left = domains.filter((domain) => !without.has(domain))
    const piece = left.length > 0 ? encodeHost(create(VirtualHostSchema, { name: `${host}:80`, domains: left })) : undefined
    return { name: `${host}:80`, piece, failed: undefined, problems: [] }
  }
  return { route: id, host, egress: undefined, namespace: 'ns', port: 80, make }
}

const settled = (...candidates: Candidate[]): RouteHost[] => claimDomains(id, candidates, () => undefined)
const routeOf = (...candidates: Candidate[]) =>
  new SharedRoute(id, { hosts: settled(...candidates), problems: [], patches: [], extra: new Uint8Array() }, true, new KeyedSums('key'))

describe('a route', () => {
  it('keeps its claims up with hosts that come, change and go, and has the message of one that was settled as a whole', () => {
    const route = routeOf(candidate('a', 'a', 'a.ns'), candidate('b', 'b'))
    const first = route.configuration()
    expect(route.configuration(), 'the same until something changes').to.equal(first)
    expect([...route.owners]).to.deep.equal([
      ['a', 'a'],
      ['a.ns', 'a'],
      ['b', 'b'],
    ])
    const change = route.settle(
      new Map([
        ['a', [candidate('a', 'a', 'a.other')]],
        ['b', []],
        ['c', [candidate('c', 'c')]],
      ]),
    )
    expect(change && route.change(change)).to.deep.equal({ hosts: true, problems: false })
    expect(Object.fromEntries(route.owners)).to.deep.equal({ a: 'a', 'a.other': 'a', c: 'c' })
    expect([route.has('b'), route.placesOf('c'), route.serviceCount]).to.deep.equal([false, [1], 2])
    const whole = routeOf(candidate('a', 'a', 'a.other'), candidate('c', 'c'))
    expect(route.configuration().version).to.equal(whole.configuration().version).and.not.equal(first.version)
  })

  it('is settled as a whole when a domain of a changed host is claimed by another', () => {
    const route = routeOf(candidate('a', 'a', 'both'), candidate('b', 'both', 'b'))
    expect([...route.contested].map(([domain, hosts]) => [domain, ...hosts])).to.deep.equal([['both', 'a', 'b']])
    expect([route.otherClaimants(['both'], 'a'), route.otherClaimants(['b'], 'b')]).to.deep.equal([['b'], []])
    expect(route.settle(new Map([['a', [candidate('a', 'a')]]]))).to.equal(undefined)
    expect(route.settle(new Map([['c', [candidate('c', 'b')]]]))).to.equal(undefined)
  })

  it('stays the same object when it is made again with the same claims, and tells whether anything differs', () => {
    const route = routeOf(candidate('a', 'a'))
    const again = settled(candidate('a', 'a'))
    expect([route.hasSameClaims(again), route.hasSameClaims(settled(candidate('a', 'b')))]).to.deep.equal([true, false])
    const { hosts } = route
    expect(route.remake({ hosts, problems: [], patches: [], extra: new Uint8Array() })).to.equal(false)
    expect(route.remake({ hosts, problems: [], patches: [], extra: new Uint8Array([1]) })).to.equal(true)
  })
})

describe('changed virtual hosts of routes', () => {
  const [a, b] = [candidate('a', 'a'), candidate('b', 'b')].map((one) => settled(one)) as [RouteHost[], RouteHost[]]

  it('are those since the state that the group contains, each as it is last', () => {
    const changes = new HostChanges()
    expect(changes.sinceStored(), 'there is no group').to.equal(undefined)
    changes.marker()()
    changes.replaced(id, { made: [...a, ...b], gone: [] })
    const stored = changes.marker()
    changes.replaced(id, { made: [], gone: ['b:80'] })
    const names = () => {
      const since = changes.sinceStored()
      return since && [since.resources.map(({ name }) => name), since.gone]
    }
    expect(names()).to.deep.equal([['80/a:80'], ['80/b:80']])
    stored()
    expect(names()).to.deep.equal([[], ['80/b:80']])
    changes.restart()
    expect(names(), 'something else changed').to.equal(undefined)
    changes.marker()()
    expect(names()).to.deep.equal([[], []])
    changes.groupForgotten()
    expect(names()).to.equal(undefined)
  })

  it('are not known when there were too many', () => {
    const changes = new HostChanges()
    changes.marker()()
    for (let round = 0; round < 65; round++) changes.replaced(id, { made: a, gone: [] })
    expect(changes.sinceStored()).to.equal(undefined)
  })
})
