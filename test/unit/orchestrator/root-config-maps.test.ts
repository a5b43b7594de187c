import { expect } from 'chai'
import fc from 'fast-check'
import { type DueWrite, RootConfigMaps, rootsDigest } from '../../../src/orchestrator/root-config-maps.ts'
import { runs } from '../../harness/seed.ts'

const active = (held?: string) => ({ uid: '1', isActive: true, held })

/** All that is due at a time, as if it were written at once. */
function due(maps: RootConfigMaps, now: number, digest = 'new'): string[] {
  const found: string[] = []
  for (let write = maps.next(now); write; write = maps.next(now)) {
    found.push(write.namespace)
    maps.written(write, digest, now)
  }
  return found
}

describe('the ConfigMaps with the root certificates', () => {
  it('are written where they are missing, differ, or have lost their label, those that are missing first', () => {
    const maps = new RootConfigMaps()
    maps.set('ending', { uid: '1', isActive: false, held: undefined }, 0)
    for (const [name, held] of Object.entries({ a: 'old', b: 'new', c: undefined })) maps.set(name, active(held), 0)
    expect(due(maps, 0)).to.deep.equal([])
    maps.want('new')
    expect(maps.counts).to.deep.equal({ namespaces: 3, outdated: 2 })
    expect(due(maps, 0)).to.deep.equal(['c', 'a'])
    expect([due(maps, 0), maps.waitMs(0), maps.counts.outdated]).to.deep.equal([[], undefined, 0])
    expect(rootsDigest('x', true)).not.to.equal(rootsDigest('x', false))
    maps.want('newer')
    expect(due(maps, 0, 'newer')).to.deep.equal(['a', 'b', 'c'])
  })

  it('are written again at once when somebody changes or removes them, and with pauses when that goes on', () => {
    const maps = new RootConfigMaps()
    maps.want('new')
    maps.set('a', active(), 0)
    expect(due(maps, 0)).to.deep.equal(['a'])
    for (let time = 1; time <= 3; time++) {
      maps.set('a', active(time === 2 ? undefined : 'edited'), time)
      expect(due(maps, time)).to.deep.equal(['a'])
    }
    maps.set('a', active('edited'), 4)
    expect([due(maps, 4), maps.waitMs(4)]).to.deep.equal([[], 1000])
    expect(due(maps, 1004)).to.deep.equal(['a'])
    maps.set('a', active('edited'), 1005)
    expect([due(maps, 1005), maps.waitMs(1005)]).to.deep.equal([[], 2000])
    maps.set('a', active('edited'), 100_000_000)
    expect(due(maps, 100_000_000), 'after a while it is at once again').to.deep.equal(['a'])
  })

  it('are all left alone for a while when the role or the server does not permit them, and one alone when it is refused', () => {
    const maps = new RootConfigMaps()
    maps.want('new')
    for (const name of ['a', 'b', 'c']) maps.set(name, active(), 0)
    for (const name of [maps.next(0), maps.next(0)] as DueWrite[]) maps.failed(name, true, 0, 0)
    expect([maps.next(0), maps.waitMs(0)]).to.deep.equal([undefined, 1000])
    maps.failed(maps.next(1000) as DueWrite, true, 1000, 0)
    expect(maps.waitMs(1000)).to.equal(2000)
    maps.failed(maps.next(3000) as DueWrite, false, 3000, 0)
    expect(due(maps, 3000)).to.have.length(2)
    expect(maps.waitMs(3000)).to.equal(1000)
    expect([due(maps, 4000).length, maps.counts.outdated]).to.deep.equal([1, 0])
  })

  it('are not written in a namespace that ends meanwhile, until it is told of again', () => {
    const maps = new RootConfigMaps()
    maps.want('new')
    maps.set('a', active(), 0)
    maps.gone(maps.next(0) as DueWrite)
    expect([maps.next(0), maps.waitMs(0)]).to.deep.equal([undefined, undefined])
    maps.set('a', undefined, 1)
    maps.set('a', active(), 2)
    expect(due(maps, 2)).to.deep.equal(['a'])
  })

  it('are written in a namespace that was said to be gone with other roots and in another term, if the watcher still knows it', () => {
    const maps = new RootConfigMaps()
    maps.want('new')
    maps.set('a', active(), 0)
    maps.set('ending', { uid: '2', isActive: false, held: undefined }, 0)
    maps.gone(maps.next(0) as DueWrite)
    expect([maps.next(0), maps.counts.namespaces]).to.deep.equal([undefined, 0])
    maps.again()
    expect(maps.counts).to.deep.equal({ namespaces: 1, outdated: 1 })
    maps.gone(maps.next(0) as DueWrite)
    expect(maps.next(0)).to.equal(undefined)
    maps.want('newer')
    expect(due(maps, 0, 'newer')).to.deep.equal(['a'])
  })

  for (const [how, isTold] of Object.entries({ 'is deleted and made again': true, 'has become another, as a listing tells': false }))
    it(`are written in a namespace that ${how} while a write is under way, whatever becomes of that`, () => {
      const ends = [
        (maps: RootConfigMaps, write: DueWrite) => maps.written(write, 'new', 2),
        (maps: RootConfigMaps, write: DueWrite) => maps.gone(write),
        (maps: RootConfigMaps, write: DueWrite) => maps.untried(write),
        (maps: RootConfigMaps, write: DueWrite) => maps.failed(write, false, 2, 0),
      ]
      for (const end of ends)
        for (const isBegun of [false, true]) {
          const maps = new RootConfigMaps()
          maps.want('new')
          maps.set('a', active(), 0)
          const write = maps.next(0) as DueWrite
          if (isTold) maps.set('a', undefined, 1)
          maps.set('a', { ...active(), uid: '2' }, 1)
          const second = isBegun ? maps.next(1) : undefined
          end(maps, write)
          if (second) maps.untried(second)
          expect(maps.counts).to.deep.equal({ namespaces: 1, outdated: 1 })
          expect(due(maps, 2)).to.deep.equal(['a'])
        }
    })

  it('hold what is wanted in the end, whatever happens, and none is written twice at a time', () => {
    const names = ['a', 'b', 'c']
    const step = fc.oneof(
      fc.record({ do: fc.constant('want' as const), digest: fc.constantFrom('x', 'y') }),
      fc.record({ do: fc.constant('set' as const), name: fc.constantFrom(...names), held: fc.constantFrom('x', 'y', undefined) }),
      fc.record({ do: fc.constant('begin' as const) }),
      fc.record({ do: fc.constant('end' as const), how: fc.constantFrom('written', 'failed', 'common', 'untried') }),
      fc.record({ do: fc.constant('again' as const) }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const maps = new RootConfigMaps()
        const underWay: (DueWrite & { digest: string })[] = []
        let wanted = 'x'
        let now = 0
        maps.want(wanted)
        for (const name of names) maps.set(name, active(), now)
        const begin = () => {
          const write = maps.next(now)
          if (!write) return
          expect(underWay.map((one) => one.namespace)).not.to.include(write.namespace)
          underWay.push({ ...write, digest: wanted })
        }
        const end = (how: string) => {
          const one = underWay.shift()
          if (!one) return
          if (how === 'written') maps.written(one, one.digest, now)
          else if (how === 'untried') maps.untried(one)
          else maps.failed(one, how === 'common', now, 0)
        }
        for (const one of steps) {
          now += 100
          if (one.do === 'want') maps.want((wanted = one.digest))
          else if (one.do === 'set') maps.set(one.name, active(one.held), now)
          else if (one.do === 'begin') begin()
          else if (one.do === 'again') maps.again()
          else end(one.how)
        }
        while (underWay.length > 0) end('written')
        for (let round = 0; maps.waitMs(now) !== undefined; round++) {
          expect(round).to.be.below(20)
          now += maps.waitMs(now) as number
          begin()
          end('written')
        }
        expect(maps.counts).to.deep.equal({ namespaces: 3, outdated: 0 })
      }),
      { numRuns: runs(2000) },
    )
  })
})
