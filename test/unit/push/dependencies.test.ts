/** Reads are recorded, and a change of the state rebuilds the products that read the changed parts. */
import { expect } from 'chai'
import * as fc from 'fast-check'
import { type Collection, Dependencies, type Topic } from '../../../src/push/dependencies/dependencies.ts'

interface State {
  readonly words: ReadonlyMap<string, string>
  readonly wanted: readonly string[]
}

const words: Topic<State, State['words']> = {
  of: (state) => state.words,
  changed: (before, now) => [...new Set([...before.keys(), ...now.keys()])].filter((key) => before.get(key) !== now.get(key)),
}
const wanted: Topic<State, State['wanted']> = { of: (state) => state.wanted }

const state = (entries: Readonly<Record<string, string>>, keys: readonly string[] = ['a', 'b', 'c']): State => ({
  words: new Map(Object.entries(entries)),
  wanted: keys,
})
/** Two products of a record, by name. */
function productsOf(record: Dependencies<State>) {
  const outdated = new Set<string>()
  return { outdated, p: record.product('p', outdated), q: record.product('q', outdated) }
}
const ask = (record: Dependencies<State>, key: string) => record.read(words, key, (map) => map.get(key))

describe('recorded dependencies', () => {
  it('ask only questions again whose answers may have changed', () => {
    const record = new Dependencies(state({ a: '1', b: '1' }))
    const { p, outdated } = productsOf(record)
    let asked: string[] = []
    record.produce(p, () => {
      for (const key of ['a', 'b', 'missing'])
        record.read(words, key, (map) => {
          asked.push(key)
          return map.get(key)
        })
    })
    asked = []
    record.advance(state({ a: '2', b: '1' }))
    expect(asked).to.deep.equal(['a'])
    expect([...outdated]).to.deep.equal(['p'])
    record.produce(p, () => ask(record, 'missing'))
    record.advance(state({ missing: '1' }))
    expect([...outdated]).to.deep.equal(['p'])
  })

  it('list the products that asked a question directly', () => {
    const record = new Dependencies(state({ a: '1' }))
    const { p, q } = productsOf(record)
    record.produce(p, () => ask(record, 'a'))
    record.produce(q, () => record.derived('d', () => ask(record, 'a')))
    expect([...record.askers(words, 'a')]).to.deep.equal(['p'])
    expect([...record.askers(words, 'b')]).to.deep.equal([])
    record.forget(p)
    expect([...record.askers(words, 'a')]).to.deep.equal([])
  })

  it('keep a derived value that is unchanged, and leave its readers current', () => {
    const record = new Dependencies(state({ a: 'x1' }))
    const { p, q, outdated } = productsOf(record)
    const first = () =>
      record.derived(
        'first letter',
        () => ({ letter: ask(record, 'a')?.[0] }),
        (one, other) => one.letter === other.letter,
      )
    let made = first()
    record.produce(p, () => {
      made = first()
    })
    record.advance(state({ a: 'x2' }))
    expect([...outdated]).to.deep.equal([])
    record.produce(q, () => expect(first()).to.equal(made))
    record.advance(state({ a: 'y' }))
    expect([...outdated]).to.deep.equal(['p', 'q'])
  })

  /** A product that joins the words named in `wanted`. Each word is a question of its own. */
  class Joined {
    readonly record: Dependencies<State>
    readonly products: ReturnType<typeof productsOf>
    readonly #collection: Collection<string>
    made: string[] = []
    value = ''

    constructor(from: State) {
      this.record = new Dependencies(from)
      this.products = productsOf(this.record)
      this.#collection = this.record.collection()
    }

    get outdated(): string[] {
      return [...this.#collection.outdated]
    }

    make(): void {
      this.made = []
      this.record.produce(this.products.p, () => {
        this.value = this.record.derived('joined', () => {
          const keys = this.record.read(wanted, '', (list) => list)
          const parts = keys.map((key) => {
            const { value, isNew } = this.#collection.get(key, () => ask(this.record, key) ?? '-')
            if (isNew) this.made.push(key)
            return value
          })
          this.#collection.keep(new Set(keys))
          this.#collection.read()
          return parts.join()
        })
      })
    }
  }

  it('list which values of a collection must be rebuilt', () => {
    const joined = new Joined(state({ a: '1', b: '1' }))
    joined.make()
    expect(joined.made).to.deep.equal(['a', 'b', 'c'])
    joined.record.advance(state({ a: '1', b: '2', c: '1' }))
    expect([...joined.products.outdated]).to.deep.equal(['p'])
    expect(joined.made).to.deep.equal(['a', 'b', 'c', 'b', 'c'])
    expect(joined.outdated).to.deep.equal([])
    joined.make()
    expect(joined.value).to.equal('1,2,1')
    joined.record.advance(state({ a: '1', b: '2', c: '1', d: '1' }))
    expect([...joined.products.outdated]).to.deep.equal([])
  })

  it('drop a collection without readers, and rebuild it for the next reader', () => {
    const joined = new Joined(state({ a: '1', b: '1' }))
    joined.make()
    joined.record.forget(joined.products.p)
    expect(joined.record.questions).to.equal(0)
    joined.record.advance(state({ a: '2', b: '1' }))
    joined.make()
    expect(joined.value).to.equal('2,1,-')
    joined.record.advance(state({ a: '3', b: '1' }))
    expect([...joined.products.outdated]).to.deep.equal(['p'])
  })

  it('lead to the same value as building from scratch, after any history', () => {
    const some = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom('1', '2'))
    const step = fc.record({ entries: some, keys: fc.subarray(['a', 'b', 'c', 'd', 'e']), forgets: fc.boolean() })
    fc.assert(
      fc.property(some, fc.array(step, { maxLength: 8 }), (start, steps) => {
        const joined = new Joined(state(start))
        joined.make()
        for (const { entries, keys, forgets } of steps) {
          joined.record.advance(state(entries, keys))
          if (forgets) joined.record.forget(joined.products.p)
          const now = keys.map((key) => entries[key] ?? '-').join()
          if (!joined.products.p.isCurrent) joined.make()
          expect(joined.value).to.equal(now)
        }
      }),
    )
  })
})
