import { expect } from 'chai'
import { givenSources } from '../../actors/discovery/given-sources.ts'

describe('the sources of the service', () => {
  const orchestrator = { registries: ['Orchestrator'], configDir: '', given: [] as string[] }
  const named = { given: ['--registries=["Orchestrator"]'] }
  const outside = { ORCHESTRATOR_SERVICE_HOST: '' }
  const inside = { ORCHESTRATOR_SERVICE_HOST: '10.0.0.1' }

  for (const [place, host, options] of [
    ['outside of a cluster', outside, orchestrator],
    ['in a cluster', inside, orchestrator],
    ['in a cluster, by name', inside, { ...orchestrator, ...named }],
  ] as const)
    it(`are waited for if the only one is the orchestrator, ${place}; an error says what to do`, () => {
      const { missing, advice, notices } = givenSources(options, host)
      expect(missing).to.deep.equal(['source/orchestrator'])
      expect(advice).to.contain('use --configDir <directory> or --registries Mock')
      expect(notices).to.deep.equal([{ level: 'error', message: `${advice}; the service stays not ready` }])
    })

  it('are files or the Mock registry beside the orchestrator of the default, which is told', () => {
    for (const options of [{ configDir: '/config' }, { registries: ['Mock', 'Orchestrator'] }]) {
      const { missing, advice, notices } = givenSources({ ...orchestrator, ...options }, outside)
      expect([missing, advice, notices.map(({ level }) => level)]).to.deep.equal([[], undefined, ['info']])
      expect(givenSources({ ...orchestrator, ...options, ...named }, inside).notices.map(({ level }) => level)).to.deep.equal(['warn'])
    }
  })

  it('are refused outside of a cluster if the flag names the orchestrator, also beside others', () => {
    for (const options of [{}, { configDir: '/config' }, { registries: ['Mock', 'Orchestrator'] }])
      expect(() => givenSources({ ...orchestrator, ...named, ...options }, outside)).to.throw('--registries: Orchestrator: this process does not run')
  })

  it('are silent without the orchestrator', () => {
    expect(givenSources({ registries: ['Mock'], configDir: '', given: [] }, outside)).to.deep.equal({ missing: [], advice: undefined, notices: [] })
  })
})
