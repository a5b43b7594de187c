import { expect } from 'chai'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const entry = serviceEntry('a')
const route = (timeout: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: ns}\nspec: {hosts: [a], http: [{timeout: ${timeout}, route: [{destination: {host: a}}]}]}\n`

describe('config distribution tracking (/debug/config_distribution)', () => {
  const service = new Service()
  const clients: XdsClient[] = []
  const client = (name: string, address: string) => {
    const made = new XdsClient(service.grpcPort, sidecarNode(address, name, 'ns'), clients.length % 2 === 0)
    clients.push(made)
    return made.connect().ready()
  }
  after(async () => {
    for (const made of clients) made.close()
    await service.dispose()
  })
  type Row = { proxy: string; cluster_acked: string; listener_acked: string; route_acked: string }
  const acked = async (resource = 'VirtualService/ns/a') => {
    const rows = await service.debug<Row[]>(`config_distribution?resource=${resource}`)
    return Object.fromEntries(rows.map((row) => [row.proxy.split('.')[0], row.route_acked]))
  }
  const become = (expected: Record<string, string>) =>
    until(`generations to be ${JSON.stringify(expected)}`, async () => {
      const found = await acked()
      return Object.entries(expected).every(([proxy, generation]) => found[proxy] === generation)
    })

  it("shows which generation of a file's object each proxy has, whether it acknowledged, is silent or rejected it", async () => {
    service.write('entry.yaml', entry)
    service.write('route.yaml', route('1s'))
    await service.start()
    await client('takes', '10.1.0.1')
    const silent = await client('silent', '10.1.0.2')
    const refuses = await client('refuses', '10.1.0.3')
    await become({ takes: '1', silent: '1', refuses: '1' })
    silent.silent = true
    service.write('route.yaml', route('2s'))
    await become({ takes: '2', silent: '1', refuses: '2' })
    refuses.refuseNext = 'no'
    service.write('route.yaml', route('3s'))
    await become({ takes: '3', silent: '1', refuses: '2' })
    service.write('route.yaml', route('1s'))
    await become({ takes: '4', silent: '1' })
    const [row] = await service.debug<Row[]>('config_distribution?resource=VirtualService/ns/a&proxy_namespace=ns')
    expect(row, 'types that the change did not touch have what there is').to.deep.include({ cluster_acked: '4', listener_acked: '4' })
    expect(await acked('ServiceEntry/ns/a')).to.deep.equal({ takes: '1', silent: '1', refuses: '1' })
    const unknown = async (resource: string) => {
      const answer = await fetch(`http://127.0.0.1:${service.httpPort}/debug/config_distribution?resource=${resource}`)
      return [answer.status, (await answer.text()).trim()]
    }
    const form = '(<Kind>/<namespace>/<name>)'
    expect(await unknown('VirtualService/ns/aa')).to.deep.equal([
      404,
      `there is no "VirtualService/ns/aa" ${form}; did you mean "VirtualService/ns/a"?`,
    ])
    expect(await unknown('VirtualService/ns/none&count')).to.deep.equal([
      404,
      `there is no "VirtualService/ns/none" ${form}; did you mean "VirtualService/ns/a"?`,
    ])
    expect(await unknown('routes')).to.deep.equal([404, `there is no "routes" ${form}`])
    // A known one that no proxy has.
    expect(await service.debug('config_distribution?resource=VirtualService/ns/a&proxy_namespace=none')).to.deep.equal([])
  })

  it('counts proxies, and says of those with a version that is no longer kept that it is not', async () => {
    const kept = new Service({ env: { PILOT_DISTRIBUTION_HISTORY_RETENTION: '0s' } })
    const made: XdsClient[] = []
    try {
      kept.write('entry.yaml', entry)
      kept.write('route.yaml', route('1s'))
      await kept.start()
      for (const [name, address] of [
        ['takes', '10.1.0.1'],
        ['silent', '10.1.0.2'],
      ] as const)
        made.push(await new XdsClient(kept.grpcPort, sidecarNode(address, name, 'ns'), true).connect().ready())
      const counts = () => kept.debug<Record<string, unknown>>('config_distribution?resource=VirtualService/ns/a&count')
      const become = (of: object) =>
        until(`the counts to be ${JSON.stringify(of)}`, async () => JSON.stringify((await counts()).route_acked) === JSON.stringify(of))
      await become({ 1: 2 })
      const [, silent] = made
      if (silent) silent.silent = true
      // A version is dropped when a later one is replaced.
      kept.write('route.yaml', route('2s'))
      await become({ 1: 1, 2: 1 })
      kept.write('route.yaml', route('3s'))
      await become({ 3: 1, 'not kept': 1 })
      expect(await counts()).to.deep.include({ proxies: 2 })
    } finally {
      for (const each of made) each.close()
      await kept.dispose()
    }
  })

  it('counts an object as applied if it changes nothing for a proxy', async () => {
    service.write(
      'rule.yaml',
      'apiVersion: networking.mesh.io/v1\nkind: DestinationRule\nmetadata: {name: g, namespace: ns}\nspec: {host: nobody.example.com}\n',
    )
    await until('the new object to count as taken', async () => (await acked('DestinationRule/ns/g')).takes === '1')
    expect((await acked('DestinationRule/ns/g')).silent).to.equal('')
  })

  it('shows an object that is gone as long as a proxy has it', async () => {
    service.write('route.yaml', '')
    const rows = () => fetch(`http://127.0.0.1:${service.httpPort}/debug/config_distribution?resource=VirtualService/ns/a`)
    await until('the proxy that answers to be without it', async () => {
      const answer = await rows()
      return answer.ok && ((await answer.json()) as Row[]).some(({ proxy, route_acked }) => proxy.startsWith('takes') && route_acked === '')
    })
    expect((await acked()).silent).to.equal('1')
    clients[1]?.close()
    await until('the object to be unknown', async () => (await rows()).status === 404)
  })

  it('shows the present generation of a route that comes with the first host of its port', async () => {
    for (const delta of [true, false]) {
      const fresh = new Service()
      let early: XdsClient | undefined
      try {
        await fresh.start()
        early = new XdsClient(fresh.grpcPort, sidecarNode('10.1.0.1', 'early', 'ns'), delta)
        await early.connect().ready()
        fresh.write('both.yaml', `${entry}---\n${route('1s')}`)
        await until('the generation', async () => {
          const [row] = await fresh.debug<Row[]>('config_distribution?resource=VirtualService/ns/a')
          return row?.cluster_acked === '1' && row.listener_acked === '1' && row.route_acked === '1'
        })
      } finally {
        early?.close()
        await fresh.dispose()
      }
    }
  })

  it('answers 409 if it is switched off, and 422 without a resource', async () => {
    const status = async (of: Service, query: string) => (await fetch(`http://127.0.0.1:${of.httpPort}/debug/config_distribution${query}`)).status
    expect(await status(service, '')).to.equal(422)
    const off = new Service({ env: { PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING: 'false' } })
    try {
      await off.start()
      expect(await status(off, '?resource=a/b/c')).to.equal(409)
    } finally {
      await off.dispose()
    }
  })
})
