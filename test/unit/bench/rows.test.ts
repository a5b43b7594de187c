import { expect } from 'chai'
import type { Measure } from '../../../bench/report.ts'
import { failures, rowByRow } from '../../../bench/rows.ts'

describe('rows of a benchmark', () => {
  it('are reported as they finish, and one that fails is named and costs no other', async () => {
    const said: string[] = []
    const row = (scenario: string, measure: () => Promise<number>) => ({
      scenario,
      measure: async (): Promise<Measure> => ({ scenario, variant: '', cpu: 0, mib: 0, rss: 0, threads: {}, figures: { ms: await measure() } }),
    })
    const rows = [row('first', async () => 1), row('second', () => Promise.reject(new Error('it broke'))), row('third', async () => said.length)]
    const measures = await rowByRow('set', rows, (text) => said.push(text))
    expect(measures.map(({ scenario, figures }) => [scenario, figures])).to.deep.equal([
      ['first', { ms: 1 }],
      ['second', { failed: 'it broke' }],
      ['third', { ms: 2 }],
    ])
    expect(said).to.deep.equal(['set: first: {"ms":1}', 'set: second failed: it broke', 'set: third: {"ms":2}'])
    expect(failures(measures)).to.deep.equal(['second: it broke'])
  })
})
