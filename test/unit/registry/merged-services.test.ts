import { expect } from 'chai'
import fc from 'fast-check'
import type { Endpoint, EndpointSlice, Service } from '../../../protocols/data.ts'
import { Faults } from '../../../src/model/faults.ts'
import { MergedServices, registryName, type ServiceRecord, type ServiceState } from '../../../src/registry/merged-services.ts'
import { slicesOf } from '../../../src/registry/slices.ts'
import { runs } from '../../harness/seed.ts'

const service = (provider: string, cluster: string, changes: Partial<Service> = {}): Service => ({
  hostname: 'a.com',
  namespace: 'ns',
  name: 'a',
  provider,
  cluster,
  addresses: [],
  ports: [],
  resolution: 'static',
  external: false,
  exportTo: [],
  serviceAccounts: [],
  selector: undefined,
  createdAt: 0,
  ...changes,
})
const endpoint = (address: string, serviceAccount = ''): Endpoint => ({
  address,
  ports: {},
  labels: {},
  locality: '',
  network: '',
  weight: 0,
  serviceAccount,
  namespace: 'ns',
  workload: '',
})
const record = (of: Service, ...addresses: string[]): ServiceRecord => ({
  service: of,
  slices: slicesOf(addresses.map((address) => endpoint(address))),
})
const slice = (part: string, version: string, ...endpoints: Endpoint[]): EndpointSlice => ({ key: part, version, endpoints })
const key = 'ns/a.com'

describe('services of several registries', () => {
  const merged = (...records: [source: string, record: ServiceRecord][]): ServiceState | undefined => {
    const services = new MergedServices(new Faults())
    for (const [source, each] of records) services.set(source, key, each)
    return services.merge().services.get('a.com')?.[0]
  }

  it('are merged by host and namespace: the oldest definition applies, endpoints are joined by cluster and provider', () => {
    const state = merged(
      ['Orchestrator/west', record(service('Orchestrator', 'west', { createdAt: 2 }), '10.0.0.3')],
      ['Mock/east', record(service('Mock', 'east', { createdAt: 1 }), '10.0.0.2')],
      ['ServiceEntry/ns/b', record(service('ServiceEntry', '', { createdAt: 3 }), '10.0.0.1')],
      ['Orchestrator/east', record(service('Orchestrator', 'east', { createdAt: 4 }), '10.0.0.4')],
    )
    expect(state?.service).to.include({ provider: 'Mock', cluster: 'east' })
    expect(state?.shards.map((shard) => [registryName(shard), shard.endpoints.map(({ address }) => address)])).to.deep.equal([
      ['ServiceEntry', ['10.0.0.1']],
      ['Mock/east', ['10.0.0.2']],
      ['Orchestrator/east', ['10.0.0.4']],
      ['Orchestrator/west', ['10.0.0.3']],
    ])
    expect(state?.endpoints).to.deep.equal(state?.shards.flatMap(({ endpoints }) => endpoints))
  })

  it('of the same age prefer an entry, then the first name; entries for one host form one shard', () => {
    const entry = (name: string, address: string): [string, ServiceRecord] => [
      `ServiceEntry/ns/${name}`,
      record(service('ServiceEntry', '', { name }), address),
    ]
    const state = merged(['Mock/east', record(service('Mock', 'east'), '10.0.0.9')], entry('z', '10.0.0.2'), entry('b', '10.0.0.1'))
    expect(state?.service.name).to.equal('b')
    expect(state?.shards.map(({ endpoints }) => endpoints.length)).to.deep.equal([2, 1])
    expect(state?.endpoints.map(({ address }) => address)).to.deep.equal(['10.0.0.1', '10.0.0.2', '10.0.0.9'])
  })

  it('in other namespaces stay separate, sorted by namespace', () => {
    const services = new MergedServices(new Faults())
    for (const namespace of ['b', 'a', 'c']) services.set('Mock/east', `${namespace}/a.com`, record(service('Mock', 'east', { namespace })))
    expect(
      services
        .merge()
        .services.get('a.com')
        ?.map((state) => state.service.namespace),
    ).to.deep.equal(['a', 'b', 'c'])
    services.set('Mock/east', 'b/a.com', undefined)
    expect(
      services
        .merge()
        .services.get('a.com')
        ?.map((state) => state.service.namespace),
    ).to.deep.equal(['a', 'c'])
  })
})

describe('a merge of services', () => {
  it("reports changes of definitions, of clusters' content, or of endpoints only", () => {
    const services = new MergedServices(new Faults())
    const said = (change: () => void) => {
      change()
      const { onlyEndpoints } = services
      const { hosts, redefined, definitions } = services.merge()
      return { hosts: [...hosts], redefined: [...redefined], definitions, onlyEndpoints }
    }
    const set = (address: string, changes: Partial<Service> = {}) => services.set('Mock/east', key, record(service('Mock', 'east', changes), address))
    expect(said(() => set('10.0.0.1'))).to.deep.equal({ hosts: ['a.com'], redefined: ['a.com'], definitions: 1, onlyEndpoints: false })
    expect(said(() => set('10.0.0.2'))).to.deep.equal({ hosts: ['a.com'], redefined: [], definitions: 1, onlyEndpoints: true })
    expect(said(() => set('10.0.0.2'))).to.deep.equal({ hosts: [], redefined: [], definitions: 1, onlyEndpoints: true })
    expect(
      said(() => services.setSlice('Mock/east', key, '', slice('', '', endpoint('10.0.0.2', 'other')))).redefined,
      'accounts show in clusters',
    ).to.deep.equal(['a.com'])
    expect(said(() => set('10.0.0.2', { resolution: 'dns' }))).to.deep.include({ redefined: ['a.com'], definitions: 2 })
    expect(
      said(() => set('b.com', { resolution: 'dns' })),
      'clusters carry these endpoints',
    ).to.deep.include({ redefined: ['a.com'], definitions: 2 })
    expect(said(() => services.set('Mock/east', key, undefined))).to.deep.include({ redefined: ['a.com'], definitions: 3, onlyEndpoints: false })
    expect(
      said(() => services.setSlice('Mock/east', key, '', slice('', '', endpoint('10.0.0.9')))).hosts,
      'of a service that nobody named',
    ).to.deep.equal([])
  })

  it('keeps unchanged parts as the same objects', () => {
    const services = new MergedServices(new Faults())
    services.set('Mock/east', key, record(service('Mock', 'east'), '10.0.0.1'))
    services.set('Mock/west', key, record(service('Mock', 'west'), '10.0.0.2'))
    const [before] = services.merge().services.get('a.com') ?? []
    services.set('Mock/west', key, record(service('Mock', 'west'), '10.0.0.3'))
    const [now] = services.merge().services.get('a.com') ?? []
    expect(now?.service).to.equal(before?.service)
    expect(now?.shards[0]).to.equal(before?.shards[0])
    expect(now?.shards[1]).not.to.equal(before?.shards[1])
    services.set('Mock/west', key, record(service('Mock', 'west'), '10.0.0.3'))
    expect(services.merge().services.get('a.com')?.[0]).to.equal(now)
  })

  it('compares slices by version, and by content where there is none; equal endpoints stay the same objects', () => {
    const services = new MergedServices(new Faults())
    const of = service('Mock', 'east')
    const [one, other, third] = [endpoint('10.0.0.1'), endpoint('10.0.0.2'), endpoint('10.0.0.3')]
    const copy = <T>(value: T): T => structuredClone(value)
    services.set('Mock/east', key, { service: of, slices: [slice('b', '7', third), slice('a', '', one, other)] })
    const state = () => services.merge().services.get('a.com')?.[0] as ServiceState
    const before = state()
    expect(
      before.endpoints.map(({ address }) => address),
      'in the order of the keys',
    ).to.deep.equal(['10.0.0.1', '10.0.0.2', '10.0.0.3'])
    expect(services.setSlice('Mock/east', key, 'a', slice('a', '', copy(one), copy(other))), 'equal content').to.equal(false)
    expect(services.setSlice('Mock/east', key, 'b', slice('b', '7')), 'an equal version').to.equal(false)
    expect(services.setSlice('Mock/east', key, 'b', slice('b', '8', copy(third))), 'another version of the same').to.equal(false)
    expect(state()).to.equal(before)
    services.setSlice('Mock/east', key, 'a', slice('a', '', endpoint('10.0.0.9'), copy(one), { ...other, labels: { version: 'v2' } }))
    const now = state()
    expect(now.shards[0]?.slices[1]).to.equal(before.shards[0]?.slices[1])
    expect(now.endpoints[1]).to.equal(before.endpoints[0])
    expect(now.endpoints[2]).not.to.equal(before.endpoints[1])
    services.set('Mock/east', key, { service: { ...of, addresses: ['240.0.0.1'] }, slices: undefined })
    expect(state().endpoints, 'a definition alone').to.deep.equal(now.endpoints)
    services.setSlice('Mock/east', key, 'a', undefined)
    expect(state().endpoints).to.deep.equal([third])
  })

  it('counts the endpoints that are not ready', () => {
    const services = new MergedServices(new Faults())
    const [gone, late] = [endpoint('10.0.0.1'), endpoint('10.0.0.2')].map(
      (of, at) => ({ ...of, readiness: at === 0 ? 'terminating' : 'unready' }) as Endpoint,
    )
    const unready = () => [services.merge(), services.unready][1]
    services.set('Mock/east', key, {
      service: service('Mock', 'east'),
      slices: [slice('a', '', gone as Endpoint, late as Endpoint, endpoint('10.0.0.3'))],
    })
    expect(unready()).to.equal(2)
    services.setSlice('Mock/east', key, 'a', slice('a', '', endpoint('10.0.0.2'), endpoint('10.0.0.3')))
    expect(unready()).to.equal(0)
    services.setSlice('Mock/east', key, 'a', slice('a', '', late as Endpoint))
    services.merge()
    services.set('Mock/east', key, undefined)
    expect(unready()).to.equal(0)
  })

  it('leaves a service that cannot be merged, and all others, as they are', () => {
    const faults = new Faults()
    const services = new MergedServices(faults)
    services.set('Mock/east', key, record(service('Mock', 'east'), '10.0.0.1'))
    const before = services.merge()
    const broken = { ...service('Mock', 'east', { createdAt: 1 }), toJSON: () => '{}' }
    Object.defineProperty(broken, 'provider', {
      get() {
        throw new Error('unreadable')
      },
    })
    services.set('Mock/west', key, { service: broken, slices: [] })
    services.set('Mock/east', 'ns/b.com', record(service('Mock', 'east', { hostname: 'b.com' })))
    const now = services.merge()
    expect(now.services.get('a.com')?.[0]).to.equal(before.services.get('a.com')?.[0])
    expect(now.services.has('b.com')).to.equal(true)
    expect(faults.all().map(({ resource, reason }) => `${resource}: ${reason}`)).to.deep.equal([`${key}: unreadable`])
  })

  it('gives the same result for any order and history of records', () => {
    const source = fc.constantFrom('Mock/east', 'Mock/west', 'Orchestrator/east', 'ServiceEntry/ns/x', 'ServiceEntry/ns/y')
    const step = fc.record({
      source,
      namespace: fc.constantFrom('a', 'b'),
      host: fc.constantFrom('x.com', 'y.com'),
      there: fc.boolean(),
      createdAt: fc.integer({ min: 0, max: 2 }),
      addresses: fc.uniqueArray(fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.3'), { maxLength: 3 }),
      merge: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const services = new MergedServices(new Faults())
        const last = new Map<string, () => void>()
        const fresh = new MergedServices(new Faults())
        for (const { source: from, namespace, host, there, createdAt, addresses, merge } of steps) {
          const [provider = '', cluster = ''] = from.split('/')
          const of = service(provider, provider === 'ServiceEntry' ? '' : cluster, { namespace, hostname: host, name: from, createdAt })
          const now = there ? record(of, ...addresses) : undefined
          services.set(from, `${namespace}/${host}`, now)
          last.set(`${from} ${namespace} ${host}`, () => fresh.set(from, `${namespace}/${host}`, now))
          if (merge) services.merge()
        }
        for (const set of [...last.values()].reverse()) set()
        const sorted = (of: MergedServices) => [...of.merge().services].sort(([one], [other]) => (one < other ? -1 : 1))
        expect(sorted(services)).to.deep.equal(sorted(fresh))
      }),
      { numRuns: runs(200) },
    )
  })
})
