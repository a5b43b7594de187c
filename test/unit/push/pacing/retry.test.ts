import { expect } from 'chai'
import { Retry } from '../../../../src/push/pacing/retry.ts'

describe('the pauses before a failed advance is tried again', () => {
  it('double from a second to a minute, and begin anew after a success', () => {
    const retry = new Retry()
    expect(retry.due, 'nothing failed').to.equal(undefined)
    const seen: number[] = []
    for (let failure = 0; failure < 8; failure++) {
      retry.ended(false, 5000)
      seen.push((retry.due ?? 0) - 5000)
    }
    expect(seen).to.deep.equal([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
    retry.ended(true, 6000)
    expect(retry.due).to.equal(undefined)
    retry.ended(false, 7000)
    expect(retry.due).to.equal(8000)
  })
})
