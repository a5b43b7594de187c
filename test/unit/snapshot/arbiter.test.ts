import { expect } from 'chai'
import fc from 'fast-check'
import type { ConfigObject } from '../../../protocols/data.ts'
import { isStandIn } from '../../../src/config/stand-in.ts'
import { Arbiter } from '../../../src/snapshot/arbiter.ts'

const route = 'VirtualService/ns/a'
const policy = 'AuthorizationPolicy/ns/p'

/** Returns a definition by a source; of a policy with this key, or of a route. */
const object = (source: string, spec: object = {}, more: Partial<ConfigObject> = {}, key = route): ConfigObject => ({
  group: key === route ? 'networking.mesh.io' : 'security.mesh.io',
  kind: key === route ? 'VirtualService' : 'AuthorizationPolicy',
  version: 'v1',
  namespace: 'ns',
  name: key === route ? 'a' : 'p',
  labels: {},
  annotations: {},
  createdAt: 0,
  generation: 1,
  source,
  cluster: '',
  uid: '',
  resourceVersion: '',
  place: `${source}.yaml, document 1`,
  spec,
  ...more,
})
const invalid = (source: string) => object(source, { invalid: `of ${source}` }, {}, policy)

describe('the arbiter of the definitions of several sources', () => {
  it('prefers the first source in the configured order, then the cluster, then the oldest, of which the age is known, then the name', () => {
    const counts = (...definitions: [string, ConfigObject][]) => {
      const arbiter = new Arbiter(true)
      arbiter.setSources(['second', 'first'])
      for (const [source, each] of definitions) arbiter.define(source, route, each)
      return arbiter.verdict(route).object?.source
    }
    expect(counts(['first', object('first', {}, { createdAt: 1 })], ['second', object('second')])).to.equal('second')
    expect(counts(['unlisted', object('unlisted', {}, { createdAt: 1 })], ['first', object('first')])).to.equal('first')
    expect(counts(['x', object('x', {}, { cluster: 'b', createdAt: 1 })], ['y', object('y', {}, { cluster: 'a' })])).to.equal('y')
    expect(counts(['x', object('x', {}, { createdAt: 2 })], ['y', object('y', {}, { createdAt: 1 })])).to.equal('y')
    expect(counts(['x', object('x')], ['y', object('y', {}, { createdAt: 9 })])).to.equal('y')
    expect(counts(['y', object('y')], ['x', object('x')])).to.equal('x')
  })

  it('tells each definition that does not count, with the places of both, and brings it back when the first is withdrawn', () => {
    const arbiter = new Arbiter(true)
    const [one, two] = [object('one', { hosts: ['one'] }), object('two', { hosts: ['two'] })]
    arbiter.setSources(['one', 'two'])
    arbiter.define('two', route, two)
    expect(arbiter.verdict(route)).to.deep.equal({ object: two, faults: [] })
    arbiter.define('one', route, one)
    const reason = 'defined in one.yaml, document 1 of one, and again in two.yaml, document 1 of two'
    const fault = { type: 'definition', resource: route, objects: [route], reason, consequence: 'the first definition counts' }
    expect(arbiter.verdict(route)).to.deep.equal({ object: one, faults: [fault] })
    arbiter.define('one', route, undefined)
    expect(arbiter.verdict(route)).to.deep.equal({ object: two, faults: [] })
    arbiter.define('two', route, undefined)
    expect(arbiter.verdict(route)).to.deep.equal({ object: undefined, faults: [] })
  })

  it('keeps the last good state of a definition that counts, also while it cannot be used', () => {
    const arbiter = new Arbiter(true)
    arbiter.setSources(['one', 'two'])
    const one = object('one', { hosts: ['one'] })
    arbiter.define('one', route, one)
    arbiter.define('two', route, object('two', { hosts: ['two'] }))
    arbiter.defineUnusable('one', route, undefined)
    expect(arbiter.verdict(route).object).to.equal(one)
  })

  it('uses the next definition where the first never could be used, and says so', () => {
    const arbiter = new Arbiter(true)
    arbiter.setSources(['one', 'two'])
    arbiter.defineUnusable('one', route, undefined)
    expect(arbiter.verdict(route)).to.deep.equal({ object: undefined, faults: [] })
    const two = object('two')
    arbiter.define('two', route, two)
    const { object: counting, faults } = arbiter.verdict(route)
    expect(counting).to.equal(two)
    expect(faults.map(({ reason }) => reason)).to.deep.equal(['defined in two.yaml, document 1 of two, and by one in a way that cannot be used'])
  })

  it('replaces a policy that sources define differently by the strictest that they may mean, and ends that when they agree', () => {
    const arbiter = new Arbiter(true)
    arbiter.setSources(['one', 'two'])
    const [one, two] = [object('one', { action: 'ALLOW' }, {}, policy), object('two', { action: 'DENY' }, {}, policy)]
    arbiter.define('one', policy, { ...one, uid: 'u', resourceVersion: '1' })
    arbiter.define('two', policy, two)
    const contested = arbiter.verdict(policy)
    expect(contested.object && isStandIn(contested.object)).to.equal(true)
    expect(contested.object?.resourceVersion).to.equal('')
    expect(contested.object?.spec).to.deep.include({ isContested: true })
    expect(contested.faults.map(({ consequence }) => consequence)).to.have.length(1)
    expect(contested.faults[0]?.consequence).to.include('the strictest policy')
    const left = arbiter.leftOut(policy)
    expect(left.map(({ object: { source } }) => source)).to.deep.equal(['one', 'two'])
    for (const { reason } of left) expect(reason).to.match(/^another definition differs; .*the strictest policy/)
    arbiter.define('two', policy, { ...one, source: 'two', place: 'two.yaml, document 1' })
    expect(arbiter.verdict(policy).object?.spec).to.deep.equal(one.spec)
    expect(arbiter.leftOut(policy).map(({ object: { source } }) => source)).to.deep.equal(['two'])
    const lenient = new Arbiter(false)
    lenient.setSources(['one', 'two'])
    lenient.define('two', policy, two)
    lenient.define('one', policy, one)
    expect(lenient.verdict(policy).object).to.equal(one)
  })

  it('lists the objects that several sources define when the order changes, and those of a source that is no more', () => {
    const arbiter = new Arbiter(true)
    arbiter.define('one', route, object('one'))
    arbiter.define('one', policy, object('one', {}, {}, policy))
    arbiter.define('two', route, object('two'))
    expect(arbiter.setSources(['two', 'one'])).to.deep.equal([route])
    expect(arbiter.setSources(['two', 'one'])).to.deep.equal([])
    expect(arbiter.verdict(route).object?.source).to.equal('two')
    expect(arbiter.withdraw('one').sort()).to.deep.equal([policy, route])
    expect(arbiter.verdict(policy).object).to.equal(undefined)
    expect(arbiter.verdict(route)).to.deep.include({ faults: [] })
  })

  it('decides after any history as a new arbiter that is told the last state of each source, in any order', () => {
    const sources = ['a', 'b', 'c', 'd']
    const event = fc.record({
      source: fc.constantFrom(...sources),
      key: fc.constantFrom(route, policy),
      what: fc.constantFrom('defined', 'defined', 'unusable', 'stand-in', 'withdrawn', 'gone'),
      value: fc.nat(2),
      createdAt: fc.nat(2),
      cluster: fc.constantFrom('', 'x'),
    })
    const order = fc.shuffledSubarray(sources)
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), order, order, fc.shuffledSubarray(sources, { minLength: 4 }), (events, before, after, told) => {
        const arbiter = new Arbiter(true)
        arbiter.setSources(before)
        const last = new Map<string, ConfigObject | 'nothing'>()
        for (const [index, { source, key, what, value, createdAt, cluster }] of events.entries()) {
          if (index === Math.floor(events.length / 2)) arbiter.setSources(after)
          const slot = `${source} ${key}`
          const known = last.get(slot)
          if (what === 'defined') {
            const now = object(source, { value }, { createdAt, cluster }, key)
            arbiter.define(source, key, now)
            last.set(slot, now)
          } else if (what === 'unusable' || (what === 'stand-in' && key === route)) {
            arbiter.defineUnusable(source, key, undefined)
            last.set(slot, known ?? 'nothing')
          } else if (what === 'stand-in') {
            arbiter.defineUnusable(source, key, invalid(source))
            last.set(slot, known && known !== 'nothing' && !isStandIn(known) ? known : invalid(source))
          } else if (what === 'withdrawn') {
            arbiter.define(source, key, undefined)
            last.delete(slot)
          } else {
            arbiter.withdraw(source)
            for (const each of [route, policy]) last.delete(`${source} ${each}`)
          }
        }
        arbiter.setSources(after)
        const fresh = new Arbiter(true)
        fresh.setSources(after)
        for (const source of told)
          for (const key of [route, policy]) {
            const state = last.get(`${source} ${key}`)
            if (state === 'nothing') fresh.defineUnusable(source, key, undefined)
            else if (state) fresh.define(source, key, state)
          }
        for (const key of [route, policy]) expect(arbiter.verdict(key)).to.deep.equal(fresh.verdict(key))
      }),
    )
  })
})
