import { expect } from 'chai'
import { configKey } from '../../../src/config/kinds.ts'
import { defaultMeshConfig } from '../../../src/config/mesh-config.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { Faults } from '../../../src/model/faults.ts'
import { isNothing, isOnlyEndpoints, type MeshSnapshot } from '../../../src/snapshot/snapshot.ts'
import { MeshState } from '../../../src/snapshot/state.ts'
import { names, testSettings } from '../../harness/settings.ts'

const document = (kind: string, name: string, spec: string, group = 'networking') =>
  `{apiVersion: ${group}.mesh.io/v1, kind: ${kind}, metadata: {name: ${name}, namespace: ns}, spec: ${spec}}`
const entry = (address: string, ports = '[{number: 80, name: http}]') =>
  document('ServiceEntry', 'e', `{hosts: [a.com], resolution: STATIC, ports: ${ports}, endpoints: [{address: ${address}}]}`)
const policy = (mode: string) => document('PeerAuthentication', 'p', `{mtls: {mode: ${mode}}}`, 'security')

describe('snapshots', () => {
  const state = new MeshState(testSettings(), new Faults())
  const set = (text: string) => {
    for (const object of parseConfigFile('f', text, names).objects) state.setConfig(configKey(object), object)
  }
  set(entry('10.0.0.1'))
  set(document('DestinationRule', 'r', '{host: a.com}'))
  set(document('Sidecar', 's', '{egress: [{hosts: ["*/*"]}]}'))
  set(policy('STRICT'))
  state.take(0)

  /** Returns the fields of the snapshot that a change replaced, and the description of the change. */
  const turned = (change: () => void) => {
    const before = state.current
    change()
    const { onlyEndpoints } = state
    const { snapshot, changes } = state.take(0)
    const fields = (Object.keys(snapshot) as (keyof MeshSnapshot)[]).filter((field) => snapshot[field] !== before[field])
    return { fields, changes, onlyEndpoints }
  }

  it('differ only in the fields that a change affects', () => {
    expect(turned(() => set(entry('10.0.0.2'))).fields).to.deep.equal(['services'])
    expect(turned(() => set(entry('10.0.0.2', '[{number: 81, name: http}]'))).fields).to.deep.equal(['services', 'allocated'])
    expect(turned(() => set(policy('PERMISSIVE'))).fields).to.deep.equal(['policies'])
    expect(turned(() => set(document('Sidecar', 's', '{egress: [{hosts: ["./*"]}]}'))).fields).to.deep.equal(['sidecars'])
    expect(turned(() => set(document('DestinationRule', 'r', '{host: b.com}'))).fields).to.deep.equal(['destinationRules'])
    expect(
      turned(() => set(document('Gateway', 'g', '{servers: [{port: {number: 1, protocol: TCP, name: t}, hosts: ["*"]}]}'))).fields,
    ).to.deep.equal(['gateways'])
    expect(turned(() => set(document('WorkloadGroup', 'w', '{template: {}}'))).fields).to.deep.equal([])
    expect(turned(() => state.setMesh({ ...defaultMeshConfig(), rootNamespace: 'other' })).fields).to.deep.equal([
      'mesh',
      'virtualServices',
      'visibility',
    ])
    expect(turned(() => state.setNetworks({ networks: { n: { gateways: [{ address: '1.2.3.4' }] } } })).fields).to.deep.equal([
      'networks',
      'networkGateways',
    ])
    expect(turned(() => state.setKeySet('https://i', '{}')).fields).to.deep.equal(['keySets'])
  })

  it('list each changed object with its previous and present value, however often it changed in between', () => {
    const { changes } = turned(() => {
      set(policy('DISABLE'))
      set(policy('STRICT'))
    })
    const [{ before, now } = { before: undefined, now: undefined }] = changes.objects
    expect([changes.objects.length, before?.spec, now?.spec]).to.deep.equal([1, { mtls: { mode: 'PERMISSIVE' } }, { mtls: { mode: 'STRICT' } }])
    expect(turned(() => state.setConfig('PeerAuthentication/ns/p', undefined)).changes.objects).to.deep.equal([{ before: now, now: undefined }])
  })

  it('list no object that came and went in between', () => {
    const { changes, onlyEndpoints } = turned(() => {
      set(document('DestinationRule', 'brief', '{host: a.com}'))
      state.setConfig('DestinationRule/ns/brief', undefined)
    })
    expect([changes.objects, onlyEndpoints, isNothing(changes)]).to.deep.equal([[], true, true])
  })

  it('name the key sources as the same set until a RequestAuthentication changes', () => {
    const tokens = (issuer: string) => document('RequestAuthentication', 't', `{jwtRules: [{issuer: ${issuer}}]}`, 'security')
    set(tokens('https://a'))
    const known = state.keySources()
    set(entry('10.0.0.9', '[{number: 81, name: http}]'))
    expect(state.keySources()).to.equal(known)
    set(tokens('https://b'))
    expect([[...known.keys()], [...state.keySources().keys()]]).to.deep.equal([['openid:https://a'], ['openid:https://b']])
    state.setConfig('RequestAuthentication/ns/t', undefined)
    expect([...state.keySources()]).to.deep.equal([])
    state.take(0)
  })

  it('report whether only endpoints changed', () => {
    const endpoints = turned(() => set(entry('10.0.0.3', '[{number: 81, name: http}]')))
    expect([endpoints.onlyEndpoints, isOnlyEndpoints(endpoints.changes), [...endpoints.changes.hosts]]).to.deep.equal([true, true, ['a.com']])
    const service = turned(() => set(entry('10.0.0.3', '[{number: 82, name: http}]')))
    expect([service.onlyEndpoints, isOnlyEndpoints(service.changes), [...service.changes.services]]).to.deep.equal([false, false, ['a.com']])
    // Pods come and go with their endpoints.
    const pod = 'apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ns, labels: {a: b}}\nspec: {nodeName: node}\nstatus: {podIP: 10.0.0.4}'
    const pods = turned(() => set(pod))
    expect([pods.onlyEndpoints, pods.changes.pods]).to.deep.equal([true, true])
    const keys = turned(() => state.setKeySet('https://i', '{"keys":[]}'))
    expect([keys.onlyEndpoints, isOnlyEndpoints(keys.changes)]).to.deep.equal([false, false])
    expect(isNothing(turned(() => set(entry('10.0.0.3', '[{number: 82, name: http}]'))).changes)).to.equal(true)
  })
})
