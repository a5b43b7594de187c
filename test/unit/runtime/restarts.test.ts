import { expect } from 'chai'
import { RestartRecord } from '../../../actors/runtime/restarts.ts'

const policy = { firstMs: 50, longestMs: 1000, intensity: 3, window: 60_000 }
const error = (message: string) => ({ name: 'Error', message, stack: '' })

describe('the restart record of an actor', () => {
  it('doubles the delay with each end within a window, and uses the maximum beyond the limit', () => {
    const record = new RestartRecord({ ...policy, intensity: 10 })
    expect([0, 1, 2, 3, 4, 5, 6].map((at) => record.ended(at, error('x')))).to.deep.equal([50, 100, 200, 400, 800, 1000, 1000])
    const strict = new RestartRecord(policy)
    expect([0, 1, 2, 3].map((at) => strict.ended(at, error('x')))).to.deep.equal([50, 100, 200, 1000])
  })

  it('is reset after a window without an end', () => {
    const record = new RestartRecord(policy)
    record.ended(0, error('x'))
    record.ended(10, error('x'))
    record.running(100)
    expect(record.ended(100 + policy.window, error('x'))).to.equal(50)
  })

  it('counts every restart and keeps the last error', () => {
    const record = new RestartRecord(policy)
    record.ended(0, error('one'))
    record.ended(1e9, error('two'))
    expect([record.restarts, record.lastError?.message]).to.deep.equal([2, 'two'])
  })

  it('is unstable after an end, failing beyond the limit, and well again only after running for a window', () => {
    const record = new RestartRecord(policy)
    const health = (now: number) => record.health(now).health
    record.running(0)
    expect(health(0)).to.equal('well')
    record.ended(10, error('x'))
    record.running(20)
    expect([health(20), health(20 + policy.window - 1), health(20 + policy.window)]).to.deep.equal(['unstable', 'unstable', 'well'])
    let now = 100_000
    for (let end = 0; end < 4; end++) record.ended((now += 100), error('x'))
    expect(health(now)).to.equal('failing')
    // The actor runs for a while and ends again, repeatedly.
    for (let round = 0; round < 5; round++) {
      record.running((now += 1000))
      expect(health((now += policy.window / 2))).to.equal('failing')
      record.ended((now += 1), error('x'))
      expect(health(now)).to.equal('failing')
      // While the actor does not run, its health does not improve.
      expect(health((now += 10 * policy.window))).to.equal('failing')
    }
    record.running(now)
    expect(health(now + policy.window)).to.equal('well')
  })
})
