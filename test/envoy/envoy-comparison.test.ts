/** What the commands say that an Envoy has, beside what it was sent (docs/commands.md, Q12, Q13). */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Envoy, envoysWith } from '../harness/envoy.ts'
import { networkingDocument as document } from '../harness/mesh-document.ts'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

for (const { version, path: binary, delta } of envoysWith({ delta: false }, { delta: true }))
  describe(`configuration compared with Envoy ${version}, ${delta ? 'delta' : 'state of the world'}`, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
    let envoy: Envoy
    /** Another admin interface, with what the Envoy had and some changes. */
    let changes: readonly (readonly [from: string, to: string])[] = []
    let dump = ''
    const changed = createServer((_, response) => response.end(changes.reduce((text, [from, to]) => text.replaceAll(from, to), dump)))
    const changedAddress = () => `127.0.0.1:${(changed.address() as AddressInfo).port}`

    const run = (kind: string, address: string, ...args: string[]) =>
      runCommand(['proxy-config', kind, 'a.shop', '--envoy', address, ...args], service.env)

    before(async () => {
      const port = await freePort()
      service.write(
        'entries.yaml',
        ['a', 'b']
          .map((name) =>
            document(
              'ServiceEntry',
              name,
              `{hosts: [${name}.example.com], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: ${port}, name: http}], endpoints: [{address: 127.0.0.1}, {address: 127.0.0.2}]}`,
            ),
          )
          .join('---\n'),
      )
      service.write('.mesh', 'proxyListenPort: 0\n')
      service.flags.push('--meshConfig', join(service.dir, '.mesh'))
      await service.start()
      envoy = new Envoy({ binary, delta, nodeId: 'sidecar~127.0.0.44~a.shop~shop.svc.cluster.local', metadata: {}, grpcPort: service.grpcPort })
      await envoy.start()
      await until('the Envoy to have all', async () => (await run('endpoints', envoy.adminAddress)).code === 0)
      dump = await envoy.admin('/config_dump?include_eds')
      await new Promise<void>((resolve) => changed.listen(0, '127.0.0.1', resolve))
    })
    after(async () => {
      await new Promise((resolve) => changed.close(resolve))
      await envoy?.dispose()
      await service.dispose()
    })

    for (const kind of ['clusters', 'listeners', 'routes', 'endpoints'])
      it(`${kind} are the same`, async () => {
        const { stdout, code, stderr } = await run(kind, envoy.adminAddress)
        expect([code, stderr]).to.deep.equal([0, ''])
        expect(stdout).to.match(new RegExp(`^a\\.shop has (\\d+) of \\1 ${kind.slice(0, -1)}s? as sent\\n$`))
      })

    it('differences are told by field, what is missing and what is not sent by name, and the exit status is 1', async () => {
      changes = [
        ['"connect_timeout": "10s"', '"connect_timeout": "3s"'],
        ['127.0.0.2', '127.0.0.3'],
      ]
      const clusters = await run('clusters', changedAddress(), '--name', '||a.example.com')
      expect(clusters.code).to.equal(1)
      expect(clusters.stdout).to.match(/a\.example\.com +DIFFERS +connect_timeout: sent "10s", has "3s"\n\na\.shop has 0 of 1 cluster as sent\n$/)
      const endpoints = JSON.parse((await run('endpoints', changedAddress(), '--name', '||a.example.com', '--json')).stdout)
      expect(endpoints.endpoints[0].status).to.equal('DIFFERS')
      expect(endpoints.endpoints[0].differences.map(({ field }: { field: string }) => field.split(':')[0])).to.have.members([
        '127.0.0.2',
        '127.0.0.3',
      ])
      changes = [['a.example.com', 'c.example.com']]
      const named = await run('clusters', changedAddress(), '--name', 'example.com')
      expect(named.stdout)
        .to.match(/\|\|a\.example\.com +MISSING +it was sent/)
        .and.to.match(/\|\|c\.example\.com +NOT SENT +the Envoy has it/)
    })

    it('secrets are told by name, never with their values', async () => {
      const secret = {
        '@type': 'type.googleapis.com/envoy.admin.v3.SecretsConfigDump',
        dynamic_active_secrets: [
          { name: 'default', version_info: '7', last_updated: '2026-01-01T00:00:00Z', secret: { tls_certificate: { private_key: 'hush' } } },
        ],
        dynamic_warming_secrets: [{ name: 'ROOTCA', secret: { value: 'hush' } }],
      }
      changes = [['"configs": [', `"configs": [${JSON.stringify(secret)},`]]
      const { stdout } = await run('secrets', changedAddress())
      expect(stdout).to.match(/\ndefault +ACTIVE +7 +2026-01-01T00:00:00Z\nROOTCA +WARMING +- +-\n$/)
      expect((await run('secrets', changedAddress(), '--json')).stdout).not.to.contain('hush')
    })

    it('its bootstrap is shown as it has it, without secrets', async () => {
      changes = [['"bootstrap": {', '"bootstrap": {"layered_runtime": {"layers": [{"name": "own", "static_layer": {"api_token": "hush"}}]},']]
      for (const address of [envoy.adminAddress, changedAddress()]) {
        const { stdout, stderr, code } = await run('bootstrap', address)
        expect([code, stderr]).to.deep.equal([0, ''])
        expect(stdout).to.match(/^# The bootstrap of a\.shop, as its Envoy has it\.\n.*dynamic_resources:\n/s)
        expect(stdout)
          .to.match(/\n {2}id: sidecar~127\.0\.0\.44~a\.shop~/)
          .and.not.contain('hush')
      }
      const { isWhole, bootstrap } = JSON.parse((await run('bootstrap', changedAddress(), '--json')).stdout)
      expect([isWhole, bootstrap.layered_runtime.layers[0].static_layer.api_token]).to.deep.equal([true, '[redacted]'])
    })

    it('an Envoy of another proxy, and an address of none, are refused', async () => {
      changes = [['~a.shop~', '~b.shop~']]
      const address = changedAddress()
      expect((await run('clusters', address)).stderr).to.equal(`Error: --envoy: the Envoy at ${address} is b.shop, not a.shop\n`)
      const unused = `127.0.0.1:${await freePort()}`
      const { code, stderr } = await run('clusters', unused)
      expect([code, stderr]).to.deep.equal([255, `Error: --envoy: ${unused}/config_dump?include_eds: connect ECONNREFUSED ${unused}\n`])
      expect((await run('clusters', 'a/b')).stderr).to.contain('--envoy: "a/b" is not the address of an admin interface')
    })
  })
