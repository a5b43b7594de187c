import { expect } from 'chai'
import type { ShapeMeasures } from '../../../bench/scenarios/shape.ts'
import { viewHead, viewRow } from '../../../bench/view-rows.ts'

const step = (cpu: number, rss: number) => ({
  scenario: 's',
  variant: 'v',
  cpu,
  mib: 1,
  rss,
  threads: {},
  last: 150,
  p99: 200,
  limit: { last: 1, cpu: 0.5, rss: 100 },
})
const mesh = (cpu: number, rss: number, ms: number, kib: number): ShapeMeasures => ({
  connect: step(cpu, rss),
  endpoint: step(cpu / 10, rss),
  route: step(cpu / 5, rss),
  view: { ms, kib },
})

describe('result rows of the benchmark set `views`', () => {
  it('show each figure with its ratio to the plain mesh and to bare, and memory and time per view', () => {
    const plain = mesh(1, 300, 5, 180)
    expect(viewRow(mesh(2, 310, 4.5, 204), plain)).to.equal(
      '| v | 2.00 (2.0x) | 4.0x | 0.200 (2.0x) | 150 | 0.400 (2.0x) | 200 | 310 | 204 (+24) | 4.5 (-0.5) |',
    )
    expect(viewRow(plain, plain)).to.equal('| v | 1.00 | 2.0x | 0.100 | 150 | 0.200 | 200 | 300 | 180 | 5.0 |')
    expect(viewRow(plain, undefined)).to.equal('| v | 1.00 | 2.0x | 0.100 | 150 | 0.200 | 200 | 300 | 180 | 5.0 |')
  })

  it('have as many cells as the table head', () => {
    const cells = (line: string) => line.split('|').length
    expect(viewHead.split('\n').map(cells)).to.deep.equal([12, 12])
    expect(cells(viewRow(mesh(1, 1, 1, 1), undefined))).to.equal(12)
  })
})
