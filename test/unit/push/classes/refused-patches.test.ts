/** Of the patches that a proxy refuses only those that are the cause are withdrawn (docs/resources.md, F7). */
import { expect } from 'chai'
import fc from 'fast-check'
import { configKey } from '../../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../../src/config/parse.ts'
import { readNode } from '../../../../src/model/proxy.ts'
import { Planner } from '../../../../src/push/planner.ts'
import { listenerType } from '../../../../src/xds/type-urls.ts'
import { runs } from '../../../harness/seed.ts'
import { names, testSettings } from '../../../harness/settings.ts'

/** A Lua filter, whose code nobody checks before a push. */
const filter = (name: string, code: string) => `apiVersion: networking.mesh.io/v1alpha3
kind: EnvoyFilter
metadata: {name: ${name}, namespace: shop}
spec:
  configPatches:
  - {applyTo: HTTP_FILTER, match: {context: SIDECAR_INBOUND}, patch: {operation: INSERT_FIRST, value: {name: script, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: "${code}"}}}}}
`

/** A mesh with EnvoyFilters and proxies that refuse listeners, as their code says. */
class World {
  readonly planner = new Planner(testSettings())
  /** The number of responses that proxies were sent. */
  sent = 0
  readonly #held = new Map<string, string>()

  constructor(count = 1) {
    this.planner.advance()
    for (let at = 0; at < count; at++)
      this.planner.connect(
        `p${at}`,
        readNode({ id: `sidecar~10.1.0.${at + 1}~p${at}.shop~shop.svc.cluster.local`, metadata: {}, locality: undefined }, names, true),
      )
  }

  set(name: string, code: string | undefined): void {
    const [object] = parseConfigFile(name, filter(name, code ?? ''), names).objects
    if (!object) throw new Error('no object')
    this.planner.state.setConfig(configKey(object), code === undefined ? undefined : object)
    this.planner.advance()
  }

  /** The codes of the filters that a proxy is sent. */
  codes(connection = 'p0'): string[] {
    const { filters } = this.planner.servedClass(connection)?.proxyClass.traits ?? { filters: [] }
    return filters
      .flatMap(({ spec }) => (spec.configPatches ?? []).map((patch) => /"inline_string":"([^"]*)"/.exec(JSON.stringify(patch))?.[1] ?? ''))
      .sort()
  }

  #version(connection: string): string {
    for (const { group } of this.planner.servedClass(connection)?.uses ?? []) {
      const version = group.typeUrl === listenerType && this.planner.groups.resources(group.id).get('virtualInbound')?.version
      if (version) return version
    }
    throw new Error('no listener')
  }

  /** Lets a proxy answer what it is sent until nothing else is sent. `refuses`: whether it refuses a listener with these codes. */
  settle(refuses: (codes: readonly string[]) => boolean, connection = 'p0', policiesChanged = false): void {
    for (;;) {
      const version = this.#version(connection)
      if (this.#held.get(connection) === version) return
      this.#held.set(connection, version)
      this.sent++
      const answer = { typeUrl: listenerType, resources: [{ name: 'virtualInbound', version }] }
      const classId = this.planner.servedClass(connection)?.id ?? ''
      if (refuses(this.codes(connection)))
        this.planner.refused(connection, classId, {
          ...answer,
          detail: 'Error adding/updating listener(s) virtualInbound: script load error',
          policiesChanged,
        })
      else this.planner.accepted(connection, answer)
    }
  }

  /** The objects that the page of faults names for what is refused. */
  get blamed(): string[] {
    return [...new Set(this.planner.faults.all().flatMap(({ type, objects }) => (type === 'refused' ? objects : [])))].sort()
  }
}

const hasBad = (codes: readonly string[]) => codes.some((code) => code.startsWith('bad'))

describe('patches that a proxy refuses', () => {
  for (const policiesChanged of [false, true])
    it(`harm no others, ${policiesChanged ? 'also when' : 'unless'} policies changed with them, and are named as long as they are withdrawn`, () => {
      const world = new World()
      world.set('good-one', 'good')
      world.set('bad-one', 'bad')
      world.settle(hasBad, 'p0', policiesChanged)
      expect(world.codes()).to.deep.equal(['good'])
      expect(world.blamed).to.deep.equal(['EnvoyFilter/shop/bad-one'])
      world.set('bad-one', undefined)
      world.settle(hasBad)
      expect([world.codes(), world.blamed]).to.deep.equal([['good'], []])
    })

  it('leave those in place that the proxy had accepted, while it is tried which they are', () => {
    const world = new World()
    for (const name of ['a', 'b', 'c']) world.set(name, `good ${name}`)
    world.set('d', 'bad')
    const accepted: string[][] = []
    world.settle((codes) => hasBad(codes) || accepted.push([...codes]) === 0)
    expect(accepted).to.deep.equal([['good a', 'good b', 'good c']])
  })

  it('are found in any number of others with a bounded number of tries', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }), fc.boolean(), (bad, policiesChanged) => {
        const world = new World()
        for (const [at, isBad] of bad.entries()) world.set(`f${at}`, `${isBad ? 'bad' : 'good'} ${at}`)
        world.settle(hasBad, 'p0', policiesChanged)
        expect(world.codes().length).to.equal(bad.filter((isBad) => !isBad).length)
        expect(world.sent).to.be.lessThan(80)
      }),
      { numRuns: runs(50) },
    )
  })

  it('are tried again when one that does not go with them is removed', () => {
    const world = new World()
    world.set('one', 'x')
    world.set('other', 'y')
    const conflict = (codes: readonly string[]) => codes.length > 1
    world.settle(conflict)
    expect(world.codes().length).to.equal(1)
    world.set(world.codes()[0] === 'x' ? 'one' : 'other', undefined)
    world.settle(conflict)
    expect([world.codes().length, world.blamed]).to.deep.equal([1, []])
  })

  it('are judged for each proxy, and what one has found saves the others their tries', () => {
    const world = new World(3)
    for (let at = 0; at < 6; at++) world.set(`f${at}`, at === 4 ? 'bad' : `good ${at}`)
    world.settle(hasBad, 'p0')
    const first = world.sent
    world.settle(hasBad, 'p1')
    expect(world.sent - first).to.equal(2)
    world.settle(() => false, 'p2')
    expect(world.codes('p1')).to.not.include('bad')
    expect(world.codes('p2')).to.include('bad')
  })

  it('cannot be taken from others by a proxy that refuses good ones', () => {
    const world = new World(2)
    for (const name of ['a', 'b', 'c']) world.set(name, `good ${name}`)
    world.set('d', 'bad')
    world.settle((codes) => codes.includes('good a'), 'p0')
    world.settle(hasBad, 'p1')
    expect(world.codes('p1')).to.deep.equal(['good a', 'good b', 'good c'])
  })

  it('end their fault when the proxy accepts the resource that it had refused without them too', () => {
    const world = new World()
    world.set('a', 'good')
    world.settle(() => true)
    expect(world.planner.faults.all().map(({ consequence }) => consequence)).to.include('the proxy keeps the previous resource')
    world.set('a', 'better')
    world.settle(() => false)
    expect(world.planner.faults.all().filter(({ type }) => type === 'refused')).to.deep.equal([])
  })
})
