import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { givenSources } from '../../actors/discovery/given-sources.ts'

describe('the sources of the service', () => {
  const orchestrator = { registries: ['Orchestrator'], configDir: '', orchconfig: '', given: [] as string[] }
  const named = { given: ['--registries=["Orchestrator"]'] }
  const outside = { ORCHESTRATOR_SERVICE_HOST: '', ORCHESTRATOR_SERVICE_PORT: '443' }
  const inside = { ORCHESTRATOR_SERVICE_HOST: '10.0.0.1', ORCHESTRATOR_SERVICE_PORT: '6443' }
  const none = { cluster: undefined, missing: [], advice: undefined, notices: [] }

  const account = mkdtempSync(join(tmpdir(), 'mesh-account-'))
  before(() => writeFileSync(join(account, 'token'), 'x'))
  after(() => rmSync(account, { recursive: true }))

  it('are waited for if the only one is the orchestrator and there is no cluster; an error says what to do', () => {
    const { missing, advice, notices } = givenSources(orchestrator, outside)
    expect(missing).to.deep.equal(['source/orchestrator'])
    expect(advice).to.contain('use --orchconfig <file>, --configDir <directory> or --registries Mock')
    expect(notices).to.deep.equal([{ level: 'error', message: `${advice}; the service stays not ready` }])
  })

  it('are files or the Mock registry where the orchestrator of the default is left out, which is told', () => {
    for (const options of [{ configDir: '/config' }, { registries: ['Mock', 'Orchestrator'] }]) {
      const { notices, ...others } = givenSources({ ...orchestrator, ...options }, outside)
      expect(others).to.deep.equal({ cluster: undefined, missing: [], advice: undefined })
      expect(notices.map(({ level }) => level)).to.deep.equal(['info'])
      expect(notices[0]?.message).to.contain('registry Orchestrator is left out: this process does not run in a cluster')
    }
  })

  it('are refused without a cluster if the flag names the orchestrator, also beside others', () => {
    for (const options of [{}, { configDir: '/config' }, { registries: ['Mock', 'Orchestrator'] }])
      expect(() => givenSources({ ...orchestrator, ...named, ...options }, outside)).to.throw('--registries: Orchestrator: this process does not run')
  })

  it('are the cluster of the pod, with or without files and the flag', () => {
    const cluster = { from: 'pod', host: '10.0.0.1', port: '6443', directory: account }
    for (const options of [{}, named, { configDir: '/config' }, { registries: ['Mock', 'Orchestrator'] }])
      expect(givenSources({ ...orchestrator, ...options }, inside, account)).to.deep.equal({ ...none, cluster })
  })

  it('are without a cluster in a pod that has no credential', () => {
    expect(givenSources(orchestrator, inside, '/nowhere').advice).to.contain('does not run in a cluster (there is no /nowhere/token)')
  })

  it('are the cluster of --orchconfig, in a pod too', () => {
    for (const place of [inside, outside])
      expect(givenSources({ ...orchestrator, ...named, orchconfig: '/kubeconfig' }, place)).to.deep.equal({
        ...none,
        cluster: { from: 'file', path: '/kubeconfig' },
      })
  })

  it('are silent without the orchestrator, but for a flag that then has no effect', () => {
    expect(givenSources({ ...orchestrator, registries: ['Mock'] }, inside)).to.deep.equal(none)
    const { notices, ...others } = givenSources({ ...orchestrator, registries: ['Mock'], orchconfig: '/kubeconfig' }, inside)
    expect([others, notices.map(({ message }) => message)]).to.deep.equal([
      { cluster: undefined, missing: [], advice: undefined },
      ['flag --orchconfig has no effect: --registries does not name Orchestrator'],
    ])
  })
})
