import { expect } from 'chai'
import { mergePod } from '../../../src/inject/strategic-merge.ts'

describe('a patch of a pod', () => {
  const pod = {
    metadata: { name: 'web', labels: { app: 'web', gone: 'x' }, finalizers: ['a', 'b'] },
    spec: {
      containers: [
        { name: 'app', image: 'app', env: [{ name: 'A', value: '1' }], ports: [{ containerPort: 80, protocol: 'TCP' }] },
        { name: 'other', image: 'other' },
      ],
      volumes: [{ name: 'data', emptyDir: {} }],
      tolerations: [{ key: 'a' }],
    },
  }

  it('merges lists by their keys, puts its elements first, and replaces lists without one', () => {
    const patch = {
      metadata: { labels: { mesh: 'yes', gone: null }, finalizers: ['c'] },
      spec: {
        containers: [
          { name: 'proxy', image: 'proxy' },
          { name: 'other', env: [{ name: 'B', value: '2' }] },
          { name: 'app', env: [{ name: 'A', value: '3' }, { name: 'C' }] },
        ],
        tolerations: [{ key: 'b' }],
      },
    }
    const kept = JSON.stringify([pod, patch])
    expect(mergePod(pod, patch)).to.deep.equal({
      metadata: { name: 'web', labels: { app: 'web', mesh: 'yes' }, finalizers: ['c', 'a', 'b'] },
      spec: {
        containers: [
          { name: 'proxy', image: 'proxy' },
          { name: 'other', image: 'other', env: [{ name: 'B', value: '2' }] },
          { name: 'app', image: 'app', env: [{ name: 'A', value: '3' }, { name: 'C' }], ports: [{ containerPort: 80, protocol: 'TCP' }] },
        ],
        volumes: [{ name: 'data', emptyDir: {} }],
        tolerations: [{ key: 'b' }],
      },
    })
    expect(JSON.stringify([pod, patch])).to.equal(kept)
  })

  it('deletes, replaces and orders by directives', () => {
    const containers = (list: unknown[]) => ({ spec: { containers: list } })
    const names = (patch: object) => ((mergePod(pod, patch).spec as { containers?: { name: string }[] }).containers ?? []).map(({ name }) => name)
    expect(names(containers([{ name: 'app', $patch: 'delete' }]))).to.deep.equal(['other'])
    expect(names(containers([{ $patch: 'replace' }, { name: 'new' }]))).to.deep.equal(['new'])
    expect(names({ spec: { '$setElementOrder/containers': [{ name: 'other' }, { name: 'app' }] } })).to.deep.equal(['other', 'app'])
    expect(mergePod(pod, { metadata: { '$deleteFromPrimitiveList/finalizers': ['a'] } }).metadata).to.deep.include({ finalizers: ['b'] })
    const volume = { name: 'data', hostPath: { path: '/x' }, $retainKeys: ['name', 'hostPath'] }
    expect(mergePod(pod, { spec: { volumes: [volume] } }).spec).to.deep.include({ volumes: [{ name: 'data', hostPath: { path: '/x' } }] })
  })

  it('ends in an error that names the field when it cannot be applied', () => {
    expect(() => mergePod(pod, { spec: { containers: [{ image: 'x' }] } })).to.throw('spec.containers: an element has no name')
    expect(() => mergePod(pod, { spec: { $patch: 'merge' } })).to.throw('spec: $patch is "merge"')
    expect(() => mergePod(pod, { spec: { containers: [{ name: 'app', env: [1] }] } })).to.throw(
      'spec.containers[name="app"].env: elements are of several',
    )
  })

  it('is bounded, and safe from keys with a meaning in JavaScript', () => {
    const hostile = JSON.parse('{"metadata": {"labels": {"__proto__": {"polluted": true}, "constructor": "x"}}, "__proto__": {"polluted": true}}')
    const merged = mergePod(JSON.parse('{"metadata": {"labels": {"__proto__": {"a": 1}}}}'), hostile)
    expect(({} as Record<string, unknown>).polluted).to.equal(undefined)
    expect(JSON.stringify(merged)).to.equal(
      '{"metadata":{"labels":{"__proto__":{"a":1,"polluted":true},"constructor":"x"}},"__proto__":{"polluted":true}}',
    )
    let deep: unknown = 1
    for (let at = 0; at < 100_000; at++) deep = [deep]
    expect(() => mergePod(pod, { spec: deep })).to.throw('the patch is nested deeper than 100 levels')
    expect(() => mergePod(pod, { spec: Array.from({ length: 300_000 }, () => 1) })).to.throw('the patch has more than 200000 values')
    const many = Array.from({ length: 40_000 }, (_, at) => ({ name: `v${at}` }))
    expect((mergePod({ spec: { volumes: many } }, { spec: { volumes: many.toReversed() } }).spec as { volumes: unknown[] }).volumes).to.have.length(
      40_000,
    )
  })
})
