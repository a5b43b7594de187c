/**
 * Rotation of the authority's root certificate while two sidecars use mutual TLS. The result depends on authority and agents only:
 * one release of Envoy is enough.
 */
import { expect } from 'chai'
import { envoyBinaries } from '../harness/envoy.ts'
import { TwoSidecars } from '../harness/two-sidecars.ts'
import { until } from '../harness/until.ts'

const [oldest] = envoyBinaries()

if (oldest)
  describe(`rotation of the root, Envoy ${oldest.version}`, () => {
    const pair = new TwoSidecars({
      binary: oldest.path,
      delta: true,
      ttlSeconds: 50,
      servesOwn: true,
      env: { CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: '500ms', CITADEL_ENABLE_JITTER_FOR_ROOT_CERT_ROTATOR: 'false' },
    })
    before(async () => {
      await pair.start()
      await until('calls to arrive', async () => (await pair.request()) === 200)
    })
    after(() => pair.dispose())

    it('replaces the root through all stages without a lost request, also with a crash of discovery in between', async () => {
      const { roots: first } = await pair.certificates('server')
      const { statuses, answered } = await pair.during(async () => {
        // The command fails if the key of the new root takes long to generate; the stage is then reached later.
        await pair.ca('rotate').catch(() => undefined)
        await until('two roots', async () => (await pair.certificates('client')).roots.length === 2)
        await pair.service.stop('SIGKILL')
        await pair.service.start()
        await until('the end of the rotation', async () => (await pair.stage()) === 'stable')
      })
      expect(statuses).to.deep.equal({ 200: answered })
      expect(answered).to.be.above(100)
      const [server, client] = [await pair.certificates('server'), await pair.certificates('client')]
      expect(server.roots).to.deep.equal(client.roots)
      expect([first.length, server.roots.length, server.roots.includes(first[0] as string)]).to.deep.equal([1, 1, false])
      expect(pair.caller()).to.include('URI=spiffe://cluster.local/ns/shop/sa/client')
    })

    it('leaves sidecars connected, which apply changes, and agents without a fault', async () => {
      pair.write('somebody-else')
      await until('a change to arrive', async () => (await pair.request()) === 503)
      pair.write()
      await until('another', async () => (await pair.request()) === 200)
      for (const { state } of Object.values(pair.members)) expect(state().fault).to.equal(undefined)
    })
  })
