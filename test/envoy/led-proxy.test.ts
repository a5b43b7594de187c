/**
 * A gateway whose routes lead its clients to its own agent and to discovery, over loopback and with a loopback `Host`: neither trusts the
 * proxy (docs/operation.md, "Debug pages"; docs/agent.md, H12). Rule E8, which refuses such routes, is opted out of.
 */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Agent } from '../harness/agent.ts'
import { call } from '../harness/backend.ts'
import { Authority } from '../harness/certificates.ts'
import { envoysWith } from '../harness/envoy.ts'
import { networkingDocument as document } from '../harness/mesh-document.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

for (const { version, path: binary } of envoysWith({})) {
  describe(`a gateway that leads to its own machine, Envoy ${version}`, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms', MESH_POLICY_OPT_OUTS: 'endpoint-addresses' } })
    const authority = new Authority()
    let agent: Agent
    let port = 0

    before(async () => {
      port = await freePort()
      await service.start()
      agent = new Agent({
        binary,
        role: 'router',
        env: {
          POD_NAME: 'gateway-0',
          POD_NAMESPACE: 'edge',
          INSTANCE_IP: '127.0.0.1',
          TERMINATION_DRAIN_DURATION_SECONDS: '0',
          ISTIO_METAJSON_LABELS: JSON.stringify({ app: 'gateway' }),
        },
        proxyConfig: { discoveryAddress: `127.0.0.1:${service.grpcPort}`, controlPlaneAuthPolicy: 'NONE' },
      })
      const { chain, key } = authority.issue('gateway', 'spiffe://cluster.local/ns/edge/sa/gateway')
      for (const [name, file] of Object.entries({ 'cert-chain': chain, key, 'root-cert': authority.root }))
        agent.write(`etc/certs/${name}.pem`, readFileSync(file, 'utf8'))
      await agent.start()
      const entry = (name: string, to: number) =>
        document(
          'ServiceEntry',
          name,
          `{hosts: [${name}.example], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 127.0.0.1, ports: {http: ${to}}}]}`,
          'edge',
        )
      const route = (host: string) => `rewrite: {authority: localhost}, route: [{destination: {host: ${host}}}]`
      service.write(
        'edge.yaml',
        [
          document(
            'Gateway',
            'edge',
            `{selector: {app: gateway}, servers: [{port: {number: ${port}, name: http, protocol: HTTP}, hosts: ['*']}]}`,
            'edge',
          ),
          entry('agent', agent.statusPort),
          entry('discovery', service.httpPort),
          document(
            'VirtualService',
            'edge',
            `{hosts: ['*'], gateways: [edge], http: [{match: [{uri: {prefix: /debug}}, {uri: {prefix: /ready}}], ${route('discovery.example')}}, {${route('agent.example')}}]}`,
            'edge',
          ),
        ].join('---\n'),
      )
      await until('the routes', async () => (await through('/ready')) === 200 && (await through('/healthz/ready')) === 200)
    })
    after(async () => {
      authority.dispose()
      await agent.dispose()
      await service.dispose()
    })
    const through = (path: string, method = 'GET') =>
      call('127.0.0.1', port, path, { host: 'any.example', method }).then(
        ({ status }) => status,
        () => 0,
      )
    const directly = async (at: number, path: string, method = 'GET') => (await fetch(`http://127.0.0.1:${at}${path}`, { method })).status

    it('shows its clients no pages of discovery', async () => {
      expect(await directly(service.httpPort, '/debug/syncz')).to.equal(200)
      expect(await through('/debug/syncz')).to.equal(403)
      await service.output.says('no token, and the program at the other end listens on a port of proxies')
    })

    it('does not end its agent for them, which other programs of the machine do', async () => {
      expect(await through('/quitquitquit', 'POST')).to.equal(403)
      await until('the log line', () => agent.output.includes('/quitquitquit refused to the proxy'))
      expect(await directly(agent.statusPort, '/quitquitquit', 'POST')).to.equal(200)
      expect(await agent.ended()).to.equal(0)
    })
  })
}
