/** The visibility of a destination is withdrawn under traffic. No request fails, since a cluster is removed only after the routes to it. */
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { call, HttpBackend } from '../harness/backend.ts'
import { Envoy, envoyBinaries } from '../harness/envoy.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

for (const { version, path: binary } of envoyBinaries()) {
  for (const delta of [false, true]) {
    describe(`Envoy ${version}, ${delta ? 'delta' : 'state of the world'}, under traffic`, () => {
      const service = new Service()
      const hidden = new HttpBackend('hidden')
      const open = new HttpBackend('open')
      let proxy: Envoy
      let port = 0

      const entry = (name: string, exportTo: string, backend: HttpBackend) => `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: bank}
spec: {hosts: [${name}.example.com], exportTo: ${exportTo}, location: MESH_INTERNAL, resolution: STATIC, ports: [{number: ${port}, name: http}], endpoints: [{address: 127.0.0.1, ports: {http: ${backend.port}}}]}
---
`
      const routes = (to: string) => `apiVersion: networking.mesh.io/v1
kind: VirtualService
metadata: {name: front, namespace: office}
spec: {hosts: [front.example.com], http: [{route: [{destination: {host: ${to}.example.com}}]}]}
---
`
      const sidecar = `apiVersion: networking.mesh.io/v1
kind: Sidecar
metadata: {name: few, namespace: office}
spec: {egress: [{hosts: [bank/front.example.com, bank/open.example.com]}]}
`
      const wide = () => entry('hidden', '[office]', hidden) + routes('hidden')
      /** Two simultaneous changes: the host becomes invisible, and the route gets another destination. */
      const narrowed = {
        'its export list': () => entry('hidden', '["."]', hidden) + routes('open'),
        'a first Sidecar': () => entry('hidden', '[office]', hidden) + routes('open') + sidecar,
      }
      const ask = () => call('127.0.0.1', port, '/', { host: 'front.example.com' })

      before(async () => {
        port = await freePort()
        await Promise.all([hidden.start(), open.start()])
        service.write('others.yaml', entry('front', "['*']", open) + entry('open', "['*']", open))
        service.write('narrowed.yaml', wide())
        await service.start()
        proxy = new Envoy({
          binary,
          delta,
          grpcPort: service.grpcPort,
          nodeId: 'sidecar~127.0.0.9~c.office~office.svc.cluster.local',
          metadata: { INTERCEPTION_MODE: 'NONE' },
        })
        await proxy.start()
      })

      after(async () => {
        await Promise.all([proxy.dispose(), service.dispose(), hidden.stop(), open.stop()])
      })

      for (const [what, change] of Object.entries(narrowed))
        it(`loses no request when ${what} hides the destination and the route changes at the same time`, async () => {
          service.write('narrowed.yaml', wide())
          await until('the hidden host to answer', async () => (await ask().catch(() => ({ body: '' }))).body === 'hidden')
          const failures: string[] = []
          let calls = 0
          let done = false
          const load = Array.from({ length: 4 }, async () => {
            while (!done) {
              const { status, body } = await ask().catch((error: Error) => ({ status: 0, body: error.message }))
              calls++
              if (status !== 200) failures.push(`${status} ${body}`)
            }
          })
          await until('calls before the change', () => calls > 20)
          service.write('narrowed.yaml', change())
          await until('the other host to answer', async () => (await ask()).body === 'open')
          await until('the cluster to go', async () => !(await proxy.admin('/clusters')).includes(`outbound|${port}||hidden.example.com`))
          const atChange = calls
          await until('calls after the change', () => calls > atChange + 20)
          done = true
          await Promise.all(load)
          expect(failures).to.deep.equal([])
          expect([await proxy.rejected(), await service.rejections()]).to.deep.equal([0, []])
        })
    })
  }
}
