import { expect } from 'chai'
import { dnsConfig, resolvesNames } from '../../../src/agent/dns-settings.ts'
import { readAgentFeatures } from '../../../src/config/agent-features.ts'

const workload = { role: 'sidecar', domain: 'shop.svc.cluster.local', namespace: 'shop' } as const
const features = (environment: Record<string, string> = {}) => readAgentFeatures(environment).features

describe("settings of the agent's DNS server", () => {
  it("default to localhost:15053 and to the name table kept in the agent's state directory", () => {
    expect(dnsConfig(features(), workload)).to.deep.equal({
      address: 'localhost:15053',
      resolvConf: '/etc/resolv.conf',
      serverPort: 53,
      domain: 'shop.svc.cluster.local',
      namespace: 'shop',
      keptIn: './var/lib/mesh/data',
    })
    for (const address of ['127.0.0.1:5353', '[::1]:5353', '*:53', ':0'])
      expect(dnsConfig(features({ DNS_PROXY_ADDR: address }), workload).address).to.equal(address)
  })

  it('reject a DNS_PROXY_ADDR that is not an address with a port', () => {
    for (const address of ['localhost', 'example.com:53', 'localhost:99999', '127.0.0.1:x', '::1'])
      expect(() => dnsConfig(features({ DNS_PROXY_ADDR: address }), workload), address).to.throw('environment variable DNS_PROXY_ADDR: ')
  })

  it('enable the server only for a sidecar with DNS capture whose proxy is configured through the agent', () => {
    const capture = { MESH_META_DNS_CAPTURE: 'true' }
    expect(resolvesNames(workload, features(capture))).to.equal(true)
    expect(resolvesNames(workload, features())).to.equal(false)
    expect(resolvesNames({ role: 'router' }, features(capture))).to.equal(false)
    expect(resolvesNames(workload, features({ ...capture, PROXY_XDS_VIA_AGENT: 'false' }))).to.equal(false)
  })
})
