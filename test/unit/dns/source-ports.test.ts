import { expect } from 'chai'
import { sourcePorts } from '../../../src/dns/source-ports.ts'

describe("source ports of the agent's DNS queries", () => {
  it("are outside of the kernel's range of ephemeral ports", () => {
    expect(sourcePorts('32768\t60999\n')).to.deep.equal([10_000, 32_767])
    expect(sourcePorts('1024 50000')).to.deep.equal([50_001, 65_535])
    expect(sourcePorts('1024 2000')).to.deep.equal([10_000, 65_535])
  })

  it('are left to the kernel if too few ports remain or the range is unknown', () => {
    for (const range of ['', '1024', 'many ports', '1024 65000', '12000 63000']) expect(sourcePorts(range), range).to.equal(undefined)
  })
})
