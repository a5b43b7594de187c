/** The lives of classes and groups: which steps there are, and that nothing takes another one. */
import { expect } from 'chai'
import fc from 'fast-check'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { ClassLife, classGraceMs } from '../../../src/push/classes/class-life.ts'
import { ServedClass } from '../../../src/push/classes/served-class.ts'
import { ResourceGroup } from '../../../src/push/groups/resource-group.ts'
import { classSteps, groupSteps, type LifeState, type Steps, step } from '../../../src/push/life.ts'
import { Planner } from '../../../src/push/planner.ts'
import type { ProxyClass } from '../../../src/xds/traits.ts'
import { runs } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'

describe('the life of a class', () => {
  it('begins with its first connection, and ends a while after its last one closed', () => {
    const life = new ClassLife('c')
    expect(life.state).to.equal('made')
    life.join()
    life.join()
    life.leave(100)
    expect([life.state, life.connections, life.isExpired(100 + classGraceMs)]).to.deep.equal(['wanted', 1, false])
    life.leave(200)
    expect([life.state, life.isExpired(199 + classGraceMs), life.isExpired(200 + classGraceMs)]).to.deep.equal(['lingering', false, true])
    life.join()
    life.leave(5000)
    expect(life.isExpired(4999 + classGraceMs)).to.equal(false)
    life.end()
    expect([life.state, life.isExpired(100_000)]).to.deep.equal(['gone', false])
  })

  it('counts the grace period from the first question, where nobody told the time', () => {
    const life = new ClassLife('c')
    life.join()
    life.leave()
    expect([life.isExpired(1000), life.isExpired(999 + classGraceMs), life.isExpired(1000 + classGraceMs)]).to.deep.equal([false, false, true])
  })

  it('has no other steps: a wanted class does not end, and nothing joins or leaves one that is gone', () => {
    const life = new ClassLife('c')
    expect(() => life.leave()).to.throw('class c has no connection that could leave it')
    life.join()
    expect(() => life.end()).to.throw('class c is wanted and cannot become gone')
    life.leave()
    life.end()
    expect(() => life.join()).to.throw('class c is gone and cannot become wanted')
    expect(() => life.end()).to.throw('class c is gone and cannot become gone')
  })
})

describe('the life of a group', () => {
  const served = (id: string) => new ServedClass(id, { id } as ProxyClass)
  const [one, other] = [served('one'), served('other')]
  const made = () => {
    const idle = new Set<ResourceGroup<ServedClass>>()
    return { idle, group: new ResourceGroup('g', 't', idle) }
  }

  it('goes on while a class wants or keeps it, and may end only then', () => {
    const { group, idle } = made()
    const states: string[] = []
    const act = (act: () => void) => {
      act()
      states.push(`${group.state}${idle.has(group) ? ', idle' : ''}`)
    }
    act(() => undefined)
    act(() => group.want(one))
    act(() => group.want(other))
    act(() => group.keep(one))
    act(() => group.leave(one))
    act(() => group.leave(other))
    act(() => group.keep(other))
    act(() => group.release(one))
    act(() => group.want(one))
    act(() => group.release(other))
    act(() => group.leave(one))
    act(() => group.end())
    expect(states).to.deep.equal([
      'made, idle',
      'wanted',
      'wanted',
      'wanted',
      'wanted',
      'lingering',
      'lingering',
      'lingering',
      'wanted',
      'wanted',
      'made, idle',
      'gone',
    ])
  })

  it('does not end while a class wants or keeps it, and does not begin again', () => {
    const { group } = made()
    group.want(one)
    expect(() => group.end()).to.throw('group g is wanted and cannot become gone')
    group.keep(one)
    group.leave(one)
    expect(() => group.end()).to.throw('group g is lingering and cannot become gone')
    group.release(one)
    group.end()
    expect(() => group.want(one)).to.throw('group g is gone and cannot become wanted')
    expect(() => group.keep(one)).to.throw('group g is gone and cannot become lingering')
  })
})

describe('the steps of lives', () => {
  const states: readonly LifeState[] = ['made', 'wanted', 'lingering', 'gone']
  const possible = (steps: Steps) =>
    states.flatMap((from) =>
      states
        .filter((to) => {
          try {
            return step(steps, from, to, 'x') === to
          } catch {
            return false
          }
        })
        .map((to) => `${from} > ${to}`),
    )

  it('are these, and all others throw', () => {
    expect(possible(classSteps)).to.deep.equal(['made > wanted', 'made > gone', 'wanted > lingering', 'lingering > wanted', 'lingering > gone'])
    expect(possible(groupSteps)).to.deep.equal([
      'made > wanted',
      'made > lingering',
      'made > gone',
      'wanted > made',
      'wanted > lingering',
      'lingering > made',
      'lingering > wanted',
    ])
  })

  it('are the only ones in a planner, whatever happens: classes with proxies are wanted, and so are the groups of classes', () => {
    const object = (kind: string, name: string, spec: string) => {
      const text = `apiVersion: networking.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ns}\nspec: ${spec}\n`
      return parseConfigFile('f', text, names).objects[0] as ReturnType<typeof parseConfigFile>['objects'][number]
    }
    const objects = [
      object('ServiceEntry', 'a', '{hosts: [a.com], ports: [{number: 80, name: http}], resolution: STATIC, endpoints: [{address: 10.1.0.1}]}'),
      object(
        'ServiceEntry',
        'b',
        '{hosts: [b.com], exportTo: ["."], ports: [{number: 80, name: http}], resolution: STATIC, endpoints: [{address: 10.1.0.2}]}',
      ),
      object('Sidecar', 'default', '{egress: [{hosts: ["./a.com"]}]}'),
      object('Sidecar', 'x', '{workloadSelector: {labels: {app: "1"}}, egress: [{hosts: ["./b.com"]}]}'),
      object('DestinationRule', 'a', '{host: a.com, subsets: [{name: s, labels: {x: z}}]}'),
    ]
    const act = fc.record({
      act: fc.constantFrom('set', 'remove', 'connect', 'disconnect', 'sweep', 'collect'),
      of: fc.nat({ max: objects.length - 1 }),
      after: fc.constantFrom(0, 500, 2500, 5000),
    })
    fc.assert(
      fc.property(fc.array(act, { maxLength: 30 }), (acts) => {
        const planner = new Planner(testSettings())
        let now = 0
        for (const { act: what, of, after } of acts) {
          now += after
          const target = objects[of] as (typeof objects)[number]
          if (what === 'set' || what === 'remove') {
            planner.state.setConfig(configKey(target), what === 'set' ? target : undefined)
            planner.advance(now)
          }
          const id = `sidecar~10.1.0.${of + 1}~p.ns~ns.svc.cluster.local`
          if (what === 'connect' && !planner.servedClass(`p${of}`))
            planner.connect(`p${of}`, readNode({ id, metadata: { LABELS: { app: String(of) } }, locality: undefined }, names, of % 2 === 0))
          if (what === 'disconnect') planner.disconnect(`p${of}`)
          if (what === 'sweep') planner.sweep(now)
          if (what === 'collect') planner.collect(now)
          planner.takePush()
          expect(planner.faults.all()).to.deep.equal([])
          for (const { connection } of planner.proxies()) {
            const mine = planner.servedClass(connection)
            expect([mine?.state, (mine?.connections ?? 0) > 0]).to.deep.equal(['wanted', true])
            for (const { group } of mine?.uses ?? []) expect([group.state, group.users.has(mine as ServedClass)]).to.deep.equal(['wanted', true])
            for (const { group } of mine?.kept ?? []) expect(group.state).to.be.oneOf(['wanted', 'lingering'])
          }
        }
        for (const { connection } of planner.proxies()) planner.disconnect(connection)
        planner.collect((now += 1))
        planner.collect((now += classGraceMs))
        expect([planner.classCount, [...planner.groups.ids()]]).to.deep.equal([0, []])
      }),
      { numRuns: runs(100) },
    )
  })
})
