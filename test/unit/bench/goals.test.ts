import { expect } from 'chai'
import { bareGoal, buildGoal, comparable, growthGoals, isMet, lastGoal, memoryGoal, quietGoal, residentGoal } from '../../../bench/goals.ts'

const mets = (goals: readonly Parameters<typeof isMet>[0][]) => goals.map(isMet)

describe('goals of the benchmark', () => {
  it('allow CPU and latency 1.3 times those of the plain mesh, or 20 ms more for small figures', () => {
    const plain = { cpu: 1, last: 100, p99: 200 }
    expect(mets(comparable({ cpu: 1.29, last: 130, p99: 0 }, plain, 'plain', 'last'))).to.deep.equal([true, true])
    expect(mets(comparable({ cpu: 1.31, last: 131, p99: 0 }, plain, 'plain', 'last'))).to.deep.equal([false, false])
    expect(mets(comparable({ cpu: 1, last: 900, p99: 260 }, plain, 'plain', 'p99'))).to.deep.equal([true, true])
    expect(mets(comparable({ cpu: 0.029 }, { cpu: 0.01 }, 'plain'))).to.deep.equal([true])
    expect(mets(comparable({ cpu: 0.031 }, { cpu: 0.01 }, 'plain'))).to.deep.equal([false])
  })

  it('count as missed if a figure could not be measured', () => {
    expect(mets(comparable({ cpu: 0 }, { cpu: 1, last: 5 }, 'plain', 'last'))).to.deep.equal([true, false])
    expect(mets([bareGoal(undefined), lastGoal(undefined)])).to.deep.equal([false, false])
  })

  it('allow 30 KiB of memory and 1 ms of build time for each view', () => {
    expect(mets([memoryGoal(230, 200), memoryGoal(231, 200)])).to.deep.equal([true, false])
    expect(mets([buildGoal(3.5, 2.5), buildGoal(3.6, 2.5), buildGoal(2, 2.5)])).to.deep.equal([true, false, true])
  })

  it('use fixed limits for the largest mesh and for a policy without proxies', () => {
    expect(mets([bareGoal(3), lastGoal(200), residentGoal(1430), quietGoal(0.0049)])).to.deep.equal([true, true, true, true])
    expect(mets([bareGoal(3.1), lastGoal(201), residentGoal(1431), quietGoal(0.0051)])).to.deep.equal([false, false, false, false])
  })

  it('limit a change in a large mesh to 20 ms, and to 1.5 times its cost in a small one or 3 ms more', () => {
    expect(mets(growthGoals(10, 15))).to.deep.equal([true, true])
    expect(mets(growthGoals(10, 15.1))).to.deep.equal([true, false])
    expect(mets(growthGoals(1, 4))).to.deep.equal([true, true])
    expect(mets(growthGoals(20, 21))).to.deep.equal([false, true])
  })
})
