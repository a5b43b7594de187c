import { expect } from 'chai'
import { readAgentFeatures } from '../../../src/config/agent-features.ts'
import { statusConfig } from '../../../src/health/settings.ts'

const proxy = { role: 'sidecar', isIpv6Only: false, statusPort: 15_020, proxyAdminPort: 15_000 } as const
const config = (environment: Record<string, string>, changes: object = {}) =>
  statusConfig(readAgentFeatures(environment).features, { ...proxy, ...changes })

describe('settings of the status server', () => {
  it('come from the environment and the proxy configuration', () => {
    expect(config({})).to.deep.equal({
      port: 15_020,
      adminPort: 15_000,
      prometheusPort: 15_090,
      isIpv6Only: false,
      application: undefined,
      probes: {},
      workloadProbe: undefined,
    })
    const environment = {
      MESH_METRICS_ANNOTATIONS: '{"port":"8080"}',
      MESH_ORCH_APP_PROBERS: '{"/app-health/a/livez":{"httpGet":{"port":1}}}',
      PROXY_PROMETHEUS_PORT: '16090',
    }
    const readinessProbe = { tcpSocket: { port: 1 } }
    expect(config(environment, { statusPort: 0, readinessProbe })).to.deep.equal({
      port: undefined,
      adminPort: 15_000,
      prometheusPort: 16_090,
      isIpv6Only: false,
      application: { port: 8080, path: '/metrics' },
      probes: { '/app-health/a/livez': { httpGet: { port: 1 } } },
      workloadProbe: readinessProbe,
    })
  })

  it('merge application metrics only for a sidecar', () => {
    expect(config({ MESH_METRICS_ANNOTATIONS: '{"port":"8080"}' }, { role: 'router' }).application).to.equal(undefined)
  })

  it('are rejected with the name of the invalid variable', () => {
    expect(() => config({ MESH_ORCH_APP_PROBERS: '{"a":{}}' })).to.throw(/^environment variable MESH_ORCH_APP_PROBERS: "a" is not/)
    expect(() => config({ MESH_METRICS_ANNOTATIONS: '{"port":"15020"}' })).to.throw(/^environment variable MESH_METRICS_ANNOTATIONS: port: 15020/)
  })
})
