/** Dry runs, held to the planner: what is told is what proxies get when the documents are applied. */
import { expect } from 'chai'
import fc from 'fast-check'
import type { ConfigObject } from '../../../../protocols/data.ts'
import type { DryRun, DryRunRow } from '../../../../protocols/messages/dry-run.ts'
import { configKey } from '../../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../../src/config/parse.ts'
import { readNode } from '../../../../src/model/proxy.ts'
import { dryRun } from '../../../../src/push/dry-run/dry-run.ts'
import { dryRunRows } from '../../../../src/push/dry-run/rows.ts'
import { differing, resourcesOf } from '../../../../src/push/dry-run/tables.ts'
import { Planner } from '../../../../src/push/planner.ts'
import { secretType } from '../../../../src/xds/type-urls.ts'
import { runs } from '../../../harness/seed.ts'
import { names, testSettings } from '../../../harness/settings.ts'

const document = (kind: string, path: string, spec: string) => {
  const [namespace, name] = path.split('/')
  const group = /Policy|Authentication/.test(kind) ? 'security' : 'networking'
  return `apiVersion: ${group}.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}\n`
}
const entry = (path: string, host: string, more = '') =>
  document(
    'ServiceEntry',
    path,
    `{hosts: [${host}], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]${more}}`,
  )

function objectsOf(text: string): readonly ConfigObject[] {
  const { objects, faults } = parseConfigFile('f.yaml', text, names)
  expect(faults).to.deep.equal([])
  return objects
}

const node = (id: string, namespace: string, metadata: object = {}) =>
  readNode(
    { id: `${id}~10.1.0.1~p.${namespace}~${namespace}.svc.cluster.local`, metadata: { NAMESPACE: namespace, ...metadata }, locality: undefined },
    names,
    false,
  )
const nodes = [node('sidecar', 'ns'), node('sidecar', 'other'), node('router', 'edge', { LABELS: { app: 'edge' } })]

function planned(objects: readonly ConfigObject[]): Planner {
  const planner = new Planner(testSettings())
  for (const each of objects) planner.state.setConfig(configKey(each), each)
  planner.advance()
  for (const [index, each] of nodes.entries()) planner.connect(String(index), each)
  return planner
}

const parts = {
  decode: (_: string, message: Uint8Array) => Buffer.from(message).toString('base64'),
  isOver: () => false,
  isMade: ({ name }: ConfigObject) => name === 'made',
}
const order = (text: string, replace = false, namespace = '') => ({ texts: [{ name: 'f.yaml', text }], replace, namespace, others: [], at: 7 })

function run(planner: Planner, text: string, replace = false): DryRun {
  const rows = structuredClone(Array.from(dryRunRows(planner), ([row]): DryRunRow => row))
  return dryRun(rows, order(text, replace), parts)
}

/** What is told of each proxy, by its place among the nodes. */
const told = ({ changed }: DryRun) =>
  nodes.map(({ id }) =>
    changed
      .filter(({ nodeIds }) => nodeIds.includes(id))
      .flatMap(({ resources }) => resources.flatMap(({ typeUrl, name, change }) => (typeUrl === secretType ? [] : [`${change} ${typeUrl} ${name}`])))
      .sort(),
  )

const tableOf = (planner: Planner, index: number) => resourcesOf(planner, planner.servedClass(String(index))?.id ?? '')

describe('a dry run', () => {
  const pool = [
    entry('ns/a', 'a.example'),
    entry('ns/a', 'a.example', ', exportTo: ["."]'),
    entry('other/b', 'b.example'),
    document('VirtualService', 'ns/a', '{hosts: [a.example], http: [{timeout: 1s, route: [{destination: {host: a.example}}]}]}'),
    document('VirtualService', 'ns/a', '{hosts: [a.example], http: [{timeout: 2s, route: [{destination: {host: b.example}}]}]}'),
    document('DestinationRule', 'ns/a', '{host: a.example, trafficPolicy: {connectionPool: {tcp: {maxConnections: 3}}}}'),
    document('Sidecar', 'other/s', '{egress: [{hosts: ["./*"]}]}'),
    document('PeerAuthentication', 'ns/strict', '{mtls: {mode: STRICT}}'),
    document('Gateway', 'edge/g', '{selector: {app: edge}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}'),
  ]
  const some = fc.subarray(pool.map((_, index) => index))

  it('tells of each proxy what it gets when the documents are applied, and nothing else', () => {
    fc.assert(
      fc.property(some, some, fc.boolean(), (first, given, replace) => {
        // One document of each object.
        const joined = (indexes: readonly number[]) =>
          [...new Map(indexes.map((index) => [configKey(objectsOf(pool[index] as string)[0] as ConfigObject), pool[index]])).values()].join('---\n')
        const before = planned(objectsOf(joined(first)))
        const applied = new Map(objectsOf(joined(given)).map((object) => [configKey(object), object]))
        const kept = replace ? [] : objectsOf(joined(first)).filter((object) => !applied.has(configKey(object)))
        const now = planned([...kept, ...applied.values()])
        const expected = nodes.map((_, index) =>
          differing(tableOf(before, index), tableOf(now, index))
            .map((each) => `${each.before ? (each.now ? 'changed' : 'removed') : 'added'} ${each.typeUrl} ${each.name}`)
            .sort(),
        )
        expect(told(run(before, joined(given), replace))).to.deep.equal(expected)
      }),
      { numRuns: runs(150) },
    )
  })

  it('reads objects without a namespace as the place of the configuration does', () => {
    const bare = entry('x/a', 'a.example').replace(', namespace: x', '')
    const namespacesOf = (mesh: Planner, namespace = '', told: readonly string[] = []) => {
      const rows = structuredClone(Array.from(dryRunRows(mesh), ([row]): DryRunRow => row))
      const { faults, objects, sameObjects } = dryRun(rows, order(bare, false, namespace), parts)
      expect(faults.map(({ level, path }) => `${level} ${path}`)).to.deep.equal(told)
      return [...objects.map(({ reference, change }) => `${change} ${reference.namespace}/${reference.name}`), sameObjects]
    }
    const ofFiles = planned(objectsOf(bare))
    const assumed = ['warning metadata.namespace']
    expect([namespacesOf(ofFiles, '', assumed), namespacesOf(ofFiles, 'ns')]).to.deep.equal([[1], ['added ns/a', 0]])
    const stored = (text: string) => planned(objectsOf(text).map((object) => ({ ...object, uid: 'u' })))
    expect(namespacesOf(stored(entry('default/a', 'a.example')))).to.deep.equal([1])
    expect(namespacesOf(stored(entry('ns/a', 'a.example')))).to.deep.equal(['added default/a', 0])
    expect(namespacesOf(stored(entry('ns/a', 'a.example')), 'ns')).to.deep.equal([1])
    expect(namespacesOf(stored('apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n'))).to.deep.equal(['added default/a', 0])
    expect(namespacesOf(stored(entry('ns/made', 'a.example')), '', assumed)).to.deep.equal(['added default/a', 0])
  })

  it('names the secrets that a gateway asks for first, and the last time', () => {
    const tls = (secret: string) =>
      document(
        'Gateway',
        'edge/g',
        `{selector: {app: edge}, servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: ${secret}}}]}`,
      )
    const route = document('VirtualService', 'edge/r', '{hosts: ["*"], gateways: [g], http: [{route: [{destination: {host: a.example}}]}]}')
    const mesh = planned(objectsOf([entry('ns/a', 'a.example'), tls('old'), route].join('---\n')))
    const rows = Array.from(dryRunRows(mesh), ([row]): DryRunRow => row)
    const decode = (_: string, message: Uint8Array) => {
      const names = [
        ...Buffer.from(message)
          .toString('latin1')
          .matchAll(/kubernetes:\/\/\w+/g),
      ].map(([name]) => ({ name, sds_config: {} }))
      return { names }
    }
    const { changed } = dryRun(rows, order(tls('new')), { ...parts, decode })
    const secrets = changed.flatMap(({ resources }) =>
      resources.filter(({ typeUrl }) => typeUrl === secretType).map(({ name, change }) => [name, change]),
    )
    expect(secrets).to.deep.equal([
      ['kubernetes://new', 'added'],
      ['kubernetes://old', 'removed'],
    ])
  })

  it('keeps what the orchestrator added to an object, and what a control plane made', () => {
    const stored = objectsOf(`${entry('ns/a', 'a.example')}---\n${entry('ns/made', 'm.example')}`).map((object) => ({
      ...object,
      ...{ uid: `uid of ${object.name}`, createdAt: 5, resourceVersion: '9', annotations: { 'orch.example/applied': '{}' } },
    }))
    const same = run(planned(stored), entry('ns/a', 'a.example'), true)
    expect([same.sameObjects, same.objects, same.changed, same.unchangedProxies]).to.deep.equal([1, [], [], 3])
  })

  it('leaves an object with a fault as it is, denies what an invalid policy may deny, and tells faults of documents and new ones of the mesh', () => {
    const mesh = planned(objectsOf(entry('ns/a', 'a.example')))
    const wrong = run(
      mesh,
      `${entry('ns/a', 'a.example').replace('number: 80', 'number: x')}---\n${document('AuthorizationPolicy', 'ns/p', '{rules: 3}')}`,
      true,
    )
    expect(wrong.faults.map(({ level, key }) => [level, key])).to.deep.equal([
      ['error', 'ServiceEntry/ns/a'],
      ['error', 'AuthorizationPolicy/ns/p'],
    ])
    expect(wrong.objects).to.deep.equal([])
    expect(wrong.changed.map(({ nodeIds }) => nodeIds)).to.deep.equal([[nodes[0]?.id]])
    const rows = Array.from(dryRunRows(mesh), ([row]): DryRunRow => row)
    const texts = ['c', 'b'].map((name) => ({ name: `${name}.yaml`, text: entry('ns/b', `${name}.example`) }))
    const twice = dryRun(rows, { ...order(''), texts }, parts)
    expect(twice.changed.flatMap(({ resources }) => resources.map(({ name }) => name))).to.include('outbound|80||b.example')
    expect(twice.faults.map(({ level, reason }) => [level, reason])).to.deep.equal([
      ['warning', 'the same object is in b.yaml, document 1; the first one counts: remove one'],
    ])
  })

  it('leaves out proxies for which there is no time', () => {
    const rows = Array.from(dryRunRows(planned([])), ([row]): DryRunRow => row)
    const late = dryRun(rows, order(entry('ns/a', 'a.example')), { ...parts, isOver: () => true })
    expect([late.leftProxies, late.changed]).to.deep.equal([3, []])
  })
})
