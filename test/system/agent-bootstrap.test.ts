/** The bootstrap that the agent starts its proxy with, by the real command. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Agent, type AgentOptions } from '../harness/agent.ts'
import { standInProxy } from '../harness/stand-in-proxy.ts'

const folder = mkdtempSync(join(tmpdir(), 'mesh-stand-in-'))
const binary = join(folder, 'proxy')
writeFileSync(binary, standInProxy({}), { mode: 0o755 })

describe('pilot-agent proxy: the bootstrap', () => {
  const agents: Agent[] = []
  const agent = (options: Partial<AgentOptions> = {}) => {
    const made = new Agent({ binary, ...options, env: { TERMINATION_DRAIN_DURATION_SECONDS: '0', ...options.env } })
    agents.push(made)
    return made
  }
  afterEach(async () => {
    for (const one of agents.splice(0)) await one.dispose()
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  it('is written readable for its user only, from all sources, and removed at exit', async () => {
    const one = agent({
      flags: ['--meshConfig', 'mesh.yaml', '--serviceCluster', 'web.shop'],
      env: { POD_NAME: 'web', POD_NAMESPACE: 'shop', INSTANCE_IP: '10.1.2.3', ISTIO_META_NETWORK: 'n1', MESH_BOOTSTRAP_OVERRIDE: 'override.yaml' },
    })
    one.write('mesh.yaml', 'defaultConfig:\n  drainDuration: 5s\n  concurrency: 7\n')
    one.write('etc/mesh/pod/labels', 'app="web"\nbroken\n')
    one.write('etc/mesh/pod/annotations', 'proxy.istio.io/config="drainDuration: 6s\\nproxyMetadata:\\n  MESH_META_A: b\\n"\n')
    one.write('override.yaml', 'admin: {profile_path: /tmp/x}\n')
    await one.start()
    const file = join(one.dir, 'etc/mesh/proxy/envoy-rev0.json')
    const { node, admin } = JSON.parse(readFileSync(file, 'utf8'))
    expect([statSync(file).mode & 0o777, statSync(join(file, '..')).mode & 0o777]).to.deep.equal([0o600, 0o700])
    expect(node.id).to.equal('sidecar~10.1.2.3~web.shop~shop.svc.cluster.local')
    expect(node.metadata).to.deep.include({ NETWORK: 'n1', A: 'b', LABELS: { app: 'web' } })
    expect(admin.address.socketAddress.portValue).to.equal(one.adminPort)
    const args = (await one.admin('/args')).split('\n')
    expect(args.slice(0, 6)).to.deep.equal(['-c', 'etc/mesh/proxy/envoy-rev0.json', '--restart-epoch', '0', '--drain-time-s', '6'])
    expect(args[args.indexOf('--drain-strategy') + 1]).to.equal('immediate')
    expect(args[args.indexOf('--config-yaml') + 1]).to.equal('admin: {profile_path: /tmp/x}')
    expect(one.output)
      .to.contain('./etc/mesh/pod/labels, line 2: not key="value", left out')
      .and.to.contain('effective configuration of the proxy: {')
    expect(await one.stop()).to.equal(0)
    expect(existsSync(file)).to.equal(false)
  })

  const wrong: [string, Partial<AgentOptions>, string][] = [
    [
      'a field',
      { env: { PROXY_CONFIG: 'concurrency: many' } },
      'environment variable PROXY_CONFIG: field concurrency: expected a whole number, got string "many"',
    ],
    ['YAML', { env: { PROXY_CONFIG: 'a: [' } }, 'environment variable PROXY_CONFIG: not YAML, line 1'],
    ['an address', { env: { PROXY_CONFIG: '{"discoveryAddress": "nowhere"}' } }, 'field discoveryAddress: "nowhere" is not <host>:<port>'],
    ['metadata', { env: { MESH_META_DNS_CAPTURE: 'perhaps' } }, 'node metadata DNS_CAPTURE: "perhaps" is not true or false'],
    ['a name', { env: { POD_NAME: 'a~b' } }, 'POD_NAME: "a~b" cannot be part of a node id'],
  ]
  for (const [what, options, reason] of wrong)
    it(`is not written with an invalid ${what}: exit status 255 and an error that names it`, async () => {
      const one = agent(options)
      await one.launch()
      expect(await one.ended()).to.equal(255)
      expect(one.output).to.contain(reason)
    })

  it('causes exit status 1 if it cannot be written', async () => {
    const one = agent({ proxyConfig: { configPath: './taken' } })
    one.write('taken', 'a file')
    await one.launch()
    expect(await one.ended()).to.equal(1)
    expect(one.output).to.match(/Error: .*taken/)
  })

  it('is rendered from a template, that of the variable before that of the flag, with exit status 1 if that fails', async () => {
    const one = agent({ flags: ['--templateFile', 'other.json'], env: { ISTIO_BOOTSTRAP: 'mine.yaml.tmpl', POD_NAME: 'web' } })
    one.write('mine.yaml.tmpl', 'node: {id: {{ .nodeID | printf "%q" }}}\nadmin: {{ .config.ProxyAdminPort }}\n')
    await one.start()
    expect(readFileSync(join(one.dir, 'etc/mesh/proxy/envoy-rev0.yaml'), 'utf8')).to.match(
      new RegExp(`^node: {id: "sidecar~.*~web[.]~.*"}\nadmin: ${one.adminPort}\n$`),
    )
    expect(await one.admin('/args')).to.contain('etc/mesh/proxy/envoy-rev0.yaml')
    await one.stop()
    const other = agent({ flags: ['--templateFile', 'other.json'] })
    other.write('other.json', '\n{{ .config.Unheard }}')
    await other.launch()
    expect(await other.ended()).to.equal(1)
    expect(other.output).to.contain("template of the bootstrap: other.json: line 2: can't evaluate field Unheard in type *v1alpha1.ProxyConfig")
    const missing = agent({ env: { MESH_BOOTSTRAP: 'missing.json' } })
    await missing.launch()
    expect(await missing.ended()).to.equal(1)
    expect(missing.output).to.contain('template of the bootstrap: missing.json: there is no such file')
  })

  it('is written with a warning if an override is missing or a statsd address cannot be resolved', async () => {
    const one = agent({
      env: { MESH_BOOTSTRAP_OVERRIDE: 'missing.yaml' },
      proxyConfig: { statsdUdpAddress: 'nowhere.invalid:9125', tracing: { stackdriver: {} } },
    })
    await one.start()
    expect(one.output)
      .to.contain('environment variable MESH_BOOTSTRAP_OVERRIDE: missing.yaml: there is no such file; the bootstrap is not overridden')
      .and.to.contain('field statsdUdpAddress: "nowhere.invalid" cannot be resolved')
      .and.to.contain('field tracing.stackdriver: Envoy no longer has this tracer')
  })
})
