import { expect } from 'chai'
import fc from 'fast-check'
import type { ConfigObject } from '../../../protocols/data.ts'
import { configKey, kindId } from '../../../src/config/kinds.ts'
import { byAge } from '../../../src/model/order.ts'
import { ObjectStore } from '../../../src/snapshot/object-store.ts'

const object = (kind: string, name: string, createdAt: number, spec: object): ConfigObject => ({
  group: 'networking.mesh.io',
  version: 'v1',
  kind,
  namespace: 'ns',
  name,
  source: 'files',
  cluster: '',
  uid: '',
  resourceVersion: '',
  place: '',
  generation: 0,
  createdAt,
  labels: {},
  annotations: {},
  spec,
})

const change = fc.record({
  kind: fc.constantFrom('Gateway', 'Sidecar'),
  name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
  createdAt: fc.nat(3),
  value: fc.nat(3),
  removes: fc.boolean(),
  lists: fc.boolean(),
})

describe('the objects of a kind', () => {
  it('are listed the oldest first after any history, in the same list until one of them is set', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
        const store = new ObjectStore(0)
        for (const { kind, name, createdAt, value, removes, lists } of changes) {
          const before = lists ? store.ofKind(kind) : undefined
          if (before) expect(store.ofKind(kind)).to.equal(before)
          store.set(`${kind}/ns/${name}`, removes ? undefined : object(kind, name, createdAt, { value }))
          if (!lists) continue
          const sorted = store.all().filter((each) => each.kind === kind)
          expect(store.ofKind(kind)).to.deep.equal(sorted.sort(byAge))
        }
        for (const kind of ['Gateway', 'Sidecar'])
          expect(store.ofKind(kind)).to.deep.equal(
            store
              .all()
              .filter((each) => each.kind === kind)
              .sort(byAge),
          )
      }),
    )
  })

  it('are not mixed with those of a kind of the same name in another group', () => {
    const store = new ObjectStore(0)
    const own = object('Gateway', 'a', 0, {})
    const foreign = { ...object('Gateway', 'a', 0, {}), group: 'gateway.networking.k8s.io' }
    for (const each of [own, foreign]) store.set(configKey(each), each)
    expect(store.all()).to.have.length(2)
    for (const each of [own, foreign]) expect(store.ofKind(kindId(each)).map(({ group }) => group)).to.deep.equal([each.group])
    store.set(configKey(foreign), undefined)
    expect(store.ofKind(kindId(own)).map(({ group }) => group)).to.deep.equal([own.group])
  })

  it('stay in the same list while objects of other kinds change', () => {
    const store = new ObjectStore(0)
    store.set('Gateway/ns/a', object('Gateway', 'a', 0, {}))
    const gateways = store.ofKind('Gateway')
    store.set('Sidecar/ns/a', object('Sidecar', 'a', 0, {}))
    expect(store.ofKind('Gateway')).to.equal(gateways)
  })
})
