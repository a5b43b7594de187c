import { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { ConnectionChecks } from '../../../actors/grpc/connection-checks.ts'

const periodMs = 2400
const tickMs = 300

/** Counts its checks. */
class Member {
  checks = 0
  check(): void {
    this.checks++
  }
}

describe('the checks of the connections of a server', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
  afterEach(() => mock.timers.reset())

  async function pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += tickMs) {
      mock.timers.tick(tickMs)
      // A check runs after the event loop has read.
      await turn()
    }
  }

  for (const size of [1, 3, 8, 1001])
    it(`concern each of ${size} connections in every period, an eighth of them at a time`, async () => {
      const checks = new ConnectionChecks(periodMs)
      const members = Array.from({ length: size }, () => new Member())
      for (const member of members) checks.add(member)
      await pass(tickMs)
      expect(members.filter((member) => member.checks > 0)).to.have.length(Math.ceil(size / 8))
      await pass(periodMs - tickMs)
      for (let period = 1; period < 5; period++, await pass(periodMs))
        expect(Math.min(...members.map((member) => member.checks))).to.be.at.least(period)
      for (const member of members) checks.delete(member)
    })

  it('go on with the others when connections come and go, and end with the last one', async () => {
    const checks = new ConnectionChecks(periodMs)
    const [stays, goes, comes] = [new Member(), new Member(), new Member()]
    checks.add(stays)
    checks.add(goes)
    await pass(periodMs)
    checks.delete(goes)
    checks.add(comes)
    const before = [stays.checks, goes.checks]
    await pass(periodMs)
    expect(stays.checks).to.be.above(before[0] as number)
    expect(goes.checks).to.equal(before[1])
    expect(comes.checks).to.be.above(0)
    for (const member of [stays, comes]) checks.delete(member)
    const last = [stays.checks, comes.checks]
    await pass(periodMs)
    expect([stays.checks, comes.checks]).to.deep.equal(last)
    checks.add(comes)
    await pass(periodMs)
    expect(comes.checks).to.be.above(last[1] as number)
    checks.delete(comes)
  })
})
