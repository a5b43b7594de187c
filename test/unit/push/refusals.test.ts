/** The configuration that a proxy gets after it rejected one (docs/resources.md, F7). */
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
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
  readonly planner = new Planner(testSettings())

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

  connect(connection: string): this {
    const id = 'sidecar~10.0.0.1~a.shop~shop.svc.cluster.local'
    this.planner.connect(connection, readNode({ id, metadata: {}, locality: undefined }, names, false))
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

  /** Returns the HTTP filters of the port, or the only filter chain of a listener that denies everything. */
  filters(connection: string): string {
    const resource = this.find(connection, listenerType, 'virtualInbound')
    const listener: Listener = fromBinary(ListenerSchema, this.planner.groups.valueOf(resource as never))
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
      'virtualInbound [EnvoyFilter/shop/f] patches of it (HTTP_FILTER INSERT_FIRST) are withdrawn from proxies that refuse them, until they change',
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
    expect(mesh.faults()).to.deep.equal(['virtualInbound [ServiceEntry/shop/s] the proxy keeps the previous resource'])
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
      /^virtualInbound \[AuthorizationPolicy\/shop\/d,.*\] the policies changed with it, so it is replaced by a listener that denies all traffic/,
    )
    mesh.filter('f', inbound(lua('third')))
    expect(mesh.filters('p')).to.equal('third,rbac')
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
      expect(mesh.faults()[0]).to.include('patches of it (VIRTUAL_HOST MERGE) are withdrawn')
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
