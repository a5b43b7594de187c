import { expect } from 'chai'
import { anyPorts, Launched, launchers } from '../harness/launched.ts'
import { runCommand } from '../harness/service.ts'
import { until } from '../harness/until.ts'

/** Outside of a cluster, wherever the tests run. */
const outside = { ORCHESTRATOR_SERVICE_HOST: '', KUBERNETES_SERVICE_HOST: '' }

describe('a discovery service outside of a cluster', () => {
  it('stays up with the default registry alone, is not ready, and says what to do', async () => {
    const service = new Launched([...launchers['the pinned Node'], 'discovery', ...anyPorts], outside)
    try {
      const advice =
        'nothing can be served: the only source is the registry Orchestrator, and this process does not run in a cluster (ORCHESTRATOR_SERVICE_HOST is not set); use --orchconfig <file>, --configDir <directory> or --registries Mock'
      await service.output.says(`\terror\t${advice}; the service stays not ready`)
      const url = `http://${await service.address('HTTP')}/ready`
      const source = 'source/orchestrator has not delivered its complete state yet'
      const expected = `discovery is not ready: the complete configuration is not served yet\n${advice}\n${source}\n`
      // All other sources have delivered theirs, and all actors run.
      await until('the last answer', async () => (await (await fetch(url)).text()) === expected)
      expect((await fetch(url)).status).to.equal(503)
      service.signal('SIGTERM')
      expect(await service.ended).to.deep.equal({ code: 0, signal: null })
    } finally {
      service.dispose()
    }
  })

  for (const name of ['Orchestrator', 'Kubernetes', 'Mock,Orchestrator'])
    it(`does not start with --registries ${name}`, async () => {
      const { code, stderr } = await runCommand(['discovery', '--registries', name, ...anyPorts], outside)
      expect([code, stderr]).to.deep.equal([
        255,
        'Error: --registries: Orchestrator: this process does not run in a cluster (ORCHESTRATOR_SERVICE_HOST is not set); use --orchconfig <file>, --configDir <directory> or --registries Mock\n',
      ])
    })
})
