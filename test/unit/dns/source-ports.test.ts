import { expect } from 'chai'
import { sourcePorts } from '../../../src/dns/source-ports.ts'

describe('ports of the own DNS queries', () => {
  it('are those that no application is given', () => {
    expect(sourcePorts('32768\t60999\n')).to.deep.equal([10_000, 32_767])
    expect(sourcePorts('1024 50000')).to.deep.equal([50_001, 65_535])
    expect(sourcePorts('1024 2000')).to.deep.equal([10_000, 65_535])
  })

  it('are left to the kernel where there are few, or nothing is known', () => {
    for (const range of ['', '1024', 'many ports', '1024 65000', '12000 63000']) expect(sourcePorts(range), range).to.equal(undefined)
  })
})
