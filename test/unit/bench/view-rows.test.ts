import { expect } from 'chai'
import type { ShapeMeasures } from '../../../bench/scenarios/shape.ts'
import { viewHead, viewRow } from '../../../bench/view-rows.ts'

const step = (cpu: number, queue: number, rss: number) => ({
  scenario: 's',
  variant: 'v',
  cpu,
  mib: 1,
  rss,
  threads: { 'push-queue': queue },
  last: 150,
  p99: 200,
  limit: { last: 1, cpu: 0.5, rss: 100 },
})
const mesh = (cpu: number, queue: number, rss: number): ShapeMeasures => ({
  connect: step(cpu, queue, rss),
  endpoint: step(cpu / 10, queue, rss),
  route: step(cpu / 5, queue, rss),
})

describe('lines of the set views', () => {
  it('tell figures with their ratios to the plain mesh and to bare, memory and time for a view', () => {
    const plain = mesh(1, 0.1, 300)
    expect(viewRow(mesh(2, 0.3, 310), plain, 100)).to.equal('| v | 2.00 (2.0x) | 4.0x | 0.200 (2.0x) | 150 | 0.400 (2.0x) | 200 | 310 | 102 | 2.0 |')
    expect(viewRow(plain, plain, 100)).to.equal('| v | 1.00 | 2.0x | 0.100 | 150 | 0.200 | 200 | 300 | - | - |')
    expect(viewRow(plain, undefined, 100)).to.equal('| v | 1.00 | 2.0x | 0.100 | 150 | 0.200 | 200 | 300 | - | - |')
  })

  it('have as many cells as the head', () => {
    const cells = (line: string) => line.split('|').length
    expect(viewHead.split('\n').map(cells)).to.deep.equal([12, 12])
    expect(cells(viewRow(mesh(1, 0, 1), undefined, 1))).to.equal(12)
  })
})
