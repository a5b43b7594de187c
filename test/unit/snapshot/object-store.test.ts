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

  it('are not changed by an equal definition: of the same uid and version, which is not read, or of the same content', () => {
    const store = new ObjectStore(0)
    const unread = new Proxy({}, { ownKeys: () => expect.fail('the content is read'), get: () => expect.fail('the content is read') })
    const first = { ...object('Gateway', 'a', 0, { value: [1, { b: null }] }), uid: 'u', resourceVersion: '7' }
    const held = () => store.get('Gateway/ns/a')
    expect(store.set('Gateway/ns/a', first)).to.not.equal(undefined)
    expect(store.set('Gateway/ns/a', { ...first, spec: unread, place: 'moved' })).to.equal(undefined)
    expect(held()?.spec).to.equal(first.spec)
    expect(held()?.place).to.equal('moved')
    const { digest } = store
    for (const more of [{ resourceVersion: '8' }, { source: 'other' }, { uid: '', resourceVersion: '' }])
      expect(store.set('Gateway/ns/a', { ...first, ...more, spec: { value: [1, { b: null }] } })).to.equal(undefined)
    expect(held()?.spec).to.equal(first.spec)
    expect(store.digest).to.equal(digest)
    const others = [
      { spec: { value: [1, { b: 0 }] } },
      { labels: { a: 'b' } },
      { createdAt: 1 },
      { spec: { value: [1, {}] } },
      { spec: { value: [1] } },
    ]
    for (const more of others) {
      expect(store.set('Gateway/ns/a', { ...first, resourceVersion: `9 ${JSON.stringify(more)}`, ...more })).to.not.equal(undefined)
      expect(store.set('Gateway/ns/a', first)).to.not.equal(undefined)
    }
  })

  it('have a digest that follows from their content and generation, in any order', () => {
    const [a, b] = [object('Gateway', 'a', 0, { value: 1 }), object('Gateway', 'b', 0, { value: 2 })]
    const ledgerOf = (...objects: ConfigObject[]) => {
      const store = new ObjectStore(0)
      for (const each of objects) store.set(configKey(each), each)
      return store.digest
    }
    expect(ledgerOf(a, b)).to.equal(ledgerOf(b, a))
    expect(ledgerOf(a, b)).to.not.equal(ledgerOf(a, { ...b, spec: { value: 3 } }))
    expect(ledgerOf(a)).to.not.equal(ledgerOf({ ...a, generation: 2 }))
    const versioned = { ...a, uid: 'u', resourceVersion: '1' }
    expect(ledgerOf(versioned)).to.not.equal(ledgerOf({ ...versioned, resourceVersion: '2' }))
    const store = new ObjectStore(0)
    const empty = store.digest
    store.set(configKey(a), a)
    store.set(configKey(a), undefined)
    expect(store.digest).to.equal(empty)
  })

  it('stay in the same list while objects of other kinds change', () => {
    const store = new ObjectStore(0)
    store.set('Gateway/ns/a', object('Gateway', 'a', 0, {}))
    const gateways = store.ofKind('Gateway')
    store.set('Sidecar/ns/a', object('Sidecar', 'a', 0, {}))
    expect(store.ofKind('Gateway')).to.equal(gateways)
  })
})
