import { expect } from 'chai'
import { answer, readQuery, recordType } from '../../src/dns/message.ts'
import { HttpBackend } from '../harness/backend.ts'
import { DnsUpstream } from '../harness/dns-upstream.ts'
import { networkingDocument as document } from '../harness/mesh-document.ts'
import { describeAttacks } from '../harness/red-team.ts'
import { until } from '../harness/until.ts'

describeAttacks(
  "names that resolve to the gateway's own machine",
  (place) => {
    const agent = new HttpBackend('agent')
    let resolver: DnsUpstream
    before(async () => {
      await agent.start()
      resolver = await DnsUpstream.open()
      resolver.onQuery = ({ message, reply }) => {
        const query = readQuery(message)
        reply(answer(query, { addresses: query.question?.type === recordType.A ? [Buffer.of(127, 0, 0, 1)] : [], ttl: 30 }, 512))
      }
      const resolvers = `{socket_address: {address: 127.0.0.1, port_value: ${resolver.port}}}`
      place.service.write('mesh-config', `defaultConfig: {statusPort: ${agent.port}}`)
      place.service.write(
        'tenant.yaml',
        [
          document(
            'ServiceEntry',
            'rebound',
            `{hosts: [rebound.example], resolution: DNS, ports: [{number: 80, name: http, targetPort: ${place.backend.port}}, {number: 81, name: http-agent, targetPort: ${agent.port}}]}`,
            'tenant',
          ),
          document(
            'VirtualService',
            'rebound',
            `{hosts: [${place.id}.attack.example], gateways: [shop/${place.id}], http: [{match: [{uri: {prefix: /quitquitquit}}], rewrite: {authority: localhost}, route: [{destination: {host: rebound.example, port: {number: 81}}}]}, {route: [{destination: {host: rebound.example, port: {number: 80}}}], headers: {response: {set: {x-way: by-name}}}}]}`,
            'tenant',
          ),
          document(
            'EnvoyFilter',
            'resolver',
            `{workloadSelector: {labels: {place: ${place.id}}}, configPatches: [{applyTo: CLUSTER, match: {cluster: {service: rebound.example}}, patch: {operation: MERGE, value: {typed_dns_resolver_config: {name: envoy.network.dns_resolver.cares, typed_config: {'@type': type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig, resolvers: [${resolvers}]}}}}}]}`,
          ),
        ].join('---\n'),
      )
    })
    after(async () => {
      place.service.remove('tenant.yaml')
      place.service.write('mesh-config', '')
      await agent.stop()
      resolver.close()
    })

    it('lead to its services, and not to its agent', async () => {
      const host = `${place.id}.attack.example`
      await until('the name', async () => {
        const { status, body, headers } = await place.call('/', { host })
        return status === 200 && body === 'app' && headers['x-way'] === 'by-name'
      })
      expect((await place.call('/quitquitquit', { host, method: 'POST' })).status).to.equal(503)
      expect(resolver.queries.length, 'the resolver that was asked').to.be.greaterThan(0)
      expect(agent.seen).to.deep.equal([])
    })
  },
  { side: 'gateway' },
)
