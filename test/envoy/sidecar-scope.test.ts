/** Which Sidecar cuts what an Envoy does not use: what `sidecar-scope` makes of its statistics (docs/commands.md, Q19). */
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { parse } from 'yaml'
import { freePort } from '../../bench/ports.ts'
import { discoveryScript } from '../harness/commands.ts'
import { Envoy, envoysWith } from '../harness/envoy.ts'
import { networkingDocument as document } from '../harness/mesh-document.ts'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

for (const { version, path: binary, delta } of envoysWith({ delta: false }, { delta: true }))
  describe(`the Sidecar of what Envoy ${version} uses, ${delta ? 'delta' : 'state of the world'}`, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
    const backend = createServer((_, response) => response.end('backend'))
    let envoy: Envoy
    let port = 0
    let proxyPort = 0

    const run = (...args: string[]) => runCommand(['sidecar-scope', ...args], service.env)
    const own = () => ['a.shop', '--envoy', envoy.adminAddress]
    /** Sends a request to a host through the HTTP proxy of the Envoy. */
    const request = (host: string) =>
      new Promise<string>((resolve, reject) => {
        const options = { host: '127.0.0.1', port: proxyPort, path: '/', headers: { host: `${host}:${port}` }, agent: false, timeout: 5000 }
        get(options, (response) =>
          response
            .setEncoding('utf8')
            .on('data', resolve)
            .on('end', () => resolve('')),
        ).on('error', reject)
      })

    before(async () => {
      await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
      port = (backend.address() as AddressInfo).port
      proxyPort = await freePort()
      const entry = (name: string) =>
        document(
          'ServiceEntry',
          name,
          `{hosts: [${name}.example.com], location: MESH_EXTERNAL, resolution: STATIC, ports: [{number: ${port}, name: http}], endpoints: [{address: 127.0.0.1}]}`,
        )
      service.write('entries.yaml', [entry('used'), entry('idle'), entry('routed')].join('---\n'))
      service.write(
        'route.yaml',
        document('VirtualService', 'routed', '{hosts: [routed.example.com], http: [{route: [{destination: {host: used.example.com}}]}]}'),
      )
      service.write('.mesh', `proxyListenPort: ${await freePort()}\nproxyHttpPort: ${proxyPort}\n`)
      service.flags.push('--meshConfig', join(service.dir, '.mesh'))
      await service.start()
      const metadata = { LABELS: { app: 'Shop.A' } }
      envoy = new Envoy({ binary, delta, nodeId: 'sidecar~127.0.0.44~a.shop~shop.svc.cluster.local', metadata, grpcPort: service.grpcPort })
      await envoy.start()
    })
    after(async () => {
      await new Promise((resolve) => backend.close(resolve))
      await envoy?.dispose()
      await service.dispose()
    })

    it('imports nothing while it uses nothing, and says so', async () => {
      const { stdout, code, stderr } = await run(...own())
      expect([code, stderr]).to.deep.equal([0, ''])
      expect(stdout).to.match(/^# a\.shop uses 0 of the 3 hosts that it is sent, by the statistics of its Envoy\n# from \d{4}-\S+Z on \(\d+ \w+\);/)
      expect(parse(stdout).spec.egress).to.deep.equal([{ hosts: ['~/*'] }])
    })

    it('imports what it has used, and hosts whose routes lead there, with the labels of its workload', async () => {
      await until('an answer', async () => (await request('routed.example.com').catch((error: Error) => error.message)) === 'backend')
      const { stdout } = await run(...own())
      expect(stdout).to.contain('# Not used: shop/idle.example.com\n')
      expect(parse(stdout)).to.deep.equal({
        ...{ apiVersion: 'networking.mesh.io/v1', kind: 'Sidecar', metadata: { name: 'shop-a', namespace: 'shop' } },
        spec: { workloadSelector: { labels: { app: 'Shop.A' } }, egress: [{ hosts: ['shop/routed.example.com', 'shop/used.example.com'] }] },
      })
      const json = JSON.parse((await run(...own(), '--json', '--selector', 'tier=web')).stdout)
      expect([json.used, json.unused]).to.deep.equal([['shop/routed.example.com', 'shop/used.example.com'], ['shop/idle.example.com']])
      expect(json.sidecar.spec.workloadSelector.labels).to.deep.equal({ tier: 'web' })
      expect(Date.now() - Date.parse(json.since)).to.be.within(0, 3_600_000)
    })

    it('is what diff takes, and cuts the rest without breaking what is used', async () => {
      const { stdout } = await run(...own())
      const tried = await runCommand(['diff', '-'], service.env, discoveryScript, stdout)
      expect([tried.code, tried.stderr], tried.stdout).to.deep.equal([1, ''])
      expect(tried.stdout).to.match(/\ncds +outbound\|\d+\|\|idle\.example\.com +REMOVED/)
      expect(tried.stdout).not.to.match(/outbound\|\d+\|\|(used|routed)\.example\.com +REMOVED/)
      service.write('sidecar.yaml', stdout)
      await until('the cut', async () => !(await envoy.admin('/clusters')).includes('idle.example.com'))
      expect(await request('routed.example.com')).to.equal('backend')
    })

    it('is refused for another Envoy, a gateway, and labels that are none', async () => {
      expect((await run('a.shop')).stderr).to.contain('Error: --envoy: the address of the admin interface')
      expect((await run(...own(), '--selector', 'web')).stderr).to.equal('Error: --selector: "web" is not <name>=<value>\n')
      const unused = `127.0.0.1:${await freePort()}`
      expect((await run('a.shop', '--envoy', unused)).stderr).to.contain(`--envoy: ${unused}/server_info: connect ECONNREFUSED`)
    })
  })
