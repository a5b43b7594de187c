/** Name tables: the cost of a change, sharing between namespaces, and allocated addresses. */
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import type { Endpoint, Service } from '../../../protocols/data.ts'
import { type NameTable, NameTableSchema } from '../../../protocols/gen/mesh/networking/nds/v1/nds_pb.js'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { slicesOf } from '../../../src/registry/slices.ts'
import { aliasNameTableType, listenerType, nameTableType } from '../../../src/xds/type-urls.ts'
import { resourcesOf } from '../../harness/held.ts'
import { Received } from '../../harness/received.ts'
import { names, testSettings } from '../../harness/settings.ts'
import { slabsOf } from '../../harness/slabs.ts'

const port = { number: 3306, name: 'tcp', protocol: 'tcp' as const, targetPort: 0 }

/** A planner whose services are set one by one. */
class Mesh {
  readonly planner = new Planner(testSettings())
  /** Slabs that earlier pushes referred to. */
  readonly #known = new Set<number>()

  service(hostname: string, given: Partial<Service> = {}, addresses: readonly string[] = ['10.0.0.1']): this {
    const service: Service = {
      hostname,
      namespace: 'ns',
      name: hostname,
      provider: 'ServiceEntry',
      cluster: '',
      addresses: ['192.0.2.1'],
      ports: [port],
      resolution: 'static',
      external: true,
      exportTo: [],
      serviceAccounts: [],
      selector: undefined,
      createdAt: 0,
      ...given,
    }
    const endpoints = addresses.map((address): Endpoint => {
      return { address, ports: {}, labels: {}, locality: '', network: '', weight: 0, serviceAccount: '', namespace: 'ns', workload: '' }
    })
    this.planner.state.services.set('test', `${service.namespace}/${hostname}`, { service, slices: slicesOf(endpoints) })
    return this
  }

  remove(hostname: string): this {
    this.planner.state.services.set('test', `ns/${hostname}`, undefined)
    return this
  }

  /** Returns the next push, with the slabs that are new in it. */
  push() {
    this.planner.advance()
    const changes = this.planner.takePush()
    const slabs = slabsOf(changes.groups, this.planner.present.slab).filter(({ id }) => !this.#known.has(id))
    for (const { id } of slabs) this.#known.add(id)
    return { ...changes, slabs }
  }

  connect(connection: string, namespace: string, metadata: object): this {
    const id = `sidecar~10.1.0.1~p.${namespace}~${namespace}.svc.cluster.local`
    this.planner.connect(connection, readNode({ id, metadata: { ...metadata }, locality: undefined }, names, false))
    return this
  }

  table(connection: string, typeUrl = nameTableType): NameTable['table'] | undefined {
    const [resource] = resourcesOf(this.planner, connection).get(typeUrl) ?? []
    return resource && fromBinary(NameTableSchema, this.planner.groups.valueOf(resource)).table
  }

  listeners(connection: string): string[] {
    return (resourcesOf(this.planner, connection).get(listenerType) ?? []).map(({ name }) => name)
  }
}

const captures = { DNS_CAPTURE: 'true' }
const allocates = { DNS_CAPTURE: 'true', DNS_AUTO_ALLOCATE: 'true' }
const bytesOf = ({ slabs }: { slabs: readonly { bytes: Uint8Array | SharedArrayBuffer }[] }) =>
  slabs.reduce((sum, { bytes }) => sum + bytes.byteLength, 0)

describe('name tables', () => {
  const thousand = () => {
    const mesh = new Mesh()
    for (let index = 0; index < 1000; index++) mesh.service(`service-${index}.example.com`, { addresses: [`10.${index >> 8}.${index & 255}.1`] })
    return mesh
  }

  it('are encoded by page: a change of one host of a thousand encodes a fraction of the table', () => {
    const mesh = thousand()
    mesh.connect('without', 'ns', {})
    mesh.push()
    const before = bytesOf(mesh.connect('p', 'ns', captures).push())
    expect(Object.keys(mesh.table('p') ?? {})).to.have.length(1000)
    mesh.service('service-7.example.com', { addresses: ['10.99.99.99'] })
    const push = mesh.push()
    const names = push.groups.filter(({ group }) => group.startsWith('names|'))
    expect(names.map(({ changed }) => changed.length)).to.deep.equal([1, 1])
    expect(mesh.table('p')?.['service-7.example.com']?.ips).to.deep.equal(['10.99.99.99'])
    // The push contains the service's listeners too.
    expect(bytesOf(push)).to.be.below(before / 5)
  })

  it('keep their version if a change does not affect names or addresses', () => {
    const mesh = thousand()
    mesh.connect('p', 'ns', captures).push()
    const received = new Received(mesh.planner, true)
    const version = received.of('p', nameTableType)
    mesh.service('service-7.example.com', { addresses: ['10.0.7.1'], ports: [{ ...port, number: 3307 }] }, ['10.0.0.9']).planner.advance()
    received.take()
    expect(received.of('p', nameTableType)).to.deep.equal(version)
    expect(received.of('p', listenerType).has('10.0.7.1_3307')).to.equal(true)
  })

  it('cost nothing if no proxy captures DNS', () => {
    const mesh = thousand()
    mesh.connect('p', 'ns', { DNS_CAPTURE: 'no' }).connect('q', 'ns', {}).push()
    expect([...mesh.planner.groups.ids()].filter((id) => id.startsWith('names|'))).to.deep.equal([])
  })

  it('of a namespace with one private host share all other pages', () => {
    const mesh = thousand()
    mesh.connect('p', 'other', captures).push()
    mesh.service('own.example.com', { namespace: 'shop', exportTo: ['.'] }).push()
    const bytes = bytesOf(mesh.connect('q', 'shop', captures).push())
    expect(Object.keys(mesh.table('q') ?? {})).to.have.length(1001)
    expect(mesh.table('p')).to.not.have.property('own.example.com')
    expect(bytes).to.be.below(20_000)
  })

  it('are served under the alias type with its registry name; pages without orchestrator services are shared', () => {
    const mesh = thousand().service('db.ns.svc.cluster.local', { provider: 'Orchestrator', name: 'db' })
    mesh.connect('p', 'ns', captures).push()
    expect(mesh.table('p')?.['db.ns.svc.cluster.local']).to.include({ registry: 'Orchestrator', shortname: 'db', namespace: 'ns' })
    expect(mesh.table('p', aliasNameTableType)?.['db.ns.svc.cluster.local']).to.include({ registry: 'Kubernetes', shortname: 'db', namespace: 'ns' })
    expect(Object.keys(mesh.table('p', aliasNameTableType) ?? {})).to.have.length(1001)
    const [mine, alias] = [nameTableType, aliasNameTableType].map((type) => resourcesOf(mesh.planner, 'p').get(type)?.[0]?.slices ?? [])
    const shared = alias?.filter(({ block }) => mine?.some((slice) => slice.block === block))
    expect(shared).to.have.length((alias?.length ?? 0) - 2)
  })

  it('follow the pods of a headless service', () => {
    const headless = { provider: 'Orchestrator', name: 'db', addresses: [], resolution: 'passthrough' as const }
    const mesh = new Mesh().service('db.ns.svc.cluster.local', headless, ['10.0.0.1', '10.0.0.2'])
    mesh.connect('p', 'ns', captures).push()
    const ips = () => mesh.table('p')?.['db.ns.svc.cluster.local']?.ips
    expect(ips()).to.deep.equal(['10.0.0.1', '10.0.0.2'])
    mesh.service('db.ns.svc.cluster.local', headless, ['10.0.0.2', '10.0.0.3']).push()
    expect(ips()).to.deep.equal(['10.0.0.2', '10.0.0.3'])
    mesh.service('db.ns.svc.cluster.local', headless, []).push()
    expect(mesh.table('p')).to.deep.equal({})
  })

  it('have their content again for a proxy that connects after the table was collected', () => {
    const mesh = thousand()
    mesh.connect('p', 'ns', captures).push()
    mesh.planner.disconnect('p')
    for (const now of [0, 10_000]) mesh.planner.collect(now)
    mesh.push()
    mesh.connect('p', 'ns', captures).push()
    expect(Object.keys(mesh.table('p') ?? {})).to.have.length(1000)
  })
})

describe('allocated service addresses', () => {
  const without = { addresses: [] }
  const addressOf = (mesh: Mesh, host: string) => mesh.table('p')?.[host]?.ips[0]

  it('are unique in 240.240.0.0/16, and stay stable when other services come and go', () => {
    const mesh = new Mesh().connect('p', 'ns', allocates)
    for (let index = 0; index < 2000; index++) mesh.service(`h${index}.example.com`, { ...without, createdAt: index })
    mesh.push()
    const table = mesh.table('p') ?? {}
    const addresses = Object.values(table).flatMap(({ ips }) => ips)
    expect(new Set(addresses).size).to.equal(2000)
    for (const address of addresses) {
      const [one, two, , last] = address.split('.').map(Number)
      expect([one, two]).to.deep.equal([240, 240])
      expect(last).to.be.within(1, 254)
    }
    // Older services choose first: a newer service never takes their address, and most newer ones keep theirs when an older one is
    // deleted.
    mesh.service('later.example.com', { ...without, createdAt: 5000 }).push()
    const later = mesh.table('p') ?? {}
    for (const [host, { ips }] of Object.entries(table)) expect(later[host]?.ips, host).to.deep.equal(ips)
    mesh.remove('h0.example.com').push()
    const left = mesh.table('p') ?? {}
    const moved = Object.keys(left).filter((host) => left[host]?.ips[0] !== later[host]?.ips[0])
    expect(moved.length).to.be.below(3)
  })

  it('have listeners, and are dropped when the service gets an address of its own', () => {
    const mesh = new Mesh().connect('p', 'ns', allocates).connect('q', 'ns', captures).service('db.example.com', without)
    mesh.push()
    const address = addressOf(mesh, 'db.example.com')
    expect(mesh.listeners('p')).to.include(`${address}_3306`)
    expect(mesh.listeners('q')).to.include('0.0.0.0_3306')
    expect(mesh.table('q')).to.deep.equal({})
    mesh.service('db.example.com', { addresses: ['192.0.2.9'] }).push()
    expect(addressOf(mesh, 'db.example.com')).to.equal('192.0.2.9')
    expect(mesh.listeners('p')).to.include('192.0.2.9_3306').and.not.include(`${address}_3306`)
  })

  it('are the same at every replica, whatever the order of events', () => {
    const hosts = Array.from({ length: 300 }, (_, index) => `h${index}.example.com`)
    const tables = [hosts, [...hosts].reverse()].map((order) => {
      const mesh = new Mesh().connect('p', 'ns', allocates)
      for (const [index, host] of order.entries()) if (mesh.service(host, without) && index % 60 === 0) mesh.push()
      mesh.push()
      return mesh.table('p')
    })
    expect(tables[0]).to.deep.equal(tables[1])
  })
})
