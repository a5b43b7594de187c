import { expect } from 'chai'
import { localityOf, platformMetadata } from '../../../src/agent/platform.ts'
import { concurrencyOf } from '../../../src/bootstrap/proxy-config.ts'
import { canonicalEnvironment } from '../../../src/names/mesh-names.ts'
import { type GivenProxy, prepareTestProxy } from '../../harness/prepared-proxy.ts'

const metadata = (given: GivenProxy) => prepareTestProxy(given).prepared.node.metadata

describe('node metadata', () => {
  it('applies MESH_META_ variables, then flattened MESH_METAJSON_ variables, then the values of the agent itself', () => {
    expect(
      metadata({
        env: {
          MESH_META_A: 'text',
          MESH_META_B: 'text',
          MESH_META_NAME: 'not this',
          MESH_METAJSON_ANYTHING: '{"B": {"deep": [1, true, null]}, "C": 7}',
          POD_NAME: 'p',
          POD_NAMESPACE: 'ns',
          SERVICE_ACCOUNT: 'sa',
        },
        options: { stsPort: 15463 },
        interfaces: ['10.0.0.1', '10.0.0.2', '10.0.0.1'],
        hasIpv6: true,
      }),
    ).to.deep.include({
      A: 'text',
      B: { deep: [1, true, null] },
      C: 7,
      NAME: 'p',
      NAMESPACE: 'ns',
      SERVICE_ACCOUNT: 'sa',
      STS_PORT: '15463',
      MESH_VERSION: '0.1.0',
      MESH_RE2_MAX_PROGRAM_SIZE: '1024',
      INSTANCE_IPS: '10.0.0.1,10.0.0.2',
      MESH_DUAL_STACK: 'true',
    })
    expect(metadata({})).to.not.have.any.keys('NAME', 'NAMESPACE', 'SERVICE_ACCOUNT', 'LABELS', 'STS_PORT', 'PLATFORM_METADATA', 'MESH_DUAL_STACK')
  })

  it('merges labels by key, with those of the file over those of the variable', () => {
    const env = { MESH_METAJSON_LABELS: '{"a": "variable", "b": "variable"}' }
    expect(metadata({ env, pod: { labels: { a: 'file', c: 'file' } } })).to.deep.include({
      LABELS: { a: 'file', b: 'variable', c: 'file' },
      a: 'variable',
      b: 'variable',
    })
  })

  it('accepts alias names of variables, with the mesh form winning', () => {
    expect(
      metadata({
        env: {
          ISTIO_META_A: 'alias',
          ISTIO_META_B: 'alias',
          MESH_META_B: 'mesh',
          ISTIO_METAJSON_X: '{"D": "json"}',
          ISTIO_META_ISTIO_VERSION: '1.9.9',
        },
      }),
    ).to.deep.include({
      A: 'alias',
      B: 'mesh',
      D: 'json',
      MESH_VERSION: '1.9.9',
    })
    const other = {
      GCP_METADATA: 'a',
      GKE_CLUSTER_URL: 'b',
      ISTIO_BOOTSTRAP: 'c',
      ENVOY_STATUS_PORT: '1',
      ISTIO_KUBE_APP_PROBERS: 'd',
      KUBERNETES_SERVICE_HOST: 'e',
      PATH: 'f',
    }
    expect(canonicalEnvironment(other)).to.deep.equal({
      CLOUD_METADATA: 'a',
      CLOUD_CLUSTER_URL: 'b',
      MESH_BOOTSTRAP: 'c',
      PROXY_STATUS_PORT: '1',
      MESH_ORCH_APP_PROBERS: 'd',
      ORCHESTRATOR_SERVICE_HOST: 'e',
      PATH: 'f',
    })
  })

  it('takes proxyMetadata as environment variables, with the real environment winning', () => {
    const proxyConfig = { proxyMetadata: { MESH_META_A: 'config', ISTIO_META_B: 'config', SECRET_TTL: '1h' }, meshId: 'm', interceptionMode: 'NONE' }
    const { prepared } = prepareTestProxy({ env: { MESH_META_A: 'environment' }, proxyConfig })
    expect(prepared.node.metadata).to.deep.include({ A: 'environment', B: 'config', MESH_ID: 'm', INTERCEPTION_MODE: 'NONE' })
    expect(prepared.features.SECRET_TTL).to.equal(3_600_000)
  })

  it('stores boolean switches as text, and rejects other values with the name of the key', () => {
    expect(metadata({ env: { MESH_META_DNS_CAPTURE: '1', MESH_METAJSON_X: '{"DNS_AUTO_ALLOCATE": false}' } })).to.deep.include({
      DNS_CAPTURE: 'true',
      DNS_AUTO_ALLOCATE: 'false',
    })
    expect(() => metadata({ env: { MESH_METAJSON_X: '{"DNS_CAPTURE": "perhaps"}' } })).to.throw(
      'node metadata DNS_CAPTURE: "perhaps" is not true or false',
    )
    expect(() => metadata({ env: { MESH_META_POD_PORTS: '{' } })).to.throw('node metadata POD_PORTS: "{" is not a list in JSON')
  })

  it('leaves out only the variables that cannot be parsed, with a warning', () => {
    const deep = (levels: number) => `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`
    const { prepared, warnings } = prepareTestProxy({
      env: {
        MESH_METAJSON_A: '{',
        MESH_METAJSON_B: '[1]',
        MESH_METAJSON_C: deep(30),
        MESH_METAJSON_D: '{"x":"\\ud800"}',
        MESH_METAJSON_E: '{"__proto__":"own","GOOD":"1"}',
      },
    })
    expect(warnings.map((text) => text.replace(/not JSON: .*,/, 'not JSON,'))).to.deep.equal([
      'environment variable MESH_METAJSON_A: not JSON, left out',
      'environment variable MESH_METAJSON_B: not a JSON object, left out',
      'environment variable MESH_METAJSON_C: nested deeper than 20 levels, left out',
      'environment variable MESH_METAJSON_D: not valid Unicode: it has half a surrogate pair, left out',
    ])
    expect(prepared.node.metadata.GOOD).to.equal('1')
    expect(JSON.stringify(prepared.node.metadata)).to.contain('"__proto__":"own"')
  })

  it('is rejected above 1 MiB, with the name of its largest entry', () => {
    expect(() => metadata({ pod: { labels: { big: 'x'.repeat(10_000_000) } } })).to.throw(
      /^node metadata: \d+ bytes, at most 1048576 are allowed \(LABELS is the largest entry\)$/,
    )
  })

  it('contains the proxy configuration as the JSON of its message, with secrets hidden', () => {
    const { PROXY_CONFIG } = metadata({
      proxyConfig: { drainDuration: '1s', tracing: { lightstep: { address: 'a:1', accessToken: 'secret' } }, meshId: '', extraStatTags: [] },
    })
    expect(PROXY_CONFIG).to.deep.include({ drainDuration: '1s', tracing: { lightstep: { address: 'a:1', accessToken: 'hidden' } } })
    expect(PROXY_CONFIG).to.not.have.any.keys('meshId', 'extraStatTags')
  })
})

describe('the effective proxy configuration', () => {
  it("takes concurrency from the flag, then the container's CPU, then the configuration; a router ignores the latter two", () => {
    const sources = { role: 'sidecar', flag: 0, configured: 2, cpuLimit: '', cpuRequest: '' } as const
    expect(concurrencyOf(sources)).to.equal(2)
    expect(concurrencyOf({ ...sources, cpuRequest: '1001\n' })).to.equal(2)
    expect(concurrencyOf({ ...sources, cpuRequest: '900', cpuLimit: '3500' })).to.equal(4)
    expect(concurrencyOf({ ...sources, cpuRequest: '3000', cpuLimit: '0' })).to.equal(3)
    expect(concurrencyOf({ ...sources, cpuLimit: '2 cores' })).to.equal(2)
    expect(concurrencyOf({ ...sources, flag: 5, cpuLimit: '100' })).to.equal(5)
    expect(concurrencyOf({ ...sources, role: 'router', cpuLimit: '100' })).to.equal(0)
    expect(concurrencyOf({ ...sources, role: 'router', flag: 3 })).to.equal(3)
  })

  it('substitutes the address of the node for $(HOST_IP)', () => {
    const proxyConfig = { tracing: { zipkin: { address: '$(HOST_IP):9411' } } }
    const zipkin = (env: Record<string, string>) => prepareTestProxy({ env, proxyConfig }).prepared.config.tracing.zipkin?.address
    expect(zipkin({ HOST_IP: '10.9.9.9' })).to.equal('10.9.9.9:9411')
    expect(zipkin({ HOST_IP: 'fd00::9' })).to.equal('[fd00::9]:9411')
    expect(() => zipkin({})).to.throw('field tracing.zipkin.address: uses $(HOST_IP), but the environment variable HOST_IP is not set')
    expect(() => zipkin({ HOST_IP: 'node' })).to.throw('HOST_IP is no IP address')
  })

  it("keeps its status port and warns if the annotation is not a port; port 0 removes the agent's listener and cluster", () => {
    const { prepared, warnings } = prepareTestProxy({ pod: { annotations: { 'status.sidecar.mesh.io/port': 'http' } } })
    expect(prepared.config.statusPort).to.equal(15_020)
    expect(warnings).to.deep.equal(['annotation status.sidecar.mesh.io/port: "http" is not a port from 0 to 65535; the status port stays as it is'])
    const off = prepareTestProxy({ pod: { annotations: { 'status.sidecar.mesh.io/port': '0' } } })
    expect(off.bootstrap.staticResources?.clusters?.map(({ name }) => name)).to.not.include('agent')
    expect(off.bootstrap.staticResources?.listeners).to.have.length(1)
  })

  it('rejects call credentials without a token, or without TLS', () => {
    const env = { CALL_CREDENTIALS: 'true' }
    expect(() => prepareTestProxy({ env: { ...env, JWT_POLICY: 'none' }, options: { stsPort: 1 } })).to.throw(
      'environment variable CALL_CREDENTIALS: needs a token',
    )
    expect(() => prepareTestProxy({ env, proxyConfig: { discoveryAddress: 'meshd:15010' } })).to.throw(
      'environment variable CALL_CREDENTIALS: needs TLS to discovery',
    )
  })

  it('uses call credentials from the token service where it exchanges tokens, else from the file, else leaves them to the agent', () => {
    const used = (env: Record<string, string>, stsPort: number) =>
      prepareTestProxy({ env: { CALL_CREDENTIALS: 'true', ...env }, options: { stsPort, tokenManagerPlugin: 'CloudTokenExchange' } }).settings
        .callCredentials
    const [cloud, direct] = [{ CLOUD_METADATA: 'p|1|c|r-z' }, { PROXY_XDS_VIA_AGENT: 'false' }]
    const tokenFile = './var/run/secrets/tokens/mesh-token'
    expect(used({ ...cloud, ...direct }, 15_463)).to.deep.equal({ stsPort: 15_463, tokenFile })
    for (const [env, port] of [
      [direct, 15_463],
      [{ ...cloud, ...direct }, 0],
    ] as const)
      expect(used(env, port)).to.deep.equal({ stsPort: undefined, tokenFile })
    expect(used(cloud, 0)).to.equal(undefined)
  })

  it('rejects TLS settings whose required files are missing, with the field', () => {
    const metrics = (tlsSettings: object) => prepareTestProxy({ proxyConfig: { envoyMetricsService: { address: 'a.b:1', tlsSettings } } })
    expect(() => metrics({ mode: 'SIMPLE' })).to.throw('field envoyMetricsService.tlsSettings.caCertificates: required')
    expect(() => metrics({ mode: 'MUTUAL', caCertificates: '/ca' })).to.throw('field envoyMetricsService.tlsSettings: MUTUAL needs')
    const files = { TLS_CLIENT_ROOT_CERT: '/r', TLS_CLIENT_KEY: '/k', TLS_CLIENT_CERT_CHAIN: '/c' }
    const env = Object.fromEntries(Object.entries(files).map(([name, file]) => [`MESH_META_${name}`, file]))
    const { bootstrap } = prepareTestProxy({
      env,
      proxyConfig: { envoyMetricsService: { address: 'a.b:1', tlsSettings: { mode: 'MUTUAL', caCertificates: '/ca' } } },
    })
    expect(JSON.stringify(bootstrap)).to.contain('file-cert:/c~/k').and.to.contain('file-root:/r').and.to.not.contain('file-root:/ca')
  })
})

describe('platform metadata', () => {
  it('is read from a variable with exactly four parts', () => {
    expect(platformMetadata('p|1|c|z', 'https://c')).to.deep.equal({
      gcp_project: 'p',
      gcp_project_number: '1',
      gcp_gke_cluster_name: 'c',
      gcp_location: 'z',
      gcp_gke_cluster_url: 'https://c',
    })
    expect(platformMetadata('p|1|c', '')).to.deep.equal({})
  })

  it('gives the locality of a workload unless a locality label does', () => {
    const zonal = { gcp_location: 'europe-west1-b' }
    expect(localityOf({ 'mesh-locality': 'a/b/c', 'istio-locality': 'x' }, zonal)).to.deep.equal({ region: 'a', zone: 'b', subZone: 'c' })
    expect(localityOf({ 'istio-locality': 'a.b' }, zonal)).to.deep.equal({ region: 'a', zone: 'b' })
    expect(localityOf({}, zonal)).to.deep.equal({ region: 'europe-west1', zone: 'europe-west1-b' })
    expect(localityOf(undefined, { gcp_location: 'europe-west1' })).to.deep.equal({ region: 'europe-west1' })
    expect(localityOf({}, {})).to.deep.equal({})
  })
})
