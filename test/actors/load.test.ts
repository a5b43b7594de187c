import { expect } from 'chai'
import { restartPolicy } from '../../actors/runtime/restarts.ts'
import { clusterType, endpointType } from '../../src/xds/type-urls.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { OwnTime } from '../harness/own-time.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'
import type { Break } from './parts/breakable.ts'

const mocked = 100
const cluster = (name: string) => `outbound|80||${name}.ns.svc.cluster.local`

for (const mode of ['threads', 'in-thread'] as const) {
  describe(`actors that throw and hang under a thousand changes a second (${mode})`, () => {
    const module = (name: string) => new URL(`parts/breakable.ts?${name}`, import.meta.url)
    const policy = { ...restartPolicy, intensity: 100, longestMs: 500 }
    const discovery = new LocalDiscovery(
      { mode, module, policy },
      {
        PILOT_MOCK_SERVICES: String(mocked),
        PILOT_MOCK_CHURN_PER_SECOND: '1000',
        PILOT_ACTOR_DEADLINE: '3s',
        // Changes never pause.
        PILOT_DEBOUNCE_MAX: '500ms',
      },
    )
    const clients: XdsClient[] = []
    /** The present content of the files: addresses of services by name. */
    const files = new Map<string, string>()
    let changes = 0
    let changing: NodeJS.Timeout | undefined
    /** Connections lost since the test began. */
    let reconnects = 0

    /** Adds, changes or removes a file. */
    const changeFile = () => {
      const name = `s${changes % 20}`
      if (changes++ % 7 === 6) {
        files.delete(name)
        discovery.remove(`${name}.yaml`)
        return
      }
      const address = `10.90.${(changes >> 8) & 255}.${changes & 255}`
      files.set(name, address)
      discovery.write(`${name}.yaml`, serviceEntry(name, address))
    }
    const connect = (number: number) => {
      const client = new XdsClient(discovery.grpcPort, sidecarNode(`10.4.0.${number}`, `pod-${number}`, 'ns'), number % 2 === 0).connect()
      clients.push(client)
      return client
    }
    const reconnect = async () => {
      for (const client of clients.filter((known) => known.closed)) {
        clients.splice(clients.indexOf(client), 1)
        reconnects++
        clients.push(await new XdsClient(discovery.grpcPort, client.node, client.delta).connect().ready())
      }
    }
    /** Whether a proxy has exactly the state of files and registry. */
    const isUpToDate = (client: XdsClient) => {
      const endpoints = client.resources.get(endpointType)
      const own = [...(client.resources.get(clusterType)?.keys() ?? [])].filter((name) => name.endsWith('.ns.svc.cluster.local'))
      const others = [...(client.resources.get(clusterType)?.keys() ?? [])].filter((name) => /\|mock-\d+\./.test(name))
      return (
        own.length === files.size &&
        [...files].every(([name, address]) => endpoints?.get(cluster(name))?.includes(address)) &&
        new Set(others.map((name) => name.split('|')[3])).size === mocked
      )
    }
    /** Files are not changed for a moment: every proxy, old or new, gets their state, and no other proxies are known. */
    const converges = async () => {
      clearInterval(changing)
      await until('every proxy to be up to date', async () => {
        await reconnect()
        return clients.every(isUpToDate)
      })
      const fresh = await connect(200).ready()
      await until('a new proxy to be up to date', () => isUpToDate(fresh))
      clients.splice(clients.indexOf(fresh), 1)
      fresh.close()
      const ids = clients.map((client) => client.node.id).sort()
      await until('no ghosts, and nobody missing', async () => {
        const { clients: connected } = await discovery.debug<{ clients: { connectionId: string }[] }>('adsz')
        const known = Object.keys(await discovery.debug<Record<string, unknown>>('instancesz'))
        const nodes = (list: string[]) => list.map((id) => id.replace(/^xds-writer\/\d+\//, '').replace(/-\d+$/, '')).sort()
        expect(nodes(connected.map(({ connectionId }) => connectionId))).to.deep.equal(ids)
        expect(nodes(known)).to.deep.equal(ids)
        return true
      })
      changing = setInterval(changeFile, 50)
    }
    /** The actor may end before it answers. */
    const breakIt = (name: string, way: Break) => discovery.service.supervisor.ask(name, 'break', way).catch(() => {})
    const restarts = (name: string) => discovery.state(name).restarts
    const restartOf = async (name: string, since: number, error: string | RegExp) => {
      await until(`${name} to be restarted`, () => restarts(name) > since && discovery.state(name).state === 'running')
      expect(discovery.state(name).lastError?.message).to.match(new RegExp(error))
    }
    /** Connections of proxies that the push queue knows, by writer. */
    const held = async () => {
      const known = Object.keys(await discovery.debug<Record<string, unknown>>('instancesz'))
      return { all: known.length, of: (writer: string) => known.filter((id) => id.startsWith(`${writer}/`)).length }
    }

    /** A writer that ends loses its own connections, any other actor none. */
    const losesOnly = async (name: string, before: Awaited<ReturnType<typeof held>>) => {
      const lost = () => clients.filter((client) => client.closed).length
      const expected = name.startsWith('xds-writer') ? before.of(name) : 0
      await until(`${expected} connections to be lost`, () => lost() >= expected)
      expect(lost()).to.equal(expected)
    }

    before(async () => {
      for (let index = 0; index < 20; index++) changeFile()
      await discovery.start()
      await discovery.service.ready()
      for (let number = 1; number <= 10; number++) connect(number)
      await Promise.all(clients.map((client) => client.ready()))
      changing = setInterval(changeFile, 50)
    })
    beforeEach(() => {
      reconnects = 0
    })
    after(async () => {
      clearInterval(changing)
      for (const client of clients) client.close()
      await discovery.dispose()
    })

    it('the load is a thousand changes a second, or at least half of that on a busy machine', async () => {
      const inbound = async () =>
        (await discovery.debug<{ name: string; processed: number; coalesced: number }[]>('actorsz')).find(({ name }) => name === 'push-queue')
      const first = await inbound()
      const counting = new OwnTime()
      await until('three thousand changes', async () => {
        const now = await inbound()
        return (now?.processed ?? 0) + (now?.coalesced ?? 0) - (first?.processed ?? 0) - (first?.coalesced ?? 0) >= 3000
      })
      expect(counting.ms(), 'milliseconds for three thousand changes').to.be.lessThan(6000)
    })

    for (const name of ['source/files', 'source/mock', 'jwks-resolver', 'push-queue', 'xds-writer/0']) {
      it(`${name} throws: only its own connections are affected, and nothing is lost`, async () => {
        const [since, before] = [restarts(name), await held()]
        await breakIt(name, 'throw')
        await restartOf(name, since, '^broke$')
        await losesOnly(name, before)
        await converges()
      })
    }

    for (const name of ['source/files', 'source/mock']) {
      it(`${name} dies in the middle of its replay: nothing is withdrawn, and the replay is repeated`, async () => {
        const since = restarts(name)
        await breakIt(name, { atSent: 7 })
        discovery.service.supervisor.kill('push-queue')
        await restartOf(name, since, '^broke while it sent$')
        await converges()
        expect(reconnects).to.equal(0)
      })
    }

    it('the push queue dies in the middle of a replay of a source that died before: nothing is lost', async () => {
      for (const source of ['source/files', 'source/mock']) {
        const since = restarts('push-queue')
        await breakIt('push-queue', { atReceived: 10 })
        discovery.service.supervisor.kill(source)
        await restartOf('push-queue', since, '^broke at a message$')
        await converges()
      }
      expect(reconnects).to.equal(0)
    })

    it('all actors die at once: the service recovers', async () => {
      for (const { name } of discovery.service.supervisor.states()) discovery.service.supervisor.kill(name)
      await until('writers to serve', async () => (await discovery.ready()).status === 200)
      await converges()
    })

    if (mode === 'in-thread') return
    for (const name of ['source/mock', 'push-queue', 'xds-writer/1']) {
      it(`${name} hangs: it is detected and restarted, and nothing is lost`, async () => {
        const [since, before] = [restarts(name), await held()]
        await breakIt(name, 'hang')
        await until('it to be named', async () => (await discovery.ready()).text.includes(`actor ${name} has not answered for`))
        await restartOf(name, since, '^did not answer for [34] s$')
        await losesOnly(name, before)
        await converges()
      })
    }
  })
}
