import { expect } from 'chai'
import fc from 'fast-check'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { clusterType, endpointType, listenerType, routeType } from '../../../src/xds/type-urls.ts'
import { resourcesOf } from '../../harness/held.ts'
import { runs } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'
import { slabsOf } from '../../harness/slabs.ts'

const planner = () => new Planner(testSettings())
const node = (address: string, namespace: string, metadata: Record<string, unknown> = {}, zone = '') =>
  readNode(
    {
      id: `sidecar~${address}~p.${namespace}~${namespace}.svc.cluster.local`,
      metadata,
      locality: zone === '' ? undefined : { region: 'r', zone, subZone: '' },
    },
    names,
    false,
  )
const objectOf = (kind: string, name: string, spec: string) => {
  const { objects, faults } = parseConfigFile(
    'f',
    `apiVersion: networking.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ns}\nspec: ${spec}\n`,
    names,
  )
  expect(faults).to.deep.equal([])
  return objects[0] as (typeof objects)[number]
}
/** A policy, without its spec. */
const policyOf = (kind: string) => ({
  ...objectOf('ServiceEntry', 'p', '{hosts: [x], ports: [{number: 1, name: a}]}'),
  kind,
  group: 'security.mesh.io',
})
const entry = (name: string, endpoint: string, port = 80) =>
  objectOf(
    'ServiceEntry',
    name,
    `{hosts: [${name}.ns.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: ${port}, name: http}], endpoints: [{address: ${endpoint}}]}`,
  )
/** Whether the next push contains resources with this text. */
const sends = (made: Planner, text: string) =>
  slabsOf(made.takePush().groups, made.present.slab).some(({ bytes }) => Buffer.from(bytes).includes(text))
/** Returns the resources of a proxy: versions by type and name. */
const heldBy = (made: Planner, connection: string) =>
  Object.fromEntries(
    [...resourcesOf(made, connection)].map(([typeUrl, resources]) => [typeUrl, resources.map(({ name, version }) => `${name}@${version}`).sort()]),
  )

describe('the planner', () => {
  it('is behind after an advance that failed, until one succeeds, which needs no further change', () => {
    const made = planner()
    made.state.setConfig('ServiceEntry/ns/a', entry('a', '10.0.0.1'))
    const { builder } = made
    const advance = builder.advance
    builder.advance = () => {
      throw new Error('a passing one')
    }
    made.advance()
    made.advance()
    expect(made.isBehind).to.equal(true)
    builder.advance = advance
    expect([...made.advance().hosts]).to.deep.equal(['a.ns.svc.cluster.local'])
    expect(made.isBehind).to.equal(false)
  })

  it('is behind while a group fails as a whole, which is built again without a further change', () => {
    const made = planner()
    made.state.setConfig('ServiceEntry/ns/a', entry('a', '10.0.0.1'))
    made.advance()
    const { lastGood } = made.builder
    made.builder.lastGood = () => {
      throw new Error('a passing one')
    }
    made.connect('p', node('10.1.0.1', 'one'))
    made.builder.lastGood = lastGood
    const failed = made.faults.all().filter(({ type }) => type === 'group')
    expect([failed.length > 0, made.isBehind]).to.deep.equal([true, true])
    made.advance()
    expect([made.faults.all(), made.isBehind]).to.deep.equal([[], false])
    expect(heldBy(made, 'p')[clusterType]).to.satisfy((names: string[]) => names.some((name) => name.startsWith('outbound|80||a.ns.svc')))
  })

  it('shares between proxies all groups that their differences do not affect', () => {
    const made = planner()
    made.state.setConfig('ServiceEntry/ns/a', entry('a', '10.0.0.1'))
    made.advance()
    made.connect('plain', node('10.1.0.1', 'one'))
    made.connect('zone', node('10.1.0.2', 'one', {}, 'z2'))
    made.connect('idle', node('10.1.0.3', 'one', { IDLE_TIMEOUT: '5s' }))
    made.connect('other', node('10.1.0.4', 'two'))
    made.connect('same', node('10.1.0.5', 'one', { NAME: 'another', SERVICE_ACCOUNT: 'x' }))
    const groups = Object.fromEntries(made.proxies().map(({ connection }) => [connection, made.servedClass(connection)?.manifest?.groups ?? {}]))
    const first: Record<string, string> = {
      [clusterType]: 'clusters-out|',
      [endpointType]: 'endpoints|',
      [listenerType]: 'listeners-out|',
      [routeType]: 'routes-out|of ',
    }
    const groupOf = (connection: string, type: string) => groups[connection]?.[type]?.find(({ group }) => group.startsWith(first[type] ?? ''))?.group
    const shares = (one: string, other: string, type: string) => groupOf(one, type) === groupOf(other, type)
    expect(made.classCount).to.equal(4)
    for (const other of ['zone', 'idle', 'other', 'same']) expect(shares('plain', other, clusterType), `clusters with ${other}`).to.equal(true)
    expect([shares('plain', 'idle', endpointType), shares('plain', 'idle', listenerType), shares('plain', 'idle', routeType)]).to.deep.equal([
      true,
      false,
      true,
    ])
    expect([shares('plain', 'zone', endpointType), shares('plain', 'zone', listenerType), shares('plain', 'zone', routeType)]).to.deep.equal([
      false,
      true,
      true,
    ])
    expect([shares('plain', 'other', listenerType), shares('plain', 'other', routeType)]).to.deep.equal([true, false])
    const before = made.slabs.usage().live
    made.takePush()
    expect(made.slabs.usage().live - before).to.be.lessThan(20_000)
  })

  it('regenerates for a policy only the listeners of the workloads it selects', () => {
    const made = planner()
    made.state.setConfig('ServiceEntry/ns/a', entry('a', '10.1.0.1'))
    made.state.setConfig('ServiceEntry/ns/b', entry('b', '10.1.0.2'))
    made.advance()
    const labels = (app: string) => ({ INTERCEPTION_MODE: 'NONE', LABELS: { app } })
    made.connect('selected', node('10.1.0.1', 'ns', labels('a')))
    made.connect('other', node('10.1.0.2', 'ns', labels('b')))
    made.connect('elsewhere', node('10.1.0.3', 'another', labels('a')))
    made.takePush()
    const changed = (act: () => void) => {
      const states = () => Object.fromEntries(['selected', 'other', 'elsewhere'].map((connection) => [connection, heldBy(made, connection)]))
      const before = states()
      act()
      made.advance()
      const after = states()
      made.takePush()
      return Object.entries(after).flatMap(([connection, types]) =>
        Object.entries(types).flatMap(([type, resources]) =>
          JSON.stringify(before[connection]?.[type]) === JSON.stringify(resources) ? [] : [`${connection} ${type.split('.').at(-1)}`],
        ),
      )
    }
    const change = (kind: string, spec: string) =>
      changed(() => {
        const policy = { ...policyOf(kind), spec: JSON.parse(spec) }
        made.state.setConfig(configKey(policy), policy)
      })
    const selector = '"selector":{"matchLabels":{"app":"a"}}'
    expect(change('AuthorizationPolicy', `{${selector},"action":"DENY","rules":[{}]}`)).to.deep.equal(['selected Listener'])
    expect(change('AuthorizationPolicy', `{${selector},"action":"DENY","rules":[{"to":[{"operation":{"ports":["1"]}}]}]}`)).to.deep.equal([
      'selected Listener',
    ])
    expect(change('AuthorizationPolicy', `{${selector},"action":"DENY","rules":[{"to":[{"operation":{"ports":["1"]}}]}]}`)).to.deep.equal([])
    expect(change('RequestAuthentication', `{${selector},"jwtRules":[{"issuer":"i","jwksUri":"https://i/keys"}]}`)).to.deep.equal([
      'selected Listener',
    ])
    expect(changed(() => made.state.setKeySet('https://i/keys', '{"keys":[{"kid":"k"}]}'))).to.deep.equal(['selected Listener'])
    expect(changed(() => made.state.setKeySet('https://unrelated/keys', '{"keys":[]}'))).to.deep.equal([])
    expect(change('PeerAuthentication', `{${selector},"mtls":{"mode":"STRICT"}}`)).to.deep.equal(['selected Listener'])
  })

  for (const failing of ['advance', 'remake'] as const)
    it(`reclassifies proxies by all changes of a failed push (${failing}) and the next one`, () => {
      const made = planner()
      const fresh = planner()
      made.state.setConfig('ServiceEntry/ns/a', entry('a', '10.0.0.1'))
      made.advance()
      const apps = ['a', 'b', 'c']
      for (const app of apps) made.connect(app, node('10.1.0.1', 'ns', { LABELS: { app } }))
      const select = (of: Planner, app: string) => {
        const spec = { selector: { matchLabels: { app } }, action: 'DENY', rules: [{}] }
        of.state.setConfig('AuthorizationPolicy/ns/p', { ...policyOf('AuthorizationPolicy'), spec })
      }
      select(made, 'a')
      Object.defineProperty(made.builder, failing, {
        configurable: true,
        value: () => {
          throw new Error('once')
        },
      })
      made.advance()
      Reflect.deleteProperty(made.builder, failing)
      expect(made.faults.all().map(({ reason }) => reason)).to.deep.equal(['once'])
      select(made, 'b')
      made.advance()
      expect(made.faults.all()).to.deep.equal([])
      fresh.state.setConfig('ServiceEntry/ns/a', entry('a', '10.0.0.1'))
      select(fresh, 'b')
      fresh.advance()
      for (const app of apps) {
        fresh.connect(app, node('10.1.0.1', 'ns', { LABELS: { app } }))
        expect(heldBy(made, app), app).to.deep.equal(heldBy(fresh, app))
      }
    })

  it('regenerates the inbound listeners of a proxy whose own endpoint changes port or labels', () => {
    const made = planner()
    const own = (port: number, app: string) =>
      objectOf(
        'ServiceEntry',
        'a',
        `{hosts: [a.ns.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.1.0.1, ports: {http: ${port}}, labels: {app: ${app}}}, {address: 10.1.0.2}]}`,
      )
    const policy = policyOf('AuthorizationPolicy')
    made.state.setConfig(configKey(policy), { ...policy, spec: { selector: { matchLabels: { app: 'b' } }, action: 'DENY', rules: [{}] } })
    made.state.setConfig('ServiceEntry/ns/a', own(8080, 'a'))
    made.advance()
    made.connect('own', node('10.1.0.1', 'ns', { INTERCEPTION_MODE: 'NONE' }))
    made.connect('peer', node('10.1.0.2', 'ns', { INTERCEPTION_MODE: 'NONE' }))
    const clusters = () => (heldBy(made, 'own')[clusterType] ?? []).map((held) => held.split('@')[0]).filter((name) => name?.startsWith('inbound'))
    const peerBefore = heldBy(made, 'peer')[listenerType]
    expect(clusters()).to.deep.equal(['inbound|8080||'])
    made.state.setConfig('ServiceEntry/ns/a', own(9090, 'a'))
    expect(made.state.onlyEndpoints).to.equal(true)
    made.advance()
    expect(made.takePush().assignments.map(({ connection }) => connection)).to.include('own')
    expect(clusters()).to.deep.equal(['inbound|9090||'])
    const listeners = heldBy(made, 'own')[listenerType]
    made.state.setConfig('ServiceEntry/ns/a', own(9090, 'b'))
    made.advance()
    expect(heldBy(made, 'own')[listenerType], 'the policy that selects the new label').not.to.deep.equal(listeners)
    expect(sends(made, 'ns[ns]-policy[p]')).to.equal(true)
    expect(heldBy(made, 'peer')[listenerType]).to.deep.equal(peerBefore)
  })

  it('keeps removed clusters for two seconds after their removal, whatever else changes', () => {
    const made = planner()
    for (const name of ['a', 'b', 'c']) made.state.setConfig(`ServiceEntry/ns/${name}`, entry(name, '10.0.0.1'))
    made.advance(0)
    made.connect('p', node('10.1.0.1', 'one'))
    const clusters = () => (heldBy(made, 'p')[clusterType] ?? []).flatMap((held) => /^outbound\|80\|\|(\w)\./.exec(held)?.[1] ?? []).join('')
    const at = (now: number, change: () => void) => {
      change()
      made.advance(now)
      made.sweep(now)
    }
    const remove = (name: string) => made.state.setConfig(`ServiceEntry/ns/${name}`, undefined)
    const churn = (address: string) => made.state.setConfig('ServiceEntry/ns/c', entry('c', address, 81))
    at(1000, () => remove('a'))
    expect([clusters(), made.groups.nextLeaving()]).to.deep.equal(['abc', 3000])
    at(2000, () => remove('b'))
    at(2500, () => churn('10.0.0.9'))
    expect([clusters(), made.groups.nextLeaving()]).to.deep.equal(['abc', 3000])
    at(3000, () => churn('10.0.0.8'))
    expect([clusters(), made.groups.nextLeaving()]).to.deep.equal(['bc', 4000])
    at(3500, () => made.state.setConfig('ServiceEntry/ns/b', entry('b', '10.0.0.1')))
    at(9000, () => churn('10.0.0.7'))
    expect(clusters()).to.equal('b')
  })

  it('regenerates listeners when the service of their external authorizer is created', () => {
    const made = planner()
    const policy = policyOf('AuthorizationPolicy')
    const provider = { name: 'ext', envoyExtAuthzGrpc: { service: 'authz.ns.svc.cluster.local', port: 80 } }
    made.state.setMesh({ ...made.snapshot.mesh, extensionProviders: [provider] })
    made.state.setConfig('ServiceEntry/ns/a', entry('a', '10.1.0.1'))
    made.state.setConfig(configKey(policy), { ...policy, spec: { action: 'CUSTOM', provider: { name: 'ext' }, rules: [{}] } })
    made.advance()
    made.connect('p', node('10.1.0.1', 'ns', { INTERCEPTION_MODE: 'NONE' }))
    const sent = () => sends(made, 'envoy.filters.http.ext_authz')
    expect(sent()).to.equal(false)
    made.state.setConfig('ServiceEntry/ns/authz', entry('authz', '10.1.0.2'))
    made.advance()
    expect(sent()).to.equal(true)
  })

  it('reports an unknown authorizer at once, and one without a service when a proxy needs it', () => {
    const found: string[] = []
    const made = new Planner(testSettings(), ({ resource, reason }) => found.push(`${resource}: ${reason}`))
    const policy = policyOf('AuthorizationPolicy')
    const custom = (name: string) => ({ ...policy, spec: { action: 'CUSTOM', provider: { name }, rules: [{}] } })
    const unknown = 'AuthorizationPolicy/ns/p: the mesh configuration has no extension provider "ext"'
    const set = (objects: readonly ReturnType<typeof custom>[], extensionProviders: object[] = []) => {
      for (const object of objects) made.state.setConfig(configKey(object), object)
      made.state.setMesh({ ...made.snapshot.mesh, extensionProviders: extensionProviders as never })
      made.advance()
      return made.faults.all().map(({ resource, reason }) => `${resource}: ${reason}`)
    }
    expect(set([custom('ext')])).to.deep.equal([unknown])
    expect(set([entry('a', '10.1.0.1') as never])).to.deep.equal([unknown])
    expect(set([], [{ name: 'ext', zipkin: {} }])).to.deep.equal(['AuthorizationPolicy/ns/p: extension provider "ext" is not an external authorizer'])
    expect(set([], [{ name: 'ext', envoyExtAuthzGrpc: { service: 'authz.ns.svc.cluster.local', port: 80 } }])).to.deep.equal([])
    made.connect('p', node('10.1.0.1', 'ns', { INTERCEPTION_MODE: 'NONE' }))
    expect(found.at(-1)).to.equal('AuthorizationPolicy/ns/p: extension provider "ext": there is no service authz.ns.svc.cluster.local')
    const provider = { name: 'ext', envoyExtAuthzGrpc: { service: 'authz.ns.svc.cluster.local', port: 80 } }
    expect(set([entry('authz', '10.1.0.2') as never], [provider]), 'mended').to.deep.equal([])
    expect(set([])).to.deep.equal([unknown])
    expect(found, 'each once for as long as it is there').to.have.length(4)
  })

  it('denies all requests and reports a fault if a policy cannot be expressed in Envoy', () => {
    const made = planner()
    const policy = policyOf('AuthorizationPolicy')
    made.state.setConfig('ServiceEntry/ns/a', entry('a', '10.1.0.1'))
    made.state.setConfig(configKey(policy), { ...policy, spec: { rules: [{ to: [{ operation: { ports: ['70000'] } }] }] } })
    made.advance()
    made.connect('p', node('10.1.0.1', 'ns', { INTERCEPTION_MODE: 'NONE' }))
    expect(sends(made, 'default-deny-all-due-to-policies-that-cannot-be-expressed')).to.equal(true)
    expect(made.faults.all()).to.have.length(1)
    expect(made.faults.all()[0]).to.deep.include({ type: 'policy', objects: ['AuthorizationPolicy/ns/p'] })
  })

  it('gives the same result for any order, repetition and batching of events', () => {
    const last = [
      entry('a', '10.0.0.1'),
      entry('b', '10.0.0.2', 81),
      objectOf('DestinationRule', 'a', '{host: a, subsets: [{name: s, labels: {x: z}}]}'),
      objectOf('VirtualService', 'b', '{hosts: [b], http: [{route: [{destination: {host: a, port: {number: 80}}}]}]}'),
    ]
    const stale = [entry('a', '10.9.9.9', 82), entry('c', '10.0.0.3'), objectOf('VirtualService', 'b', '{hosts: [b], http: [{redirect: {uri: /}}]}')]
    const reference = planner()
    for (const object of last) reference.state.setConfig(configKey(object), object)
    reference.advance()
    reference.connect('p', node('10.1.0.1', 'ns'))
    const wanted = heldBy(reference, 'p')
    fc.assert(
      fc.property(
        fc.shuffledSubarray([...stale, ...last], { minLength: 3 }),
        fc.shuffledSubarray(last, { minLength: last.length }),
        fc.array(fc.boolean(), { minLength: 20, maxLength: 20 }),
        (noise, order, pauses) => {
          const made = planner()
          made.connect('p', node('10.1.0.1', 'ns'))
          let at = 0
          const apply = (key: string, object: (typeof last)[number] | undefined) => {
            made.state.setConfig(key, object)
            if (!pauses[at++ % pauses.length]) return
            made.advance()
            made.takePush()
            if (pauses[at % pauses.length]) made.sweep()
          }
          for (const object of noise) apply(configKey(object), object)
          apply('ServiceEntry/ns/c', undefined)
          for (const object of [...order, ...order]) apply(configKey(object), object)
          made.advance()
          made.sweep()
          expect(heldBy(made, 'p')).to.deep.equal(wanted)
        },
      ),
      { numRuns: runs(150) },
    )
  })
})
