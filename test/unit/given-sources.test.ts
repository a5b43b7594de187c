import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { givenSources } from '../../actors/discovery/given/sources.ts'

describe('the sources of the service', () => {
  const orchestrator = { registries: ['Orchestrator'], configDir: '', orchconfig: '', given: [] as string[] }
  const named = { given: ['--registries=["Orchestrator"]'] }
  const outside = { ORCHESTRATOR_SERVICE_HOST: '', ORCHESTRATOR_SERVICE_PORT: '443' }
  const inside = { ORCHESTRATOR_SERVICE_HOST: '10.0.0.1', ORCHESTRATOR_SERVICE_PORT: '6443' }
  const none = { cluster: undefined, hasRegistry: false, configSources: [], missing: [], advice: undefined, notices: [] }
  const objects = [{ address: 'orch://' }]

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
      const { notices, noCluster, ...others } = givenSources({ ...orchestrator, ...options }, outside)
      expect({ ...others, notices: [] }).to.deep.equal(none)
      expect(noCluster).to.contain('does not run in a cluster')
      expect(notices.map(({ level }) => level)).to.deep.equal(['info'])
      expect(notices[0]?.message).to.contain('registry Orchestrator is left out: this process does not run in a cluster')
    }
  })

  it('are refused without a cluster if the flag names the orchestrator, also beside others', () => {
    for (const options of [{}, { configDir: '/config' }, { registries: ['Mock', 'Orchestrator'] }])
      expect(() => givenSources({ ...orchestrator, ...named, ...options }, outside)).to.throw('--registries: Orchestrator: this process does not run')
  })

  const cluster = { from: 'pod', host: '10.0.0.1', port: '6443', directory: account }
  const all = { ...none, cluster, hasRegistry: true, configSources: objects, noCluster: undefined }

  it('are the cluster of the pod, with or without the flag, and its objects where there are no files', () => {
    for (const options of [{}, named, { registries: ['Mock', 'Orchestrator'] }])
      expect(givenSources({ ...orchestrator, ...options }, inside, account)).to.deep.equal(all)
    expect(givenSources({ ...orchestrator, configDir: '/config' }, inside, account)).to.deep.equal({ ...all, configSources: [] })
  })

  it('are the objects of the cluster without its services, where neither files nor the registry are named', () => {
    const mock = { ...orchestrator, registries: ['Mock'] }
    expect(givenSources(mock, inside, account)).to.deep.equal({ ...all, hasRegistry: false })
    const { noCluster, ...others } = givenSources({ ...mock, configDir: '/config' }, inside, account)
    expect(others).to.deep.equal(none)
    expect(noCluster).to.contain('only --orchconfig <file> names a cluster')
  })

  it('are without a cluster in a pod that has no credential', () => {
    expect(givenSources(orchestrator, inside, '/nowhere').advice).to.contain('does not run in a cluster (there is no /nowhere/token)')
  })

  it('are the cluster of --orchconfig, in a pod too', () => {
    for (const place of [inside, outside])
      expect(givenSources({ ...orchestrator, ...named, orchconfig: '/kubeconfig' }, place)).to.deep.equal({
        ...all,
        cluster: { from: 'file', path: '/kubeconfig' },
      })
  })

  it('are silent without a cluster where nothing needs one, and the file of another one counts without the registry', () => {
    const mock = { ...orchestrator, registries: ['Mock'] }
    const { noCluster: _reason, ...others } = givenSources(mock, inside, '/nowhere')
    expect(others).to.deep.equal(none)
    const file = { from: 'file', path: '/kubeconfig' }
    for (const configDir of ['', '/config'])
      expect(givenSources({ ...mock, configDir, orchconfig: '/kubeconfig' }, inside)).to.deep.equal({
        ...{ ...all, cluster: file, hasRegistry: false },
        configSources: configDir === '' ? objects : [],
      })
  })
})
