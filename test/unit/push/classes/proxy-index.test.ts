import { expect } from 'chai'
import type { ConfigObject } from '../../../../protocols/data.ts'
import { destinationRule } from '../../../../src/config/kinds/destination-rule.ts'
import { readNode } from '../../../../src/model/proxy.ts'
import { type ClassInputs, type ConcernedBy, concernedBy, type SelectingKind } from '../../../../src/push/classes/class-inputs.ts'
import { ProxyIndex } from '../../../../src/push/classes/proxy-index.ts'
import { Planner } from '../../../../src/push/planner.ts'
import { names, testSettings } from '../../../harness/settings.ts'

describe('proxies whose class a changed object may affect', () => {
  const index = new ProxyIndex()
  const { snapshot } = new Planner(testSettings())
  const root = snapshot.mesh.rootNamespace
  for (const [type, namespace] of [
    ['sidecar', 'a'],
    ['sidecar', 'b'],
    ['router', 'a'],
    ['router', 'b'],
  ] as const)
    index.add(
      `${type} ${namespace}`,
      readNode({ id: `${type}~10.0.0.1~p.${namespace}~${namespace}.svc`, metadata: {}, locality: undefined }, names, false),
    )
  const all = ['router a', 'router b', 'sidecar a', 'sidecar b']
  const object = (key: string, spec: unknown): ConfigObject => {
    const [kind = '', namespace = '', name = ''] = key.split('/')
    const origin = { source: 'files', cluster: '', uid: '', resourceVersion: '', place: '' }
    return { kind, namespace, name, group: '', version: '', labels: {}, annotations: {}, createdAt: 0, generation: 1, spec, ...origin }
  }
  const concerned = (key: string, spec: unknown = {}, before?: unknown) =>
    [
      ...index.reclassified(snapshot, snapshot, {
        objects: [{ before: before === undefined ? undefined : object(key, before), now: object(key, spec) }],
      }),
    ].sort()

  it("are those of the proxy types the kind selects, within the object's namespace or the whole mesh", () => {
    expect(concerned('AuthorizationPolicy/a/p')).to.deep.equal(['router a', 'sidecar a'])
    expect(concerned(`AuthorizationPolicy/${root}/p`)).to.deep.equal(all)
    expect(concerned('Sidecar/a/s')).to.deep.equal(['sidecar a'])
    expect(concerned(`Sidecar/${root}/s`)).to.deep.equal(['sidecar a', 'sidecar b'])
    expect(concerned('Gateway/a/g')).to.deep.equal(['router a', 'router b'])
    expect(concerned('AuthorizationPolicy/c/p')).to.deep.equal([])
  })

  it('are those with the labels of its selector, before or after the change', () => {
    for (const [connection, labels] of [
      ['sidecar a', { app: 'x', version: '1' }],
      ['router a', { app: 'x' }],
      ['sidecar b', { app: 'x', version: '2' }],
    ] as const)
      index.label(connection, labels)
    const policy = (matchLabels: Record<string, string>) => ({ selector: { matchLabels } })
    const rootPolicy = `AuthorizationPolicy/${root}/p`
    expect(concerned('AuthorizationPolicy/a/p', policy({ version: '1' }))).to.deep.equal(['sidecar a'])
    expect(concerned('AuthorizationPolicy/a/p', policy({ app: 'y' }))).to.deep.equal([])
    expect(concerned(rootPolicy, policy({ app: 'x' }))).to.deep.equal(['router a', 'sidecar a', 'sidecar b'])
    expect(concerned(rootPolicy, policy({ app: 'x', version: '2' }))).to.deep.equal(['sidecar b'])
    expect(concerned(rootPolicy, policy({ app: 'x', other: '2' }))).to.deep.equal([])
    expect(concerned(rootPolicy, policy({ version: '1' }), policy({ version: '2' }))).to.deep.equal(['sidecar a', 'sidecar b'])
    expect(concerned('Gateway/c/g', { selector: { app: 'x' } })).to.deep.equal(['router a'])
    expect(concerned('Sidecar/a/s', { workloadSelector: { matchLabels: { app: 'x' } } })).to.deep.equal(['sidecar a'])
    expect(concerned('EnvoyFilter/a/f', { workloadSelector: { labels: { constructor: 'x' } } })).to.deep.equal([])
    expect(concerned(rootPolicy, null), 'an object that cannot be read').to.deep.equal(all)
    index.label('sidecar a', { app: 'y' })
    expect(concerned(rootPolicy, policy({ app: 'x' })), 'of labels that changed').to.deep.equal(['router a', 'sidecar b'])
    expect(concerned(rootPolicy, policy({ version: '1' }))).to.deep.equal([])
  })

  it('are none for kinds that select no proxies, and all for an undeclared kind', () => {
    for (const key of ['VirtualService/a/v', 'DestinationRule/a/r', 'ServiceEntry/a/s', 'WorkloadEntry/a/w'])
      expect(concerned(key), key).to.deep.equal([])
    expect(concerned('Unheard/a/u')).to.deep.equal(all)
  })

  it('are found for every input of classes, or the types do not compile', () => {
    // @ts-expect-error An input without a row.
    const missing: ConcernedBy<ClassInputs & { readonly other: unknown }> = concernedBy
    // @ts-expect-error A kind that selects no proxies.
    const unselecting: SelectingKind = destinationRule
    expect([missing, unselecting]).to.deep.equal([concernedBy, destinationRule])
  })
})
