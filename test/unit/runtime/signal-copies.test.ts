import { expect } from 'chai'
import { SignalCopies, type Way } from '../../../actors/runtime/signal-copies.ts'

/** Returns the times of the signals that count. Each signal is given as time in milliseconds, way, and name (default SIGHUP). */
function counted(...signals: (readonly [at: number, way: Way, signal?: string])[]): number[] {
  let now = 0
  const copies = new SignalCopies(() => now)
  return signals.flatMap(([at, way, signal = 'SIGHUP']) => {
    now = at
    return copies.isCopy(signal, way) ? [] : [at]
  })
}

describe('copies of signals', () => {
  it('count once for a signal to the process group, whichever way is faster, and each of several signals counts', () => {
    expect(counted([0, 'direct'], [5, 'passed'])).to.deep.equal([0])
    expect(counted([0, 'passed'], [5, 'direct'])).to.deep.equal([0])
    expect(counted([0, 'direct'], [1, 'direct'], [2, 'passed'], [3, 'passed'])).to.deep.equal([0, 1])
  })

  it('count for a signal to one process, whatever arrived by the other way earlier', () => {
    expect(counted([0, 'passed'], [60_000, 'direct'])).to.deep.equal([0, 60_000])
    expect(counted([0, 'direct'], [60_000, 'passed'], [120_000, 'passed'])).to.deep.equal([0, 60_000, 120_000])
    expect(counted([0, 'direct'], [1, 'passed', 'SIGINT'])).to.deep.equal([0, 1])
  })
})
