import { expect } from 'chai'
import type { GroupUpdate } from '../../../protocols/messages/push.ts'
import { KeyedSums } from '../../../src/xds/slab/sums.ts'
import { Catalog } from '../../../src/xds/stream/catalog.ts'
import { clusterType } from '../../../src/xds/type-urls.ts'
import { wholeGroups } from '../../harness/uses.ts'

/** A push of resources without bytes. `names` are `<name>@<version>`. */
const push = (
  groups: readonly { group: string; base: number; sequence: number; names: readonly string[]; removed?: readonly string[] }[],
  more: { whole?: boolean; classes?: Readonly<Record<string, readonly string[]>>; retiredGroups?: readonly string[] } = {},
) => ({
  whole: more.whole ?? false,
  slabs: [],
  retiredSlabs: [],
  groups: groups.map(
    ({ group, base, sequence, names, removed = [] }): GroupUpdate => ({
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

describe('the catalog of a writer', () => {
  let catalog: Catalog
  const held = (classId = 'class') => Array.from(catalog.typeState(classId, clusterType).entries(), ({ name, version }) => `${name}@${version}`)

  beforeEach(() => {
    catalog = new Catalog(new KeyedSums('key'))
    catalog.apply(push([{ group: 'g', base: 0, sequence: 5, names: ['a@1', 'b@1'] }], { classes: { class: ['g'] } }))
  })

  it('applies a patch to the state that it is based on', () => {
    expect([...catalog.apply(push([{ group: 'g', base: 5, sequence: 6, names: ['a@2'], removed: ['b'] }]))]).to.deep.equal(['g'])
    expect(held()).to.deep.equal(['a@2'])
    expect(catalog.outOfSyncGroups.size).to.equal(0)
  })

  it('rejects a patch to another state: the group is unchanged, the rest of the push is applied', () => {
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

  it('replaces a group that is sent as a whole, which resolves a rejected patch', () => {
    catalog.apply(push([{ group: 'g', base: 4, sequence: 6, names: ['a@2'] }]))
    catalog.apply(push([{ group: 'g', base: 0, sequence: 7, names: ['c@1'] }]))
    expect(held()).to.deep.equal(['c@1'])
    expect(catalog.outOfSyncGroups.size).to.equal(0)
    catalog.apply(push([{ group: 'h', base: 4, sequence: 6, names: [] }]))
    catalog.apply(push([], { retiredGroups: ['h'] }))
    expect(catalog.outOfSyncGroups.size).to.equal(0)
  })

  it('drops on a whole state the groups and classes that it lacks, except classes with proxies', () => {
    catalog.apply(push([{ group: 'old', base: 0, sequence: 6, names: ['o@1'] }], { classes: { left: ['old'] } }))
    const whole = () => push([{ group: 'g', base: 0, sequence: 9, names: ['a@9'] }], { whole: true, classes: { class: ['g'] } })
    catalog.apply(whole(), (classId) => classId === 'left')
    expect([held(), held('left')]).to.deep.equal([['a@9'], ['o@1']])
    catalog.apply(whole(), () => false)
    expect([held(), held('left')]).to.deep.equal([['a@9'], []])
  })

  it('keeps for a class that the whole state lacked only shared groups, once it has no proxies', () => {
    catalog.apply(push([{ group: 'old', base: 0, sequence: 6, names: ['o@1'] }], { classes: { left: ['old', 'g'] } }))
    const whole = push([{ group: 'g', base: 0, sequence: 9, names: ['a@9'] }], { whole: true, classes: { class: ['g'] } })
    catalog.apply(whole, (classId) => classId === 'left')
    catalog.apply(push([]), (classId) => classId === 'left')
    expect(held('left')).to.deep.equal(['o@1', 'a@9'])
    catalog.apply(push([]), () => false)
    expect([held(), held('left')]).to.deep.equal([['a@9'], []])
    // Its own group is gone, so a patch of that group does not fit.
    catalog.apply(push([{ group: 'old', base: 6, sequence: 10, names: ['o@2'] }]))
    expect([...catalog.outOfSyncGroups]).to.deep.equal(['old'])
  })

  it('keeps the groups of such a class although the push queue retires them, until its last proxy is gone', () => {
    catalog.apply(
      push([{ group: 'g', base: 0, sequence: 1, names: ['a@1', 'b@1'] }], { whole: true, classes: { other: ['g'] } }),
      (id) => id === 'class',
    )
    catalog.apply({ ...push([], { retiredGroups: ['g'] }), retiredClasses: ['other'] }, (id) => id === 'class')
    expect([held(), held('other')]).to.deep.equal([['a@1', 'b@1'], []])
    catalog.apply(push([]))
    expect(held()).to.deep.equal([])
  })

  it('keeps a class that the whole state lacked and a later push contains', () => {
    catalog.apply(push([], { whole: true }), () => true)
    catalog.apply(push([{ group: 'g', base: 0, sequence: 9, names: ['a@9'] }], { classes: { class: ['g'] } }), () => true)
    catalog.apply(push([]), () => false)
    expect(held()).to.deep.equal(['a@9'])
  })

  it('forgets rejected patches on a whole state, also of groups that are gone', () => {
    catalog.apply(push([{ group: 'unknown', base: 3, sequence: 7, names: ['x@1'] }]))
    expect([...catalog.outOfSyncGroups]).to.deep.equal(['unknown'])
    catalog.apply(push([{ group: 'g', base: 0, sequence: 9, names: ['a@9'] }], { whole: true, classes: { class: ['g'] } }))
    expect(catalog.outOfSyncGroups.size).to.equal(0)
  })

  it('updates the classes that name a group, whichever arrives first, and drops the group from them when it is retired', () => {
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
