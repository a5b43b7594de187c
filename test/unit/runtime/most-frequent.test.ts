import { expect } from 'chai'
import { secretMetrics } from '../../../actors/agent/sds/metrics.ts'
import { MetricRegistry } from '../../../actors/runtime/metrics.ts'
import { mostFrequent } from '../../../actors/runtime/most-frequent.ts'
import { versionText } from '../../../src/model/proxy.ts'

describe('label values that clients choose', () => {
  it('are few also where an agent counts its streams by version, which shows no patch number that there is not', () => {
    const registry = new MetricRegistry()
    secretMetrics(registry, () => Array.from({ length: 400 }, (_, index) => versionText([9, index, Number.MAX_SAFE_INTEGER]) ?? ''))
    const series =
      registry
        .collect()
        .find(({ name }) => name === 'pilot_xds')
        ?.series.map(({ labels }) => labels.version ?? '') ?? []
    expect([series.length, series.at(-1), series.includes('9.0')]).to.deep.equal([21, 'other', true])
  })

  it('are the most frequent ones, and all others together', () => {
    const versions = Array.from({ length: 400 }, (_, index) => Array.from({ length: index === 7 ? 5 : 1 }, () => `9.${index}`)).flat()
    const shown = mostFrequent(versions, 3)
    expect([...shown]).to.deep.equal([
      ['9.7', 5],
      ['9.0', 1],
      ['9.1', 1],
      ['other', 397],
    ])
    expect([...mostFrequent(['a'], 3)]).to.deep.equal([['a', 1]])
  })
})
