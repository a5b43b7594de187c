/** The index of contributions to listeners is the same after any changes as one that is made of the last state. */
import { expect } from 'chai'
import fc from 'fast-check'
import { type Contribution, ListenerShares } from '../../../../src/xds/listeners/listener-shares.ts'
import { runs } from '../../../harness/seed.ts'

const hosts = ['a.com', 'b.com', 'c.com', 'd.com'] as const
const brought = fc.record({ name: fc.constantFrom('0.0.0.0_80', '0.0.0.0_81', '10.0.0.1_80'), what: fc.constantFrom('http', 'grpc', 'bytes') })
const contribution = fc.record({ namespace: fc.constantFrom('n1', 'n2'), brought: fc.array(brought, { maxLength: 3 }), fails: fc.boolean() })
const change = fc.record({ host: fc.constantFrom(...hosts), now: fc.option(contribution, { nil: undefined }) })
type Change = typeof change extends fc.Arbitrary<infer Value> ? Value : never

const contributionOf = ({ host, now }: Change): Contribution | undefined =>
  now && {
    host,
    namespace: now.namespace,
    brought: now.brought,
    problems: now.fails ? [{ type: 'lds', resource: host, objects: [], reason: 'left out', consequence: 'left out' }] : [],
  }

/** The protocols of the hosts that are needed to make a listener, or all hosts, where their order matters. */
function neededFor(shares: ListenerShares, name: string): readonly string[] {
  const kinds = (host: string) => shares.get(host)?.brought.flatMap((each) => (each.name === name ? each.what : [])) ?? []
  const isByOrder = shares.hostsOn(name).some((host) => kinds(host).includes('bytes'))
  return isByOrder ? shares.hostsFor(name) : [...new Set(shares.hostsFor(name).flatMap(kinds))].sort()
}

const contentOf = (shares: ListenerShares) => ({
  listeners: shares.names.map((name) => [name, shares.hostsOn(name), neededFor(shares, name)]),
  problems: shares.problems,
})

describe('contributions to listeners', () => {
  it('are indexed as if the last state had been the first, and name every listener that may be another', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
        const shares = new ListenerShares()
        const last = new Map<string, Contribution | undefined>()
        for (const each of changes) {
          const now = contributionOf(each)
          const before = new Map(shares.names.map((name) => [name, neededFor(shares, name)]))
          const changed = new Set<string>()
          const differing = shares.differing([[each.host, now]])
          shares.set(each.host, now, changed)
          last.set(each.host, now)
          const fresh = new ListenerShares()
          for (const [host, contributed] of last) fresh.set(host, contributed, new Set())
          expect(contentOf(shares)).to.deep.equal(contentOf(fresh))
          for (const name of new Set([...before.keys(), ...shares.names])) {
            if (JSON.stringify(before.get(name)) === JSON.stringify(shares.has(name) ? neededFor(shares, name) : undefined)) continue
            expect(changed.has(name), `${name} is named as changed`).to.equal(true)
            expect(differing.has(name), `${name} is named as differing`).to.equal(true)
          }
        }
      }),
      { numRuns: runs(2000) },
    )
  })

  it('name a listener that differs for others, or no longer, by a host that is not theirs', () => {
    const http = (host: string): Contribution => ({ host, namespace: 'n2', brought: [{ name: '0.0.0.0_80', what: 'http' }], problems: [] })
    const shares = new ListenerShares()
    shares.set('a.com', http('a.com'), new Set())
    const withoutA = () => [...shares.differing([['a.com', undefined]])]
    expect(withoutA()).to.deep.equal(['0.0.0.0_80'])
    const changes = ['b.com', 'c.com'].map((host) => {
      const changed = new Set<string>()
      shares.set(host, http(host), changed)
      return [changed.has('0.0.0.0_80'), ...withoutA()]
    })
    expect(changes).to.deep.equal([[true], [false]])
    const left = new Set<string>()
    shares.set('b.com', undefined, new Set())
    shares.set('c.com', undefined, left)
    expect([left.has('0.0.0.0_80'), ...withoutA()]).to.deep.equal([true, '0.0.0.0_80'])
  })
})
