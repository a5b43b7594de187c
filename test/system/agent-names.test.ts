/** Service names through the real agent: discovery sends the name table, independent of the proxy's subscriptions, and names resolve. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Agent } from '../harness/agent.ts'
import { DnsClient } from '../harness/dns-client.ts'
import { dnsQuery } from '../harness/dns-messages.ts'
import { Service } from '../harness/service.ts'
import { standInProxy } from '../harness/stand-in-proxy.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const entry = (host: string, spec: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${host}, namespace: shop}\nspec: {hosts: [${host}], resolution: STATIC, ports: [{number: 3306, name: tcp}], endpoints: [{address: 203.0.113.1}]${spec}}\n`

describe('service names through the agent', () => {
  const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
  const folder = mkdtempSync(join(tmpdir(), 'mesh-stand-in-'))
  const closing: (() => unknown)[] = []
  after(async () => {
    for (const close of closing.reverse()) await close()
    await service.dispose()
    rmSync(folder, { recursive: true, force: true })
  })

  it('resolve to the addresses of discovery, also after a restart of the agent while discovery is down', async () => {
    service.write('a.yaml', entry('a.example.com', ', addresses: [192.0.2.1]'))
    await service.start()
    writeFileSync(join(folder, 'proxy'), standInProxy(), { mode: 0o755 })
    const port = await freePort()
    const agent = new Agent({
      binary: join(folder, 'proxy'),
      env: {
        MESH_META_DNS_CAPTURE: 'true',
        MESH_META_DNS_AUTO_ALLOCATE: 'true',
        DNS_PROXY_ADDR: `localhost:${port}`,
        POD_NAMESPACE: 'shop',
        POD_NAME: 'app',
        TERMINATION_DRAIN_DURATION_SECONDS: '0',
      },
      proxyConfig: { discoveryAddress: `127.0.0.1:${service.grpcPort}`, controlPlaneAuthPolicy: 'NONE', customConfigFile: 'bootstrap.json' },
    })
    closing.push(() => agent.dispose())
    agent.write('bootstrap.json', '{}')
    await agent.start()
    const metadata = { DNS_CAPTURE: 'true', DNS_AUTO_ALLOCATE: 'true' }
    const proxy = new XdsClient(`unix:${agent.dir}/etc/mesh/proxy/XDS`, sidecarNode('10.1.0.1', 'app', 'shop', metadata), false).connect()
    closing.push(() => proxy.close())
    await proxy.ready()
    const client = new DnsClient(port)
    closing.push(() => client.close())
    const addresses = async (name: string) => (await client.ask(dnsQuery({ name }))).answers.map(({ data }) => data)
    await until('the name', async () => (await addresses('a.example.com')).join() === '192.0.2.1')
    service.write('b.yaml', entry('b.example.com', ''))
    let given = ''
    await until('a name with an address that it is given', async () => /^240\.240\./.test((given = (await addresses('b.example.com')).join())))
    await until('its listener', () => proxy.state()['type.googleapis.com/envoy.config.listener.v3.Listener']?.[`${given}_3306`] !== undefined)
    expect([...proxy.responses.keys()].filter((type) => type.endsWith('NameTable'))).to.deep.equal([])
    proxy.close()
    await agent.stop()
    await service.stop()
    await agent.start()
    expect(await addresses('b.example.com')).to.deep.equal([given])
    expect(agent.output).to.include('are answered from the last run')
  })
})
