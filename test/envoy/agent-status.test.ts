/** The status server beside a real Envoy: readiness once Envoy has its configuration, probes and metrics through Envoy's own listeners. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Agent } from '../harness/agent.ts'
import { Authority } from '../harness/certificates.ts'
import { agentScript } from '../harness/commands.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const releases = envoyBinaries()

for (const { version, path: binary } of releases) {
  describe(`the status server beside Envoy ${version}`, () => {
    const service = new Service()
    const authority = new Authority()
    const application = createServer((request, response) => {
      if (request.url === '/metrics') return void response.end('application_requests_total 7\n')
      response.writeHead(request.url === '/ok' ? 204 : 503).end()
    })
    let agent: Agent

    before(async () => {
      await new Promise<void>((resolve) => application.listen(0, '127.0.0.1', resolve))
      const { port } = application.address() as AddressInfo
      service.grpcPort = await freePort()
      agent = new Agent({
        binary,
        env: {
          POD_NAME: 'web-0',
          POD_NAMESPACE: 'shop',
          INSTANCE_IP: '127.0.0.1',
          TERMINATION_DRAIN_DURATION_SECONDS: '0',
          ISTIO_KUBE_APP_PROBERS: JSON.stringify({ '/app-health/web/livez': { httpGet: { path: '/ok', port } } }),
          ISTIO_PROMETHEUS_ANNOTATIONS: JSON.stringify({ port: String(port) }),
        },
        proxyConfig: {
          discoveryAddress: `127.0.0.1:${service.grpcPort}`,
          controlPlaneAuthPolicy: 'NONE',
          readinessProbe: { httpGet: { path: '/ok', port }, periodSeconds: 1 },
        },
      })
      const { chain, key } = authority.issue('web', 'spiffe://cluster.local/ns/shop/sa/web')
      for (const [name, file] of Object.entries({ 'cert-chain': chain, key, 'root-cert': authority.root }))
        agent.write(`etc/certs/${name}.pem`, readFileSync(file, 'utf8'))
    })
    after(async () => {
      authority.dispose()
      await agent.dispose()
      await service.stop()
      application.close()
    })
    const status = async (port: number, path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status

    it('reports ready once Envoy has its configuration, and the wait command returns then', async () => {
      // Unreadiness before the configuration depends on the agent only: one release of Envoy is tested with a late discovery.
      const isLate = version === releases.at(-1)?.version
      if (!isLate) await service.start()
      await agent.launch()
      const waiting = runCommand(['wait', '--url', `http://127.0.0.1:${agent.readyPort}/healthz/ready`, '--periodMillis', '100'], {}, agentScript)
      if (isLate) {
        await until('Envoy to wait', async () => (await agent.admin('/ready')).length > 0)
        expect(await status(agent.statusPort, '/healthz/ready')).to.equal(503)
        await service.start()
      }
      expect((await waiting).code).to.equal(0)
      expect(await status(agent.readyPort, '/healthz/ready')).to.equal(200)
      expect(await status(agent.statusPort, '/healthz/ready')).to.equal(200)
      await until('the health to be known', () => agent.output.includes('the workload is healthy'))
    })

    it('probes the application, and merges the metrics of Envoy, the application and the agent', async () => {
      expect(await status(agent.statusPort, '/app-health/web/livez')).to.equal(204)
      const page = await (await fetch(`http://127.0.0.1:${agent.statusPort}/stats/prometheus`)).text()
      expect(page).to.match(/^envoy_cluster_manager_active_clusters\{?.*\}? \d+$/m)
      expect(page).to.match(/^application_requests_total 7$/m)
      expect(page).to.match(/^mesh_agent_startup_duration_seconds \d/m)
      expect(page).not.to.match(/scrape_failures_total\{/)
    })

    it('stays ready when discovery crashes', async () => {
      await service.stop('SIGKILL')
      expect(await status(agent.readyPort, '/healthz/ready')).to.equal(200)
    })
  })
}
