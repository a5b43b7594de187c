import { expect } from 'chai'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { names } from '../../harness/settings.ts'

describe('shares of localities', () => {
  const parse = (to: string) =>
    parseConfigFile(
      'file.yaml',
      `apiVersion: networking.mesh.io/v1
kind: DestinationRule
metadata: {name: a, namespace: shop}
spec: {host: a, trafficPolicy: {loadBalancer: {localityLbSetting: {distribute: [{from: r1, to: {${to}}}]}}}}`,
      names,
    )

  it('add up to 100', () => {
    expect(parse('r1: 70, r2: 30').faults).to.deep.equal([])
    for (const [to, sum] of [
      ['r1: 70, r2: 50', 120],
      ['r1: 99', 99],
      ['', 0],
    ] as const) {
      const { faults, objects } = parse(to)
      expect(faults.map(({ reason }) => reason).join()).to.include(`the shares of localities add up to ${sum}, not 100`)
      expect(objects).to.have.length(0)
    }
  })
})
