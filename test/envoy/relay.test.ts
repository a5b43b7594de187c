/** A real Envoy gets its configuration from the real command through the agent's relay, also during failures. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { actor } from '../../actors/agent/xds-relay/xds-relay.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import { freePort } from '../../bench/ports.ts'
import type { HealthChanged } from '../../protocols/messages/health.ts'
import type { LogRecord } from '../../protocols/messages/log.ts'
import type { NameTableChanged } from '../../protocols/messages/name-table.ts'
import type { XdsRelayState } from '../../protocols/messages/xds-relay.ts'
import { startActor } from '../harness/actor.ts'
import { call, HttpBackend } from '../harness/backend.ts'
import { Envoy, envoyBinaries } from '../harness/envoy.ts'
import { runCommand, Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'

const serverName = 'meshd.mesh-system.svc'
const address = '127.0.0.9'
const document = (kind: string, name: string, spec: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: shop}\nspec: ${spec}\n`

for (const { version, path: binary } of envoyBinaries())
  for (const delta of version === '1.36' ? [false] : version === '1.40' ? [true] : [false, true])
    describe(`configuration through the agent, Envoy ${version}, ${delta ? 'delta' : 'state of the world'}`, () => {
      const dir = mkdtempSync(join(tmpdir(), 'mesh-relay-'))
      const file = (name: string) => join(dir, name)
      const certificates = new ServingCertificates(dir)
      const backend = new HttpBackend('app')
      const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
      const logged: LogRecord[] = []
      let [port, secure] = [0, 0]
      let relay: Behaviour<HealthChanged, NameTableChanged>
      let state: () => XdsRelayState
      let envoy: Envoy

      const write = (path: string) =>
        service.write(
          'services.yaml',
          [
            document(
              'ServiceEntry',
              'app',
              `{hosts: [app.shop.svc.cluster.local], location: MESH_EXTERNAL, resolution: STATIC, ports: [{number: ${port}, name: http}], endpoints: [{address: 127.0.0.1, ports: {http: ${backend.port}}}]}`,
            ),
            document(
              'Sidecar',
              'client',
              `{egress: [{port: {number: ${port}, protocol: HTTP, name: http}, bind: ${address}, captureMode: NONE, hosts: ['./*']}]}`,
            ),
            document(
              'VirtualService',
              'app',
              `{hosts: [app.shop.svc.cluster.local], http: [{match: [{uri: {exact: ${path}}}], route: [{destination: {host: app.shop.svc.cluster.local}}]}]}`,
            ),
          ].join('---\n'),
        )
      const status = async (path: string) => (await call(address, port, path, { host: 'app.shop.svc.cluster.local' }).catch(() => undefined))?.status
      const use = (name: string) => {
        for (const kind of ['', '-key']) copyFileSync(file(`${name}${kind}.pem`), file(`server${kind}.pem`))
      }

      const startRelay = async () => {
        relay = await startActor(
          actor,
          {
            socket: file('run/XDS'),
            allowVolumes: false,
            discovery: {
              address: { host: 'localhost', port: secure, isPlain: false, serverName },
              credentials: { roots: { files: [file('roots.pem')], isPinned: true, learned: undefined }, tokenFile: file('token'), pair: undefined },
            },
            headers: {},
            exchangesToken: false,
            keeps: { file: file('kept/last'), everyMs: 100, fallbackAfterMs: 500 },
            asksNameTable: true,
            asksTrust: false,
          },
          { logged: (record) => logged.push(record) },
        )
        state = relay.asks?.state as () => XdsRelayState
      }

      before(async () => {
        for (const root of ['one', 'two']) {
          certificates.authority(root)
          certificates.issue(`server-${root}`, root, 1, `subjectAltName=DNS:${serverName}\n`)
        }
        use('server-one')
        copyFileSync(file('one.pem'), file('roots.pem'))
        port = await freePort()
        secure = await freePort()
        await backend.start()
        service.flags.push('--secureGRPCAddr', `127.0.0.1:${secure}`, '--tlsCertFile', file('server.pem'), '--tlsKeyFile', file('server-key.pem'))
        write('/one')
        await startRelay()
        envoy = new Envoy({
          binary,
          delta,
          grpcPort: file('run/XDS'),
          nodeId: `sidecar~${address}~client.shop~shop.svc.cluster.local`,
          metadata: { NAMESPACE: 'shop', LABELS: { app: 'client' }, INTERCEPTION_MODE: 'NONE', PROXY_CONFIG: {} },
        })
        // When the proxy starts, neither discovery nor the token exists yet.
        await envoy.launch()
        await until('an attempt', () => state().failures > 0)
        await service.start()
        const flags = ['-n', 'shop', '--service-account', 'client', '--ttl', '1h', '-o', file('token')]
        const { code, stderr } = await runCommand(['token', ...flags], { MESHD_CA_STATE_DIR: service.authorityDir })
        expect(code, stderr).to.equal(0)
      })
      after(async () => {
        await envoy?.dispose()
        await relay?.drain?.()
        await Promise.all([service.dispose(), backend.stop()])
        rmSync(dir, { recursive: true })
      })

      it('arrives on the stream that the proxy opened before discovery and the token existed', async () => {
        await until('a request to be answered', async () => (await status('/one')) === 200)
        expect(state()).to.deep.include({ stream: 'served', fault: undefined })
        expect(await envoy.stat('control_plane.connected_state')).to.equal(1)
        expect(logged.filter(({ message }) => /another stream/.test(message))).to.deep.equal([])
      })

      it('is updated when the documents change', async () => {
        expect(await status('/two')).to.equal(404)
        write('/two')
        await until('the change', async () => (await status('/two')) === 200)
        expect(await status('/one')).to.equal(404)
      })

      it('stays in use during a crash of discovery, and is updated when discovery returns with a new root certificate', async () => {
        await service.stop('SIGKILL')
        await until('the loss to be noticed', () => state().stream !== 'served')
        use('server-two')
        copyFileSync(file('two.pem'), file('roots.pem'))
        write('/three')
        expect(await status('/two'), 'the proxy works on').to.equal(200)
        await service.start()
        await until('the change', async () => (await status('/three')) === 200)
        expect(await status('/two')).to.equal(404)
        expect(await envoy.rejected()).to.equal(0)
      })

      it('comes from the saved copy if the proxy starts without discovery, and is updated when discovery is back', async () => {
        await until('it to be kept', () => readFileSync(file('kept/last')).includes('/three'))
        await service.stop('SIGKILL')
        await envoy.stop()
        await relay.drain?.()
        await startRelay()
        await envoy.launch()
        await until('a request to be answered', async () => (await status('/three')) === 200)
        expect(state().stream).to.equal('kept')
        expect(logged.map(({ message }) => message).join()).to.include('starts with the configuration saved at')
        write('/four')
        await service.start()
        await until('the change', async () => (await status('/four')) === 200)
        expect(await status('/three')).to.equal(404)
        expect([await envoy.rejected(), state().stream]).to.deep.equal([0, 'served'])
      })

      if (version !== '1.36')
        it('of 20 MB is delivered', async () => {
          const long = 'x'.repeat(4000)
          for (let host = 0; host < 20; host++) {
            const name = `large-${host}.example.com`
            const routes = Array.from(
              { length: 250 },
              (_, index) => `{match: [{uri: {exact: /${index}-${long}}}], route: [{destination: {host: ${name}}}]}`,
            )
            service.write(
              `large-${host}.yaml`,
              [
                document(
                  'ServiceEntry',
                  `large-${host}`,
                  `{hosts: [${name}], location: MESH_EXTERNAL, resolution: STATIC, ports: [{number: ${port}, name: http}], endpoints: [{address: 127.0.0.1, ports: {http: ${backend.port}}}]}`,
                ),
                document('VirtualService', `large-${host}`, `{hosts: [${name}], http: [${routes.join()}]}`),
              ].join('---\n'),
            )
          }
          await until(
            'the last route to work',
            async () => (await call(address, port, `/249-${long}`, { host: 'large-19.example.com' }).catch(() => undefined))?.status === 200,
          )
          expect(await envoy.rejected()).to.equal(0)
        })
    })
