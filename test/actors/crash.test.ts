import { expect } from 'chai'
import { clusterType, endpointType, listenerType, routeType } from '../../src/xds/type-urls.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { Issuer } from '../harness/issuer.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

for (const mode of ['threads', 'in-thread'] as const) {
  describe(`actors that die under load (${mode})`, () => {
    const discovery = new LocalDiscovery({ mode }, { PILOT_JWKS_ALLOWED_ADDRESSES: '127.0.0.1', PILOT_MOCK_CHURN_PER_SECOND: '5' })
    const clients: XdsClient[] = []
    const connect = (index: number) => {
      const client = new XdsClient(discovery.grpcPort, sidecarNode(`10.3.0.${index}`, `pod-${index}`, 'ns'), index % 2 === 0).connect()
      clients.push(client)
      return client
    }

    before(async () => {
      discovery.write('a.yaml', serviceEntry('a', '10.0.0.1'))
      await issuer.start()
      const rule = `{issuer: '${issuer.name}', jwksUri: '${issuer.jwksUri}'}`
      discovery.write(
        'tokens.yaml',
        `apiVersion: security.mesh.io/v1\nkind: RequestAuthentication\nmetadata: {name: tokens, namespace: ns}\nspec: {jwtRules: [${rule}]}\n`,
      )
      await discovery.start()
      await discovery.service.ready()
      for (let index = 1; index <= 10; index++) connect(index)
      await Promise.all(clients.map((client) => client.ready()))
    })
    after(async () => {
      for (const client of clients) client.close()
      await discovery.dispose()
      await issuer.stop()
    })

    const issuer = new Issuer('https://issuer.example')
    let change = 1
    /** Reconnects the clients whose writer died. */
    const reconnect = async () => {
      for (const client of clients.filter((known) => known.closed)) {
        clients.splice(clients.indexOf(client), 1)
        const again = new XdsClient(discovery.grpcPort, client.node, client.delta).connect()
        clients.push(again)
        // It may be moved before it has everything.
        await again.ready().catch((error) => {
          if (!again.closed) throw error
        })
      }
    }
    /** Makes a change and waits until every proxy has it. Proxies that lose their connection meanwhile get it after they reconnect. */
    const converges = async () => {
      const address = `10.77.0.${++change}`
      discovery.write('a.yaml', serviceEntry('a', address))
      const has = (client: XdsClient) => client.resources.get(endpointType)?.get('outbound|80||a.ns.svc.cluster.local')?.includes(address) ?? false
      for (const client of clients) await until(`${client.node.id} to get ${address}`, () => has(client) || client.closed !== undefined)
      await reconnect()
      for (const client of clients) await until(`${client.node.id} to have ${address}`, () => has(client))
    }

    /** Whether a proxy accepts a token of the issuer. */
    const tokensAreTaken = async () => {
      const url = `http://127.0.0.1:${discovery.httpPort}/debug/authz?proxyID=pod-1.ns&header=${encodeURIComponent(`authorization: Bearer ${await issuer.token()}`)}`
      return ((await (await fetch(url)).json()) as { status: number }).status === 200
    }

    for (const name of ['source/files', 'source/mock', 'jwks-resolver', 'push-queue', 'xds-writer/0', 'xds-writer/1']) {
      it(`${name} is restarted and nothing is lost`, async () => {
        const connected = () => clients.filter((client) => !client.closed).length
        const before = connected()
        if (name === 'jwks-resolver') await issuer.rotate()
        const sent = () => clients.map((client) => [clusterType, listenerType, routeType].map((type) => client.responses.get(type)))
        const sentBefore = sent()
        expect(discovery.service.supervisor.kill(name)).to.equal(true)
        const state = () => discovery.service.supervisor.states().find((known) => known.name === name)
        await until('the restart', () => state()?.state === 'running' && (state()?.restarts ?? 0) > 0)
        expect(state()?.lastError?.message).to.equal('the actor was killed')
        await converges()
        await until('tokens to be taken', tokensAreTaken)
        // Also that every proxy has the keys, so that nothing of this is on its way when the next test begins.
        const { kid } = (JSON.parse(issuer.jwks) as { keys: [{ kid: string }] }).keys[0]
        const hasKeys = (client: XdsClient) => [...(client.resources.get(listenerType)?.values() ?? [])].some((listener) => listener.includes(kid))
        await until('every proxy to have the keys', () => clients.every(hasKeys))
        if (!name.startsWith('xds-writer')) expect(connected()).to.equal(before)
        // Versions are unchanged: only the changed endpoints were sent.
        if (name === 'push-queue') expect(sent()).to.deep.equal(sentBefore)
        const fresh = connect(200 + change)
        await fresh.ready()
        expect(fresh.resources.get(clusterType)?.has('outbound|80||mock-0.mock-0.svc.cluster.local')).to.equal(true)
      })
    }

    it('connections are balanced again after a writer was gone', async () => {
      for (let index = 0; index < 40; index++) connect(20 + index)
      await Promise.all(clients.map((client) => client.ready()))
      const counts = async () => {
        const { clients: known } = (await (await fetch(`http://127.0.0.1:${discovery.httpPort}/debug/adsz`)).json()) as {
          clients: { connectionId: string }[]
        }
        const numbers = known.map(({ connectionId }) => Number(connectionId.slice(connectionId.lastIndexOf('-') + 1)) % 2)
        return [numbers.filter((number) => number === 0).length, numbers.filter((number) => number === 1).length] as const
      }
      // While one writer is gone, all connections go to the other.
      for (let time = 0; time < 3; time++) {
        discovery.service.supervisor.kill('xds-writer/0')
        await until('the connections to be elsewhere', async () => {
          await reconnect()
          return clients.every((client) => !client.closed)
        })
      }
      const most = clients.length / 2 + 8
      await until('an even spread', async () => {
        await reconnect()
        const [one, other] = await counts()
        return one + other === clients.length && Math.max(one, other) <= most
      })
      await converges()
    })
  })
}
