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
    /** Sends a request to a host through the HTTP proxy of the Envoy, or another listener. */
    const response = (host: string, at: { readonly host: string; readonly port: number }) =>
      new Promise<{ readonly body: string; readonly way: string }>((resolve, reject) => {
        get({ ...at, path: '/', headers: { host: `${host}:${port}` }, agent: false, timeout: 5000 }, (incoming) => {
          let body = ''
          incoming
            .setEncoding('utf8')
            .on('data', (text) => (body += text))
            .on('end', () => resolve({ body, way: String(incoming.headers['x-way'] ?? '') }))
        }).on('error', reject)
      })
    const request = async (host: string, at = { host: '127.0.0.1', port: proxyPort }) => (await response(host, at)).body
    /** The VirtualService that led a request through the HTTP proxy. */
    const wayOf = async (host: string) => (await response(host, { host: '127.0.0.1', port: proxyPort })).way

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
        document(
          'VirtualService',
          'routed',
          '{hosts: [routed.example.com], http: [{route: [{destination: {host: used.example.com}}], headers: {response: {set: {x-way: routed}}}}]}',
          'routes',
        ),
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
        spec: { workloadSelector: { labels: { app: 'Shop.A' } }, egress: [{ hosts: ['*/routed.example.com', '*/used.example.com'] }] },
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
      expect(await response('routed.example.com', { host: '127.0.0.1', port: proxyPort })).to.deep.equal({ body: 'backend', way: 'routed' })
    })

    it('is the one in force with fewer hosts where that one selects the workload: applied, all its listeners answer as before', async () => {
      const ingressPort = await freePort()
      const specOf = (hosts: readonly string[]) => ({
        workloadSelector: { labels: { app: 'Shop.A' } },
        ingress: [
          {
            port: { number: ingressPort, protocol: 'HTTP', name: 'http' },
            ...{ bind: '127.0.0.1', captureMode: 'NONE', defaultEndpoint: `127.0.0.1:${port}` },
            connectionPool: { tcp: { connectTimeout: '3000ms' } },
          },
        ],
        egress: [{ port: { number: port, protocol: 'HTTP', name: 'http' }, bind: '127.0.0.45', captureMode: 'NONE', hosts }, { hosts }],
        outboundTrafficPolicy: { mode: 'REGISTRY_ONLY' },
      })
      const metadata = { name: 'mine', namespace: 'shop', labels: { owner: 'me' } }
      const before = { apiVersion: 'networking.mesh.io/v1', kind: 'Sidecar', metadata, spec: specOf(['./*', 'routes/*']) }
      service.write('sidecar.yaml', JSON.stringify(before))
      const answers = async () => [
        await request('used.example.com', { host: '127.0.0.1', port: ingressPort }),
        await request('used.example.com', { host: '127.0.0.45', port }),
        await request('routed.example.com'),
      ]
      const all = ['backend', 'backend', 'backend']
      await until('its listeners', async () => String(await answers().catch(String)) === String(all))
      await until('all its hosts', async () => (await envoy.admin('/clusters')).includes('idle.example.com'))
      const { stdout } = await run(...own())
      expect(stdout).to.match(
        /# It replaces Sidecar shop\/mine \(sidecar\.yaml.*\), for all workloads that this one selects; of its fields only egress\.hosts are others\./,
      )
      const kept = ['./routed.example.com', 'routes/routed.example.com', './used.example.com', 'routes/used.example.com']
      expect(parse(stdout)).to.deep.equal({ ...before, spec: specOf(kept) })
      expect((await run(...own(), '--selector', 'tier=web')).stderr).to.contain('--selector: Sidecar shop/mine (sidecar.yaml')
      service.write('sidecar.yaml', stdout)
      await until('the cut', async () => !(await envoy.admin('/clusters')).includes('idle.example.com'))
      expect(await answers()).to.deep.equal(all)
      expect(await wayOf('routed.example.com'), 'the VirtualService of another namespace').to.equal('routed')
    })

    it('is beside that of the namespace where this one is in force, with its fields and a name that is free', async () => {
      const wide = { outboundTrafficPolicy: { mode: 'REGISTRY_ONLY' }, egress: [{ hosts: ['*/*'] }] }
      const other = document('Sidecar', 'shop-a', '{workloadSelector: {labels: {app: other}}, egress: [{hosts: ["./*"]}]}')
      service.write('sidecar.yaml', `${document('Sidecar', 'wide', JSON.stringify(wide))}---\n${other}`)
      await until('all its hosts', async () => (await envoy.admin('/clusters')).includes('idle.example.com'))
      const { stdout } = await run(...own())
      expect(stdout).to.match(
        /# It is Sidecar shop\/wide \(sidecar\.yaml.*\) with this selector and these egress\.hosts; for other workloads that one stays in force\./,
      )
      const { metadata, spec } = parse(stdout)
      expect(metadata).to.deep.equal({ name: 'shop-a-2', namespace: 'shop' })
      expect(spec).to.deep.equal({
        workloadSelector: { labels: { app: 'Shop.A' } },
        ...wide,
        egress: [{ hosts: ['*/routed.example.com', '*/used.example.com'] }],
      })
    })

    it('is refused for another Envoy, a gateway, and labels that are none', async () => {
      expect((await run('a.shop')).stderr).to.contain('Error: --envoy: the address of the admin interface')
      expect((await run(...own(), '--selector', 'web')).stderr).to.equal('Error: --selector: "web" is not <name>=<value>\n')
      const unused = `127.0.0.1:${await freePort()}`
      expect((await run('a.shop', '--envoy', unused)).stderr).to.contain(`--envoy: ${unused}/server_info: connect ECONNREFUSED`)
    })
  })
