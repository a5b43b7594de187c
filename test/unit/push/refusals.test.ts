/** The configuration that a proxy gets after it rejected one (docs/resources.md, F7). */
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import type { ResourceFault } from '../../../src/model/faults.ts'
import { readNode } from '../../../src/model/proxy.ts'
import type { Refusal } from '../../../src/push/classes/refusals.ts'
import { Planner } from '../../../src/push/planner.ts'
import { clusterType, listenerType, routeType, virtualHostType } from '../../../src/xds/type-urls.ts'
import { resourcesOf } from '../../harness/held.ts'
import { names, testSettings } from '../../harness/settings.ts'

const lua = (name: string) => ({
  name,
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua', default_source_code: { inline_string: '--' } },
})
const unknown = (name: string) => ({ name, typed_config: { '@type': 'type.googleapis.com/envoy.extensions.of.nobody.v3.Config' } })
const inbound = (value: object) => ({ applyTo: 'HTTP_FILTER', match: { context: 'SIDECAR_INBOUND' }, patch: { operation: 'INSERT_FIRST', value } })
const cluster = (name: string) => ({ applyTo: 'CLUSTER', patch: { operation: 'ADD', value: { name, type: 'STATIC' } } })

class Mesh {
  readonly found: ResourceFault[] = []
  readonly planner = new Planner(testSettings(), (fault) => this.found.push(fault))

  constructor() {
    const ports = [{ number: 80, name: 'http', protocol: 'HTTP' }]
    this.set('networking', 'ServiceEntry', 's', {
      hosts: ['a.com'],
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      ports,
      endpoints: [{ address: '10.0.0.1' }],
    })
  }

  set(group: string, kind: string, name: string, spec: object): this {
    const text = JSON.stringify({ apiVersion: `${group}.mesh.io/v1`, kind, metadata: { name, namespace: 'shop' }, spec })
    for (const object of parseConfigFile('f', text, names).objects) this.planner.state.setConfig(configKey(object), object)
    this.planner.advance()
    this.planner.takePush()
    return this
  }

  filter(name: string, ...configPatches: object[]): this {
    return this.set('networking', 'EnvoyFilter', name, { configPatches })
  }

  deny(): this {
    return this.set('security', 'AuthorizationPolicy', 'd', { action: 'DENY', rules: [{ to: [{ operation: { paths: ['/admin'] } }] }] })
  }

  connect(connection: string, metadata: Record<string, unknown> = {}): this {
    const id = `sidecar~10.0.0.1~${connection}.shop~shop.svc.cluster.local`
    this.planner.connect(connection, readNode({ id, metadata, locality: undefined }, names, false))
    return this
  }

  classOf(connection: string): string {
    return this.planner.proxies().find((proxy) => proxy.connection === connection)?.proxyClass?.id ?? ''
  }

  find(connection: string, type: string, name: string) {
    return resourcesOf(this.planner, connection)
      .get(type)
      ?.find((each) => each.name === name)
  }

  /** The proxy rejects its present version of a listener or cluster. Returns whether it is sent a different one. */
  refuse(connection: string, name: string, more: Partial<Refusal> = {}): boolean {
    const typeUrl = more.typeUrl ?? listenerType
    const version = this.find(connection, typeUrl, name)?.version ?? ''
    const refusal = { typeUrl, resources: [{ name, version }], detail: 'no', policiesChanged: false, ...more }
    return this.planner.refused(connection, this.classOf(connection), refusal)
  }

  listener(connection: string): Listener {
    const resource = this.find(connection, listenerType, 'virtualInbound')
    return fromBinary(ListenerSchema, this.planner.groups.valueOf(resource as never))
  }

  /** Returns the HTTP filters of the port, or the only filter chain of a listener that denies everything. */
  filters(connection: string): string {
    const listener = this.listener(connection)
    if (listener.filterChains.length === 1) return listener.filterChains[0]?.name ?? ''
    const bytes = listener.filterChains.find(({ name }) => name === '0.0.0.0_80')?.filters[0]?.configType.value as { value: Uint8Array }
    return ['first', 'second', 'third', 'rbac'].filter((name) => Buffer.from(bytes.value).includes(name)).join()
  }

  faults(): string[] {
    return this.planner.faults
      .all()
      .filter(({ type }) => type === 'refused')
      .map(({ resource, objects, consequence }) => `${resource} [${objects.join()}] ${consequence}`)
  }
}

describe('a proxy that rejects its listener', () => {
  it('gets it without the patch that the error names, and other proxies of its class keep that patch', () => {
    const mesh = new Mesh()
      .filter('f', inbound(lua('second')), inbound(lua('first')))
      .connect('p')
      .connect('q')
    expect(mesh.filters('p')).to.equal('first,second')
    expect(mesh.refuse('p', 'virtualInbound', { detail: "script load error of 'second'" })).to.equal(true)
    expect([mesh.filters('p'), mesh.filters('q')]).to.deep.equal(['first', 'first,second'])
    expect(mesh.faults()).to.deep.equal([
      'Listener virtualInbound [EnvoyFilter/shop/f] patches (HTTP_FILTER INSERT_FIRST) are withdrawn from proxies that refuse them, until they change',
    ])
  })

  it('gets it without the unchecked patches first, then without all patches', () => {
    const mesh = new Mesh().filter('f', inbound(lua('first')), inbound(unknown('second')), cluster('more')).connect('p')
    mesh.refuse('p', 'virtualInbound')
    expect(mesh.filters('p')).to.equal('first')
    mesh.refuse('p', 'virtualInbound')
    expect(mesh.filters('p')).to.equal('')
    expect(mesh.find('p', clusterType, 'more')).to.be.an('object')
  })

  it('gets the patches back if they were not the cause', () => {
    const mesh = new Mesh().filter('f', inbound(lua('first'))).connect('p')
    mesh.refuse('p', 'virtualInbound')
    expect(mesh.refuse('p', 'virtualInbound')).to.equal(true)
    expect(mesh.filters('p')).to.equal('first')
    expect(mesh.refuse('p', 'virtualInbound'), 'nothing else is left to try').to.equal(false)
    expect(mesh.faults()).to.deep.equal(['Listener virtualInbound [ServiceEntry/shop/s] the proxy keeps the previous resource'])
  })

  it('gets a changed patch although it rejected an earlier version of it', () => {
    const mesh = new Mesh().filter('f', inbound(unknown('first'))).connect('p')
    mesh.refuse('p', 'virtualInbound')
    expect(mesh.filters('p')).to.equal('')
    mesh.filter('f', inbound(lua('second')))
    expect(mesh.filters('p')).to.equal('second')
    expect(mesh.faults()).to.deep.equal([])
  })

  it('gets new policies in the version without the patch', () => {
    const mesh = new Mesh()
      .filter('f', inbound(unknown('first')))
      .connect('p')
      .deny()
    mesh.refuse('p', 'virtualInbound', { policiesChanged: true })
    expect(mesh.filters('p')).to.equal('rbac')
  })

  it('gets a listener that denies everything if policies changed with it, until the listener changes again', () => {
    const mesh = new Mesh().connect('p').connect('q').deny()
    expect(mesh.refuse('p', 'virtualInbound', { policiesChanged: true })).to.equal(true)
    expect([mesh.filters('p'), mesh.filters('q')]).to.deep.equal(['refused', 'rbac'])
    expect(mesh.faults()[0]).to.match(
      /^Listener virtualInbound \[AuthorizationPolicy\/shop\/d,.*\] the policies changed with it, so it is replaced by a listener that denies all traffic/,
    )
    mesh.filter('f', inbound(lua('third')))
    expect(mesh.filters('p')).to.equal('third,rbac')
  })

  it('gets a listener that denies everything and is transparent as the rejected one', () => {
    const mesh = new Mesh().connect('p', { INTERCEPTION_MODE: 'TPROXY' }).connect('q').deny()
    for (const connection of ['p', 'q']) mesh.refuse(connection, 'virtualInbound', { policiesChanged: true })
    expect(['p', 'q'].map(mesh.filters, mesh)).to.deep.equal(['refused', 'refused'])
    expect(['p', 'q'].map((connection) => mesh.listener(connection).transparent)).to.deep.equal([true, undefined])
  })

  it('gets routes without patches if it rejects routes or virtual hosts without naming them', () => {
    for (const typeUrl of [routeType, virtualHostType]) {
      const patch = { operation: 'MERGE', value: { require_tls: 'ALL' } }
      const mesh = new Mesh()
        .filter('f', { applyTo: 'VIRTUAL_HOST', match: { context: 'SIDECAR_OUTBOUND' }, patch }, inbound(lua('first')))
        .connect('p')
      const before = mesh.classOf('p')
      expect(mesh.refuse('p', '', { typeUrl, resources: [] })).to.equal(true)
      expect(mesh.classOf('p')).to.not.equal(before)
      expect(mesh.filters('p')).to.equal('first')
      expect(mesh.faults()[0]).to.include('patches (VIRTUAL_HOST MERGE) are withdrawn')
    }
  })

  it('is sent nothing else for a NACK of an outdated version', () => {
    const mesh = new Mesh().filter('f', inbound(lua('first'))).connect('p')
    expect(mesh.refuse('p', 'virtualInbound', { resources: [{ name: 'virtualInbound', version: 'of the past' }] })).to.equal(false)
    expect(mesh.planner.refused('p', 'another class', { typeUrl: listenerType, resources: [], detail: '', policiesChanged: true })).to.equal(false)
  })

  it('leaves no fault and no class behind when it disconnects', () => {
    const mesh = new Mesh()
      .filter('f', inbound(lua('first')))
      .connect('p')
      .connect('q')
    mesh.refuse('p', 'virtualInbound')
    mesh.planner.disconnect('p')
    expect(mesh.faults()).to.deep.equal([])
    mesh.planner.collect(0)
    mesh.planner.collect(10_000)
    expect(mesh.planner.classCount).to.equal(1)
  })

  it('loses an added listener that it rejects, and keeps a patch that only the error about that listener names', () => {
    const listener = (name: string) => ({
      applyTo: 'LISTENER',
      match: { context: 'SIDECAR_OUTBOUND' },
      patch: { operation: 'ADD', value: added(name) },
    })
    const added = (name: string) => ({
      name,
      address: { socket_address: { address: '127.0.0.1', port_value: 1 } },
      filter_chains: [{ filters: [unknown('nothing')] }],
    })
    const mesh = new Mesh().filter('f', listener('one'), listener('other'), inbound(unknown('first')), inbound(unknown('second'))).connect('p')
    const refuse = (names: string[], detail: string) => {
      const resources = names.map((name) => ({ name, version: mesh.find('p', listenerType, name)?.version ?? '' }))
      mesh.refuse('p', '', { resources, detail })
    }
    refuse(['virtualInbound', 'one'], 'virtualInbound: no filter first\none: no filter second')
    expect([mesh.filters('p'), mesh.find('p', listenerType, 'one'), mesh.find('p', listenerType, 'other')?.name]).to.deep.equal([
      'second',
      undefined,
      'other',
    ])
    const found = mesh.found.map(({ resource, reason, consequence }) => `${resource} ${reason} ${consequence.split(' are ')[0]}`)
    expect(found).to.deep.equal([
      'Listener virtualInbound no filter first patches (HTTP_FILTER INSERT_FIRST)',
      'Listener one no filter second patches (LISTENER ADD)',
    ])
  })

  it('gets no cluster of the withdrawn patch, although removed clusters stay for two seconds', () => {
    const mesh = new Mesh().filter('f', cluster('more')).connect('p').connect('q')
    const withdrawn = ['Cluster more [EnvoyFilter/shop/f] patches (CLUSTER ADD) are withdrawn from proxies that refuse them, until they change']
    expect(mesh.refuse('p', 'more', { typeUrl: clusterType })).to.equal(true)
    expect(mesh.faults()).to.deep.equal(withdrawn)
    expect(mesh.refuse('p', 'more', { typeUrl: clusterType }), 'the cluster that stays').to.equal(false)
    mesh.planner.sweep()
    expect([mesh.find('p', clusterType, 'more'), mesh.find('q', clusterType, 'more')?.name]).to.deep.equal([undefined, 'more'])
    expect(mesh.faults()).to.deep.equal(withdrawn)
  })

  it('causes few classes, whatever proxies reject', () => {
    const mesh = new Mesh().filter('f', ...Array.from({ length: 40 }, (_, index) => cluster(`added-${index}`)))
    for (let index = 0; index < 40; index++) {
      mesh.connect(`p${index}`)
      mesh.refuse(`p${index}`, `added-${index}`, { typeUrl: clusterType })
    }
    mesh.planner.sweep()
    mesh.planner.collect(0)
    mesh.planner.collect(10_000)
    expect(mesh.planner.classCount).to.be.below(20)
  })
})

describe('the fault of a rejected resource', () => {
  const reported = (mesh: Mesh) =>
    mesh.planner.faults.all().map(({ resource, reason, proxy, otherProxies }) => `${resource} by ${proxy} and ${otherProxies}: ${reason}`)

  for (const [what, detail, reason] of [
    ['of one listener', 'Error adding/updating listener(s) virtualInbound: no filter x\n', 'no filter x'],
    ['of several listeners', 'Error adding/updating listener(s) virtualOutbound: first\nvirtualInbound: no\n  filter x\n', 'no filter x'],
    ['of listeners after it', 'Error adding/updating listener(s) virtualInbound: no filter x\nvirtualOutbound: second\n', 'no filter x'],
    ['in the form for clusters', 'Error adding/updating cluster(s) virtualInbound: no filter x, virtualOutbound: second', 'no filter x'],
    ['that does not name it', 'Error adding/updating listener(s) no filter x\n', 'no filter x'],
    ['without text', ' \n', 'the proxy gives no reason'],
    ['that is long', `virtualInbound: ${'x'.repeat(400)}`, `${'x'.repeat(300)}...`],
  ] as const)
    it(`has the part about the resource of a message ${what}`, () => {
      const mesh = new Mesh().connect('p')
      const refused = ['virtualOutbound', 'virtualInbound'].filter((name) => name === 'virtualInbound' || detail.includes(name))
      const resources = refused.map((name) => ({ name, version: mesh.find('p', listenerType, name)?.version ?? '' }))
      mesh.refuse('p', 'virtualInbound', { resources, detail })
      expect(reported(mesh)).to.include(`Listener virtualInbound by p.shop and 0: ${reason}`)
    })

  it('names one of the connected proxies that reject the resource, and counts the others', () => {
    const mesh = new Mesh()
    for (let index = 1; index <= 12; index++) mesh.connect(`p${index}`)
    for (let index = 1; index <= 12; index++) mesh.refuse(`p${index}`, 'virtualInbound')
    expect(reported(mesh)).to.deep.equal(['Listener virtualInbound by p1.shop and 11: no'])
    mesh.planner.disconnect('p1')
    mesh.refuse('p2', 'virtualInbound')
    expect(reported(mesh)).to.deep.equal(['Listener virtualInbound by p2.shop and 10: no'])
    expect(mesh.found.map(({ proxy, otherProxies = 0 }) => `${proxy} ${otherProxies}`)).to.deep.equal(['p1.shop 0', 'p10.shop 9'])
    for (let index = 2; index <= 12; index++) mesh.planner.disconnect(`p${index}`)
    expect(reported(mesh)).to.deep.equal([])
  })
})
