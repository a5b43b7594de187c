import { expect } from 'chai'
import type { GroupPatch } from '../../../protocols/messages/push.ts'
import { KeyedSums } from '../../../src/xds/slab/sums.ts'
import { Catalog } from '../../../src/xds/stream/catalog.ts'
import { clusterType } from '../../../src/xds/type-urls.ts'
import { wholeGroups } from '../../harness/uses.ts'

/** A push of resources without bytes; `names` are `<name>@<version>`. */
const push = (
  groups: readonly { group: string; base: number; sequence: number; names: readonly string[]; removed?: readonly string[] }[],
  more: { whole?: boolean; classes?: Readonly<Record<string, readonly string[]>>; retiredGroups?: readonly string[] } = {},
) => ({
  whole: more.whole ?? false,
  slabs: [],
  retiredSlabs: [],
  groups: groups.map(
    ({ group, base, sequence, names, removed = [] }): GroupPatch => ({
      group,
      base,
      sequence,
      version: String(sequence).padStart(16, '0'),
      changed: names.map((name) => ({ name: name.split('@')[0] as string, version: name.split('@')[1] as string, slices: [] })),
      removed,
    }),
  ),
  retiredGroups: more.retiredGroups ?? [],
  manifests: Object.entries(more.classes ?? {}).map(([classId, ids]) => ({ classId, groups: { [clusterType]: wholeGroups(...ids) } })),
  retiredClasses: [],
})

describe('what a writer takes over', () => {
  let catalog: Catalog
  const held = (classId = 'class') => Array.from(catalog.typeState(classId, clusterType).entries(), ({ name, version }) => `${name}@${version}`)

  beforeEach(() => {
    catalog = new Catalog(new KeyedSums('key'))
    catalog.apply(push([{ group: 'g', base: 0, sequence: 5, names: ['a@1', 'b@1'] }], { classes: { class: ['g'] } }))
  })

  it('is a patch of the state that it has', () => {
    expect([...catalog.apply(push([{ group: 'g', base: 5, sequence: 6, names: ['a@2'], removed: ['b'] }]))]).to.deep.equal(['g'])
    expect(held()).to.deep.equal(['a@2'])
    expect(catalog.outOfSyncGroups.size).to.equal(0)
  })

  it('is not a patch of another state: the group stays as it was, the rest of the push counts', () => {
    const changed = catalog.apply(
      push(
        [
          { group: 'g', base: 4, sequence: 6, names: ['a@2'] },
          { group: 'unknown', base: 3, sequence: 7, names: ['x@1'] },
          { group: 'new', base: 0, sequence: 8, names: ['n@1'] },
        ],
        { classes: { class: ['g', 'unknown', 'new'] } },
      ),
    )
    expect([...changed]).to.deep.equal(['new'])
    expect(held()).to.deep.equal(['a@1', 'b@1', 'n@1'])
    expect([...catalog.outOfSyncGroups]).to.deep.equal(['g', 'unknown'])
    catalog.apply(push([{ group: 'g', base: 6, sequence: 9, names: ['a@3'] }]))
    expect(held()).to.deep.equal(['a@1', 'b@1', 'n@1'])
  })

  it('is a group as a whole, whatever it had, and that ends the misfit', () => {
    catalog.apply(push([{ group: 'g', base: 4, sequence: 6, names: ['a@2'] }]))
    catalog.apply(push([{ group: 'g', base: 0, sequence: 7, names: ['c@1'] }]))
    expect(held()).to.deep.equal(['c@1'])
    expect(catalog.outOfSyncGroups.size).to.equal(0)
    catalog.apply(push([{ group: 'h', base: 4, sequence: 6, names: [] }]))
    catalog.apply(push([], { retiredGroups: ['h'] }))
    expect(catalog.outOfSyncGroups.size).to.equal(0)
  })

  it('is everything at once: groups and classes that are not in it go, except of classes that have proxies', () => {
    catalog.apply(push([{ group: 'old', base: 0, sequence: 6, names: ['o@1'] }], { classes: { left: ['old'] } }))
    const whole = () => push([{ group: 'g', base: 0, sequence: 9, names: ['a@9'] }], { whole: true, classes: { class: ['g'] } })
    catalog.apply(whole(), (classId) => classId === 'left')
    expect([held(), held('left')]).to.deep.equal([['a@9'], ['o@1']])
    catalog.apply(whole(), () => false)
    expect([held(), held('left')]).to.deep.equal([['a@9'], []])
  })

  it('keeps of a class that was not in everything what others name, once it has no proxies', () => {
    catalog.apply(push([{ group: 'old', base: 0, sequence: 6, names: ['o@1'] }], { classes: { left: ['old', 'g'] } }))
    const whole = push([{ group: 'g', base: 0, sequence: 9, names: ['a@9'] }], { whole: true, classes: { class: ['g'] } })
    catalog.apply(whole, (classId) => classId === 'left')
    catalog.apply(push([]), (classId) => classId === 'left')
    expect(held('left')).to.deep.equal(['o@1', 'a@9'])
    catalog.apply(push([]), () => false)
    expect([held(), held('left')]).to.deep.equal([['a@9'], []])
    // Its own group is gone, so that a patch of it fits nothing.
    catalog.apply(push([{ group: 'old', base: 6, sequence: 10, names: ['o@2'] }]))
    expect([...catalog.outOfSyncGroups]).to.deep.equal(['old'])
  })

  it('keeps what such a class names when the push queue gives it up for others, until its last proxy goes', () => {
    catalog.apply(
      push([{ group: 'g', base: 0, sequence: 1, names: ['a@1', 'b@1'] }], { whole: true, classes: { other: ['g'] } }),
      (id) => id === 'class',
    )
    catalog.apply({ ...push([], { retiredGroups: ['g'] }), retiredClasses: ['other'] }, (id) => id === 'class')
    expect([held(), held('other')]).to.deep.equal([['a@1', 'b@1'], []])
    catalog.apply(push([]))
    expect(held()).to.deep.equal([])
  })

  it('keeps a class that was not in everything and is told of later', () => {
    catalog.apply(push([], { whole: true }), () => true)
    catalog.apply(push([{ group: 'g', base: 0, sequence: 9, names: ['a@9'] }], { classes: { class: ['g'] } }), () => true)
    catalog.apply(push([]), () => false)
    expect(held()).to.deep.equal(['a@9'])
  })

  it('is everything at once: what was refused before counts no longer, though the group is gone', () => {
    catalog.apply(push([{ group: 'unknown', base: 3, sequence: 7, names: ['x@1'] }]))
    expect([...catalog.outOfSyncGroups]).to.deep.equal(['unknown'])
    catalog.apply(push([{ group: 'g', base: 0, sequence: 9, names: ['a@9'] }], { whole: true, classes: { class: ['g'] } }))
    expect(catalog.outOfSyncGroups.size).to.equal(0)
  })

  it('reaches the classes that name a group, whether the class or the group comes first, and goes with the group', () => {
    catalog.apply(push([], { classes: { class: ['g', 'late'], other: ['late'] } }))
    expect([held(), held('other')]).to.deep.equal([['a@1', 'b@1'], []])
    const changed = catalog.apply(push([{ group: 'late', base: 0, sequence: 8, names: ['n@1'] }]))
    expect([...catalog.classesOf(changed)]).to.deep.equal(['class', 'other'])
    expect([held(), held('other')]).to.deep.equal([['a@1', 'b@1', 'n@1'], ['n@1']])
    catalog.apply(push([], { classes: { other: ['g'] } }))
    expect([...catalog.classesOf(['late'])]).to.deep.equal(['class'])
    catalog.apply(push([], { retiredGroups: ['late'] }))
    expect([held(), held('other')]).to.deep.equal([
      ['a@1', 'b@1'],
      ['a@1', 'b@1'],
    ])
  })
})
