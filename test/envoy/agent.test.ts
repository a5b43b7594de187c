/** Two sidecars with mutual TLS. Their agents get the certificates from the authority of the real command. */
import { expect } from 'chai'
import type { SecretState } from '../../protocols/messages/agent.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { enforce, policyDocument } from '../harness/policies.ts'
import { send } from '../harness/raw-http.ts'
import { TwoSidecars } from '../harness/two-sidecars.ts'
import { until } from '../harness/until.ts'

const strict = policyDocument('PeerAuthentication', 'peers', '{selector: {matchLabels: {app: server}}, mtls: {mode: STRICT}}')

const releases = envoyBinaries()

for (const { version, path: binary } of releases) {
  describe(`certificates of agents, Envoy ${version}`, () => {
    const pair = new TwoSidecars({ binary, delta: version === '1.40', ttlSeconds: 75 })
    before(async () => {
      await pair.start()
      await until('calls to arrive', async () => (await pair.request()) === 200)
    })
    after(() => pair.dispose())

    it("name the workload's identity: the server sees the caller's, and the client refuses a server with another account", async () => {
      expect(await pair.request()).to.equal(200)
      expect(pair.caller()).to.include('URI=spiffe://cluster.local/ns/shop/sa/client')
      pair.write('somebody-else')
      await until('a server of another account to be refused', async () => (await pair.request()) === 503)
      pair.write()
      await until('the right one to be called', async () => (await pair.request()) === 200)
    })

    it('are required by a STRICT server, which refuses plaintext', async () => {
      await enforce(pair.service, pair.members.server.envoy, [strict], 'selector: {matchLabels: {app: server}}, ')
      expect(await send('127.0.0.7', pair.ports.inbound, {}), 'plain text').to.equal(0)
      expect(await pair.request()).to.equal(200)
      expect(pair.caller()).to.include('URI=spiffe://cluster.local/ns/shop/sa/client')
    })

    it('are renewed under traffic without a lost request', async () => {
      const first = { server: await pair.certificates('server'), client: await pair.certificates('client') }
      expect(first.server.roots).to.have.length(1)
      const { statuses, answered } = await pair.during(async () => {
        for (const role of ['server', 'client'] as const)
          await until(`another certificate of the ${role}`, async () => (await pair.certificates(role)).leaf !== first[role].leaf)
      })
      expect(statuses).to.deep.equal({ 200: answered })
      expect(answered).to.be.above(50)
    })

    // The other cases depend on authority and agents only: one release of Envoy is enough.
    if (version !== releases.at(-1)?.version) return

    it('are renewed after a crash of the control plane at the time of a renewal, without a lost request', async () => {
      const states = Object.values(pair.members).map(({ state }) => state)
      const { statuses, answered } = await pair.during(async () => {
        await pair.service.stop('SIGKILL')
        const first = states.map((state) => state().notAfter)
        await until('an agent to notice', () => states.some((state) => state().fault !== undefined))
        await pair.service.start()
        const isRenewed = ({ notAfter = 0, fault }: SecretState, index: number) => fault === undefined && notAfter > (first[index] ?? 0)
        await until('both to be renewed', () => states.every((state, index) => isRenewed(state(), index)))
      })
      expect(statuses).to.deep.equal({ 200: answered })
      expect(await pair.members.client.envoy.rejected()).to.equal(0)
    })

    it('that expired while the authority was down are replaced when it is back, and calls succeed again', async () => {
      const states = Object.values(pair.members).map(({ state }) => state)
      await pair.service.stop()
      await until('the certificates to expire', () => states.every((state) => state().notAfter === undefined))
      await until('calls to fail', async () => (await pair.request()) === 503)
      await pair.service.start()
      await until('calls to arrive', async () => (await pair.request()) === 200)
      const { statuses, answered } = await pair.during(() => until('both to be served', () => states.every((state) => state().fault === undefined)))
      expect(statuses).to.deep.equal({ 200: answered })
    })

    it('are obtained once an invalid token is replaced, and the previous certificate serves until then', async () => {
      const { agent, state } = pair.members.client
      await agent.drain?.()
      pair.replaceToken('client', 'e30.e30.e30')
      const next = await pair.startAgent('client')
      await until('the refusal', () => next().fault === 'request authenticate failure')
      expect([state().notAfter !== undefined, next().notAfter]).to.deep.equal([true, undefined])
      expect(await pair.request(), 'with what Envoy was given before').to.equal(200)
      await pair.token('client')
      await until('a certificate', () => next().notAfter !== undefined)
      const { notAfter } = next()
      await until('it to be in use', async () => (await pair.request()) === 200 && next().notAfter === notAfter)
    })
  })
}
