import { expect } from 'chai'
import { checkProxyConfig, mergeProxyConfig, type ProxyConfig, splitAddress } from '../../../src/bootstrap/proxy-config.ts'

const unwarned = (text: string) => {
  throw new Error(text)
}
const merge = (...documents: unknown[]) =>
  mergeProxyConfig(
    documents.map((document, index) => ({ source: `layer ${index}`, document })),
    unwarned,
  )

describe('the proxy configuration', () => {
  it('has the defaults of the specification', () => {
    expect(merge()).to.deep.include({
      configPath: './etc/mesh/proxy',
      binaryPath: '/usr/local/bin/envoy',
      serviceCluster: 'mesh-proxy',
      drainDuration: 45_000,
      parentShutdownDuration: 60_000,
      terminationDrainDuration: 5000,
      discoveryAddress: 'meshd.mesh-system.svc:15012',
      controlPlaneAuthPolicy: 'MUTUAL_TLS',
      tracing: { zipkin: { address: 'zipkin.mesh-system:9411' } },
      proxyAdminPort: 15_000,
      statusPort: 15_020,
      concurrency: 2,
      statNameLength: 189,
    })
    checkProxyConfig(merge())
  })

  it('is overridden by later layers one whole top-level field at a time; null keeps the earlier value', () => {
    const merged = merge(
      { proxyMetadata: { A: '1', B: '2' }, concurrency: 4, drain_duration: '5s' },
      { proxyMetadata: { C: '3' }, concurrency: null, tracing: { sampling: 5 } },
    )
    expect(merged.proxyMetadata).to.deep.equal({ C: '3' })
    expect(merged).to.deep.include({ concurrency: 4, drainDuration: 5000, tracing: { sampling: 5 } })
  })

  it('is unchanged by a layer without content', () => {
    expect(merge(undefined, null, {})).to.deep.equal(merge())
  })

  it('gives a warning for unknown fields and an error for unreadable ones, with source and field', () => {
    const warnings: string[] = []
    mergeProxyConfig([{ source: 'annotation', document: { unheard: 1, __proto__x: {} } }], (text) => warnings.push(text))
    expect(warnings).to.deep.equal(['annotation: field unheard: unknown field, left out', 'annotation: field __proto__x: unknown field, left out'])
    expect(() => merge({ concurrency: 'many', tracing: { zipkin: [] } })).to.throw(
      'layer 0: field concurrency: expected a whole number, got string "many"; layer 0: field tracing.zipkin: expected a mapping, got a list',
    )
    expect(() => merge({}, ['a list'])).to.throw('layer 1: expected a mapping, got a list')
    expect(() => merge({ readinessProbe: { httpGet: { port: 1 }, tcpSocket: { port: 1 } } })).to.throw('exactly one of')
  })

  it('reads no values from a prototype', () => {
    const merged = mergeProxyConfig(
      [{ source: 's', document: JSON.parse('{"__proto__": {"concurrency": 9}, "proxyMetadata": {"__proto__": "x"}}') }],
      () => undefined,
    )
    expect(merged.concurrency).to.equal(2)
    expect(Object.entries(merged.proxyMetadata ?? {})).to.deep.equal([['__proto__', 'x']])
  })

  const bad: [Partial<ProxyConfig>, string][] = [
    [{ configPath: '' }, 'field configPath: must not be empty'],
    [{ binaryPath: '' }, 'field binaryPath: must not be empty'],
    [{ serviceCluster: '' }, 'field serviceCluster: must not be empty'],
    [{ discoveryAddress: '' }, 'field discoveryAddress: must not be empty'],
    [{ discoveryAddress: 'meshd' }, 'field discoveryAddress: "meshd" is not <host>:<port>'],
    [{ discoveryAddress: 'meshd:0' }, 'field discoveryAddress: '],
    [{ discoveryAddress: 'meshd:65536' }, 'field discoveryAddress: '],
    [{ discoveryAddress: 'a b:1' }, 'field discoveryAddress: '],
    [{ discoveryAddress: '1.2.3:1' }, 'field discoveryAddress: '],
    [{ tracing: { zipkin: { address: 'x' } } }, 'field tracing.zipkin.address: '],
    [{ tracing: { lightstep: { address: 'x' } } }, 'field tracing.lightstep.address: '],
    [{ tracing: { datadog: { address: 'x' } } }, 'field tracing.datadog.address: '],
    [{ statsdUdpAddress: 'x' }, 'field statsdUdpAddress: '],
    [{ envoyMetricsService: { address: 'x' } }, 'field envoyMetricsService.address: '],
    [{ envoyAccessLogService: {} }, 'field envoyAccessLogService.address: required'],
    [{ proxyAdminPort: 0 }, 'field proxyAdminPort: 0 is outside 1..65535'],
    [{ drainDuration: 0 }, 'field drainDuration: 0 ms is not a whole number of seconds'],
    [{ drainDuration: 1500 }, 'field drainDuration: 1500 ms is not a whole number of seconds'],
    [{ parentShutdownDuration: 3_601_000 }, 'field parentShutdownDuration: 3601000 ms'],
    [{ drainDuration: 60_000 }, 'field parentShutdownDuration: must be longer than drainDuration'],
  ]
  for (const [change, reason] of bad)
    it(`is rejected with ${JSON.stringify(change)}`, () => {
      expect(() => checkProxyConfig({ ...merge(), ...change })).to.throw(reason)
    })

  it('accepts addresses with host names, IPv4 and IPv6, and rejects malformed ones', () => {
    expect(splitAddress('meshd.mesh-system.svc:15012')).to.deep.equal({ host: 'meshd.mesh-system.svc', port: 15_012 })
    expect(splitAddress('10.1.1.1:1')).to.deep.equal({ host: '10.1.1.1', port: 1 })
    expect(splitAddress('[fd00::1]:80')).to.deep.equal({ host: 'fd00::1', port: 80 })
    for (const address of ['fd00::1:80', '[10.1.1.1]:80', '[x]:80', 'a..b:80', ':80', 'a:', `${'a'.repeat(64)}.b:80`, 'a:80:90'])
      expect(splitAddress(address), address).to.equal(undefined)
  })
})
